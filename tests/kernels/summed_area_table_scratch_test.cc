#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "kernels/core/float16.h"
#include "kernels/summed_area_table/summed_area_table.h"

// How much scratch memory look-back takes on a GPU, of the bytes of image and table; other methods take none.
// That they take what they say is seen wherever they are built.

namespace cumulus {
namespace {

template <class Input, class Sum>
double share(std::int64_t side, int channels, bool squares) {
  const auto plan = summed_area_table::plan_look_back({.types = summed_area_table::kElementPair<Input, Sum>,
                                                       .height = side,
                                                       .width = side,
                                                       .channels = channels,
                                                       .squares = squares});
  const auto elements = static_cast<double>(side * side * channels);
  return static_cast<double>(plan.scratch_bytes()) /
         (elements * static_cast<double>(sizeof(Input) + sizeof(Sum) * (squares ? 2 : 1)));
}

template <class Input, class Sum>
void expect_small_shares() {
  for (const std::int64_t side : {1024, 4096, 16384}) {
    for (const int channels : {1, 2, 3, 4}) {
      SCOPED_TRACE(std::to_string(side) + ", " + std::to_string(channels) + " channels");
      const bool doubles = sizeof(Input) == 8;
      const double most = channels > 1 && !doubles ? 0.072 : doubles ? 0.033 : 0.03;
      EXPECT_LT((share<Input, Sum>(side, channels, false)), most);
      if constexpr (kSumsSquares<Input, Sum>) {
        EXPECT_LT((share<Input, Sum>(side, channels, true)), doubles ? 0.043 : 0.036);
      }
    }
  }
}

TEST(SummedAreaTableScratch, IsAFewHundredthsOfImageAndTable) {
  expect_small_shares<std::uint8_t, std::uint32_t>();
  expect_small_shares<std::uint8_t, std::uint64_t>();
  expect_small_shares<std::uint16_t, std::uint32_t>();
  expect_small_shares<std::uint16_t, std::uint64_t>();
  expect_small_shares<std::uint32_t, std::uint64_t>();
  expect_small_shares<std::int32_t, std::int64_t>();
  expect_small_shares<Float16, float>();
  expect_small_shares<Float16, double>();
  expect_small_shares<float, float>();
  expect_small_shares<float, double>();
  expect_small_shares<double, double>();
}

TEST(SummedAreaTableScratch, IsNoneOnTheCpu) {
  TableJob<float, double, Space::kHost> job;
  job.image = {nullptr, 4096, 4096, 3};
  job.sums = {nullptr, 4096, 4096, 3};
  job.planes = 5;
  EXPECT_EQ(build_summed_area_table_scratch_bytes(job, {}), 0u);
}

}  // namespace
}  // namespace cumulus
