// From texels to weights: half floats, coefficients of the luminance, compensation, maps of zeros.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "kernels/sampling_table/sampling_table.h"
#include "tests/cases/sampling_table_bilinear_case.h"
#include "tests/cases/sampling_table_weights_case.h"
#include "tests/support/executors.h"
#include "tests/support/sampling_table_builds.h"

namespace cumulus {
namespace {

using sampling::Projection;
using testing::BilinearOracle;
using testing::build_table;
using testing::BuiltTable;
using testing::make_half_map;
using testing::make_map;
using testing::map_patterns;
using testing::MapPattern;
using testing::MapShape;
using testing::OracleTable;
using testing::TestMap;
using Outcome = SamplingTableReport::Outcome;

constexpr std::uint16_t kHalfNan = 0x7E00;
constexpr std::uint16_t kHalfInfinity = 0x7C00;
constexpr std::uint16_t kHalfMinusOne = 0xBC00;

OracleTable table_of(const std::vector<float>& weights, MapShape shape, bool lat_long) {
  return OracleTable(weights, static_cast<std::uint32_t>(shape.height),
                     static_cast<std::uint32_t>(shape.width), {.lat_long = lat_long});
}

std::vector<float> single_channel(const TestMap<float>& map) {
  return {map.elements.begin(), map.elements.end()};
}

SamplingTableParams bilinear(Projection projection) {
  return {.projection = projection, .interpolation = sampling::Interpolation::kBilinear};
}

template <class Backend>
class SamplingTableWeights : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(SamplingTableWeights, testing::Backends, testing::BackendNames);

TYPED_TEST(SamplingTableWeights, OfHalfFloatsAreThoseOfTheSameFloats) {
  for (const MapShape shape : {MapShape{1, 1}, MapShape{37, 61}, MapShape{5, 1100}, MapShape{2, 8193}}) {
    for (const std::int64_t channels : {1, 2, 3, 4}) {
      const TestMap<Float16> map = make_half_map(shape, channels, 3);
      const OracleTable oracle = oracle_table(widened(map), true);
      const BuiltTable built = build_table(this->backend(), map, {});
      ASSERT_EQ(built.report.outcome, oracle.marginal().has_mass() ? Outcome::kBuilt : Outcome::kAllZero);
      ASSERT_EQ(verify_sampling_table(oracle, built.table.data()), "") << channels << " channels";
    }
  }
}

TYPED_TEST(SamplingTableWeights, OfHalfFloatsAreReportedWhereTheyAreInvalid) {
  for (const std::uint16_t bad : {kHalfNan, kHalfInfinity, kHalfMinusOne, std::uint16_t{0x8001}}) {
    TestMap<Float16> map = make_half_map({41, 700}, 3, 0);
    map.at(24, 11, 0).bits = bad;
    map.at(23, 251, 1).bits = bad;
    map.at(0, 0, 2).bits = 0x8000;  // negative zero is a zero
    const BuiltTable built = build_table(this->backend(), map, {});
    EXPECT_EQ(built.report.outcome, Outcome::kInvalidWeight);
    EXPECT_EQ(built.report.y, 23);
    EXPECT_EQ(built.report.x, 251);
    EXPECT_EQ(built.report.channel, 1);
    const float value = testing::oracle_half(bad);
    EXPECT_TRUE(std::isnan(value) ? std::isnan(built.report.value) : built.report.value == value);
  }
}

TYPED_TEST(SamplingTableWeights, OfHalfFloatsAreClampedWhereThatIsAskedFor) {
  TestMap<Float16> map = make_half_map({20, 300}, 3, 0);
  TestMap<float> valid = widened(map);
  const auto place = [&](std::int64_t y, std::int64_t x, std::uint16_t given, float taken) {
    map.at(y, x, 1).bits = given;
    valid.at(y, x, 1) = taken;
  };
  place(0, 0, kHalfMinusOne, 0.0F);
  place(3, 299, kHalfNan, 0.0F);
  place(19, 131, kHalfInfinity, std::numeric_limits<float>::max());
  const BuiltTable built = build_table(this->backend(), map, {.invalid_weights = InvalidWeights::kClamp});
  EXPECT_EQ(built.report.outcome, Outcome::kBuilt);
  EXPECT_EQ(verify_sampling_table(oracle_table(valid, true), built.table.data()), "");
}

TYPED_TEST(SamplingTableWeights, AreTheLuminanceOfTheCoefficientsGiven) {
  const MapShape shape{37, 61};
  const LuminanceCoefficients choices[] = {{0.2627F, 0.6780F, 0.0593F},
                                           {0.2722287F, 0.6740818F, 0.0536895F},
                                           {1.0F / 3.0F, 1.0F / 3.0F, 1.0F / 3.0F},
                                           {0.0F, 0.0F, 1.0F},
                                           {1e-40F, 0.0F, 1e-45F},
                                           {3e38F, 1.0F, 0.0F}};
  for (const LuminanceCoefficients& choice : choices) {
    for (const std::int64_t channels : {3, 4}) {
      const auto expect_weights = [&](const auto& map, const auto& readable) {
        const auto weights = testing::oracle_weights(readable, choice.red, choice.green, choice.blue);
        const BuiltTable built = build_table(this->backend(), map, {.luminance = choice});
        ASSERT_EQ(verify_sampling_table(table_of(weights, shape, true), built.table.data()), "")
            << choice.red << " " << choice.green << " " << choice.blue;
      };
      const auto floats = make_map<float>(shape, channels, 0, MapPattern::kAllScales);
      expect_weights(floats, floats);
      const auto bytes = make_map<std::uint8_t>(shape, channels, 0, MapPattern::kRandom);
      expect_weights(bytes, bytes);
      const auto halves = make_half_map(shape, channels, 0);
      expect_weights(halves, widened(halves));
    }
  }
}

TYPED_TEST(SamplingTableWeights, CompensatedAreTheOracles) {
  for (const MapShape shape : {MapShape{1, 1}, MapShape{1, 9}, MapShape{9, 1}, MapShape{2, 331},
                               MapShape{37, 61}, MapShape{64, 128}, MapShape{3, 8193}, MapShape{4099, 3}}) {
    for (const MapPattern pattern : map_patterns<float>()) {
      const auto map = make_map<float>(shape, 1, 0, pattern);
      for (const bool lat_long : {true, false}) {
        const auto weights =
            testing::oracle_compensated(single_channel(map), static_cast<std::uint32_t>(shape.height),
                                        static_cast<std::uint32_t>(shape.width), lat_long);
        const BuiltTable built = build_table(
            this->backend(), map,
            {.projection = lat_long ? Projection::kLatLong : Projection::kPlane, .mis_compensation = true});
        ASSERT_EQ(verify_sampling_table(table_of(weights, shape, lat_long), built.table.data()), "")
            << name_of(pattern) << ", " << shape.height << " x " << shape.width;
      }
    }
  }
}

TYPED_TEST(SamplingTableWeights, CompensatedAreThoseAboveTheMeanOverTheSphere) {
  const MapShape shape{32, 64};
  const auto map = make_map<float>(shape, 1, 0, MapPattern::kRandom);
  long double sum = 0;
  long double sphere = 0;
  for (std::int64_t y = 0; y < shape.height; ++y) {
    const long double angle =
        std::sin(3.14159265358979323846L * (2 * static_cast<long double>(y) + 1) / (2.0L * shape.height));
    for (std::int64_t x = 0; x < shape.width; ++x) {
      sum += angle * static_cast<long double>(map.at(y, x));
      sphere += angle;
    }
  }
  const auto mean = static_cast<double>(sum / sphere);
  const BuiltTable built = build_table(this->backend(), map, {.mis_compensation = true});
  sampling::TableView view;
  ASSERT_EQ(sampling::parse_header(built.table.data(), built.table.size(), built.table.size(), view.header),
            sampling::TableError::kNone);
  view.data = built.table.data();
  double scale = 0;  // of the density; the same for every texel
  for (std::int64_t y = 0; y < shape.height; ++y) {
    for (std::int64_t x = 0; x < shape.width; ++x) {
      const double over = static_cast<double>(map.at(y, x)) - mean;
      if (std::abs(over) < 1e-6) continue;
      const auto density = static_cast<double>(sampling::pdf(view, (static_cast<float>(x) + 0.5F) / 64.0F,
                                                             (static_cast<float>(y) + 0.5F) / 32.0F));
      ASSERT_EQ(density > 0, over > 0) << x << " " << y;
      if (over < 1e-2) continue;
      if (scale == 0) scale = density / over;
      ASSERT_NEAR(density / over, scale, 1e-4 * scale) << x << " " << y;
    }
  }
}

TYPED_TEST(SamplingTableWeights, ThatCompensationWouldLeaveNothingOfStayAsTheyAre) {
  for (const MapShape shape : {MapShape{1, 1}, MapShape{2, 3}, MapShape{37, 61}, MapShape{1031, 13}}) {
    for (const float value : {0.1F, 1e-44F, std::numeric_limits<float>::max()}) {
      for (const bool lat_long : {true, false}) {
        auto map = make_map<float>(shape, 1, 0, MapPattern::kRandom);
        for (float& weight : map.elements) weight = value;
        const BuiltTable built = build_table(
            this->backend(), map,
            {.projection = lat_long ? Projection::kLatLong : Projection::kPlane, .mis_compensation = true});
        EXPECT_EQ(built.report.outcome, Outcome::kBuilt);
        ASSERT_EQ(verify_sampling_table(oracle_table(map, lat_long), built.table.data()), "")
            << shape.height << " x " << shape.width << " times " << value;
      }
    }
  }
}

TYPED_TEST(SamplingTableWeights, ThatAreAllZeroCountAsOneWhereThatIsAskedFor) {
  const MapShape shape{17, 300};
  auto zeros = make_map<float>(shape, 3, 0, MapPattern::kRandom);
  for (float& value : zeros.elements) value = 0.0F;
  const std::vector<float> ones(static_cast<std::size_t>(shape.height * shape.width), 1.0F);
  for (const bool lat_long : {true, false}) {
    for (const bool compensation : {true, false}) {
      const BuiltTable built =
          build_table(this->backend(), zeros,
                      {.projection = lat_long ? Projection::kLatLong : Projection::kPlane,
                       .mis_compensation = compensation,
                       .uniform_if_all_zero = true});
      EXPECT_EQ(built.report.outcome, Outcome::kBuilt);
      EXPECT_EQ(verify_sampling_table(table_of(ones, shape, lat_long), built.table.data()), "");
    }
  }
  const auto bright = make_map<float>(shape, 3, 0, MapPattern::kOneBright);
  EXPECT_EQ(build_table(this->backend(), bright, {.uniform_if_all_zero = true}).table,
            build_table(this->backend(), bright, {}).table);
  zeros.at(3, 4, 1) = -1.0F;
  const BuiltTable invalid = build_table(this->backend(), zeros, {.uniform_if_all_zero = true});
  EXPECT_EQ(invalid.report.outcome, Outcome::kInvalidWeight);
  EXPECT_EQ(invalid.report.x, 4);
}

TYPED_TEST(SamplingTableWeights, RefuseCoefficientsThatAreNone) {
  const auto map = make_map<float>({4, 8}, 3, 0, MapPattern::kRandom);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const LuminanceCoefficients wrong :
       {LuminanceCoefficients{nan, 1.0F, 1.0F}, LuminanceCoefficients{1.0F, infinity, 1.0F},
        LuminanceCoefficients{1.0F, 1.0F, -0.1F}, LuminanceCoefficients{0.0F, 0.0F, 0.0F}}) {
    EXPECT_THROW(build_table(this->backend(), map, {.luminance = wrong}), std::invalid_argument);
  }
}

TYPED_TEST(SamplingTableWeights, OfEveryTypeAreThoseBetweenWhichATableIsBilinear) {
  const auto halves = testing::make_half_map({37, 61}, 3, 5);
  const auto weights = testing::oracle_weights(widened(halves), 0.2126F, 0.7152F, 0.0722F);
  const BilinearOracle of_halves(weights, {37, 61, 1});
  EXPECT_TRUE(build_table(this->backend(), halves, bilinear(Projection::kLatLong)).table ==
              of_halves.bytes());
  const auto bytes = make_map<std::uint8_t>({37, 61}, 1, 2, MapPattern::kZeroBands);
  std::vector<float> values;
  for (std::int64_t y = 0; y < 37; ++y) {
    for (std::int64_t x = 0; x < 61; ++x) values.push_back(static_cast<float>(bytes.at(y, x)));
  }
  EXPECT_TRUE(build_table(this->backend(), bytes, bilinear(Projection::kPlane)).table ==
              BilinearOracle(values, {37, 61, 2}).bytes());
}

TYPED_TEST(SamplingTableWeights, OfABilinearTableAreCompensatedBeforeTheyAreInterpolated) {
  const auto map = make_map<float>({37, 61}, 1, 0, MapPattern::kSun);
  SamplingTableParams params = bilinear(Projection::kLatLong);
  params.mis_compensation = true;
  const auto weights = testing::oracle_compensated(map.elements, 37, 61, true);
  EXPECT_TRUE(build_table(this->backend(), map, params).table ==
              BilinearOracle(weights, {37, 61, 1}).bytes());

  auto zeros = map;
  for (float& weight : zeros.elements) weight = 0.0F;
  EXPECT_EQ(build_table(this->backend(), zeros, bilinear(Projection::kLatLong)).report.outcome,
            Outcome::kAllZero);
  params = bilinear(Projection::kLatLong);
  params.uniform_if_all_zero = true;
  const BuiltTable even = build_table(this->backend(), zeros, params);
  EXPECT_EQ(even.report.outcome, Outcome::kBuilt);
  EXPECT_TRUE(even.table == BilinearOracle(std::vector<float>(37 * 61, 1.0F), {37, 61, 1}).bytes());
}

TYPED_TEST(SamplingTableWeights, OfABilinearTableAreReportedWhereTheyAreInvalid) {
  auto map = make_map<float>({2 * 20, 30}, 3, 0, MapPattern::kRandom);
  map.at(33, 4, 0) = -1.0F;
  map.at(33, 3, 2) = std::nanf("");
  SamplingTableParams params = bilinear(Projection::kLatLong);
  params.layers = 2;
  const SamplingTableReport report = build_table(this->backend(), map, params).report;
  EXPECT_EQ(report.outcome, Outcome::kInvalidWeight);
  EXPECT_EQ(report.layer, 1);
  EXPECT_EQ(report.y, 13);
  EXPECT_EQ(report.x, 3);
  EXPECT_EQ(report.channel, 2);
}

}  // namespace
}  // namespace cumulus
