// Every method of recursive filters on the GPU, by name. The CPU has one method.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/recursive_filter/on_chip/capacity.h"
#include "kernels/recursive_filter/recursive_filter.h"
#include "tests/cases/recursive_filter_case.h"
#include "tests/kernels/recursive_filter_running.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using testing::apply;
using testing::apply_to;
using testing::FilterImage;
using testing::FilterPattern;
using testing::filters_with;
using testing::FilterShape;
using ::testing::HasSubstr;
using testing::kFilterBoundaries;
using testing::make_filter_image;
using Method = RecursiveFilterMethod;
using Choice = RecursiveFilterChoice;

using RecursiveFilterOnCuda = testing::OnEveryBackend<testing::CudaBackend>;

bool takes(const Choice& choice, FilterShape shape, const RecursiveFilter& filter) {
  return obstacle_to(filter, shape.height, shape.width, false, choice) == MethodObstacle::kNone;
}

TEST_F(RecursiveFilterOnCuda, MatchesTheOracleByEveryMethod) {
  for (const FilterBoundary boundary : kFilterBoundaries) {
    for (const auto& [name, filter] : filters_with(boundary)) {
      if (name == "different directions" &&
          (boundary == FilterBoundary::kReflect || boundary == FilterBoundary::kMirror)) {
        continue;  // by lines alone
      }
      for (const FilterShape shape : {FilterShape{330, 200, 2}, {1, 700}, {192, 448}}) {
        const auto image = make_filter_image(shape, FilterPattern::kRandom, 5);
        const auto right = filter_serially(image, filter);
        for (const Method method : {Method::kLines, Method::kTiled, Method::kOnChip, Method::kDecaying}) {
          SCOPED_TRACE(name + ", " + testing::name_of(boundary) + ", " + describe(shape) + ", method " +
                       std::to_string(static_cast<int>(method)));
          if (!takes(method, shape, filter)) {
            EXPECT_EQ(method, Method::kDecaying);
            continue;
          }
          RecursiveFilterRun run{};
          const auto result = apply(backend(), image, filter, method, &run);
          EXPECT_EQ(run.method, testing::method_that_runs(method, backend().executor().numbers()));
          EXPECT_LE(run.truncation_bound, kNegligibleTruncation);
          EXPECT_LE(testing::largest_filter_error(image, right, result.data()),
                    testing::recursive_filter_tolerance<float>(filter));
        }
      }
    }
  }
}

// Images of one channel that are whole tiles, rows at multiples of 16 bytes: their pixels stay in registers.

TEST_F(RecursiveFilterOnCuda, MatchesTheOracleWhereTilesAreWhole) {
  for (const FilterBoundary boundary : kFilterBoundaries) {
    for (const auto& [name, filter] : filters_with(boundary)) {
      if (name == "different directions" &&
          (boundary == FilterBoundary::kReflect || boundary == FilterBoundary::kMirror)) {
        continue;  // by lines alone
      }
      for (const FilterShape shape : {FilterShape{64, 64}, {128, 64}, {192, 128}}) {
        SCOPED_TRACE(name + ", " + testing::name_of(boundary) + ", " + describe(shape));
        const auto image = make_filter_image(shape, FilterPattern::kRandom, 8);
        const auto result = apply(backend(), image, filter, Method::kOnChip);
        EXPECT_EQ(verify_recursive_filter(image, filter, result.data()), "");
      }
    }
  }
}

