#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "kernels/sampling_table/sampling_table.h"
#include "tests/cases/sampling_table_case.h"
#include "tests/cases/sampling_table_samples.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using sampling::Projection;
using testing::BackendArray;
using testing::make_map;
using testing::MapPattern;
using testing::MapShape;
using testing::OracleTable;
using testing::UnitPoint;

struct Drawn {
  std::vector<float> position;
  std::vector<float> direction;
  std::vector<float> pdf;
};

sampling::TableHeader header_of(const std::vector<unsigned char>& table) {
  sampling::TableHeader header;
  EXPECT_EQ(sampling::parse_header(table.data(), table.size(), table.size(), header),
            sampling::TableError::kNone);
  return header;
}

/// Draws into poisoned memory; `directions` false leaves them out.
template <class Backend>
Drawn draw(Backend& backend, const std::vector<unsigned char>& table, const DrawParameters& parameters,
           bool directions) {
  const auto count = static_cast<std::size_t>(parameters.count);
  BackendArray<Backend, unsigned char> bytes(backend, table);
  BackendArray<Backend, float> position(backend, 2 * count);
  BackendArray<Backend, float> direction(backend, directions ? 3 * count : 0);
  BackendArray<Backend, float> pdf(backend, count);
  draw_samples(backend.executor(), header_of(table),
               {reinterpret_cast<const std::byte*>(bytes.span().data()), bytes.span().size()}, parameters,
               {position.span(), direction.span(), pdf.span()});
  return {position.to_host(), direction.to_host(), pdf.to_host()};
}

template <class Backend>
std::vector<float> evaluate(Backend& backend, const std::vector<unsigned char>& table,
                            const std::vector<float>& points, int dimensions = 2) {
  BackendArray<Backend, unsigned char> bytes(backend, table);
  BackendArray<Backend, float> at(backend, points);
  BackendArray<Backend, float> pdf(backend, points.size() / static_cast<std::size_t>(dimensions));
  evaluate_density(backend.executor(), header_of(table),
                   {reinterpret_cast<const std::byte*>(bytes.span().data()), bytes.span().size()},
                   {at.const_span(), dimensions}, pdf.span());
  return pdf.to_host();
}

UnitPoint expected_point(const DrawParameters& parameters, std::int64_t i) {
  const auto index = static_cast<std::uint32_t>(parameters.first_index + i);
  const auto total = static_cast<std::uint64_t>(
      parameters.total > 0 ? parameters.total : parameters.first_index + parameters.count);
  if (parameters.sequence == PointSequence::kRandom) {
    const sampling::FixedPoint2 point = sampling::random_point(index, parameters.seed);
    return {point.x, point.y};
  }
  UnitPoint point = parameters.sequence == PointSequence::kSobol
                        ? testing::oracle_sobol_point(index)
                        : testing::oracle_hammersley_point(index, total);
  const sampling::FixedPoint2 shift = sampling::digital_shift(parameters.seed);
  point.x ^= shift.x;
  point.y ^= shift.y;
  return point;
}

template <class Backend>
void expect_the_oracles_samples(Backend& backend, const OracleTable& oracle,
                                const DrawParameters& parameters) {
  const Drawn drawn = draw(backend, oracle.bytes(), parameters, oracle.lat_long());
  for (std::int64_t i = 0; i < parameters.count; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const float* direction = oracle.lat_long() ? &drawn.direction[3 * k] : nullptr;
    ASSERT_EQ(verify_sample(oracle, expected_point(parameters, i), &drawn.position[2 * k], drawn.pdf[k],
                            direction, parameters.layer),
              "")
        << "sample " << i;
  }
}

template <class Backend>
class DrawSamples : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(DrawSamples, testing::Backends, testing::BackendNames);

