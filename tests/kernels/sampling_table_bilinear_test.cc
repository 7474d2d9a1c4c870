// Bilinear tables: the bytes, where points are drawn and with what density, and that these are bilinear.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "cumulus/sampling.h"
#include "kernels/sampling_table/sampling_table.h"
#include "tests/cases/sampling_table_bilinear_case.h"
#include "tests/cases/sampling_table_case.h"
#include "tests/support/executors.h"
#include "tests/support/sampling_table_builds.h"

namespace cumulus {
namespace {

using sampling::Interpolation;
using sampling::Projection;
using testing::BackendArray;
using testing::BilinearOracle;
using testing::BilinearShape;
using testing::build_table;
using testing::BuiltTable;
using testing::make_map;
using testing::MapPattern;
using testing::MapShape;
using testing::TestMap;
using testing::UnitPoint;
using Outcome = SamplingTableReport::Outcome;

constexpr Projection kProjections[] = {Projection::kLatLong, Projection::kPlane, Projection::kEqualArea};

SamplingTableParams bilinear(Projection projection, int method = 6) {
  return {.projection = projection,
          .interpolation = Interpolation::kBilinear,
          .method = static_cast<sampling::Method>(method)};
}

BilinearOracle oracle_of(const TestMap<float>& map, Projection projection, int method = 6,
                         std::uint32_t layers = 1) {
  return {map.elements,
          {static_cast<std::uint32_t>(map.height) / layers, static_cast<std::uint32_t>(map.width),
           static_cast<int>(projection), method, layers}};
}

/// Shapes that make sense for a projection.
std::vector<MapShape> shapes_of(Projection projection) {
  if (projection == Projection::kEqualArea) return {{1, 1}, {2, 2}, {37, 37}, {64, 64}};
  return {{1, 1}, {1, 2}, {2, 1}, {1, 517}, {2, 5}, {37, 61}, {64, 128}, {5, 1025}, {1031, 3}};
}

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

template <class Backend>
class BilinearTable : public testing::OnEveryBackend<Backend> {
 protected:
  Drawn draw(const std::vector<unsigned char>& table, const DrawParameters& parameters) {
    const sampling::TableHeader header = header_of(table);
    const auto count = static_cast<std::size_t>(parameters.count);
    BackendArray<Backend, unsigned char> bytes(this->backend(), table);
    BackendArray<Backend, float> position(this->backend(), 2 * count);
    BackendArray<Backend, float> direction(this->backend(),
                                           sampling::on_sphere(header.projection) ? 3 * count : 0);
    BackendArray<Backend, float> pdf(this->backend(), count);
    draw_samples(this->executor(), header, span_of(bytes), parameters,
                 {position.span(), direction.span(), pdf.span()});
    return {position.to_host(), direction.to_host(), pdf.to_host()};
  }

  std::vector<float> evaluate(const std::vector<unsigned char>& table, const std::vector<float>& points,
                              int dimensions = 2) {
    BackendArray<Backend, unsigned char> bytes(this->backend(), table);
    BackendArray<Backend, float> at(this->backend(), points);
    BackendArray<Backend, float> pdf(this->backend(), points.size() / static_cast<std::size_t>(dimensions));
    evaluate_density(this->executor(), header_of(table), span_of(bytes), {at.const_span(), dimensions},
                     pdf.span());
    return pdf.to_host();
  }

  void expect_the_oracles_samples(const BilinearOracle& oracle, int method, std::int64_t count,
                                  std::uint32_t layer = 0) {
    const Drawn drawn = draw(oracle.bytes(), {.count = count, .layer = layer});
    for (std::size_t i = 0; i < drawn.pdf.size(); ++i) {
      ASSERT_EQ(verify_bilinear_sample(oracle, testing::oracle_sobol_point(static_cast<std::uint32_t>(i)),
                                       method, &drawn.position[2 * i], drawn.pdf[i], layer),
                "")
          << "sample " << i;
    }
  }

