// The tiled method's way through a large image in strips that leave nothing out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "kernels/recursive_filter/recursive_filter.h"
#include "tests/cases/recursive_filter_case.h"
#include "tests/kernels/recursive_filter_running.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using recursive_filter::kTile;
using recursive_filter::strip_blocks;
using testing::apply_to;
using testing::FilterImage;
using testing::FilterPattern;
using testing::FilterShape;
using testing::make_filter_image;
using Method = RecursiveFilterMethod;

constexpr auto kZero = FilterBoundary::kZero;
constexpr auto kClamp = FilterBoundary::kClamp;

class ExactStripsOnCuda : public testing::OnEveryBackend<testing::CudaBackend> {
 protected:
  std::vector<float> filter_in_tiles(const FilterImage& image, const RecursiveFilter& filter) {
    RecursiveFilterRun run{};
    auto result = testing::apply(backend(), image, filter, Method::kTiled, &run);
    EXPECT_EQ(run.method, Method::kTiled);
    EXPECT_EQ(run.truncation_bound, 0);
    return result;
  }
  /// Where this GPU has no room for strips, all images go by tiles: those that strips would take on an H200,
  /// too.
  bool serve() { return strip_blocks(backend().executor().numbers()) > 0; }
  std::int64_t blocks() { return serve() ? strip_blocks(backend().executor().numbers()) : 132; }
  void expect_right(const FilterImage& image, const RecursiveFilter& filter) {
    EXPECT_EQ(verify_recursive_filter(image, filter, filter_in_tiles(image, filter).data()), "");
  }
};

/// Whether strips filter such an image: tiles need scratch memory.
bool goes_in_strips(const FilterImage& image, const RecursiveFilter& filter, const DeviceNumbers& device) {
  const ImageView<const float, Space::kDevice> view(nullptr, image.shape.height, image.shape.width,
                                                    image.shape.channels, image.row_stride);
  return apply_recursive_filter_scratch_bytes<float, Space::kDevice>(
             FilterImages<const float, Space::kDevice>(view, 1), filter, device, Method::kTiled) == 0;
}

std::map<std::string, RecursiveFilter> filters() {
  const auto both = [](const AxisFilter& axis) { return RecursiveFilter{axis, axis}; };
  const std::vector<double> one = {-1.2, 0.5, -0.1};
  const std::vector<double> other = {-0.6, 0.3, 0.05};
  return {
      {"gaussian, zero", both(gaussian_filter(8, kZero))},
      {"gaussian, clamp", both(gaussian_filter(8, kClamp))},
      {"clamp along y, zero along x", {gaussian_filter(3, kClamp), gaussian_filter(13, kZero)}},
      {"along y alone", {gaussian_filter(5, kClamp), {}}},
      {"along x alone", {{}, gaussian_filter(5, kClamp)}},
      {"a pole, zero", both(bspline_prefilter(3, kZero))},
      {"two poles, clamp", both(bspline_prefilter(5, kClamp))},
      {"directions that differ",
       {feedback_filter(0.3, one, other, kClamp), feedback_filter(0.3, other, one, kClamp)}},
  };
}

TEST_F(ExactStripsOnCuda, AreRightForEachFilter) {
  const FilterShape shape{16 * kTile + 31, kTile * (blocks() * 4 / 5) - 4};
  const auto image = make_filter_image(shape, FilterPattern::kRandom, 4);
  for (const auto& [name, filter] : filters()) {
    SCOPED_TRACE(name);
    ASSERT_EQ(goes_in_strips(image, filter, backend().executor().numbers()), serve());
    expect_right(image, filter);
  }
}

/// With a strip for each block, and with two for each but the last, and whole tiles or parts of them.
TEST_F(ExactStripsOnCuda, AreRightInImagesOfManyStrips) {
  const RecursiveFilter filter = filters().at("gaussian, clamp");
  for (const FilterShape shape :
       {FilterShape{16 * kTile, kTile * blocks()}, {16 * kTile + 1, kTile * (2 * blocks() - 3) - 60}}) {
    SCOPED_TRACE(describe(shape));
    const auto image = make_filter_image(shape, FilterPattern::kRandom);
    ASSERT_EQ(goes_in_strips(image, filter, backend().executor().numbers()), serve());
    expect_right(image, filter);
  }
}

TEST_F(ExactStripsOnCuda, LeaveOtherImagesToTiles) {
  const RecursiveFilter filter = filters().at("gaussian, clamp");
  const std::int64_t width = kTile * blocks();
  const auto expect_tiles = [&](FilterShape shape, std::int64_t padding) {
    SCOPED_TRACE(describe(shape));
    const auto image = make_filter_image(shape, FilterPattern::kRandom, padding);
    EXPECT_FALSE(goes_in_strips(image, filter, backend().executor().numbers()));
    expect_right(image, filter);
  };
  expect_tiles({15 * kTile, width}, 0);
  expect_tiles({16 * kTile, width - 1}, 0);
  expect_tiles({16 * kTile, width}, 3);
  expect_tiles({16 * kTile, width / 4, 3}, 0);
  expect_tiles({16 * kTile, width / 2}, 0);
}

/// A pixel so bright that it is seen where the filter has all but forgotten it, through any number of tiles:
/// a window would leave it out.
TEST_F(ExactStripsOnCuda, LeaveNothingOut) {
  const RecursiveFilter filter = filters().at("gaussian, zero");
  const FilterShape shape{17 * kTile, kTile * blocks()};
  auto image = make_filter_image(shape, FilterPattern::kRandom);
  std::fill(image.elements.begin(), image.elements.end(), 0.0F);
  const auto at = [&](std::int64_t y, std::int64_t x) {
    return static_cast<std::size_t>(y * shape.width + x);
  };
  const std::int64_t bright_y = 9 * kTile + 5;
  const std::int64_t bright_x = shape.width / 2 + 7;
  image.elements[at(bright_y, bright_x)] = 1e30F;
  ASSERT_EQ(goes_in_strips(image, filter, backend().executor().numbers()), serve());
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

TEST_F(ExactStripsOnCuda, AreRightInBatches) {
  const RecursiveFilter filter = filters().at("gaussian, clamp");
  const FilterShape shape{16 * kTile + 1, kTile * blocks()};
  std::vector<float> elements;
  std::vector<FilterImage> images;
  for (std::uint32_t i = 0; i < 2; ++i) {
    images.push_back(make_filter_image(shape, FilterPattern::kRandom, 0, i));
    elements.insert(elements.end(), images.back().elements.begin(), images.back().elements.end());
  }
  const auto result = apply_to<float>(backend(), elements, shape, shape.width, 2, filter, Method::kTiled);
  for (std::size_t i = 0; i < images.size(); ++i) {
    EXPECT_EQ(verify_recursive_filter(images[i], filter, result.data() + i * images[i].elements.size()), "");
  }
}

TEST_F(ExactStripsOnCuda, GiveTheSameBitsEachTime) {
  const RecursiveFilter filter = filters().at("gaussian, clamp");
  const FilterShape shape{40 * kTile, kTile * blocks()};
  const auto image = make_filter_image(shape, FilterPattern::kRandom);
  const auto first = filter_in_tiles(image, filter);
  for (int again = 0; again < 5; ++again) EXPECT_EQ(filter_in_tiles(image, filter), first);
}

}  // namespace
}  // namespace cumulus