TYPED_TEST(DrawSamples, AreTheOraclesOnEveryKindOfMap) {
  for (const int method : testing::kSamplingMethods) {
    for (const MapShape shape : {MapShape{1, 1}, MapShape{1, 9}, MapShape{9, 1}, MapShape{2, 5},
                                 MapShape{37, 61}, MapShape{64, 128}, MapShape{5, 4099}, MapShape{4099, 3}}) {
      for (const MapPattern pattern : testing::map_patterns<float>()) {
        const auto map = make_map<float>(shape, 1, 0, pattern);
        for (const bool lat_long : {true, false}) {
          const OracleTable oracle = oracle_table(map, {.lat_long = lat_long, .method = method});
          if (!oracle.marginal().has_mass()) continue;
          SCOPED_TRACE(name_of(pattern));
          expect_the_oracles_samples(this->backend(), oracle, {.count = 150});
        }
      }
    }
  }
}

TYPED_TEST(DrawSamples, AreTheOraclesOfEachLayer) {
  const auto map = make_map<float>({3 * 37, 61}, 1, 0, MapPattern::kSun);
  for (const int method : testing::kSamplingMethods) {
    const OracleTable oracle = oracle_table(map, {.method = method, .layers = 3});
    for (const std::uint32_t layer : {0u, 1u, 2u}) {
      expect_the_oracles_samples(this->backend(), oracle, {.count = 500, .layer = layer});
    }
  }
}

TYPED_TEST(DrawSamples, AreTheOraclesOfALine) {
  for (const int method : testing::kMonotoneMethods) {
    const auto map = make_map<float>({1, 100'003}, 1, 0, MapPattern::kAllScales);
    expect_the_oracles_samples(this->backend(), oracle_table(map, {.lat_long = false, .method = method}),
                               {.count = 500});
  }
}

TYPED_TEST(DrawSamples, TakeEverySequenceAndRange) {
  const OracleTable oracle = oracle_table(make_map<float>({37, 61}, 1, 0, MapPattern::kSun), true);
  for (const PointSequence sequence :
       {PointSequence::kSobol, PointSequence::kHammersley, PointSequence::kRandom}) {
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0xFEDCBA9876543210}}) {
      for (const std::int64_t first : {std::int64_t{0}, std::int64_t{12345}, (std::int64_t{1} << 32) - 333}) {
        expect_the_oracles_samples(this->backend(), oracle,
                                   {.count = 333, .first_index = first, .sequence = sequence, .seed = seed});
      }
    }
  }
  expect_the_oracles_samples(
      this->backend(), oracle,
      {.count = 300, .first_index = 40, .sequence = PointSequence::kHammersley, .total = 1009});
}

TYPED_TEST(DrawSamples, LeaveOutDirectionsThatNobodyAsksFor) {
  const OracleTable oracle = oracle_table(make_map<float>({37, 61}, 1, 0, MapPattern::kRandom), true);
  const DrawParameters parameters{.count = 100};
  const Drawn with = draw(this->backend(), oracle.bytes(), parameters, true);
  const Drawn without = draw(this->backend(), oracle.bytes(), parameters, false);
  EXPECT_EQ(with.position, without.position);
  EXPECT_EQ(with.pdf, without.pdf);
}

TYPED_TEST(DrawSamples, HaveThePdfThatEvaluateDensityGivesThere) {
  for (const bool lat_long : {true, false}) {
    const OracleTable oracle = oracle_table(make_map<float>({61, 331}, 1, 0, MapPattern::kSun), lat_long);
    const Drawn drawn = draw(this->backend(), oracle.bytes(), {.count = 5000}, false);
    EXPECT_EQ(evaluate(this->backend(), oracle.bytes(), drawn.position), drawn.pdf);
  }
}

