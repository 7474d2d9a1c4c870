#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "cumulus/sampling.h"
#include "kernels/sampling_table/weights/arithmetic.h"
#include "tests/cases/sampling_table_bilinear_case.h"
#include "tests/cases/sampling_table_case.h"
#include "tests/cases/sampling_table_samples.h"
#include "tests/support/sampling_table_view.h"

namespace cumulus {
namespace {

using sampling::TableError;
using sampling::TableHeader;
using testing::make_map;
using testing::MapPattern;
using testing::MapShape;
using testing::OracleTable;
using testing::view_of;

TEST(SamplingHeader, GivesEveryTexelItsShareOfTheWeights) {
  for (const MapPattern pattern : testing::map_patterns<float>()) {
    const auto map = make_map<float>({16, 997}, 1, 0, pattern);
    const OracleTable oracle = oracle_table(map, false);
    for (std::int64_t y = 0; y < map.height; ++y) {
      const testing::OracleCells& row = oracle.row(static_cast<std::size_t>(y));
      long double sum = 0;
      for (std::int64_t x = 0; x < map.width; ++x) sum += static_cast<long double>(map.at(y, x));
      if (sum == 0) continue;
      std::uint64_t total = 0;
      for (std::int64_t x = 0; x < map.width; ++x) {
        const std::uint64_t mass = row.mass(static_cast<std::size_t>(x));
        const long double share = static_cast<long double>(map.at(y, x)) / sum * 4294967296.0L;
        ASSERT_EQ(mass > 0, map.at(y, x) > 0) << name_of(pattern);
        // A unit is given to each of the 997 cells before the rest is shared out; the last takes what is
        // left.
        ASSERT_NEAR(static_cast<double>(mass), static_cast<double>(share),
                    3.0 + 1000.0 / 4294967296.0 * static_cast<double>(share));
        total += mass;
      }
      ASSERT_EQ(total, std::uint64_t{1} << 32);
    }
  }
}

TEST(SamplingHeader, KeepsPositionsInTheirCellOnTheLongestLines) {
  for (const std::uint32_t count : {32'769u, 100'003u, 1u << 20, 3'999'971u, sampling::kMaxLineExtent}) {
    for (std::uint32_t cell = 0; cell < count; cell += 7) {
      for (const float fraction : {0.0F, 0.5F, 0.99999994F}) {
        const float position = sampling::detail::position_in(cell, fraction, sampling::detail::Extent(count));
        ASSERT_EQ(sampling::cell_of(position, count), cell) << count << " cells, fraction " << fraction;
        ASSERT_TRUE(position >= 0.0F && position < 1.0F);
      }
    }
  }
}

TEST(SamplingHeader, KeepsPositionsInTheirTexelAtEveryWidth) {
  for (std::uint32_t count = 1; count <= sampling::kMaxExtent; count += count < 3000 ? 1 : 997) {
    for (std::uint32_t cell = 0; cell < count; ++cell) {
      for (const float fraction : {0.0F, 1e-9F, 0.5F, 0.9999F, 0.99999994F}) {
        const float position = sampling::detail::position_in(cell, fraction, sampling::detail::Extent(count));
        ASSERT_EQ(sampling::cell_of(position, count), cell) << count << " cells, fraction " << fraction;
        ASSERT_TRUE(position >= 0.0F && position < 1.0F);
      }
    }
  }
}

TEST(SamplingHeader, ClampsPositionsOutsideTheSquare) {
  EXPECT_EQ(sampling::cell_of(-1.0F, 10), 0u);
  EXPECT_EQ(sampling::cell_of(1.0F, 10), 9u);
  EXPECT_EQ(sampling::cell_of(1e30F, 10), 9u);
  EXPECT_EQ(sampling::cell_of(std::nanf(""), 10), 0u);
}

TEST(SamplingHeader, DirectionsAndPositionsAreInversesOfEachOther) {
  for (int i = 0; i < 100; ++i) {
    for (int j = 0; j <= 100; ++j) {
      const float u = (static_cast<float>(i) + 0.25F) / 100.0F;
      const float v = static_cast<float>(j) / 100.0F;
      float direction[3];
      sampling::direction_of(u, v, direction);
      const float length = std::hypot(direction[0], direction[1], direction[2]);
      ASSERT_NEAR(length, 1.0F, 3e-7F);
      float back_u = 0;
      float back_v = 0;
      sampling::position_of(direction, back_u, back_v);
      ASSERT_NEAR(back_v, v, 2e-7F);
      if (j > 0 && j < 100) {
        ASSERT_NEAR(back_u, u, 2e-7F);
      }
    }
  }
}

TEST(SamplingHeader, PositionsOfDirectionsAreBelowOne) {
  float u = 0;
  float v = 0;
  const float almost_around[3] = {-1e-30F, 0, -1};
  sampling::position_of(almost_around, u, v);
  EXPECT_LT(u, 1.0F);
  EXPECT_GT(u, 0.999F);
  const float down[3] = {0, -1, 0};
  sampling::position_of(down, u, v);
  EXPECT_LT(v, 1.0F);
  EXPECT_GT(v, 0.999F);
}

TEST(SamplingHeader, LooksTowardsMinusZAtTheLeftEdgeAndUpAtTheTop) {
  const auto direction = [](float u, float v) {
    std::vector<float> xyz(3);
    sampling::direction_of(u, v, xyz.data());
    return xyz;
  };
  using ::testing::FloatNear;
  using ::testing::Pointwise;
  EXPECT_THAT(direction(0.0F, 0.0F), Pointwise(FloatNear(1e-6F), {0.0F, 1.0F, 0.0F}));
  EXPECT_THAT(direction(0.0F, 0.5F), Pointwise(FloatNear(1e-6F), {0.0F, 0.0F, -1.0F}));
  EXPECT_THAT(direction(0.25F, 0.5F), Pointwise(FloatNear(1e-6F), {1.0F, 0.0F, 0.0F}));
  EXPECT_THAT(direction(0.5F, 0.5F), Pointwise(FloatNear(1e-6F), {0.0F, 0.0F, 1.0F}));
}

TEST(SamplingHeader, HasTheDensityOfADirection) {
  const OracleTable oracle = oracle_table(make_map<float>({16, 32}, 1, 0, MapPattern::kSun), true);
  const std::vector<unsigned char> table = oracle.bytes();
  const sampling::TableView view = view_of(table);
  std::mt19937 bits(5);
  for (int i = 0; i < 1000; ++i) {
    const float u = (static_cast<float>(bits() % 32) + 0.5F) / 32.0F;
    const float v = (static_cast<float>(bits() % 16) + 0.5F) / 16.0F;
    float direction[3];
    sampling::direction_of(u, v, direction);
    EXPECT_EQ(pdf(view, direction), pdf(view, u, v));
  }
}

TEST(SamplingArithmetic, SineOfHalfTurnsIsTheSine) {
  for (std::uint32_t height : {1u, 2u, 3u, 1000u, 32768u}) {
    for (std::uint32_t y = 0; 2 * y < height; ++y) {
      const double x = static_cast<double>(2 * y + 1) / static_cast<double>(2 * height);
      const long double right =
          std::sin(3.14159265358979323846264338327950288L * static_cast<long double>(x));
      ASSERT_NEAR(sampling_table::sine_of_half_turns(x), static_cast<double>(right),
                  static_cast<double>(4e-16L * right));
    }
  }
}

TEST(SamplingArithmetic, LuminanceOfAPositiveTexelIsPositiveAndFinite) {
  const float largest = std::numeric_limits<float>::max();
  const float least = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(sampling_table::luminance({}, largest, largest, largest), largest);
  EXPECT_EQ(sampling_table::luminance({}, 0, 0, least), least);
  EXPECT_EQ(sampling_table::luminance({}, 0, 0, 0), 0.0F);
  EXPECT_NEAR(sampling_table::luminance({}, 1, 2, 3), 0.2126F + 1.4304F + 0.2166F, 1e-6F);
}

// --- point sequences -------------------------------------------------------------------------------------

TEST(PointSequences, SobolsPointsAreThoseOfTheDirectionNumbers) {
  std::mt19937 bits(3);
  for (std::uint32_t i = 0; i < 20000; ++i) {
    const std::uint32_t index = i < 10000 ? i : static_cast<std::uint32_t>(bits());
    const sampling::FixedPoint2 point = sampling::sobol_point(index);
    const testing::UnitPoint expected = testing::oracle_sobol_point(index);
    ASSERT_EQ(point.x, expected.x);
    ASSERT_EQ(point.y, expected.y);
  }
}

/// Every box of area 2^-m with sides that are powers of two holds exactly one of these 2^m points.
void expect_a_net(const std::vector<sampling::FixedPoint2>& points, int m) {
  for (int wide = 0; wide <= m; ++wide) {
    std::set<std::uint64_t> boxes;
    for (const sampling::FixedPoint2& point : points) {
      const std::uint64_t column = static_cast<std::uint64_t>(point.x) >> (32 - wide);
      const std::uint64_t row = static_cast<std::uint64_t>(point.y) >> (32 - (m - wide));
      boxes.insert(column << 32 | row);
    }
    ASSERT_EQ(boxes.size(), points.size()) << "boxes 2^-" << wide << " wide";
  }
}

TEST(PointSequences, SobolsPointsFormNetsAlsoWhenShifted) {
  constexpr int kM = 10;
  for (const std::uint64_t seed : {0u, 1u, 77u}) {
    const sampling::FixedPoint2 shift = sampling::digital_shift(seed);
    for (const std::uint32_t first : {0u, 1024u, 7u * 1024u, 0xFFFFFC00u}) {
      std::vector<sampling::FixedPoint2> points;
      for (std::uint32_t i = 0; i < 1u << kM; ++i) {
        points.push_back(sampling::shifted_point(sampling::sobol_point(first + i), shift));
      }
      expect_a_net(points, kM);
    }
  }
}

TEST(PointSequences, HammersleysPointsFormANet) {
  constexpr int kM = 9;
  std::vector<sampling::FixedPoint2> points;
  for (std::uint32_t i = 0; i < 1u << kM; ++i) points.push_back(sampling::hammersley_point(i, 1u << kM));
  expect_a_net(points, kM);
  EXPECT_EQ(sampling::hammersley_point(0xFFFFFFFFu, std::uint64_t{1} << 32).x, 0xFFFFFFFFu);
  EXPECT_EQ(sampling::hammersley_point(1, 3).x, 0x55555555u);
}

TEST(PointSequences, RandomPointsArePhiloxs) {
  // The known answer of Random123 for the zero counter and key.
  const sampling::FixedPoint2 zero = sampling::random_point(0, 0);
  EXPECT_EQ(zero.x, 0x6627E8D5u);
  EXPECT_EQ(zero.y, 0xE169C58Du);
  const sampling::FixedPoint2 other = sampling::random_point(0, 1);
  EXPECT_NE(other.x, zero.x);
}

TEST(PointSequences, FixedPointTakesAnyFloat) {
  EXPECT_EQ(sampling::fixed_point(0.5F), 0x80000000u);
  EXPECT_EQ(sampling::fixed_point(0.99999994F), 0xFFFFFF00u);
  EXPECT_EQ(sampling::fixed_point(1.0F), 0xFFFFFFFFu);
  EXPECT_EQ(sampling::fixed_point(-3.0F), 0u);
  EXPECT_EQ(sampling::fixed_point(std::nanf("")), 0u);
}

// --- hostile headers -------------------------------------------------------------------------------------

class HostileHeader : public ::testing::Test {
 protected:
  const std::vector<unsigned char> table_ =
      oracle_table(make_map<float>({5, 7}, 1, 0, MapPattern::kRandom), {.method = 6})
          .bytes();  // all sections

