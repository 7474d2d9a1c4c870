#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "kernels/sampling_table/sampling_table.h"
#include "tests/cases/sampling_table_case.h"
#include "tests/support/executors.h"
#include "tests/support/sampling_table_builds.h"

// Rows of thousands of columns, more of them than a GPU builds at once.

namespace cumulus {
namespace {

using testing::build_table;
using testing::BuiltTable;
using testing::make_map;
using testing::map_patterns;
using testing::MapPattern;
using testing::MapShape;
using testing::name_of;
using testing::TestMap;
using Outcome = SamplingTableReport::Outcome;

constexpr MapShape kWideRows{160, 8224};

template <class Backend>
class SamplingTableOfWideRows : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(SamplingTableOfWideRows, testing::Backends, testing::BackendNames);

TYPED_TEST(SamplingTableOfWideRows, HasTheOraclesBytes) {
  for (const MapPattern pattern : map_patterns<float>()) {
    const auto map = make_map<float>(kWideRows, 1, 0, pattern);
    const BuiltTable built = build_table(this->backend(), map, {});
    EXPECT_EQ(verify_sampling_table(oracle_table(map, true), built.table.data()), "") << name_of(pattern);
  }
}

TYPED_TEST(SamplingTableOfWideRows, HasTheOraclesBytesByEveryMethod) {
  const auto map = make_map<float>(kWideRows, 1, 0, MapPattern::kZeroBands);
  for (const int method : testing::kSamplingMethods) {
    const BuiltTable built =
        build_table(this->backend(), map, {.method = static_cast<sampling::Method>(method)});
    EXPECT_EQ(verify_sampling_table(oracle_table(map, {.method = method}), built.table.data()), "") << method;
  }
}

TYPED_TEST(SamplingTableOfWideRows, HasTheOraclesBytesWithAnyGuide) {
  for (const MapShape shape : {MapShape{7, 16384}, MapShape{150, 1536}}) {
    for (const std::uint32_t size : {32u, 992u, 4096u, 32768u}) {
      for (const MapPattern pattern : {MapPattern::kRandom, MapPattern::kPowers, MapPattern::kAllScales}) {
        const auto map = make_map<float>(shape, 1, 0, pattern);
        const BuiltTable built = build_table(this->backend(), map, {.row_guide_size = size});
        const auto oracle = oracle_table(map, {.row_guide_size = size});
        EXPECT_EQ(verify_sampling_table(oracle, built.table.data()), "")
            << shape.width << " columns, " << size << " guide cells, " << name_of(pattern);
      }
    }
  }
}

TYPED_TEST(SamplingTableOfWideRows, ReportsOrClampsTheFirstInvalidWeight) {
  TestMap<float> map = make_map<float>(kWideRows, 1, 0, MapPattern::kRandom);
  TestMap<float> valid = map;
  map.at(151, 8001) = std::numeric_limits<float>::infinity();
  valid.at(151, 8001) = std::numeric_limits<float>::max();
  map.at(3, 8223) = -1.0F;
  valid.at(3, 8223) = 0.0F;
  BuiltTable built = build_table(this->backend(), map, {});
  EXPECT_EQ(built.report.outcome, Outcome::kInvalidWeight);
  EXPECT_EQ(built.report.y, 3);
  EXPECT_EQ(built.report.x, 8223);
  built = build_table(this->backend(), map, {.invalid_weights = InvalidWeights::kClamp});
  EXPECT_EQ(built.report.outcome, Outcome::kBuilt);
  EXPECT_EQ(verify_sampling_table(oracle_table(valid, true), built.table.data()), "");
}

}  // namespace
}  // namespace cumulus