TYPED_TEST(DrawSamples, EvaluateDensityIsTheOraclesOnEveryTexelAndZeroWhereNothingIsDrawn) {
  for (const bool lat_long : {true, false}) {
    const OracleTable oracle =
        oracle_table(make_map<float>({37, 61}, 1, 0, MapPattern::kZeroBands), lat_long);
    std::vector<float> positions;
    for (std::uint32_t y = 0; y < oracle.height(); ++y) {
      for (std::uint32_t x = 0; x < oracle.width(); ++x) {
        positions.push_back((static_cast<float>(x) + 0.5F) / static_cast<float>(oracle.width()));
        positions.push_back((static_cast<float>(y) + 0.5F) / static_cast<float>(oracle.height()));
      }
    }
    const std::vector<float> pdf = evaluate(this->backend(), oracle.bytes(), positions);
    for (std::size_t i = 0; i < pdf.size(); ++i) {
      const long double expected = oracle.density(i / oracle.width(), i % oracle.width());
      ASSERT_NEAR(static_cast<double>(pdf[i]), static_cast<double>(expected),
                  static_cast<double>(1e-6L * expected));
    }
  }
}

TYPED_TEST(DrawSamples, EvaluateDensityTakesDirectionsOfAnyLength) {
  constexpr double kPi = 3.14159265358979323846;
  const OracleTable oracle = oracle_table(make_map<float>({37, 61}, 1, 0, MapPattern::kZeroBands), true);
  std::vector<float> directions;
  for (std::uint32_t y = 0; y < oracle.height(); ++y) {
    for (std::uint32_t x = 0; x < oracle.width(); ++x) {
      const double theta = kPi * (y + 0.5) / oracle.height();
      const double phi = 2 * kPi * (x + 0.5) / oracle.width();
      const double length = std::ldexp(1.0, static_cast<int>(x) - 30);
      directions.push_back(static_cast<float>(length * std::sin(theta) * std::sin(phi)));
      directions.push_back(static_cast<float>(length * std::cos(theta)));
      directions.push_back(static_cast<float>(length * -std::sin(theta) * std::cos(phi)));
    }
  }
  const std::vector<float> pdf = evaluate(this->backend(), oracle.bytes(), directions, 3);
  for (std::size_t i = 0; i < pdf.size(); ++i) {
    const long double expected = oracle.density(i / oracle.width(), i % oracle.width());
    ASSERT_NEAR(static_cast<double>(pdf[i]), static_cast<double>(expected),
                static_cast<double>(1e-6L * expected));
  }
}

TYPED_TEST(DrawSamples, EvaluateDensityRefusesWhatDoesNotFit) {
  const auto map = make_map<float>({5, 7}, 1, 0, MapPattern::kRandom);
  const std::vector<unsigned char> sphere = oracle_table(map, true).bytes();
  const std::vector<unsigned char> plane = oracle_table(map, false).bytes();
  const std::vector<float> points(12);
  EXPECT_EQ(evaluate(this->backend(), sphere, points, 3).size(), 4u);
  EXPECT_EQ(evaluate(this->backend(), plane, {}, 2).size(), 0u);
  EXPECT_THROW(evaluate(this->backend(), plane, points, 3), std::invalid_argument) << "directions of a plane";
  EXPECT_THROW(evaluate(this->backend(), sphere, points, 4), std::invalid_argument);
  EXPECT_THROW(evaluate(this->backend(), sphere, points, 1), std::invalid_argument);
  EXPECT_THROW(evaluate(this->backend(), sphere, std::vector<float>(11), 2), std::invalid_argument);
}

TYPED_TEST(DrawSamples, OfAConstantSphereHaveConstantDensity) {
  const OracleTable oracle = oracle_table(make_map<float>({32, 64}, 1, 0, MapPattern::kConstant), true);
  const Drawn drawn = draw(this->backend(), oracle.bytes(), {.count = 20000}, true);
  constexpr double kUniform = 0.25 / 3.14159265358979323846;
  double mean_height = 0;
  for (std::size_t i = 0; i < drawn.pdf.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(drawn.pdf[i]), kUniform, 1e-6 * kUniform) << "sample " << i;
    mean_height += static_cast<double>(drawn.direction[3 * i + 1]);
  }
  EXPECT_NEAR(mean_height / 20000, 0.0, 1e-3);
}

