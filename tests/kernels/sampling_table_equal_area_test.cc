// Tables of equal-area octahedral maps, and the map itself.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

#include "cumulus/sampling.h"
#include "kernels/sampling_table/sampling_table.h"
#include "tests/cases/sampling_table_case.h"
#include "tests/cases/sampling_table_samples.h"
#include "tests/support/executors.h"
#include "tests/support/sampling_table_builds.h"

namespace cumulus {
namespace {

using sampling::Projection;
using testing::BackendArray;
using testing::build_table;
using testing::BuiltTable;
using testing::make_map;
using testing::map_patterns;
using testing::MapPattern;
using testing::MapShape;
using testing::OracleTable;

constexpr long double kPi = 3.14159265358979323846264338327950288L;

struct WideDirection {
  long double x;
  long double y;
  long double z;
};

/// The map by its geometry: square rings |a| + |b| = r around the middle become circles at z = 1 - r^2; along
/// a quarter of a ring the azimuth grows evenly. Outside of the diamond, rings are counted from the corners.
WideDirection oracle_direction(long double u, long double v) {
  const long double a = 2 * u - 1;
  const long double b = 2 * v - 1;
  const long double sum = std::abs(a) + std::abs(b);
  const long double r = sum <= 1 ? sum : 2 - sum;
  // The share of the quarter ring that lies between the a-axis and the point.
  const long double share = r == 0 ? 0.5L : (sum <= 1 ? std::abs(b) : 1 - std::abs(a)) / r;
  const long double azimuth = share * kPi / 2;
  const long double z = sum <= 1 ? 1 - r * r : r * r - 1;
  const long double ring = std::sqrt(1 - z * z);
  return {std::copysign(ring * std::cos(azimuth), a), std::copysign(ring * std::sin(azimuth), b), z};
}

TEST(EqualAreaMap, IsTheOracles) {
  std::mt19937 bits(5);
  for (int i = 0; i < 200'000; ++i) {
    // Whole, half and quarter positions among them: the axes, the diamond's edges, the corners.
    const float u =
        i % 3 == 0 ? static_cast<float>(bits() % 9) / 8 : static_cast<float>(bits() >> 8) * 0x1p-24F;
    const float v =
        i % 5 == 0 ? static_cast<float>(bits() % 9) / 8 : static_cast<float>(bits() >> 8) * 0x1p-24F;
    float direction[3];
    sampling::equal_area_direction(u, v, direction);
    const WideDirection expected = oracle_direction(static_cast<long double>(u), static_cast<long double>(v));
    ASSERT_NEAR(static_cast<double>(direction[0]), static_cast<double>(expected.x), 3e-7) << u << " " << v;
    ASSERT_NEAR(static_cast<double>(direction[1]), static_cast<double>(expected.y), 3e-7) << u << " " << v;
    ASSERT_NEAR(static_cast<double>(direction[2]), static_cast<double>(expected.z), 3e-7) << u << " " << v;
  }
}

TEST(EqualAreaMap, HasTheMiddlesAndCornersOfPbrt) {
  const auto expect_direction = [](float u, float v, float x, float y, float z) {
    float direction[3];
    sampling::equal_area_direction(u, v, direction);
    EXPECT_NEAR(direction[0], x, 1e-6F) << u << " " << v;
    EXPECT_NEAR(direction[1], y, 1e-6F) << u << " " << v;
    EXPECT_NEAR(direction[2], z, 1e-6F) << u << " " << v;
  };
  expect_direction(0.5F, 0.5F, 0, 0, 1);
  expect_direction(1.0F, 0.5F, 1, 0, 0);
  expect_direction(0.0F, 0.5F, -1, 0, 0);
  expect_direction(0.5F, 1.0F, 0, 1, 0);
  expect_direction(0.5F, 0.0F, 0, -1, 0);
  for (const float u : {0.0F, 1.0F}) {
    for (const float v : {0.0F, 1.0F}) expect_direction(u, v, 0, 0, -1);
  }
  expect_direction(0.75F, 0.75F, std::sqrt(0.5F), std::sqrt(0.5F), 0);
}

/// The oracle itself: |d/du x d/dv| is 4 pi wherever it is smooth.
TEST(EqualAreaMap, PreservesArea) {
  constexpr long double kStep = 1e-6L;
  std::mt19937 bits(6);
  for (int i = 0; i < 2000; ++i) {
    const long double u = (static_cast<long double>(bits() % 1000) + 0.5L) / 1000;
    const long double v = (static_cast<long double>(bits() % 1000) + 0.25L) / 1000;
    const WideDirection right = oracle_direction(u + kStep, v);
    const WideDirection left = oracle_direction(u - kStep, v);
    const WideDirection below = oracle_direction(u, v + kStep);
    const WideDirection above = oracle_direction(u, v - kStep);
    const WideDirection du{right.x - left.x, right.y - left.y, right.z - left.z};
    const WideDirection dv{below.x - above.x, below.y - above.y, below.z - above.z};
    const long double x = du.y * dv.z - du.z * dv.y;
    const long double y = du.z * dv.x - du.x * dv.z;
    const long double z = du.x * dv.y - du.y * dv.x;
    const long double area = std::sqrt(x * x + y * y + z * z) / (4 * kStep * kStep);
    ASSERT_NEAR(static_cast<double>(area), static_cast<double>(4 * kPi), 1e-3) << i;
  }
}

TEST(EqualAreaMap, PositionsAndDirectionsAreInversesOfEachOther) {
  std::mt19937 bits(7);
  for (int i = 0; i < 100'000; ++i) {
    const float u = static_cast<float>(bits() >> 8) * 0x1p-24F;
    const float v = static_cast<float>(bits() >> 8) * 0x1p-24F;
    const float length = std::ldexp(1.0F, static_cast<int>(bits() % 41) - 20);
    float direction[3];
    sampling::equal_area_direction(u, v, direction);
    for (float& coordinate : direction) coordinate *= length;
    float back_u = 0;
    float back_v = 0;
    sampling::equal_area_position(direction, back_u, back_v);
    ASSERT_NEAR(back_u, u, 3e-7F);
    ASSERT_NEAR(back_v, v, 3e-7F);
    ASSERT_TRUE(back_u >= 0 && back_u < 1 && back_v >= 0 && back_v < 1);
  }
  for (const float z : {1.0F, -1.0F, 0.0F}) {
    for (const float zero : {0.0F, -0.0F}) {
      const float pole[3] = {0, zero, z};
      float u = -1;
      float v = -1;
      sampling::equal_area_position(pole, u, v);
      EXPECT_TRUE(u >= 0 && u < 1 && v >= 0 && v < 1) << z;
    }
  }
}

TEST(EqualAreaMap, PositionsOfDirectionsAreBelowOne) {
  const auto expect_near = [](float x, float y, float z, float right_u, float right_v) {
    const float direction[3] = {x, y, z};
    float u = 0;
    float v = 0;
    sampling::equal_area_position(direction, u, v);
    EXPECT_TRUE(u < 1 && v < 1) << u << " " << v;
    EXPECT_NEAR(u, right_u, 1e-6F);
    EXPECT_NEAR(v, right_v, 1e-6F);
  };
  expect_near(1, 0, 0, 1, 0.5F);
  expect_near(0, 1, 0, 0.5F, 1);
  expect_near(1e-20F, 1e-20F, -1, 1, 1);
}

/// The oracle's table of the map as a plane, which is the same but for the header's word.
template <class T>
std::vector<unsigned char> expected_table(const testing::TestMap<T>& map) {
  std::vector<unsigned char> table = oracle_table(map, false).bytes();
  table[36] = static_cast<unsigned char>(Projection::kEqualArea);
  return table;
}

template <class Backend>
class EqualAreaTable : public testing::OnEveryBackend<Backend> {
 protected:
  struct Drawn {
    std::vector<float> position;
    std::vector<float> direction;
    std::vector<float> pdf;
  };

