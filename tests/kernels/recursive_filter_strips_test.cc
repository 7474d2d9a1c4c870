// The decaying method's way through an image in strips: how images are divided, and what strips publish.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/recursive_filter/recursive_filter.h"
#include "kernels/recursive_filter/strips/strips.h"
#include "tests/cases/recursive_filter_case.h"
#include "tests/kernels/recursive_filter_running.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using testing::apply_to;
using testing::FilterPattern;
using testing::FilterShape;
using testing::make_filter_image;
using Method = RecursiveFilterMethod;

using recursive_filter::StripDivision;
using recursive_filter::StripGrid;
using recursive_filter::Windows;

constexpr int kBlocks = 132;

StripGrid grid_of(FilterShape shape, std::int64_t window) {
  return {shape.height, shape.width, shape.channels, Windows::OfStrips{window, window, 0}};
}

TEST(RecursiveFilterStrips, HaveTilesOf32PixelsWhereTheyHaveAllChannels) {
  const StripGrid gray = grid_of({130, 200, 1}, 2);
  EXPECT_EQ(gray.rows, 3);
  EXPECT_EQ(gray.columns, 4);
  EXPECT_EQ(gray.window_x, 2);
  const StripGrid rgb = grid_of({130, 200, 3}, 2);
  EXPECT_EQ(rgb.rows, 5);
  EXPECT_EQ(rgb.columns, 7);
  EXPECT_EQ(rgb.window_y, 4);
  EXPECT_EQ(rgb.window_x, 4);
}

TEST(RecursiveFilterStrips, AreAsManyAsAGpuHolds) {
  const StripDivision few(grid_of({1024, 2048, 3}, 2), 1, false, kBlocks);
  EXPECT_EQ(few.panel_columns, 64);
  EXPECT_EQ(few.segments, 2);
  EXPECT_EQ(few.segment_tiles, 16);
  // Two panels of 128 columns, each with a window of 4 at one side, are 132 blocks.
  EXPECT_EQ(StripDivision(grid_of({4096, 8192, 3}, 2), 1, false, kBlocks).panel_columns, 128);
  // Where the image repeats they have one at either side.
  EXPECT_EQ(StripDivision(grid_of({4096, 8192, 3}, 2), 1, true, kBlocks).panel_columns, 86);
  for (const bool repeats : {false, true}) {
    for (std::int64_t width = 32; width < 32 * 700; width += 32) {
      for (const std::int64_t window : {0, 1, 4}) {
        const StripGrid grid = grid_of({640, width, 3}, window);
        const StripDivision division(grid, 1, repeats, kBlocks);
        const bool whole = division.panel_columns == grid.columns;
        const int sides = repeats || 2 * division.panel_columns < grid.columns ? 2 : 1;
        const int columns = division.panel_columns + (whole ? 0 : sides * grid.window_x);
        ASSERT_LE(columns * division.segments, kBlocks) << width;
        ASSERT_GE(division.segments * division.segment_tiles, grid.rows) << width;
      }
    }
  }
}

class RecursiveFilterStripsOnCuda : public testing::OnEveryBackend<testing::CudaBackend> {
 protected:
  void expect_right(const RecursiveFilter& filter, FilterShape shape) {
    SCOPED_TRACE(describe(shape));
    const auto image = make_filter_image(shape, FilterPattern::kRandom, 3);
    RecursiveFilterRun run{};
    const auto result = apply_to<float>(backend(), image.elements, shape, image.row_stride, 1, filter,
                                        Method::kDecaying, &run);
    EXPECT_EQ(run.method, testing::method_that_runs(Method::kDecaying, backend().executor().numbers()));
    EXPECT_LE(testing::largest_filter_error(image, filter_serially(image, filter), result.data()),
              testing::recursive_filter_tolerance<float>(filter));
  }
};

TEST_F(RecursiveFilterStripsOnCuda, AreRightInImagesWiderThanALaunch) {
  for (const FilterBoundary boundary :
       {FilterBoundary::kZero, FilterBoundary::kClamp, FilterBoundary::kRepeat, FilterBoundary::kReflect}) {
    SCOPED_TRACE(testing::name_of(boundary));
    const RecursiveFilter filter{gaussian_filter(3, boundary), gaussian_filter(12, boundary)};
    expect_right(filter, {70, 64 * 137});
    expect_right(filter, {70, 64 * 24, 4});
    expect_right({{}, gaussian_filter(4, boundary)}, {5, 64 * 270});
  }
  const RecursiveFilter clamped{gaussian_filter(2, FilterBoundary::kMirror),
                                deriche_filter(6, 1, FilterBoundary::kClamp)};
  expect_right(clamped, {65, 64 * 137 - 3});
  expect_right(clamped, {65, 64 * 140 - 61, 3});
}

TEST_F(RecursiveFilterStripsOnCuda, AreRightInImagesOfManyParts) {
  for (const FilterBoundary boundary : testing::kFilterBoundaries) {
    SCOPED_TRACE(testing::name_of(boundary));
    const RecursiveFilter filter{gaussian_filter(12, boundary), gaussian_filter(2, FilterBoundary::kClamp)};
    expect_right(filter, {1, 1});
    expect_right(filter, {64 * 150 + 1, 20});
    expect_right(filter, {64 * 9 - 1, 64 * 20});
    expect_right({gaussian_filter(9, boundary), {}}, {64 * 40, 130});
  }
}

