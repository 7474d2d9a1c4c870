// Single rows that would each take longer than a slice of a call may.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/sampling_table/sampling_table.h"
#include "tests/cases/sampling_table_case.h"
#include "tests/support/executors.h"
#include "tests/support/impatient_turns.h"
#include "tests/support/sampling_table_builds.h"

namespace cumulus {
namespace {

using testing::build_table;
using testing::make_map;
using testing::MapPattern;
using testing::MapShape;
using testing::OneThread;

constexpr MapShape kLongRow{1, 300001};

TEST(LongRows, HaveTheOraclesBytesInSlices) {
  OneThread backend;
  for (const MapPattern pattern :
       {MapPattern::kRandom, MapPattern::kConstant, MapPattern::kZeroBands, MapPattern::kAllScales}) {
    for (const int method : testing::kSamplingMethods) {
      SCOPED_TRACE(std::string(name_of(pattern)) + ", method " + std::to_string(method));
      const auto map = make_map<float>(kLongRow, 1, 0, pattern);
      testing::ImpatientTurns turns;
      const SlicedCall sliced(turns);
      const auto built = build_table(backend, map, {.method = static_cast<sampling::Method>(method)});
      EXPECT_EQ(verify_sampling_table(oracle_table(map, {.method = method}), built.table.data()), "");
    }
  }
}

/// In one piece, a row is nearly all of the time.
TEST(LongRows, AreBuiltInSlices) {
  const auto map = make_map<float>({1, 1 << 22}, 1, 0, MapPattern::kRandom);
  OneThread backend;
  for (const int method : testing::kSamplingMethods) {
    testing::ImpatientTurns turns;
    const SlicedCall sliced(turns);
    build_table(backend, map, {.method = static_cast<sampling::Method>(method)});
    EXPECT_LE(turns.longest_share(), 0.3) << method;
  }
}

/// The table of a long row whose weights depend on their mean: in one piece, and in slices.
void expect_reduction_in_slices(MapPattern pattern, bool uniform_if_all_zero) {
  const auto map = make_map<float>(kLongRow, 1, 0, pattern);
  const SamplingTableParams params{.mis_compensation = true, .uniform_if_all_zero = uniform_if_all_zero};
  OneThread backend;
  const std::vector<unsigned char> at_once = build_table(backend, map, params).table;
  testing::ImpatientTurns turns;
  const SlicedCall sliced(turns);
  EXPECT_TRUE(build_table(backend, map, params).table == at_once);
  EXPECT_GE(turns.slices(), 3);
}

TEST(LongRows, AreReducedInSlicesToTheSameTable) {
  for (const MapPattern pattern :
       {MapPattern::kRandom, MapPattern::kSun, MapPattern::kZeroBands, MapPattern::kAllScales}) {
    SCOPED_TRACE(testing::name_of(pattern));
    expect_reduction_in_slices(pattern, true);
    expect_reduction_in_slices(pattern, false);
  }
}

/// In one piece, the search for the largest weight and the sum are a twelfth of the time and more.
TEST(LongRows, AreReducedInSlices) {
  const auto map = make_map<float>({1, 1 << 22}, 1, 0, MapPattern::kRandom);
  OneThread backend;
  testing::ImpatientTurns turns;
  const SlicedCall sliced(turns);
  build_table(backend, map, {.mis_compensation = true});
  EXPECT_LE(turns.longest_share(), 0.04);
}

}  // namespace
}  // namespace cumulus