  Drawn draw(const std::vector<unsigned char>& table, std::size_t count) {
    BackendArray<Backend, unsigned char> bytes(this->backend(), table);
    BackendArray<Backend, float> position(this->backend(), 2 * count);
    BackendArray<Backend, float> direction(this->backend(), 3 * count);
    BackendArray<Backend, float> pdf(this->backend(), count);
    draw_samples(this->executor(), header_of(table), span_of(bytes),
                 {.count = static_cast<std::int64_t>(count)},
                 {position.span(), direction.span(), pdf.span()});
    return {position.to_host(), direction.to_host(), pdf.to_host()};
  }

  std::vector<float> evaluate(const std::vector<unsigned char>& table, const std::vector<float>& points,
                              int dimensions) {
    BackendArray<Backend, unsigned char> bytes(this->backend(), table);
    BackendArray<Backend, float> at(this->backend(), points);
    BackendArray<Backend, float> pdf(this->backend(), points.size() / static_cast<std::size_t>(dimensions));
    evaluate_density(this->executor(), header_of(table), span_of(bytes), {at.const_span(), dimensions},
                     pdf.span());
    return pdf.to_host();
  }

 private:
  static sampling::TableHeader header_of(const std::vector<unsigned char>& table) {
    sampling::TableHeader header;
    EXPECT_EQ(sampling::parse_header(table.data(), table.size(), table.size(), header),
              sampling::TableError::kNone);
    return header;
  }
  static Span<const std::byte, Backend::kSpace> span_of(const BackendArray<Backend, unsigned char>& bytes) {
    return {reinterpret_cast<const std::byte*>(bytes.span().data()), bytes.span().size()};
  }
};
TYPED_TEST_SUITE(EqualAreaTable, testing::Backends, testing::BackendNames);

TYPED_TEST(EqualAreaTable, HasTheBytesOfThePlanesTable) {
  for (const std::int64_t side : {1, 2, 37, 128, 1025}) {
    for (const MapPattern pattern : map_patterns<float>()) {
      const auto map = make_map<float>({side, side}, 1, 0, pattern);
      const BuiltTable built = build_table(this->backend(), map, {.projection = Projection::kEqualArea});
      ASSERT_TRUE(built.table == expected_table(map)) << side << ", " << name_of(pattern);
    }
  }
}

TYPED_TEST(EqualAreaTable, IsOfASquareMap) {
  const auto map = make_map<float>({4, 8}, 1, 0, MapPattern::kRandom);
  EXPECT_THROW(build_table(this->backend(), map, {.projection = Projection::kEqualArea}),
               std::invalid_argument);
}

TYPED_TEST(EqualAreaTable, DrawsWhereThePlaneDoesPerSteradian) {
  for (const std::int64_t side : {1, 2, 61}) {
    for (const MapPattern pattern : {MapPattern::kRandom, MapPattern::kSun, MapPattern::kOneBright}) {
      const auto map = make_map<float>({side, side}, 1, 0, pattern);
      const OracleTable oracle = oracle_table(map, false);
      const auto drawn = this->draw(expected_table(map), 3000);
      for (std::size_t i = 0; i < drawn.pdf.size(); ++i) {
        const auto expected =
            testing::expected_sample(oracle, testing::oracle_sobol_point(static_cast<std::uint32_t>(i)), 0);
        ASSERT_NEAR(static_cast<double>(drawn.position[2 * i]), static_cast<double>(expected.u), 3e-7);
        ASSERT_NEAR(static_cast<double>(drawn.position[2 * i + 1]), static_cast<double>(expected.v), 3e-7);
        const auto pdf = static_cast<double>(expected.pdf / (4 * kPi));
        ASSERT_NEAR(static_cast<double>(drawn.pdf[i]), pdf, 1e-6 * pdf);
        const WideDirection direction = oracle_direction(static_cast<long double>(drawn.position[2 * i]),
                                                         static_cast<long double>(drawn.position[2 * i + 1]));
        ASSERT_NEAR(static_cast<double>(drawn.direction[3 * i]), static_cast<double>(direction.x), 3e-7);
        ASSERT_NEAR(static_cast<double>(drawn.direction[3 * i + 1]), static_cast<double>(direction.y), 3e-7);
        ASSERT_NEAR(static_cast<double>(drawn.direction[3 * i + 2]), static_cast<double>(direction.z), 3e-7);
      }
      EXPECT_EQ(this->evaluate(expected_table(map), drawn.position, 2), drawn.pdf);
    }
  }
}

TYPED_TEST(EqualAreaTable, EvaluatesTheDensityOfDirections) {
  constexpr std::uint32_t kSide = 37;
  const auto map = make_map<float>({kSide, kSide}, 1, 0, MapPattern::kZeroBands);
  const OracleTable oracle = oracle_table(map, false);
  std::vector<float> directions;
  for (std::uint32_t i = 0; i < kSide * kSide; ++i) {
    const WideDirection middle = oracle_direction((static_cast<long double>(i % kSide) + 0.5L) / kSide,
                                                  (static_cast<long double>(i / kSide) + 0.5L) / kSide);
    for (const long double coordinate : {middle.x, middle.y, middle.z})
      directions.push_back(static_cast<float>(3 * coordinate));
  }
  const std::vector<float> pdf = this->evaluate(expected_table(map), directions, 3);
  for (std::uint32_t i = 0; i < kSide * kSide; ++i) {
    const auto expected = static_cast<double>(oracle.density(i / kSide, i % kSide) / (4 * kPi));
    ASSERT_NEAR(static_cast<double>(pdf[i]), expected, 1e-6 * expected) << i;
  }
}

/// Furnace: of a constant map every density is 1 / (4 pi), and integrals over the sphere come out right.
TYPED_TEST(EqualAreaTable, OfAConstantSphereIntegratesOverTheSphere) {
  constexpr std::size_t kCount = 1 << 16;
  const auto map = make_map<float>({64, 64}, 1, 0, MapPattern::kConstant);
  const BuiltTable built = build_table(this->backend(), map, {.projection = Projection::kEqualArea});
  const auto drawn = this->draw(built.table, kCount);
  double sums[3] = {};
  double squares[3] = {};
  for (std::size_t i = 0; i < kCount; ++i) {
    ASSERT_NEAR(static_cast<double>(drawn.pdf[i]), 0.25 / static_cast<double>(kPi), 1e-7);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const auto x = static_cast<double>(drawn.direction[3 * i + axis]);
      sums[axis] += x / static_cast<double>(drawn.pdf[i]) / kCount;
      squares[axis] += x * x / static_cast<double>(drawn.pdf[i]) / kCount;
    }
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    EXPECT_NEAR(sums[axis], 0.0, 1e-3);
    EXPECT_NEAR(squares[axis], static_cast<double>(4 * kPi / 3), 1e-3);
  }
}

}  // namespace
}  // namespace cumulus