TYPED_TEST(DrawSamples, StayInBoundsWhateverTheSectionsHold) {
  for (const int method : testing::kSamplingMethods) {
    for (const MapShape shape : {MapShape{37, 61}, MapShape{1, 32769}}) {
      std::vector<unsigned char> table =
          oracle_table(make_map<float>(shape, 1, 0, MapPattern::kRandom), {.method = method}).bytes();
      std::mt19937 bits(99);
      for (int round = 0; round < 8; ++round) {
        for (std::size_t i = 256; i < table.size(); ++i) {
          table[i] = static_cast<unsigned char>(round < 2 ? round * 255 : static_cast<int>(bits() & 255u));
        }
        // A GPU draws many samples in another way than few.
        for (const std::int64_t count : {std::int64_t{1000}, std::int64_t{1} << 20}) {
          if (count > 1000 && (round > 2 || (method != 1 && method != 6 && method != 9))) continue;
          const Drawn drawn = draw(this->backend(), table, {.count = count}, true);
          for (const float x : drawn.position) ASSERT_TRUE(x >= 0.0F && x < 1.0F) << x;
        }
        evaluate(this->backend(), table, {0.5F, 0.5F, -1.0F, 2.0F, std::nanf(""), 1e30F, 0.999999F, 0.0F});
      }
    }
  }
}

TYPED_TEST(DrawSamples, RefuseWhatDoesNotFit) {
  const OracleTable oracle = oracle_table(make_map<float>({5, 7}, 1, 0, MapPattern::kRandom), false);
  const std::vector<unsigned char> table = oracle.bytes();
  const auto refused = [&](const DrawParameters& parameters) {
    EXPECT_THROW(draw(this->backend(), table, parameters, false), std::invalid_argument);
  };
  const std::int64_t most = std::int64_t{1} << 32;
  refused({.count = 2, .first_index = -1});
  refused({.count = 2, .first_index = most - 1});
  refused({.count = 2, .total = most + 1});
  refused({.count = 2, .total = -1});
  refused({.count = 2, .sequence = PointSequence::kHammersley, .total = 1});
  refused({.count = 2, .layer = 1});
  EXPECT_THROW(draw(this->backend(), table, {.count = 2}, true), std::invalid_argument)
      << "directions of a plane";
  EXPECT_EQ(draw(this->backend(), table, {.count = 0}, false).pdf.size(), 0u);
}

/// Pearson's statistic over the texels, each of which expects at least five of the samples.
double chi_square(const OracleTable& oracle, const std::vector<float>& position) {
  const std::size_t n = position.size() / 2;
  std::vector<double> seen(oracle.height() * oracle.width());
  for (std::size_t i = 0; i < n; ++i) {
    const auto x = static_cast<std::size_t>(position[2 * i] * static_cast<float>(oracle.width()));
    const auto y = static_cast<std::size_t>(position[2 * i + 1] * static_cast<float>(oracle.height()));
    seen[y * oracle.width() + x] += 1;
  }
  double statistic = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const std::size_t y = i / oracle.width();
    const long double size = oracle.texel_size(y);
    const auto expected =
        static_cast<double>(oracle.density(y, i % oracle.width()) * size) * static_cast<double>(n);
    statistic += (seen[i] - expected) * (seen[i] - expected) / expected;
  }
  return statistic;
}

