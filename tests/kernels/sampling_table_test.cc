#include "kernels/sampling_table/sampling_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "tests/cases/sampling_table_case.h"
#include "tests/support/executors.h"
#include "tests/support/sampling_table_builds.h"

namespace cumulus {
namespace {

using sampling::Projection;
using testing::BackendArray;
using testing::build_table;
using testing::BuiltTable;
using testing::kExtremeShapes;
using testing::kSamplingTableShapes;
using testing::make_map;
using testing::map_patterns;
using testing::MapPattern;
using testing::MapShape;
using testing::OracleTable;
using testing::TestMap;
using Outcome = SamplingTableReport::Outcome;

std::string describe(MapShape shape, std::int64_t channels, std::int64_t padding, MapPattern pattern) {
  return std::string(name_of(pattern)) + ", " + std::to_string(shape.height) + " x " +
         std::to_string(shape.width) + " x " + std::to_string(channels) + ", rows padded by " +
         std::to_string(padding);
}

template <class T, class Backend>
void expect_the_oracles_bytes(Backend& backend, MapShape shape, std::int64_t channels, std::int64_t padding,
                              MapPattern pattern, int method = 6) {
  const auto map = make_map<T>(shape, channels, padding, pattern);
  for (const Projection projection : {Projection::kLatLong, Projection::kPlane}) {
    const OracleTable oracle =
        oracle_table(map, {.lat_long = projection == Projection::kLatLong, .method = method});
    const BuiltTable built = build_table(
        backend, map, {.projection = projection, .method = static_cast<sampling::Method>(method)});
    const auto expected = oracle.marginal().has_mass() ? Outcome::kBuilt : Outcome::kAllZero;
    ASSERT_EQ(built.report.outcome, expected) << describe(shape, channels, padding, pattern);
    ASSERT_EQ(verify_sampling_table(oracle, built.table.data()), "")
        << describe(shape, channels, padding, pattern) << ", method " << method
        << (projection == Projection::kPlane ? ", plane" : ", lat-long");
  }
}

template <class Backend>
class SamplingTable : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(SamplingTable, testing::Backends, testing::BackendNames);

TYPED_TEST(SamplingTable, HasTheOraclesBytesOnEveryShape) {
  for (const MapShape shape : kSamplingTableShapes) {
    for (const MapPattern pattern : map_patterns<float>()) {
      expect_the_oracles_bytes<float>(this->backend(), shape, 1, 0, pattern);
    }
  }
}

TYPED_TEST(SamplingTable, HasTheOraclesBytesByEveryMethod) {
  for (const int method : testing::kSamplingMethods) {
    for (const MapShape shape :
         {MapShape{1, 1}, MapShape{1, 2}, MapShape{2, 1}, MapShape{1, 517}, MapShape{517, 1}, MapShape{3, 5},
          MapShape{33, 31}, MapShape{16, 64}, MapShape{4, 255}, MapShape{5, 257}, MapShape{3, 4099}}) {
      for (const MapPattern pattern : map_patterns<float>()) {
        expect_the_oracles_bytes<float>(this->backend(), shape, 1, 0, pattern, method);
      }
    }
  }
}

TYPED_TEST(SamplingTable, HasTheOraclesBytesByEveryMethodOfALine) {
  for (const int method : testing::kSamplingMethods) {
    for (const std::int64_t width : {32769, 100'003}) {
      for (const MapPattern pattern : {MapPattern::kRandom, MapPattern::kZeroBands, MapPattern::kAllScales}) {
        expect_the_oracles_bytes<float>(this->backend(), {1, width}, 1, 0, pattern, method);
      }
    }
  }
}

TYPED_TEST(SamplingTable, HasTheOraclesBytesOfTheLongestLine) {
  const auto map = make_map<float>({1, sampling::kMaxLineExtent}, 1, 0, MapPattern::kSun);
  const BuiltTable built = build_table(this->backend(), map, {.projection = Projection::kPlane});
  ASSERT_EQ(verify_sampling_table(oracle_table(map, false), built.table.data()), "");
}

TYPED_TEST(SamplingTable, HasTheOraclesBytesOfEveryLayer) {
  for (const int method : testing::kSamplingMethods) {
    for (const MapShape shape : {MapShape{3 * 7, 61}, MapShape{3, 1100}, MapShape{3 * 130, 3}}) {
      const auto map = make_map<float>(shape, 1, 0, MapPattern::kContrast);
      const OracleTable oracle = oracle_table(map, {.method = method, .layers = 3});
      const BuiltTable built =
          build_table(this->backend(), map, {.layers = 3, .method = static_cast<sampling::Method>(method)});
      ASSERT_EQ(built.report.outcome, Outcome::kBuilt);
      ASSERT_EQ(verify_sampling_table(oracle, built.table.data()), "") << "method " << method;
    }
  }
}

TYPED_TEST(SamplingTable, HasTheOraclesBytesAtTheLargestExtents) {
  for (const MapShape shape : kExtremeShapes) {
    for (const MapPattern pattern : {MapPattern::kRandom, MapPattern::kSun, MapPattern::kZeroBands}) {
      expect_the_oracles_bytes<float>(this->backend(), shape, 1, 0, pattern);
    }
  }
}

TYPED_TEST(SamplingTable, TakesEveryNumberOfChannelsAndPaddedRows) {
  for (const MapPattern pattern : map_patterns<float>()) {
    for (const std::int64_t channels : {1, 2, 3, 4}) {
      expect_the_oracles_bytes<float>(this->backend(), {37, 61}, channels, 5, pattern);
    }
  }
}

TYPED_TEST(SamplingTable, TakesBytes) {
  for (const MapPattern pattern : map_patterns<std::uint8_t>()) {
    for (const std::int64_t channels : {1, 2, 3, 4}) {
      expect_the_oracles_bytes<std::uint8_t>(this->backend(), {37, 61}, channels, 0, pattern);
      expect_the_oracles_bytes<std::uint8_t>(this->backend(), {5, 1100}, channels, 3, pattern);
    }
  }
}

TYPED_TEST(SamplingTable, HasTheGuideSizesThatAreAskedFor) {
  const auto map = make_map<float>({29, 83}, 1, 0, MapPattern::kZeroBands);
  for (const int method : {1, 5, 6}) {
    for (const std::uint32_t size : {1u, 2u, 7u, 64u, 1000u, 70001u}) {
      const BuiltTable built = build_table(this->backend(), map,
                                           {.method = static_cast<sampling::Method>(method),
                                            .row_guide_size = size,
                                            .marginal_guide_size = size + 1});
      const OracleTable oracle =
          oracle_table(map, {.method = method, .row_guide_size = size, .marginal_guide_size = size + 1});
      ASSERT_EQ(verify_sampling_table(oracle, built.table.data()), "") << size << ", method " << method;
    }
  }
}

TYPED_TEST(SamplingTable, ReportsAMapWithoutAnyWeight) {
  for (const MapShape shape : {MapShape{1, 1}, MapShape{17, 300}}) {
    TestMap<float> map = make_map<float>(shape, 1, 0, MapPattern::kRandom);
    for (float& weight : map.elements) weight = -0.0F;  // negative zero is a zero
    const BuiltTable built = build_table(this->backend(), map, {});
    EXPECT_EQ(built.report.outcome, Outcome::kAllZero);
    EXPECT_EQ(verify_sampling_table(oracle_table(map, true), built.table.data()), "");
  }
}

TYPED_TEST(SamplingTable, ReportsTheFirstInvalidWeightWithItsValue) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity(), -1.0F, -1e-45F}) {
    for (const std::int64_t channels : {1, 3, 4}) {
      TestMap<float> map = make_map<float>({41, 700}, channels, 0, MapPattern::kRandom);
      const std::int64_t channel = channels == 1 ? 0 : 2;
      for (std::int64_t y = 23; y < map.height; y += 3) map.at(y, (y * 37) % 600, 0) = bad;
      map.at(23, 599, 0) = -7.0F;
      map.at(23, 251, channel) = bad;  // (23 * 37) % 600 is 251 too
      map.at(23, 300, 0) = -8.0F;
      const BuiltTable built = build_table(this->backend(), map, {});
      EXPECT_EQ(built.report.outcome, Outcome::kInvalidWeight);
      EXPECT_EQ(built.report.y, 23);
      EXPECT_EQ(built.report.x, 251);
      EXPECT_EQ(built.report.channel, 0);
      EXPECT_EQ(std::memcmp(&built.report.value, &bad, sizeof(bad)), 0) << bad;
    }
  }
}

