#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/run_length/run_length.h"
#include "kernels/run_length/tuning.h"
#include "tests/cases/run_length_case.h"
#include "tests/support/executors.h"

// Arrays that the CPU decoder writes past the caches, a line at a time.

namespace cumulus {
namespace {

using testing::EncodedRuns;
using testing::make_run_array;
using testing::naive_encode;
using testing::RunArray;
using testing::RunPattern;

constexpr std::byte kPoison{0xA5};
constexpr std::size_t kGuardBytes = 64;

/// Decodes to so many bytes behind the beginning of a line; nothing before or behind the array is touched.
void expect_decoded_at(std::size_t offset, CpuExecutor& executor, const RunArray& array,
                       const EncodedRuns& runs, const DecodeRunLengthsParams& params) {
  const HostMemory memory = executor.allocate(offset + array.bytes.size() + kGuardBytes);
  ASSERT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % run_length::kLineBytes, 0u);
  std::memset(memory.data(), static_cast<int>(kPoison), memory.bytes());
  DecodeRunLengthsReport report;
  executor.reserve_scratch(decode_run_lengths_scratch_bytes<Space::kHost>(params));
  decode_run_lengths(executor, params, {runs.symbols.data(), runs.symbols.size()},
                     {runs.lengths.data(), runs.lengths.size()}, {memory.data() + offset, array.bytes.size()},
                     &report);
  EXPECT_EQ(report.elements, array.count);
  const auto untouched = [](const std::byte* first, std::size_t count) {
    return std::all_of(first, first + count, [](std::byte byte) { return byte == kPoison; });
  };
  EXPECT_TRUE(untouched(memory.data(), offset));
  EXPECT_TRUE(untouched(memory.data() + offset + array.bytes.size(), kGuardBytes));
  EXPECT_EQ(std::memcmp(memory.data() + offset, array.bytes.data(), array.bytes.size()), 0);
}

TEST(RunLengthStreamed, DecodesLargeArraysWhereverTheyBegin) {
  testing::CpuBackend backend;
  for (const int element_bytes : testing::kRunElementBytes) {
    const RunArray array =
        make_run_array(RunPattern::kMixed, element_bytes, run_length::kStreamedBytes / element_bytes + 77);
    for (const RunLengthForm form : {RunLengthForm::kCounts, RunLengthForm::kEnds}) {
      const RunLengthFormat format{element_bytes, 4, form};
      const EncodedRuns runs = naive_encode(array, format, 0);
      const auto count = static_cast<std::int64_t>(runs.lengths.size() / 4);
      for (const std::size_t offset : {0, 16}) {
        SCOPED_TRACE(std::to_string(element_bytes) + " bytes, " + std::to_string(offset) + " behind a line");
        expect_decoded_at(offset, backend.executor(), array, runs, {format, count, array.count});
      }
    }
  }
}

}  // namespace
}  // namespace cumulus