TYPED_TEST(DrawSamples, PassAChiSquareTestThatACorruptedTableFails) {
  auto map = make_map<float>({16, 32}, 1, 0, MapPattern::kRandom);
  for (float& weight : map.elements) weight += 0.1F;  // every texel expects enough
  const DrawParameters parameters{.count = 1'000'000, .sequence = PointSequence::kRandom, .seed = 2024};
  // 511 degrees of freedom: mean 511, deviation 32; six deviations above it.
  constexpr double kBound = 511 + 6 * 32;
  for (const int method : testing::kSamplingMethods) {
    const OracleTable oracle = oracle_table(map, {.method = method});
    EXPECT_LT(chi_square(oracle, draw(this->backend(), oracle.bytes(), parameters, false).position), kBound)
        << "method " << method;
  }
  const OracleTable oracle = oracle_table(map, true);

  // The lower bound of the heaviest texel of row 8 moves by half the texel's mass.
  const testing::OracleCells& row = oracle.row(8);
  std::size_t heaviest = 1;
  for (std::size_t x = 1; x < row.count(); ++x) heaviest = row.mass(x) > row.mass(heaviest) ? x : heaviest;
  std::vector<unsigned char> corrupted = oracle.bytes();
  std::uint64_t row_cdf = 0;
  std::memcpy(&row_cdf, corrupted.data() + 80, sizeof(row_cdf));
  const auto bound = static_cast<std::uint32_t>(row.begin[heaviest] + row.mass(heaviest) / 2);
  std::memcpy(corrupted.data() + row_cdf + 4 * (8 * 32 + heaviest), &bound, sizeof(bound));
  EXPECT_GT(chi_square(oracle, draw(this->backend(), corrupted, parameters, false).position), kBound);
}

/// A GPU draws many samples in another way than few.
TYPED_TEST(DrawSamples, DrawManyAsFew) {
  constexpr std::int64_t kMany = (1 << 20) + 37;
  constexpr std::int64_t kFew = 1001;
  for (const int method : testing::kSamplingMethods) {
    for (const bool lat_long : {true, false}) {
      const auto map = make_map<float>({45, 67}, 1, 0, MapPattern::kSun);
      const auto table = oracle_table(map, {.lat_long = lat_long, .method = method}).bytes();
      const Drawn many = draw(this->backend(), table, {.count = kMany, .seed = 3}, lat_long);
      for (const std::int64_t first : {std::int64_t{0}, std::int64_t{500'011}, kMany - kFew}) {
        const DrawParameters some{.count = kFew, .first_index = first, .seed = 3};
        const Drawn few = draw(this->backend(), table, some, lat_long);
        const auto part = [&](const std::vector<float>& all, std::int64_t elements) {
          return std::vector<float>(all.begin() + first * elements, all.begin() + (first + kFew) * elements);
        };
        ASSERT_EQ(part(many.position, 2), few.position) << "method " << method << ", from " << first;
        ASSERT_EQ(part(many.pdf, 1), few.pdf) << "method " << method << ", from " << first;
        if (lat_long) {
          ASSERT_EQ(part(many.direction, 3), few.direction) << "method " << method << ", from " << first;
        }
      }
    }
  }
}

TYPED_TEST(DrawSamples, TakeGivenPointsAsTheirOwn) {
  constexpr std::size_t kCount = 3001;
  const auto table = oracle_table(make_map<float>({33, 31}, 1, 0, MapPattern::kRandom), true).bytes();
  std::vector<sampling::FixedPoint2> given;
  for (std::uint32_t i = 0; i < kCount; ++i) given.push_back(sampling::random_point(i, 5));
  BackendArray<TypeParam, unsigned char> bytes(this->backend(), table);
  BackendArray<TypeParam, sampling::FixedPoint2> points(this->backend(), given);
  BackendArray<TypeParam, float> position(this->backend(), 2 * kCount);
  BackendArray<TypeParam, float> direction(this->backend(), 3 * kCount);
  BackendArray<TypeParam, float> pdf(this->backend(), kCount);
  sample_points(this->backend().executor(), header_of(table),
                {reinterpret_cast<const std::byte*>(bytes.span().data()), bytes.span().size()},
                points.const_span(), 0, {position.span(), direction.span(), pdf.span()});
  const Drawn own =
      draw(this->backend(), table, {.count = kCount, .sequence = PointSequence::kRandom, .seed = 5}, true);
  EXPECT_EQ(position.to_host(), own.position);
  EXPECT_EQ(direction.to_host(), own.direction);
  EXPECT_EQ(pdf.to_host(), own.pdf);
}

}  // namespace
}  // namespace cumulus