TEST_F(RecursiveFilterOnCuda, MatchesTheOracleWhereManyTilesAreWhole) {
  const std::vector<double> five_poles = {-0.5, 0.1, -0.2, 0.05, 0.1};
  for (const FilterShape shape :
       {FilterShape{1152, 1920}, {1088, 1088}, {1536, 1600}}) {  // tiles of either side
    const auto image = make_filter_image(shape, FilterPattern::kRandom);
    for (const auto& [y, x] :
         {std::pair(bspline_prefilter(3, FilterBoundary::kZero),
                    exponential_filter(0.9, FilterBoundary::kRepeat)),
          {bspline_prefilter(5, FilterBoundary::kReflect), bspline_prefilter(5, FilterBoundary::kClamp)},
          {gaussian_filter(8, FilterBoundary::kClamp), gaussian_filter(5, FilterBoundary::kReflect)},
          {deriche_filter(4, 0, FilterBoundary::kRepeat), deriche_filter(9, 1, FilterBoundary::kZero)},
          {feedback_filter(0.1, five_poles, five_poles, FilterBoundary::kRepeat),
           feedback_filter(0.1, five_poles, five_poles, FilterBoundary::kClamp)}}) {
      SCOPED_TRACE(describe(shape) + ", " + std::to_string(y.causal.order) + " poles");
      const auto result = apply(backend(), image, {y, x}, Method::kOnChip);
      EXPECT_EQ(verify_recursive_filter(image, {y, x}, result.data()), "");
    }
  }
}

TEST_F(RecursiveFilterOnCuda, FiltersMoreImagesOfWholeTilesThanFitAtOnce) {
  constexpr std::int64_t kImages = 700;
  const FilterShape shape{64, 128};
  const RecursiveFilter filter{gaussian_filter(3, FilterBoundary::kClamp),
                               gaussian_filter(2, FilterBoundary::kRepeat)};
  const auto all = make_filter_image({kImages * shape.height, shape.width}, FilterPattern::kRandom);
  const auto result = apply_to<float>(backend(), all.elements, shape, shape.width, kImages, filter);
  for (std::int64_t i = 0; i < kImages; i += 233) {
    const auto first = i * shape.height * shape.width;
    const FilterImage image{
        shape,
        shape.width,
        {all.elements.begin() + first, all.elements.begin() + first + shape.height * shape.width}};
    EXPECT_EQ(verify_recursive_filter(image, filter, result.data() + first), "") << "image " << i;
  }
}

/// Images of several channels that fit on the chip one or two channels at a time.
TEST_F(RecursiveFilterOnCuda, TakesTheChannelsOfImagesThatDoNotFitTogether) {
  using recursive_filter::kTile;
  const std::int64_t held =
      resident_tiles(on_chip_kernel(3, recursive_filter::Precision::kSingle, recursive_filter::kOnChipParts),
                     backend().executor().numbers());
  const RecursiveFilter filter{gaussian_filter(5, FilterBoundary::kMirror),
                               gaussian_filter(8, FilterBoundary::kRepeat)};
  constexpr std::int64_t kRows = 4;
  for (const std::int64_t at_once : {1, 2}) {
    const FilterShape shape{kRows * kTile - 3, held / kRows / at_once * kTile - 5, 3};
    SCOPED_TRACE(describe(shape));
    auto image = make_filter_image(shape, FilterPattern::kRandom, 7);
    if (at_once == 1) {
      const auto floats = apply(backend(), image, filter, Method::kOnChip);
      EXPECT_EQ(verify_recursive_filter(image, filter, floats.data()), "");
      continue;  // the oracle takes long
    }
    const auto halves = testing::elements_as<Float16>(image);
    const auto result =
        apply_to<Float16>(backend(), halves, shape, image.row_stride, 1, filter, Method::kOnChip);
    EXPECT_EQ(verify_recursive_filter(image, filter, result.data()), "");
  }
}

/// A bright border far away, which a window that is too small forgets.
FilterImage dark_image_with_bright_sides(FilterShape shape) {
  FilterImage image = make_filter_image(shape, FilterPattern::kConstant);
  for (std::int64_t y = 0; y < shape.height; ++y) {
    for (std::int64_t x = 0; x < shape.width; ++x) {
      const bool bright = y < 64 || y >= shape.height - 64 || x < 64 || x >= shape.width - 64;
      image.row(y)[x] = bright ? 1.0f : 0.0f;
    }
  }
  return image;
}