 private:
  static Span<const std::byte, Backend::kSpace> span_of(const BackendArray<Backend, unsigned char>& bytes) {
    return {reinterpret_cast<const std::byte*>(bytes.span().data()), bytes.span().size()};
  }
};
TYPED_TEST_SUITE(BilinearTable, testing::Backends, testing::BackendNames);

// --- the table -------------------------------------------------------------------------------------------

TYPED_TEST(BilinearTable, IsTheOraclesOnEveryKindOfMap) {
  for (const Projection projection : kProjections) {
    for (const MapShape shape : shapes_of(projection)) {
      for (const MapPattern pattern : testing::map_patterns<float>()) {
        const auto map = make_map<float>(shape, 1, 0, pattern);
        const BilinearOracle oracle = oracle_of(map, projection);
        const BuiltTable built = build_table(this->backend(), map, bilinear(projection));
        ASSERT_EQ(built.report.outcome,
                  oracle.cells().marginal().has_mass() ? Outcome::kBuilt : Outcome::kAllZero);
        ASSERT_TRUE(built.table == oracle.bytes())
            << name_of(pattern) << ", " << shape.height << " x " << shape.width;
      }
    }
  }
}

TYPED_TEST(BilinearTable, IsTheOraclesByEveryMethodAndOfEveryLayer) {
  const auto map = make_map<float>({3 * 37, 61}, 1, 0, MapPattern::kSun);
  for (const int method : testing::kSamplingMethods) {
    SamplingTableParams params = bilinear(Projection::kLatLong, method);
    params.layers = 3;
    const BuiltTable built = build_table(this->backend(), map, params);
    const BilinearOracle oracle = oracle_of(map, Projection::kLatLong, method, 3);
    ASSERT_TRUE(built.table == oracle.bytes()) << "method " << method;
    for (const std::uint32_t layer : {0u, 1u, 2u})
      this->expect_the_oracles_samples(oracle, method, 500, layer);
  }
}

TYPED_TEST(BilinearTable, OfTheWidestMapsIsTheOracles) {
  for (const MapShape shape : {MapShape{2, 32768}, MapShape{32768, 2}, MapShape{1, 100'003}}) {
    const auto map = make_map<float>(shape, 1, 0, MapPattern::kSun);
    const BuiltTable built = build_table(this->backend(), map, bilinear(Projection::kPlane));
    ASSERT_TRUE(built.table == oracle_of(map, Projection::kPlane).bytes()) << shape.width;
  }
}

// --- samples ---------------------------------------------------------------------------------------------

TYPED_TEST(BilinearTable, DrawsTheOraclesSamplesOnEveryKindOfMap) {
  for (const Projection projection : kProjections) {
    for (const MapShape shape : shapes_of(projection)) {
      for (const MapPattern pattern : testing::map_patterns<float>()) {
        const BilinearOracle oracle = oracle_of(make_map<float>(shape, 1, 0, pattern), projection);
        if (!oracle.cells().marginal().has_mass()) continue;
        SCOPED_TRACE(std::string(name_of(pattern)) + " " + std::to_string(shape.height));
        this->expect_the_oracles_samples(oracle, 6, 300);
      }
    }
  }
}

TYPED_TEST(BilinearTable, HasThePdfThatEvaluateDensityGivesThere) {
  for (const Projection projection : kProjections) {
    const BilinearOracle oracle =
        oracle_of(make_map<float>({61, 61}, 1, 0, MapPattern::kZeroBands), projection);
    const Drawn drawn = this->draw(oracle.bytes(), {.count = 5000});
    EXPECT_EQ(this->evaluate(oracle.bytes(), drawn.position), drawn.pdf);
    if (projection == Projection::kPlane) continue;
    const std::vector<float> of_directions = this->evaluate(oracle.bytes(), drawn.direction, 3);
    for (std::size_t i = 0; i < drawn.pdf.size(); ++i) {
      // A direction's rounding moves the point by up to 3e-7 of the map; a cell is 1/61 wide.
      const double off = 4 * 61 * 3e-7;
      EXPECT_NEAR(of_directions[i], drawn.pdf[i], off * (static_cast<double>(drawn.pdf[i]) + 1)) << i;
    }
  }
}

TYPED_TEST(BilinearTable, HasTheOraclesDensityAnywhereAndNoneWhereItDrawsNothing) {
  std::mt19937 bits(8);
  for (const Projection projection : kProjections) {
    const BilinearOracle oracle =
        oracle_of(make_map<float>({37, 37}, 1, 0, MapPattern::kZeroBands), projection);
    std::vector<float> points;
    for (int i = 0; i < 20'000; ++i) points.push_back(static_cast<float>(bits() >> 8) * 0x1p-24F);
    const std::vector<float> pdf = this->evaluate(oracle.bytes(), points);
    int nothing = 0;
    for (std::size_t i = 0; i < pdf.size(); ++i) {
      const auto expected = static_cast<double>(oracle.density(
          {static_cast<long double>(points[2 * i]), static_cast<long double>(points[2 * i + 1])}));
      ASSERT_NEAR(static_cast<double>(pdf[i]), expected, 1e-6 * expected);
      nothing += pdf[i] == 0.0F ? 1 : 0;
    }
    EXPECT_GT(nothing, 1000);
  }
}

/// Every cell: one with a positive corner can be drawn, one without cannot; its probability is that of the
/// interpolated weights, as closely as its row and its column are resolved.
TYPED_TEST(BilinearTable, HasTheProbabilitiesOfTheInterpolatedWeights) {
  for (const Projection projection : kProjections) {
    for (const MapPattern pattern : {MapPattern::kRandom, MapPattern::kZeroBands, MapPattern::kSun,
                                     MapPattern::kConstant, MapPattern::kContrast}) {
      const auto map = make_map<float>({64, 64}, 1, 0, pattern);
      const BilinearOracle oracle = oracle_of(map, projection);
      ASSERT_TRUE(build_table(this->backend(), map, bilinear(projection)).table == oracle.bytes());
      const long double integral = oracle.integral();
      long double sum = 0;
      for (std::uint32_t y = 0; y < oracle.rows(); ++y) {
        for (std::uint32_t x = 0; x < oracle.columns(); ++x) {
          const long double ideal = oracle.mean(y, x) * oracle.cell_size(y, x) / integral;
          const long double found = oracle.probability(y, x);
          sum += found;
          ASSERT_EQ(found > 0, ideal > 0) << x << " " << y;
          const auto units = static_cast<long double>(
              std::min(oracle.cells().marginal().mass(y), oracle.cells().row(y).mass(x)));
          if (units < 100) continue;  // as much as each positive cell has at least
          ASSERT_NEAR(static_cast<double>(found / ideal), 1.0, static_cast<double>(3e-7L + 6 / units))
              << name_of(pattern) << ", " << x << " " << y;
        }
      }
      EXPECT_NEAR(static_cast<double>(sum), 1.0, 1e-12);
    }
  }
}

/// In shares of area a bilinear function's mean over the middles of equal parts is its mean, exactly.
TYPED_TEST(BilinearTable, HasADensityWhoseIntegralIsOne) {
  for (const Projection projection : kProjections) {
    const BilinearOracle oracle = oracle_of(make_map<float>({24, 24}, 1, 0, MapPattern::kSun), projection);
    std::vector<float> points;
    std::vector<long double> sizes;
    for (std::uint32_t y = 0; y < oracle.rows(); ++y) {
      for (std::uint32_t x = 0; x < oracle.columns(); ++x) {
        const long double begin = BilinearOracle::edge(x, oracle.columns());
        const long double end = BilinearOracle::edge(x + 1, oracle.columns());
        for (int part = 0; part < 9; ++part) {
          const long double s = (part % 3 + 0.5L) / 3;
          points.push_back(static_cast<float>(begin + s * (end - begin)));
          points.push_back(static_cast<float>(oracle.position_down(y, (part / 3 + 0.5L) / 3)));
          sizes.push_back(oracle.cell_size(y, x) / 9);
        }
      }
    }
    const std::vector<float> pdf = this->evaluate(oracle.bytes(), points);
    long double sum = 0;
    for (std::size_t i = 0; i < pdf.size(); ++i) sum += static_cast<long double>(pdf[i]) * sizes[i];
    EXPECT_NEAR(static_cast<double>(sum), 1.0, 3e-6);
  }
}

/// Pearson's statistic over quarters of cells; a constant table's samples, even within texels, fail.
TYPED_TEST(BilinearTable, PassesAChiSquareTestThatAConstantTableFails) {
  auto map = make_map<float>({8, 16}, 1, 0, MapPattern::kRandom);
  for (float& weight : map.elements) weight = weight * weight + 0.05F;
  const DrawParameters parameters{.count = 1'000'000, .sequence = PointSequence::kRandom, .seed = 2025};
  const BilinearOracle oracle = oracle_of(map, Projection::kLatLong);
  const std::uint32_t bins = 4 * oracle.rows() * oracle.columns();
  const auto statistic = [&](const std::vector<float>& position) {
    std::vector<double> seen(bins);
    for (std::size_t i = 0; i < position.size(); i += 2) {
      const auto u = static_cast<long double>(position[i]);
      const auto v = static_cast<long double>(position[i + 1]);
      const std::uint32_t y = BilinearOracle::cell_of(v, oracle.rows());
      const std::uint32_t x = BilinearOracle::cell_of(u, oracle.columns());
      const std::uint32_t part =
          (oracle.down(y, v) < 0.5L ? 0u : 2u) + (oracle.across(x, u) < 0.5L ? 0u : 1u);
      seen[4 * (y * oracle.columns() + x) + part] += 1;
    }
    double sum = 0;
    for (std::uint32_t bin = 0; bin < bins; ++bin) {
      const std::uint32_t y = bin / 4 / oracle.columns();
      const std::uint32_t x = bin / 4 % oracle.columns();
      const long double middle =
          oracle.interpolated(y, x, bin % 2 == 0 ? 0.25L : 0.75L, bin % 4 < 2 ? 0.25L : 0.75L);
      const auto expected =
          static_cast<double>(oracle.probability(y, x) / 4 * middle / oracle.mean(y, x)) * 1e6;
      sum += (seen[bin] - expected) * (seen[bin] - expected) / expected;
    }
    return sum;
  };
  const double bound = bins + 6 * std::sqrt(2.0 * bins);
  EXPECT_LT(statistic(this->draw(oracle.bytes(), parameters).position), bound);
  const auto constant = build_table(this->backend(), map, {}).table;
  EXPECT_GT(statistic(this->draw(constant, parameters).position), 10 * bound);
}

/// Of points one above the other the samples keep the order, and of points side by side.
TYPED_TEST(BilinearTable, KeepsTheOrderOfPoints) {
  for (const Projection projection : kProjections) {
    const BuiltTable built =
        build_table(this->backend(), make_map<float>({37, 37}, 1, 0, MapPattern::kSun), bilinear(projection));
    const sampling::TableView view{header_of(built.table), built.table.data()};
    std::mt19937 bits(12);
    for (int i = 0; i < 20'000; ++i) {
      const auto x = static_cast<std::uint32_t>(bits());
      const auto y = static_cast<std::uint32_t>(bits());
      const auto step = static_cast<std::uint32_t>(bits() >> (bits() % 32));
      const sampling::Sample at = sampling::sample(view, x, y);
      if (step <= ~x) {
        ASSERT_LE(at.u, sampling::sample(view, x + step, y).u);
      }
      if (step <= ~y) {
        ASSERT_LE(at.v, sampling::sample(view, x, y + step).v);
      }
    }
  }
}

/// Furnace: of a constant map every density is that of the whole sphere, as closely as the half rows at the
/// poles are resolved.
TYPED_TEST(BilinearTable, OfAConstantSphereHasConstantDensity) {
  for (const Projection projection : {Projection::kLatLong, Projection::kEqualArea}) {
    const auto map = make_map<float>({32, 32}, 1, 0, MapPattern::kConstant);
    const Drawn drawn =
        this->draw(build_table(this->backend(), map, bilinear(projection)).table, {.count = 20'000});
    constexpr double kUniform = 0.25 / 3.14159265358979323846;
    double mean[3] = {};
    for (std::size_t i = 0; i < drawn.pdf.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(drawn.pdf[i]), kUniform, 4e-6 * kUniform) << "sample " << i;
      for (std::size_t axis = 0; axis < 3; ++axis)
        mean[axis] += static_cast<double>(drawn.direction[3 * i + axis]) / 20'000;
    }
    for (const double axis : mean) EXPECT_NEAR(axis, 0.0, 1e-3);
  }
}

TYPED_TEST(BilinearTable, IsContinuousWhereASphereCloses) {
  std::vector<float> points;
  for (int i = 0; i < 200; ++i) {
    const float v = (static_cast<float>(i) + 0.5F) / 200.0F;
    points.insert(points.end(), {0.0F, v, 0.99999994F, v});
  }
  const auto map = make_map<float>({32, 64}, 1, 0, MapPattern::kRandom);
  const auto table = build_table(this->backend(), map, bilinear(Projection::kLatLong)).table;
  const std::vector<float> pdf = this->evaluate(table, points);
  for (std::size_t i = 0; i < pdf.size(); i += 2) ASSERT_NEAR(pdf[i], pdf[i + 1], 1e-4F * pdf[i]);
}

TYPED_TEST(BilinearTable, StaysInBoundsWhateverTheSectionsHold) {
  for (const MapShape shape : {MapShape{37, 37}, MapShape{1, 33'000}}) {
    for (const Projection projection : {Projection::kLatLong, Projection::kPlane}) {
      std::vector<unsigned char> table =
          oracle_of(make_map<float>(shape, 1, 0, MapPattern::kRandom), projection).bytes();
      std::mt19937 bits(98);
      for (int round = 0; round < 8; ++round) {
        for (std::size_t i = 256; i < table.size(); ++i)
          table[i] = static_cast<unsigned char>(round < 2 ? round * 255 : static_cast<int>(bits() & 255u));
        const Drawn drawn = this->draw(table, {.count = 1000});
        for (const float x : drawn.position) ASSERT_TRUE(x >= 0.0F && x < 1.0F) << x;
        this->evaluate(table, {0.5F, 0.5F, -1.0F, 2.0F, std::nanf(""), 1e30F, 0.999999F, 0.0F});
      }
    }
  }
}

}  // namespace
}  // namespace cumulus
