// The bound on what windows of tiles leave out of a filtered pixel, against the impulse response itself.
// Needs no GPU: the host plans.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/recursive_filter/math/truncation.h"
#include "kernels/recursive_filter/strips/strips.h"
#include "kernels/recursive_filter/tuning.h"
#include "tests/cases/recursive_filter_case.h"

namespace cumulus {
namespace {

using recursive_filter::AxisPlan;
using recursive_filter::kTile;
using recursive_filter::plan_windows;

constexpr std::int64_t kLong = 60 * kTile;  // more than windows ever hold

std::pair<AxisPlan, AxisPlan> plans_of(const AxisFilter& y, const AxisFilter& x, std::int64_t length) {
  const RecursiveFilter filter{y, x};
  const int order = recursive_filter::kernel_order(filter);
  const auto precision = recursive_filter::precision_for(filter);
  return {plan_axis(y, length, order, precision), plan_axis(x, length, order, precision)};
}

/// The response to a single 1 in the middle.
std::vector<long double> response_of(AxisFilter filter) {
  filter.boundary = FilterBoundary::kZero;
  std::vector<long double> line(static_cast<std::size_t>(2 * kLong + 1));
  line[kLong] = 1;
  return testing::filter_line_serially(line, filter);
}

/// What the image can do to a pixel at the edge of its tile from beyond a window of so many tiles: all there
/// has the magnitude 1 and the worst of signs.
long double left_out(const std::vector<long double>& response, std::int64_t window) {
  long double before = 0;
  long double after = 0;
  for (std::int64_t i = window * kTile + 1; i <= kLong; ++i) {
    before += std::abs(response[static_cast<std::size_t>(kLong - i)]);
    after += std::abs(response[static_cast<std::size_t>(kLong + i)]);
  }
  return std::max(before, after);
}

std::vector<AxisFilter> tried_filters(FilterBoundary boundary) {
  const std::vector<double> five = {-1.2, 0.53, -0.12, 0.03, -0.004};
  return {gaussian_filter(1, boundary),
          gaussian_filter(8, boundary),
          gaussian_filter(40, boundary),
          deriche_filter(4, 0, boundary),
          deriche_filter(12, 1, boundary),
          deriche_filter(20, 2, boundary),
          bspline_prefilter(5, boundary),
          exponential_filter(0.95, boundary),
          feedback_filter(0.3, five, five, boundary)};
}

TEST(RecursiveFilterWindows, LeaveOutNoMoreThanTheirBound) {
  const std::size_t count = tried_filters(FilterBoundary::kZero).size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto response = response_of(tried_filters(FilterBoundary::kZero)[i]);
    for (const FilterBoundary boundary : testing::kFilterBoundaries) {
      const auto [y, x] = plans_of(tried_filters(boundary)[i], {}, kLong);
      for (const double most : {0.1, 1e-2, 1e-4, 0x1p-26}) {
        SCOPED_TRACE("filter " + std::to_string(i) + ", " + testing::name_of(boundary) + ", at most " +
                     std::to_string(most));
        const auto windows = plan_windows(y, x, most);
        ASSERT_TRUE(windows.has_value());
        EXPECT_LE(windows->truncation_bound, most);
        EXPECT_GE(windows->truncation_bound, left_out(response, windows->y));
        if (windows->of_strips.has_value()) {
          EXPECT_LE(windows->of_strips->truncation_bound, most);
          EXPECT_GE(windows->of_strips->truncation_bound, left_out(response, windows->of_strips->y));
        }
      }
    }
  }
}

TEST(RecursiveFilterWindows, AreNoWiderThanTheFilterIs) {
  // A Gaussian is below 2^-26 from 6 sigma on; bounds add up magnitudes, which costs a tile at most.
  for (const double sigma : {1.0, 8.0, 20.0, 40.0}) {
    const auto [y, x] = plans_of(deriche_filter(sigma, 0, FilterBoundary::kClamp), {}, kLong);
    const auto windows = plan_windows(y, x, 0x1p-26);
    ASSERT_TRUE(windows.has_value());
    EXPECT_LE(windows->y, static_cast<std::int64_t>(std::ceil(15 * sigma / kTile)) + 1) << sigma;
    EXPECT_EQ(windows->x, 0);
  }
}

TEST(RecursiveFilterWindows, KeepToTheSumOfBothAxes) {
  for (const FilterBoundary boundary : {FilterBoundary::kClamp, FilterBoundary::kReflect}) {
    for (const AxisFilter& along_y : tried_filters(boundary)) {
      for (const AxisFilter& along_x : tried_filters(boundary)) {
        const auto [y, x] = plans_of(along_y, along_x, kLong);
        for (double most = 1; most > 1e-3; most *= 0.7) {
          const auto windows = plan_windows(y, x, most);
          ASSERT_TRUE(windows.has_value());
          ASSERT_LE(windows->truncation_bound, most);
          if (windows->of_strips.has_value()) {
            ASSERT_LE(windows->of_strips->truncation_bound, most);
          }
        }
      }
    }
  }
}

TEST(RecursiveFilterWindows, LeaveNothingOutOrDoNotExistWhereNothingMayBeLeftOut) {
  const AxisFilter narrow = gaussian_filter(2, FilterBoundary::kReflect);
  const AxisFilter wide = gaussian_filter(400, FilterBoundary::kReflect);
  for (const AxisFilter& filter : {narrow, wide}) {
    const auto [y, x] = plans_of(filter, filter, 5 * kTile);
    const auto whole = plan_windows(y, x, 0);
    ASSERT_TRUE(whole.has_value());
    EXPECT_EQ(whole->truncation_bound, 0);
    EXPECT_EQ(whole->y, 4);
    EXPECT_EQ(whole->x, 4);
  }
  const auto [narrow_y, narrow_x] = plans_of(narrow, narrow, kLong);
  EXPECT_FALSE(plan_windows(narrow_y, narrow_x, 0).has_value());
  const auto [wide_y, wide_x] = plans_of(wide, wide, kLong);
  EXPECT_FALSE(plan_windows(wide_y, wide_x, 1e-6).has_value());
}

}  // namespace
}  // namespace cumulus