TEST_F(RecursiveFilterOnCuda, ErrsByNoMoreThanTheTruncationItReports) {
  for (const FilterBoundary boundary : kFilterBoundaries) {
    for (const auto& filter :
         {RecursiveFilter{gaussian_filter(15, boundary), gaussian_filter(9, boundary)},
          RecursiveFilter{deriche_filter(8, 0, boundary), deriche_filter(10, 1, boundary)},
          RecursiveFilter{exponential_filter(0.93, boundary), {}}}) {
      for (const auto& image : {make_filter_image({900, 700}, FilterPattern::kRandom),
                                make_filter_image({900, 700}, FilterPattern::kConstant),
                                dark_image_with_bright_sides({900, 700})}) {
        const auto right = filter_serially(image, filter);
        double bound = 1;
        for (const double most : {0.2, 1e-3, 1e-6}) {
          for (const Method method : {Method::kDecaying, Method::kOnChip}) {
            if (!takes({method, most}, image.shape, filter)) continue;
            RecursiveFilterRun run{};
            const auto result = apply(backend(), image, filter, Choice(method, most), &run);
            const double error = testing::largest_filter_error(image, right, result.data());
            EXPECT_LE(run.truncation_bound, most);
            EXPECT_LE(error, run.truncation_bound + testing::recursive_filter_tolerance<float>(filter));
            bound = run.truncation_bound;
          }
        }
        EXPECT_GT(bound, 0);
      }
    }
  }
}

TEST_F(RecursiveFilterOnCuda, LeavesNothingOutWhereNothingMayBeLeftOut) {
  const RecursiveFilter filter{gaussian_filter(9, FilterBoundary::kRepeat),
                               gaussian_filter(12, FilterBoundary::kReflect)};
  const auto image = make_filter_image({700, 1300}, FilterPattern::kRandom);
  const auto right = filter_serially(image, filter);
  for (const Method method : {Method::kAutomatic, Method::kOnChip}) {
    RecursiveFilterRun run{};
    const auto result = apply(backend(), image, filter, Choice(method, 0), &run);
    EXPECT_EQ(run.truncation_bound, 0);
    EXPECT_LE(testing::largest_filter_error(image, right, result.data()),
              testing::recursive_filter_tolerance<float>(filter));
  }
}

TEST_F(RecursiveFilterOnCuda, TakesTheMethodByTheImageAndTheFilter) {
  const auto method_for = [&]<class T>(T element, FilterShape shape, const AxisFilter& axis) {
    RecursiveFilterRun run{};
    const auto count = static_cast<std::size_t>(shape.height * shape.width);
    apply_to<T>(backend(), std::vector<T>(count, element), shape, shape.width, 1, {axis, axis}, {}, &run);
    return run.method;
  };
  const AxisFilter narrow = gaussian_filter(8, FilterBoundary::kClamp);
  EXPECT_EQ(method_for(1.0F, {512, 512}, narrow), Method::kOnChip);
  EXPECT_EQ(method_for(1.0F, {6000, 6016}, narrow), Method::kDecaying);
  EXPECT_EQ(method_for(1.0F, {6000, 6016}, gaussian_filter(400, FilterBoundary::kClamp)), Method::kTiled);
  EXPECT_EQ(method_for(1.0F, {6000, 6016}, gaussian_filter(8, FilterBoundary::kMirror)), Method::kTiled);
  EXPECT_EQ(method_for(1.0F, {512, 512}, gaussian_filter(32, FilterBoundary::kClamp)), Method::kOnChip);
  EXPECT_EQ(method_for(1.0, {512, 512}, narrow), Method::kLines);
  const std::vector<double> stable = {-0.5};
  EXPECT_EQ(method_for(1.0F, {512, 512}, feedback_filter(1, stable, {}, FilterBoundary::kMirror)),
            Method::kLines);
}

