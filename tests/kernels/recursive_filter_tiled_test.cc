// The tiled method on a GPU in images of many tiles: it leaves nothing out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/recursive_filter/recursive_filter.h"
#include "tests/cases/recursive_filter_case.h"
#include "tests/kernels/recursive_filter_running.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using recursive_filter::kTile;
using testing::FilterImage;
using testing::FilterPattern;
using testing::FilterShape;
using testing::make_filter_image;
using Method = RecursiveFilterMethod;

constexpr auto kZero = FilterBoundary::kZero;
constexpr auto kClamp = FilterBoundary::kClamp;

class TiledRecursiveFilterOnCuda : public testing::OnEveryBackend<testing::CudaBackend> {
 protected:
  std::vector<float> filter_in_tiles(const FilterImage& image, const RecursiveFilter& filter) {
    RecursiveFilterRun run{};
    auto result = testing::apply(backend(), image, filter, Method::kTiled, &run);
    EXPECT_EQ(run.method, Method::kTiled);
    EXPECT_EQ(run.truncation_bound, 0);
    return result;
  }
};

std::map<std::string, RecursiveFilter> filters() {
  const auto both = [](const AxisFilter& axis) { return RecursiveFilter{axis, axis}; };
  const std::vector<double> one = {-1.2, 0.5, -0.1};
  const std::vector<double> other = {-0.6, 0.3, 0.05};
  return {
      {"gaussian, zero", both(gaussian_filter(8, kZero))},
      {"clamp along y, zero along x", {gaussian_filter(3, kClamp), gaussian_filter(13, kZero)}},
      {"along y alone", {gaussian_filter(5, kClamp), {}}},
      {"along x alone", {{}, gaussian_filter(5, kClamp)}},
      {"two poles, clamp", both(bspline_prefilter(5, kClamp))},
      {"directions that differ",
       {feedback_filter(0.3, one, other, kClamp), feedback_filter(0.3, other, one, kClamp)}},
  };
}

TEST_F(TiledRecursiveFilterOnCuda, IsRightInLargeImages) {
  const auto image = make_filter_image({16 * kTile + 31, 105 * kTile - 4}, FilterPattern::kRandom, 4);
  for (const auto& [name, filter] : filters()) {
    SCOPED_TRACE(name);
    EXPECT_EQ(verify_recursive_filter(image, filter, filter_in_tiles(image, filter).data()), "");
  }
}

/// A pixel so bright that it is seen beyond the decay length, through any number of tiles: a window would
/// leave it out.
TEST_F(TiledRecursiveFilterOnCuda, LeavesNothingOut) {
  const RecursiveFilter filter = filters().at("gaussian, zero");
  const FilterShape shape{17 * kTile, 40 * kTile};
  auto image = make_filter_image(shape, FilterPattern::kRandom);
  std::fill(image.elements.begin(), image.elements.end(), 0.0F);
  const auto at = [&](std::int64_t y, std::int64_t x) {
    return static_cast<std::size_t>(y * shape.width + x);
  };
  const std::int64_t bright_y = 9 * kTile + 5;
  const std::int64_t bright_x = shape.width / 2 + 7;
  image.elements[at(bright_y, bright_x)] = 1e30F;
  const std::vector<float> result = filter_in_tiles(image, filter);
  const auto exact = filter_serially(image, filter);
  for (const std::int64_t far : {0, 150, 300, 450}) {
    for (const auto& [y, x] : {std::pair(bright_y - far, bright_x), std::pair(bright_y + far, bright_x),
                               std::pair(bright_y, bright_x - far), std::pair(bright_y, bright_x + far),
                               std::pair(bright_y - far, bright_x + far)}) {
      const auto expected = static_cast<double>(exact[at(y, x)]);
      ASSERT_NE(expected, 0);
      EXPECT_NEAR(result[at(y, x)] / expected, 1, 1e-3) << far << " pixels away, at " << y << ", " << x;
    }
  }
}

TEST_F(TiledRecursiveFilterOnCuda, GivesTheSameBitsEachTime) {
  const RecursiveFilter filter = filters().at("gaussian, zero");
  const auto image = make_filter_image({40 * kTile, 33 * kTile}, FilterPattern::kRandom);
  const auto first = filter_in_tiles(image, filter);
  for (int again = 0; again < 5; ++again) EXPECT_EQ(filter_in_tiles(image, filter), first);
}

}  // namespace
}  // namespace cumulus
