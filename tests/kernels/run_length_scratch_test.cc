#include <gtest/gtest.h>

#include <cstdint>

#include "kernels/run_length/run_length.h"
#include "tests/cases/run_length_case.h"

// How much scratch memory the coders take, of the bytes that any method must move. That they take what they
// say is seen wherever they are tested.

namespace cumulus {
namespace {

/// Of the smallest GPU, whose tiles are the smallest.
constexpr DeviceNumbers kGpu = {.block_shared_bytes = 64 * 1024};
constexpr std::int64_t kElements = std::int64_t{1} << 24;

double share(std::size_t scratch_bytes, const RunLengthFormat& format, std::int64_t runs) {
  return static_cast<double>(scratch_bytes) /
         static_cast<double>(testing::run_length_bytes(format, kElements, runs));
}

template <Space S>
double decode_share(int element_bytes, std::int64_t mean_run) {
  const RunLengthFormat format{element_bytes, 4, RunLengthForm::kCounts};
  const std::int64_t runs = kElements / mean_run;
  return share(decode_run_lengths_scratch_bytes<S>({format, runs, kElements}), format, runs);
}

TEST(RunLengthScratch, OfEncodersIsBelowAFiftieth) {
  for (const int element_bytes : testing::kRunElementBytes) {
    const RunLengthFormat format{element_bytes, 4, RunLengthForm::kCounts};
    const EncodeRunLengthsParams params{.format = format, .elements = kElements, .max_runs = kElements};
    EXPECT_LT(share(encode_run_lengths_scratch_bytes<Space::kDevice>(params, kGpu), format, 1), 0.003);
    EXPECT_EQ(encode_run_lengths_scratch_bytes<Space::kHost>(params, kGpu), 0u);
  }
}

TEST(RunLengthScratch, OfDecodersIsBelowAFiftiethOfLongRunsAndATenthOfAll) {
  for (const int element_bytes : testing::kRunElementBytes) {
    SCOPED_TRACE(element_bytes);
    EXPECT_LT(decode_share<Space::kDevice>(element_bytes, 22), 0.02);
    EXPECT_LT(decode_share<Space::kDevice>(element_bytes, 1), 0.09);
    EXPECT_LT(decode_share<Space::kHost>(element_bytes, 1), 0.002);
  }
  EXPECT_LT(decode_share<Space::kDevice>(4, 7), 0.02);
  EXPECT_LT(decode_share<Space::kDevice>(4, 1), 0.045);
}

}  // namespace
}  // namespace cumulus