/// Lines of as many tiles as the chip is said to hold: where it holds fewer, the launch fails.
TEST_F(RecursiveFilterOnCuda, HoldsAsManyTilesAsItIsSaidTo) {
  using recursive_filter::kTile;
  using recursive_filter::RegisterTiles;
  const DeviceNumbers device = backend().executor().numbers();
  const std::vector<double> five_poles = {-0.5, 0.1, -0.2, 0.05, 0.1};
  const std::vector<AxisFilter> filters = {
      exponential_filter(0.5, FilterBoundary::kClamp), bspline_prefilter(5, FilterBoundary::kClamp),
      gaussian_filter(4, FilterBoundary::kClamp), deriche_filter(4, 0, FilterBoundary::kClamp),
      feedback_filter(0.4, five_poles, five_poles, FilterBoundary::kClamp)};
  const auto expect_room = [&](const AxisFilter& axis, FilterShape shape) {
    SCOPED_TRACE(describe(shape));
    RecursiveFilterRun run{};
    const auto image = make_filter_image(shape, FilterPattern::kRandom);
    const auto result = apply(backend(), image, {axis, axis}, Method::kOnChip, &run);
    EXPECT_EQ(run.method, Method::kOnChip);
    EXPECT_EQ(verify_recursive_filter(image, {axis, axis}, result.data()), "");
  };
  for (int order = 1; order <= 5; ++order) {
    const AxisFilter& axis = filters[static_cast<std::size_t>(order - 1)];
    for (const RegisterTiles form : {RegisterTiles::kFew, RegisterTiles::kLarge}) {
      const std::int64_t side = register_tile_side(form);
      expect_room(axis, {side, side * resident_tiles(register_tile_kernel(form, order), device)});
    }
    for (const int parts : {recursive_filter::kManyOnChipParts, recursive_filter::kOnChipParts}) {
      const auto kernel = on_chip_kernel(order, recursive_filter::Precision::kSingle, parts);
      expect_room(axis, {kTile - 1, kTile * resident_tiles(kernel, device)});
    }
  }
  const auto in_double =
      on_chip_kernel(3, recursive_filter::Precision::kDouble, recursive_filter::kOnChipParts);
  expect_room(gaussian_filter(20, FilterBoundary::kClamp),
              {kTile - 1, kTile * resident_tiles(in_double, device)});
}

TEST_F(RecursiveFilterOnCuda, RefusesMethodsThatCannotDoIt) {
  const auto refusal = [&](FilterShape shape, const RecursiveFilter& filter, const Choice& choice) {
    try {
      apply(backend(), make_filter_image(shape, FilterPattern::kConstant), filter, choice);
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const auto both = [](const AxisFilter& axis) { return RecursiveFilter{axis, axis}; };
  const RecursiveFilter wide = both(gaussian_filter(400, FilterBoundary::kZero));
  const RecursiveFilter narrow = both(gaussian_filter(4, FilterBoundary::kZero));
  EXPECT_THAT(refusal({64, 64}, wide, Method::kOnChip), HasSubstr("accepted"));
  EXPECT_THAT(refusal({4, 64 * 41}, wide, Method::kOnChip), HasSubstr("decay length is too long"));
  EXPECT_THAT(refusal({4, 64 * 41}, wide, Method::kDecaying), HasSubstr("decay length is too long"));
  EXPECT_THAT(refusal({64, 64}, narrow, Method::kOnChip), HasSubstr("accepted"));
  EXPECT_THAT(refusal({8000, 8000}, narrow, Method::kOnChip), HasSubstr("a channel of the image has 15625"));
  EXPECT_THAT(refusal({4, 64 * 41}, narrow, Choice(Method::kDecaying, 0)),
              HasSubstr("decay length is too long"));
  EXPECT_THAT(refusal({64, 64}, both(gaussian_filter(40, FilterBoundary::kZero)), Method::kDecaying),
              HasSubstr("strips take"));
  EXPECT_THAT(refusal({64, 64}, both(gaussian_filter(4, FilterBoundary::kMirror)), Method::kDecaying),
              HasSubstr("no mirror along x"));
  EXPECT_THAT(refusal({64, 320}, narrow, Choice(Method::kDecaying, 0)),
              HasSubstr("decay length is too long"));
  const std::vector<double> stable = {-0.5};
  const RecursiveFilter one_way{feedback_filter(1, stable, {}, FilterBoundary::kMirror), {}};
  for (const Method method : {Method::kTiled, Method::kOnChip, Method::kDecaying}) {
    EXPECT_THAT(refusal({64, 64}, one_way, method), HasSubstr("the line method does"));
  }
}

}  // namespace
}  // namespace cumulus
