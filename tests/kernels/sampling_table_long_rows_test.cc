// Single rows that would each take longer than a slice of a call may.
#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace cumulus