/// Whole tiles, parts of them, one column of them; windows of up to eight tiles.
TEST_F(RecursiveFilterStripsOnCuda, AreRightInColour) {
  const auto both = [](const AxisFilter& axis) { return RecursiveFilter{axis, axis}; };
  for (const FilterBoundary boundary :
       {FilterBoundary::kZero, FilterBoundary::kClamp, FilterBoundary::kRepeat, FilterBoundary::kReflect}) {
    SCOPED_TRACE(testing::name_of(boundary));
    const RecursiveFilter filters[] = {both(gaussian_filter(2, boundary)),
                                       both(gaussian_filter(14, boundary)),
                                       both(deriche_filter(6, 0, boundary)),
                                       both(bspline_prefilter(3, boundary)),
                                       {gaussian_filter(8, boundary), deriche_filter(3, 1, boundary)}};
    for (const RecursiveFilter& filter : filters) {
      for (const std::int64_t channels : {2, 3, 4}) {
        expect_right(filter, {333, 320, channels});
        expect_right(filter, {1, 384, channels});
      }
    }
  }
  for (const FilterBoundary boundary : {FilterBoundary::kZero, FilterBoundary::kClamp}) {
    const RecursiveFilter filter = both(gaussian_filter(5, boundary));
    for (const std::int64_t channels : {2, 3, 4}) {
      expect_right(filter, {64, 64, channels});
      expect_right(filter, {67, 1, channels});
      expect_right(filter, {95, 333, channels});
      expect_right(filter, {70, 340, channels});
    }
  }
}

TEST_F(RecursiveFilterStripsOnCuda, AreRightInColourImagesWiderThanALaunch) {
  for (const FilterBoundary boundary :
       {FilterBoundary::kZero, FilterBoundary::kClamp, FilterBoundary::kRepeat, FilterBoundary::kReflect}) {
    SCOPED_TRACE(testing::name_of(boundary));
    const RecursiveFilter filter{gaussian_filter(3, boundary), gaussian_filter(12, boundary)};
    expect_right(filter, {37, 64 * 68, 3});
    expect_right(filter, {20, 64 * 130, 2});
    expect_right(filter, {5, 64 * 140, 4});
  }
}

TEST_F(RecursiveFilterStripsOnCuda, AreRightInColourHalvesWhereverRowsBegin) {
  const RecursiveFilter filter{gaussian_filter(5, FilterBoundary::kReflect),
                               gaussian_filter(5, FilterBoundary::kClamp)};
  for (const FilterShape shape : {FilterShape{150, 320, 3}, {150, 321, 3}, {97, 200, 2}, {97, 320, 4}}) {
    for (const std::int64_t padding : {0, 1, 2}) {
      SCOPED_TRACE(describe(shape));
      auto image = make_filter_image(shape, FilterPattern::kRandom, padding);
      const auto result = apply_to<Float16>(backend(), testing::elements_as<Float16>(image), shape,
                                            image.row_stride, 1, filter, Method::kDecaying);
      EXPECT_EQ(verify_recursive_filter(image, filter, result.data()), "");
    }
  }
}

TEST_F(RecursiveFilterStripsOnCuda, AreRightInBatchesOfHalves) {
  const RecursiveFilter filter{deriche_filter(5, 0, FilterBoundary::kRepeat),
                               gaussian_filter(5, FilterBoundary::kClamp)};
  for (const FilterShape shape : {FilterShape{100, 320}, {200, 130, 3}}) {
    SCOPED_TRACE(describe(shape));
    constexpr std::int64_t kCount = 17;
    std::vector<Float16> elements;
    std::vector<testing::FilterImage> images;
    for (std::uint32_t i = 0; i < kCount; ++i) {
      images.push_back(make_filter_image(shape, FilterPattern::kRandom, 0, i));
      const auto of_one = testing::elements_as<Float16>(images.back());
      elements.insert(elements.end(), of_one.begin(), of_one.end());
    }
    const auto result = apply_to<Float16>(backend(), elements, shape, images[0].row_stride, kCount, filter,
                                          Method::kDecaying);
    for (std::size_t i = 0; i < kCount; ++i) {
      const auto of_one = static_cast<std::size_t>(shape.height * shape.width * shape.channels);
      EXPECT_EQ(verify_recursive_filter(images[i], filter, result.data() + i * of_one), "") << i;
    }
  }
}

TEST_F(RecursiveFilterStripsOnCuda, GiveTheSameBitsEachTime) {
  const RecursiveFilter filter{gaussian_filter(8, FilterBoundary::kClamp),
                               gaussian_filter(8, FilterBoundary::kReflect)};
  for (const FilterShape shape : {FilterShape{1024, 1024}, {1024, 1024, 3}}) {
    const auto image = make_filter_image(shape, FilterPattern::kRandom);
    const auto run = [&] {
      return apply_to<float>(backend(), image.elements, shape, image.row_stride, 1, filter,
                             Method::kDecaying);
    };
    const auto first = run();
    for (int again = 0; again < 5; ++again) EXPECT_EQ(run(), first);
  }
}

}  // namespace
}  // namespace cumulus