TYPED_TEST(SamplingTable, ReportsTheLayerOfWhatIsWrong) {
  TestMap<float> map = make_map<float>({5 * 7, 40}, 1, 0, MapPattern::kRandom);
  for (std::int64_t y = 2 * 7; y < 4 * 7; ++y) {
    for (std::int64_t x = 0; x < map.width; ++x) map.at(y, x) = 0;
  }
  BuiltTable built = build_table(this->backend(), map, {.layers = 5});
  EXPECT_EQ(built.report.outcome, Outcome::kAllZero);
  EXPECT_EQ(built.report.layer, 2);
  map.at(3 * 7 + 4, 11) = -1.0F;
  map.at(4 * 7, 0) = -2.0F;
  built = build_table(this->backend(), map, {.layers = 5});
  EXPECT_EQ(built.report.outcome, Outcome::kInvalidWeight);
  EXPECT_EQ(built.report.layer, 3);
  EXPECT_EQ(built.report.y, 4);
  EXPECT_EQ(built.report.x, 11);
  EXPECT_EQ(built.report.value, -1.0F);
}

TYPED_TEST(SamplingTable, ReportsTheInvalidChannelOfATexel) {
  TestMap<float> map = make_map<float>({9, 40}, 4, 0, MapPattern::kRandom);
  map.at(8, 39, 2) = -2.0F;
  const BuiltTable built = build_table(this->backend(), map, {});
  EXPECT_EQ(built.report.outcome, Outcome::kInvalidWeight);
  EXPECT_EQ(built.report.x, 39);
  EXPECT_EQ(built.report.y, 8);
  EXPECT_EQ(built.report.channel, 2);
  EXPECT_EQ(built.report.value, -2.0F);
}