  /// The table with `bytes` bytes at `offset` replaced by `value`, as parse_header sees it.
  TableError with(std::size_t offset, std::size_t bytes, std::uint64_t value) const {
    std::vector<unsigned char> changed = table_;
    std::memcpy(changed.data() + offset, &value, bytes);
    TableHeader header;
    return sampling::parse_header(changed.data(), changed.size(), changed.size(), header);
  }
};

TEST_F(HostileHeader, IsAcceptedAsItIs) {
  EXPECT_EQ(with(52, 4, 0x12345678), TableError::kNone) << "the checksum is the file's business";
}

TEST_F(HostileHeader, IsRefusedWhereItIsTruncated) {
  TableHeader header;
  for (const std::size_t available : {0, 1, 8, 255}) {
    EXPECT_EQ(sampling::parse_header(table_.data(), available, table_.size(), header),
              TableError::kTruncatedHeader);
  }
  EXPECT_EQ(sampling::parse_header(table_.data(), 256, 255, header), TableError::kTruncatedHeader);
  EXPECT_EQ(sampling::parse_header(table_.data(), 256, table_.size() - 1, header),
            TableError::kWrongTotalSize);
  EXPECT_EQ(sampling::parse_header(table_.data(), 256, table_.size(), header), TableError::kNone);
}

TEST_F(HostileHeader, IsRefusedForEachField) {
  EXPECT_EQ(with(0, 1, 'X'), TableError::kNotATable);
  EXPECT_EQ(with(7, 1, ' '), TableError::kNotATable);
  EXPECT_EQ(with(8, 4, 0), TableError::kUnknownVersion);
  EXPECT_EQ(with(8, 4, 5), TableError::kUnknownVersion);
  EXPECT_EQ(with(12, 4, 128), TableError::kWrongHeaderSize);
  EXPECT_EQ(with(16, 8, ~std::uint64_t{0}), TableError::kWrongTotalSize);
  for (const std::size_t extent : {24, 28}) {
    EXPECT_EQ(with(extent, 4, 0), TableError::kBadExtent);
    EXPECT_EQ(with(extent, 4, 32769), TableError::kBadExtent);
    EXPECT_EQ(with(extent, 4, 0xFFFFFFFF), TableError::kBadExtent);
    EXPECT_EQ(with(extent, 4, 32768), TableError::kSectionOutOfBounds);
  }
  EXPECT_EQ(with(32, 4, 0), TableError::kBadExtent);
  EXPECT_EQ(with(32, 4, 65537), TableError::kBadExtent);
  EXPECT_EQ(with(32, 4, 2), TableError::kSectionOutOfBounds);
  EXPECT_EQ(with(36, 4, 0), TableError::kUnknownProjection);
  EXPECT_EQ(with(36, 4, 99), TableError::kUnknownProjection);
  EXPECT_EQ(with(40, 4, 0), TableError::kUnknownMethod);
  EXPECT_EQ(with(40, 4, 99), TableError::kUnknownMethod);
  for (const sampling::RetiredMethod& retired : sampling::kRetiredMethods) {
    EXPECT_EQ(with(40, 4, retired.number), TableError::kRetiredMethod) << retired.name;
  }
  EXPECT_EQ(with(44, 4, 1), TableError::kMisalignedSection) << "a bilinear table without vertices";
  EXPECT_EQ(with(44, 4, 2), TableError::kUnknownOption);
  EXPECT_EQ(with(48, 4, 1), TableError::kUnknownOption);
  for (const std::size_t guide : {56, 60}) {
    EXPECT_EQ(with(guide, 4, 0), TableError::kBadGuideSize);
    EXPECT_EQ(with(guide, 4, 16777217), TableError::kBadGuideSize);
    EXPECT_EQ(with(guide, 4, 16777216), TableError::kSectionOutOfBounds);
  }
  for (const std::size_t offset : {64, 72, 80, 88, 96, 104}) {
    EXPECT_EQ(with(offset, 8, 0), TableError::kMisalignedSection);
    EXPECT_EQ(with(offset, 8, 257), TableError::kMisalignedSection);
    EXPECT_EQ(with(offset, 8, table_.size()), TableError::kSectionOutOfBounds);
    EXPECT_EQ(with(offset, 8, ~std::uint64_t{0} << 8), TableError::kSectionOutOfBounds);
  }
  EXPECT_EQ(with(112, 1, 1), TableError::kUnknownOption);
  EXPECT_EQ(with(255, 1, 1), TableError::kUnknownOption);
}

TEST_F(HostileHeader, IsDescribedForEachError) {
  std::set<std::string> texts;
  for (int error = 0; error <= static_cast<int>(TableError::kSectionOutOfBounds); ++error) {
    texts.insert(sampling::describe(static_cast<TableError>(error)));
  }
  EXPECT_EQ(texts.size(), 14u);
}

TEST(HostileHeaders, NeverLeadOutOfBoundsWhateverTheirBytes) {
  for (const int method : testing::kSamplingMethods) {
    const std::vector<unsigned char> table =
        oracle_table(make_map<float>({5, 7}, 1, 0, MapPattern::kRandom), {.method = method}).bytes();
    std::mt19937 bits(17);
    int accepted = 0;
    for (int round = 0; round < 10000; ++round) {
      std::vector<unsigned char> changed = table;
      for (auto flips = bits() % 3 + 1; flips > 0; --flips) {
        changed[24 + bits() % 88] ^= static_cast<unsigned char>(1u << bits() % 8);
      }
      sampling::TableView view;
      if (sampling::parse_header(changed.data(), changed.size(), changed.size(), view.header) !=
          TableError::kNone) {
        continue;
      }
      ++accepted;
      view.data = changed.data();
      for (int i = 0; i < 8; ++i) {
        sample(view, static_cast<std::uint32_t>(bits()), static_cast<std::uint32_t>(bits()));
      }
    }
    EXPECT_GT(accepted, 30) << "method " << method;
  }
}

TEST(BilinearHeader, IsRefusedWhereItsVerticesOrItsVersionAreWrong) {
  const std::vector<unsigned char> table =
      testing::BilinearOracle(make_map<float>({5, 7}, 1, 0, MapPattern::kRandom).elements, {5, 7}).bytes();
  const auto with = [&](std::size_t offset, std::size_t bytes, std::uint64_t value) {
    std::vector<unsigned char> changed = table;
    std::memcpy(changed.data() + offset, &value, bytes);
    sampling::TableHeader header;
    return sampling::parse_header(changed.data(), changed.size(), changed.size(), header);
  };
  EXPECT_EQ(with(8, 4, 3), TableError::kNone);
  EXPECT_EQ(with(8, 4, 2), TableError::kUnknownOption) << "of version 2 none is bilinear";
  EXPECT_EQ(with(8, 4, 5), TableError::kUnknownVersion);
  EXPECT_EQ(with(44, 4, 0), TableError::kUnknownOption) << "a constant table with vertices";
  EXPECT_EQ(with(44, 4, 2), TableError::kUnknownOption);
  EXPECT_EQ(with(112, 8, 0), TableError::kMisalignedSection);
  EXPECT_EQ(with(112, 8, 257), TableError::kMisalignedSection);
  EXPECT_EQ(with(112, 8, table.size()), TableError::kSectionOutOfBounds);
  EXPECT_EQ(with(112, 8, ~std::uint64_t{0} << 8), TableError::kSectionOutOfBounds);
  EXPECT_EQ(with(120, 1, 1), TableError::kUnknownOption);
  for (const std::size_t extent : {24, 28}) {
    EXPECT_EQ(with(extent, 4, 32770), TableError::kBadExtent);
    EXPECT_EQ(with(extent, 4, 32769), TableError::kSectionOutOfBounds);
  }
  EXPECT_EQ(with(24, 4, 1), TableError::kBadExtent) << "a bilinear row has two cells or more";
}

}  // namespace
}  // namespace cumulus
