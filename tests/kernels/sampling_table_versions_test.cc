// Tables that this code did not write: of earlier versions of the layout, and radix forests whose entries
// name what is not there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/sampling_table_builds.h"
#include "tests/support/sampling_table_view.h"
#include "tests/support/test_data.h"

namespace cumulus {
namespace {

using sampling::FixedPoint2;
using sampling::Interpolation;
using sampling::Method;
using testing::BackendArray;
using testing::TestMap;
using testing::view_of;

struct Sampled {
  std::vector<float> position;
  std::vector<float> direction;
  std::vector<float> pdf;
};

template <class Backend>
Sampled sample_at(Backend& backend, const std::vector<unsigned char>& table,
                  const std::vector<FixedPoint2>& points) {
  BackendArray<Backend, unsigned char> bytes(backend, table);
  BackendArray<Backend, FixedPoint2> at(backend, points);
  BackendArray<Backend, float> position(backend, 2 * points.size());
  BackendArray<Backend, float> direction(backend, 3 * points.size());
  BackendArray<Backend, float> pdf(backend, points.size());
  sample_points(backend.executor(), view_of(table).header,
                {reinterpret_cast<const std::byte*>(bytes.span().data()), bytes.span().size()},
                at.const_span(), 0, {position.span(), direction.span(), pdf.span()});
  return {position.to_host(), direction.to_host(), pdf.to_host()};
}

/// The points at and beside every lower bound of every row.
std::vector<FixedPoint2> breakpoints(const std::vector<unsigned char>& table) {
  const sampling::TableView view = view_of(table);
  std::vector<FixedPoint2> points;
  for (std::uint32_t y = 0; y < view.header.height; ++y) {
    const sampling::detail::Distribution row = sampling::detail::row(view, y);
    for (std::uint32_t x = 0; x < row.count; ++x) {
      for (const std::uint32_t beside : {0u, 1u, ~0u}) {
        points.push_back({row.lower[x] + beside, sampling::detail::marginal(view).lower[y] + beside});
      }
    }
  }
  return points;
}

/// The points, and where that is another matter, on a GPU, so often that they are many.
template <class Backend>
std::vector<std::vector<FixedPoint2>> few_and_many(const std::vector<FixedPoint2>& points) {
  std::vector<std::vector<FixedPoint2>> all = {points};
  if (Backend::kSpace == Space::kHost) return all;
  std::vector<FixedPoint2> many;
  while (many.size() < std::size_t{1} << 20) many.insert(many.end(), points.begin(), points.end());
  all.push_back(std::move(many));
  return all;
}

/// The map that the stored tables are of.
TestMap<float> stored_map() {
  TestMap<float> map{9, 24, 1, 24, std::vector<float>(std::size_t{9} * 24)};
  for (std::int64_t y = 0; y < map.height; ++y) {
    for (std::int64_t x = 0; x < map.width; ++x) {
      const bool sun = y == 2 && x == 17;
      const auto weight = static_cast<float>(sun ? 1'000'000 : 1 + (5 * y + 7 * x) % 13);
      map.at(y, x) = y == 4 || x < 3 ? 0.0F : std::ldexp(weight, -static_cast<int>(x % 12));
    }
  }
  return map;
}

struct StoredTable {
  const char* file;
  unsigned char version;
  Method method;
  Interpolation interpolation = Interpolation::kConstant;
};

constexpr StoredTable kStoredTables[] = {
    {"version_1_cutpoint_binary.cst", 1, Method::kCutpointBinary},
    {"version_2_radix_forest.cst", 2, Method::kRadixForest},
    {"version_3_radix_forest.cst", 3, Method::kRadixForest, Interpolation::kBilinear},
};

std::vector<unsigned char> read_stored(const std::string& name) {
  std::ifstream file(testing::test_data("sampling_tables/" + name), std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

template <class Backend>
class ForeignTables : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(ForeignTables, testing::Backends, testing::BackendNames);

TYPED_TEST(ForeignTables, OfEarlierVersionsAreSampledAsThoseOfToday) {
  for (const StoredTable& stored : kStoredTables) {
    SCOPED_TRACE(stored.file);
    const std::vector<unsigned char> table = read_stored(stored.file);
    ASSERT_GT(table.size(), 256U);
    ASSERT_EQ(table[8], stored.version);
    const std::vector<unsigned char> today =
        build_table(this->backend(), stored_map(),
                    {.interpolation = stored.interpolation, .method = stored.method})
            .table;
    for (const std::vector<FixedPoint2>& points : few_and_many<TypeParam>(breakpoints(today))) {
      const Sampled expected = sample_at(this->backend(), today, points);
      const Sampled sampled = sample_at(this->backend(), table, points);
      ASSERT_EQ(sampled.position, expected.position);
      ASSERT_EQ(sampled.direction, expected.direction);
      ASSERT_EQ(sampled.pdf, expected.pdf);
    }
  }
}

TEST(RetiredTables, AreRefusedByTheNameOfTheirMethod) {
  const std::vector<unsigned char> table = read_stored("version_2_radix_forest_4.cst");
  sampling::TableHeader header;
  EXPECT_EQ(sampling::parse_header(table.data(), table.size(), table.size(), header),
            sampling::TableError::kRetiredMethod);
  const std::string said = sampling::describe(sampling::TableError::kRetiredMethod);
  for (const sampling::RetiredMethod& retired : sampling::kRetiredMethods) {
    EXPECT_NE(said.find(std::to_string(retired.number) + " (" + retired.name + ")"), std::string::npos)
        << retired.name;
  }
}

/// Moves a section of lower bounds that fills whole pieces of 256 bytes to the table's end, so that whoever
/// reads behind it reads what is not the table's.
void move_to_the_end(std::vector<unsigned char>& table, std::size_t field, std::size_t bytes) {
  ASSERT_EQ(bytes % 256, 0U);
  std::uint64_t offset = 0;
  std::memcpy(&offset, table.data() + field, sizeof(offset));
  const std::vector<unsigned char> section(table.begin() + static_cast<std::ptrdiff_t>(offset),
                                           table.begin() + static_cast<std::ptrdiff_t>(offset + bytes));
  offset = table.size();
  std::memcpy(table.data() + field, &offset, sizeof(offset));
  table.insert(table.end(), section.begin(), section.end());
  const std::uint64_t total = table.size();
  std::memcpy(table.data() + 16, &total, sizeof(total));
}

/// Guide entries of `count` cells that name cells or nodes outside of these, or more cells than there are.
std::vector<std::uint32_t> hostile_entries(std::uint32_t count) {
  constexpr std::uint32_t kSevenMore = 7u << 27;
  constexpr std::uint32_t kTwoCells = 1u << 30;
  constexpr std::uint32_t kTree = 2u << 30;
  constexpr std::uint32_t kNoKind = 3u << 30;
  return {count,     count - 1 + kSevenMore, (1u << 27) - 1, (1u << 30) - 1,
          kTwoCells, kTwoCells + count,      kNoKind - 1,    kTree + count,
          kTree,     kTree + count - 1,      kNoKind,        ~0u};
}

void fill_guide(std::vector<unsigned char>& table, std::size_t field, std::uint32_t size,
                std::uint32_t entry) {
  std::uint64_t offset = 0;
  std::memcpy(&offset, table.data() + field, sizeof(offset));
  for (std::uint32_t g = 0; g < size; ++g) std::memcpy(table.data() + offset + 4 * g, &entry, sizeof(entry));
}

TYPED_TEST(ForeignTables, NameNoCellsBehindTheLast) {
  struct Case {
    testing::MapShape shape;
    std::size_t bounds;  // the field of the section that ends the table
    std::size_t guide;
  };
  const Case cases[] = {{{1, 64}, 80, 88}, {{4, 16}, 80, 88}, {{32, 2}, 80, 88}, {{64, 1}, 64, 72}};
  for (const Case& test : cases) {
    const auto map = testing::make_map<float>(test.shape, 1, 0, testing::MapPattern::kPowers);
    const auto count = static_cast<std::uint32_t>(test.bounds == 80 ? map.width : map.height);
    for (const int method : {1, 6}) {
      std::vector<unsigned char> table = oracle_table(map, {.method = method}).bytes();
      move_to_the_end(table, test.bounds, 256);
      for (const std::uint32_t entry : hostile_entries(count)) {
        fill_guide(table, test.guide, 64, entry);
        std::vector<FixedPoint2> points;
        for (std::uint32_t i = 0; i < 1000; ++i) points.push_back(sampling::random_point(i, entry));
        points.push_back({~0u, ~0u});
        for (const FixedPoint2 point : points) {
          const sampling::Sample drawn = sample(view_of(table), point.x, point.y);
          ASSERT_LT(drawn.x, test.shape.width) << "entry " << entry;
          ASSERT_LT(drawn.y, test.shape.height) << "entry " << entry;
        }
        for (const std::vector<FixedPoint2>& all : few_and_many<TypeParam>(points)) {
          const std::vector<float> position = sample_at(this->backend(), table, all).position;
          const auto inside = [](float at) { return at >= 0.0F && at < 1.0F; };
          ASSERT_TRUE(std::all_of(position.begin(), position.end(), inside)) << "entry " << entry;
        }
      }
    }
  }
}

}  // namespace
}  // namespace cumulus