TYPED_TEST(SamplingTable, ClampsInvalidWeightsWhereThatIsAskedFor) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const std::int64_t channels : {1, 3}) {
    TestMap<float> map = make_map<float>({20, 300}, channels, 0, MapPattern::kRandom);
    TestMap<float> valid = map;
    const auto place = [&](std::int64_t y, std::int64_t x, float given, float taken) {
      map.at(y, x, channels - 1) = given;
      valid.at(y, x, channels - 1) = taken;
    };
    place(0, 0, -infinity, 0.0F);
    place(3, 299, std::numeric_limits<float>::quiet_NaN(), 0.0F);
    place(7, 5, -1e-3F, 0.0F);
    place(19, 131, infinity, std::numeric_limits<float>::max());
    const BuiltTable built = build_table(this->backend(), map, {.invalid_weights = InvalidWeights::kClamp});
    EXPECT_EQ(built.report.outcome, Outcome::kBuilt);
    EXPECT_EQ(verify_sampling_table(oracle_table(valid, true), built.table.data()), "");
  }
}

TYPED_TEST(SamplingTable, LooksOnlyAtTheChannelsThatCount) {
  TestMap<float> map = make_map<float>({9, 40}, 4, 0, MapPattern::kRandom);
  map.at(3, 3, 3) = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(build_table(this->backend(), map, {}).report.outcome, Outcome::kBuilt);
  map = make_map<float>({9, 40}, 2, 0, MapPattern::kRandom);
  map.at(3, 3, 1) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(build_table(this->backend(), map, {}).report.outcome, Outcome::kBuilt);
}

TYPED_TEST(SamplingTable, GivesTheSameBytesEveryTime) {
  const auto map = make_map<float>({300, 1500}, 3, 0, MapPattern::kSun);
  for (const int method : testing::kSamplingMethods) {
    const SamplingTableParams params{.method = static_cast<sampling::Method>(method)};
    const BuiltTable first = build_table(this->backend(), map, params);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(build_table(this->backend(), map, params).table, first.table);
  }
}

TYPED_TEST(SamplingTable, RefusesViewsThatDoNotFit) {
  auto& executor = this->executor();
  const SamplingTableParams params{.height = 4, .width = 8};
  BackendArray<TypeParam, float> weights(this->backend(), 200);
  BackendArray<TypeParam, unsigned char> table(this->backend(), sampling_table_bytes(params));
  const Span<std::byte, TypeParam::kSpace> bytes(reinterpret_cast<std::byte*>(table.span().data()),
                                                 table.span().size());
  using Weights = ImageView<const float, TypeParam::kSpace>;
  const float* data = weights.const_span().data();
  SamplingTableReport report;
  const auto refused = [&](const Weights& view, auto span) {
    EXPECT_THROW(build_sampling_table(executor, view, params, span, &report), std::invalid_argument);
  };
  refused(Weights(data, 4, 9), bytes);
  refused(Weights(data, 3, 8), bytes);
  refused(Weights(data, 4, 8, 5), bytes);
  refused(Weights(data, 4, 8, 0), bytes);
  refused(Weights(data, 4, 8, 2, 15), bytes);
  refused(Weights(data, 4, 8), bytes.subspan(0, bytes.size() - 256));
  EXPECT_THROW(sampling_table_bytes({.height = 0, .width = 8}), std::invalid_argument);
  EXPECT_THROW(sampling_table_bytes({.height = 8, .width = 32769}), std::invalid_argument);
  EXPECT_THROW(sampling_table_bytes({.height = 1, .width = sampling::kMaxLineExtent + 1}),
               std::invalid_argument);
  EXPECT_THROW(sampling_table_bytes({.height = 1, .width = 4194305}), std::invalid_argument);
  EXPECT_THROW(sampling_table_bytes({.layers = 0, .height = 1, .width = 1}), std::invalid_argument);
  EXPECT_THROW(sampling_table_bytes({.layers = 65537, .height = 1, .width = 1}), std::invalid_argument);
  EXPECT_THROW(sampling_table_bytes({.height = 1, .width = 1, .row_guide_size = 16777217}),
               std::invalid_argument);
  EXPECT_THROW(sampling_table_bytes(
                   {.height = 1, .width = 1, .method = sampling::Method::kAlias, .marginal_guide_size = 1}),
               std::invalid_argument);
}

}  // namespace
}  // namespace cumulus
