#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/sampling_table/sampling_table.h"
#include "tests/cases/sampling_table_case.h"
#include "tests/cases/sampling_table_samples.h"
#include "tests/support/executors.h"
#include "tests/support/sampling_table_view.h"

// sample_points where one cell ends and the next begins, and a unit of 2^-32 beside it, by every method.

namespace cumulus {
namespace {

using sampling::FixedPoint2;
using testing::BackendArray;
using testing::make_map;
using testing::MapPattern;
using testing::MapShape;
using testing::OracleTable;

void append_breakpoint(std::uint64_t x, std::vector<std::uint32_t>& points) {
  for (const std::uint64_t beside : {x - 1, x, x + 1}) {
    if (beside >> 32 == 0) points.push_back(static_cast<std::uint32_t>(beside));
  }
}

/// The points at and beside every lower bound, and every place where a method takes x for another column of
/// its alias table; of all cells, those without mass, too.
std::vector<std::uint32_t> breakpoints(const testing::OracleCells& cells, int method) {
  std::vector<std::uint32_t> points{0, 0xFFFFFFFEu, 0xFFFFFFFFu};
  for (const std::uint64_t begin : cells.begin) append_breakpoint(begin, points);
  if (method == testing::kAliasMethod) {
    const std::uint64_t n = cells.count();
    for (const std::uint64_t split : testing::oracle_alias_table(cells).split)
      append_breakpoint(split, points);
    for (std::uint64_t k = 0; k < n; ++k) append_breakpoint(((k << 32) + n - 1) / n, points);
  }
  return points;
}

/// Every breakpoint of the marginal, and of each row that is ever chosen.
std::vector<FixedPoint2> breakpoints(const OracleTable& oracle) {
  std::vector<FixedPoint2> points;
  for (const std::uint32_t y : breakpoints(oracle.marginal(), oracle.method())) points.push_back({77, y});
  for (std::size_t row = 0; row < oracle.height(); ++row) {
    if (oracle.marginal().mass(row) == 0) continue;
    const auto y = static_cast<std::uint32_t>(oracle.marginal().begin[row]);
    for (const std::uint32_t x : breakpoints(oracle.row(row), oracle.method())) points.push_back({x, y});
  }
  return points;
}

struct Sampled {
  std::vector<float> position;
  std::vector<float> direction;
  std::vector<float> pdf;
};

template <class Backend>
Sampled sample_at(Backend& backend, const OracleTable& oracle, const std::vector<FixedPoint2>& points) {
  const std::vector<unsigned char> table = oracle.bytes();
  BackendArray<Backend, unsigned char> bytes(backend, table);
  BackendArray<Backend, FixedPoint2> at(backend, points);
  BackendArray<Backend, float> position(backend, 2 * points.size());
  BackendArray<Backend, float> direction(backend, oracle.lat_long() ? 3 * points.size() : 0);
  BackendArray<Backend, float> pdf(backend, points.size());
  sample_points(backend.executor(), testing::view_of(table).header,
                {reinterpret_cast<const std::byte*>(bytes.span().data()), bytes.span().size()},
                at.const_span(), 0, {position.span(), direction.span(), pdf.span()});
  return {position.to_host(), direction.to_host(), pdf.to_host()};
}

/// A GPU samples many points in another way than few.
constexpr std::size_t kMany = std::size_t{1} << 20;

template <class Backend>
class SampleBreakpoints : public testing::OnEveryBackend<Backend> {
 protected:
  /// With `many`, the points are repeated until there are that many.
  void expect_the_oracles_samples(const OracleTable& oracle, bool many) {
    const std::vector<FixedPoint2> once = breakpoints(oracle);
    std::vector<FixedPoint2> points = once;
    while (many && points.size() < kMany) points.insert(points.end(), once.begin(), once.end());
    const Sampled sampled = sample_at(this->backend(), oracle, points);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const std::size_t first = i % once.size();
      if (i == first) {
        ASSERT_EQ(verify_sample(oracle, {once[i].x, once[i].y}, &sampled.position[2 * i], sampled.pdf[i],
                                oracle.lat_long() ? &sampled.direction[3 * i] : nullptr),
                  "")
            << "method " << oracle.method();
      } else {
        const bool same = sampled.position[2 * i] == sampled.position[2 * first] &&
                          sampled.position[2 * i + 1] == sampled.position[2 * first + 1] &&
                          sampled.pdf[i] == sampled.pdf[first];
        ASSERT_TRUE(same) << "method " << oracle.method() << ", point " << i;
      }
    }
  }
};
TYPED_TEST_SUITE(SampleBreakpoints, testing::Backends, testing::BackendNames);

TYPED_TEST(SampleBreakpoints, AreTheOraclesOnEveryKindOfMap) {
  for (const int method : testing::kSamplingMethods) {
    for (const MapShape shape : {MapShape{1, 1}, MapShape{1, 300}, MapShape{300, 1}, MapShape{23, 61}}) {
      for (const MapPattern pattern : testing::map_patterns<float>()) {
        for (const bool lat_long : {true, false}) {
          const OracleTable oracle =
              oracle_table(make_map<float>(shape, 1, 0, pattern), {.lat_long = lat_long, .method = method});
          if (!oracle.marginal().has_mass()) continue;
          SCOPED_TRACE(name_of(pattern));
          this->expect_the_oracles_samples(oracle, false);
        }
      }
    }
  }
}

TYPED_TEST(SampleBreakpoints, AreTheOraclesWithGuidesOfAnySize) {
  for (const int method : testing::kSamplingMethods) {
    if (!sampling::has_guide(static_cast<sampling::Method>(method))) continue;
    for (const std::uint32_t guide : {1u, 5u, 1000u}) {
      for (const MapPattern pattern : testing::map_patterns<float>()) {
        const OracleTable oracle =
            oracle_table(make_map<float>({23, 61}, 1, 0, pattern),
                         {.method = method, .row_guide_size = guide, .marginal_guide_size = guide});
        if (oracle.marginal().has_mass()) this->expect_the_oracles_samples(oracle, false);
      }
    }
  }
}

using SampleBreakpointsOnCuda = SampleBreakpoints<testing::CudaBackend>;

TEST_F(SampleBreakpointsOnCuda, AreTheOraclesAmongMany) {
  for (const int method : testing::kSamplingMethods) {
    for (const MapShape shape : {MapShape{1, 300}, MapShape{23, 61}}) {
      for (const MapPattern pattern : {MapPattern::kRandom, MapPattern::kZeroBands, MapPattern::kSun,
                                       MapPattern::kAllScales, MapPattern::kPowers}) {
        SCOPED_TRACE(name_of(pattern));
        this->expect_the_oracles_samples(oracle_table(make_map<float>(shape, 1, 0, pattern),
                                                      {.lat_long = shape.height > 1, .method = method}),
                                         true);
      }
    }
  }
}

}  // namespace
}  // namespace cumulus
