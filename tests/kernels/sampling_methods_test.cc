#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "cumulus/sampling.h"
#include "tests/cases/sampling_table_case.h"
#include "tests/cases/sampling_table_samples.h"
#include "tests/support/sampling_table_view.h"

// Each method of cumulus/sampling.h on tables of the oracle's.

namespace cumulus {
namespace {

using sampling::TableError;
using sampling::TableHeader;
using testing::make_map;
using testing::MapPattern;
using testing::MapShape;
using testing::OracleTable;
using testing::view_of;

/// The points at and beside every cell's lower bound that lie in [0, 2^32).
std::vector<std::uint32_t> breakpoints(const testing::OracleCells& cells) {
  std::vector<std::uint32_t> points;
  for (const std::uint64_t begin : cells.begin) {
    for (const std::uint64_t x : {begin - 1, begin, begin + 1}) {
      if (x >> 32 == 0) points.push_back(static_cast<std::uint32_t>(x));
    }
  }
  points.push_back(0xFFFFFFFFu);
  return points;
}

class SamplingHeaderMethods : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Methods, SamplingHeaderMethods, ::testing::ValuesIn(testing::kMonotoneMethods));

TEST_P(SamplingHeaderMethods, FindTheRightCellAtEveryBreakpointAndBesideIt) {
  for (const MapShape shape :
       {MapShape{1, 1}, MapShape{1, 300}, MapShape{300, 1}, MapShape{7, 61}, MapShape{61, 7}}) {
    for (const MapPattern pattern : testing::map_patterns<float>()) {
      for (const std::uint32_t guide : {0u, 1u, 5u, 1000u}) {
        testing::OracleOptions options{.method = GetParam()};
        if (guide > 0 && !sampling::has_guide(static_cast<sampling::Method>(GetParam()))) continue;
        options.row_guide_size = options.marginal_guide_size = guide;
        const OracleTable oracle = oracle_table(make_map<float>(shape, 1, 0, pattern), options);
        if (!oracle.marginal().has_mass()) continue;
        const std::vector<unsigned char> table = oracle.bytes();
        const sampling::TableView view = view_of(table);
        for (const std::uint32_t x1 : breakpoints(oracle.marginal())) {
          const std::size_t row = oracle.marginal().find(x1);
          ASSERT_EQ(sample(view, 0, x1).y, row);
          ASSERT_GT(oracle.marginal().mass(row), 0u);
        }
        for (std::uint32_t y = 0; y < oracle.height(); ++y) {
          if (oracle.marginal().mass(y) == 0) continue;
          const auto x1 = static_cast<std::uint32_t>(oracle.marginal().begin[y]);
          for (const std::uint32_t x0 : breakpoints(oracle.row(y))) {
            const sampling::Sample drawn = sample(view, x0, x1);
            const float position[2] = {drawn.u, drawn.v};
            ASSERT_EQ(verify_sample(oracle, {x0, x1}, position, drawn.pdf, drawn.direction), "")
                << name_of(pattern) << ", guide of " << guide;
          }
        }
      }
    }
  }
}

TEST_P(SamplingHeaderMethods, FindTheRightCellOfALineWithMoreThan32768) {
  for (const MapPattern pattern :
       {MapPattern::kRandom, MapPattern::kZeroBands, MapPattern::kAllScales, MapPattern::kPowers}) {
    const OracleTable oracle =
        oracle_table(make_map<float>({1, 40'009}, 1, 0, pattern), {.lat_long = false, .method = GetParam()});
    const std::vector<unsigned char> table = oracle.bytes();
    const sampling::TableView view = view_of(table);
    const testing::OracleCells& cells = oracle.row(0);
    for (std::size_t i = 0; i < cells.count(); ++i) {
      if (cells.mass(i) == 0) continue;
      ASSERT_EQ(sample(view, static_cast<std::uint32_t>(cells.begin[i]), 0).x, i) << name_of(pattern);
      ASSERT_EQ(sample(view, static_cast<std::uint32_t>(cells.end[i] - 1), 0).x, i) << name_of(pattern);
    }
  }
}

/// The mass that the columns of an alias table give to each cell.
std::vector<std::uint64_t> mass_in_columns(const sampling::TableView& view) {
  const sampling::detail::Distribution row = sampling::detail::row(view, 0);
  std::vector<std::uint64_t> mass(row.count);
  for (std::uint64_t k = 0; k < row.count; ++k) {
    const std::uint64_t begin = ((k << 32) + row.count - 1) / row.count;
    const std::uint64_t end = (((k + 1) << 32) + row.count - 1) / row.count;
    const auto entry = sampling::detail::element<sampling::detail::AliasEntry>(row.nodes, k);
    EXPECT_LE(begin, entry.split);
    EXPECT_LE(entry.split, end);
    mass[k] += entry.split - begin;
    mass[entry.alias] += end - entry.split;
  }
  return mass;
}

TEST(SamplingHeader, AliasColumnsGiveEveryCellExactlyItsMass) {
  for (const std::int64_t width : {1, 2, 3, 64, 997, 40'009}) {
    for (const MapPattern pattern : testing::map_patterns<float>()) {
      const OracleTable oracle = oracle_table(make_map<float>({1, width}, 1, 0, pattern),
                                              {.lat_long = false, .method = testing::kAliasMethod});
      if (!oracle.marginal().has_mass()) continue;
      const std::vector<unsigned char> table = oracle.bytes();
      const sampling::TableView view = view_of(table);
      const std::vector<std::uint64_t> mass = mass_in_columns(view);
      for (std::size_t i = 0; i < mass.size(); ++i) {
        ASSERT_EQ(mass[i], oracle.row(0).mass(i)) << name_of(pattern) << ", cell " << i << " of " << width;
      }
    }
  }
}

TEST(SamplingHeader, AliasColumnsAreTakenApartAtTheirSplit) {
  for (const MapPattern pattern : testing::map_patterns<float>()) {
    const OracleTable oracle = oracle_table(make_map<float>({1, 61}, 1, 0, pattern),
                                            {.lat_long = false, .method = testing::kAliasMethod});
    if (!oracle.marginal().has_mass()) continue;
    const std::vector<unsigned char> table = oracle.bytes();
    const sampling::TableView view = view_of(table);
    const testing::OracleAliasTable columns = testing::oracle_alias_table(oracle.row(0));
    for (std::uint64_t k = 0; k < 61; ++k) {
      const std::uint64_t begin = ((k << 32) + 60) / 61;
      for (const std::uint64_t x : {begin, columns.split[k] - 1, columns.split[k], columns.split[k] + 1}) {
        if (x >> 32 != 0) continue;
        const auto x0 = static_cast<std::uint32_t>(x);
        const sampling::Sample drawn = sample(view, x0, 7);
        const float position[2] = {drawn.u, drawn.v};
        ASSERT_GT(oracle.row(0).mass(drawn.x), 0u);
        ASSERT_EQ(verify_sample(oracle, {x0, 7}, position, drawn.pdf, nullptr), "") << name_of(pattern);
      }
    }
  }
}

/// A tree deeper than a search goes: weights halved again and again, in one guide cell.
TEST(SamplingHeader, FindsTheRightCellBelowTheLastNodeThatIsVisited) {
  std::vector<float> weights;
  for (int i = 0; i < 40; ++i) weights.push_back(std::ldexp(1.0F, i));
  const OracleTable oracle(weights, 1, 40,
                           {.lat_long = false, .row_guide_size = 1, .marginal_guide_size = 1});
  const std::vector<unsigned char> table = oracle.bytes();
  const sampling::TableView view = view_of(table);
  for (const std::uint32_t x : breakpoints(oracle.row(0)))
    ASSERT_EQ(sample(view, x, 0).x, oracle.row(0).find(x));
}

TEST(SamplingHeader, ReadsRadixForestsOfVersionTwo) {
  for (const MapPattern pattern : testing::map_patterns<float>()) {
    for (const MapShape shape : {MapShape{1, 300}, MapShape{37, 61}}) {
      const OracleTable oracle =
          oracle_table(make_map<float>(shape, 1, 0, pattern), {.method = 6, .early_forest = true});
      if (!oracle.marginal().has_mass()) continue;
      const std::vector<unsigned char> table = oracle.bytes();
      ASSERT_EQ(table[8], 2);
      const sampling::TableView view = view_of(table);
      const auto y = static_cast<std::uint32_t>(oracle.height() / 3);
      const auto x1 = static_cast<std::uint32_t>(oracle.marginal().begin[y]);
      for (const std::uint32_t x0 : breakpoints(oracle.row(y))) {
        const sampling::Sample drawn = sample(view, x0, x1);
        const float position[2] = {drawn.u, drawn.v};
        ASSERT_EQ(verify_sample(oracle, {x0, x1}, position, drawn.pdf, drawn.direction), "")
            << name_of(pattern);
      }
    }
  }
}

/// Random numbers of renderers are floats, of which uint32_t would make 0 without a word.
TEST(SamplingHeader, TakesFloatsAsPlacesInTheUnitSquare) {
  const OracleTable oracle = oracle_table(make_map<float>({37, 61}, 1, 0, MapPattern::kSun), {.method = 1});
  const std::vector<unsigned char> table = oracle.bytes();
  const sampling::TableView view = view_of(table);
  for (const auto& [x0, x1] : {std::pair{0.25, 0.75}, std::pair{0.0, 1.0}, std::pair{0.625, 0.125}}) {
    const sampling::Sample whole = sample(view, sampling::fixed_point(static_cast<float>(x0)),
                                          sampling::fixed_point(static_cast<float>(x1)));
    const sampling::Sample doubles = sample(view, x0, x1);
    const sampling::Sample floats = sample(view, static_cast<float>(x0), static_cast<float>(x1));
    EXPECT_EQ(std::pair(doubles.u, doubles.v), std::pair(whole.u, whole.v));
    EXPECT_EQ(std::pair(floats.u, floats.v), std::pair(whole.u, whole.v));
  }
}

TEST(SamplingHeader, ReadsTablesOfVersionOne) {
  const OracleTable oracle = oracle_table(make_map<float>({37, 61}, 1, 0, MapPattern::kSun), {.method = 1});
  std::vector<unsigned char> table = oracle.bytes();  // the sections are those of version 1
  table[8] = 1;
  const sampling::TableView view = view_of(table);
  for (const std::uint32_t x0 : breakpoints(oracle.row(12))) {
    const auto x1 = static_cast<std::uint32_t>(oracle.marginal().begin[12]);
    const sampling::Sample drawn = sample(view, x0, x1);
    const float position[2] = {drawn.u, drawn.v};
    ASSERT_EQ(verify_sample(oracle, {x0, x1}, position, drawn.pdf, drawn.direction), "");
  }
  TableHeader header;
  const auto parse = [&] { return sampling::parse_header(table.data(), table.size(), table.size(), header); };
  table[40] = 6;
  EXPECT_EQ(parse(), TableError::kUnknownMethod) << "version 1 had one method";
  table[40] = 1;
  table[32] = 2;
  EXPECT_EQ(parse(), TableError::kUnknownOption) << "and one layer";
}

}  // namespace
}  // namespace cumulus
