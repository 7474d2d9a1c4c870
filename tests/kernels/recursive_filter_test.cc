#include "kernels/recursive_filter/recursive_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/cases/recursive_filter_case.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using testing::BackendArray;
using testing::FilterImage;
using testing::FilterPattern;
using testing::FilterShape;
using ::testing::HasSubstr;
using testing::kFilterBoundaries;
using testing::kFilterShapes;
using testing::make_filter_image;
using Method = RecursiveFilterMethod;
using Choice = RecursiveFilterChoice;

/// Filters `count` images of `shape`, whose rows are `row_stride` elements apart, into fresh, poisoned
/// memory; checks that exactly the stated scratch was taken.
template <class T, class Backend>
std::vector<T> apply_to(Backend& backend, const std::vector<T>& elements, FilterShape shape,
                        std::int64_t row_stride, std::int64_t count, const RecursiveFilter& filter,
                        const Choice& choice = {}, RecursiveFilterRun* run = nullptr) {
  const auto [height, width, channels] = shape;
  BackendArray<Backend, T> pixels(backend, elements);
  BackendArray<Backend, T> result(backend, static_cast<std::size_t>(count * height * width * channels));
  const FilterImages<const T, Backend::kSpace> images(
      ImageView<const T, Backend::kSpace>(pixels.const_span().data(), height, width, channels, row_stride),
      count);
  const FilterImages<T, Backend::kSpace> filtered(
      ImageView<T, Backend::kSpace>(result.span().data(), height, width, channels), count);
  const std::size_t scratch_bytes = apply_recursive_filter_scratch_bytes(images, filter, choice);
  backend.executor().reserve_scratch(scratch_bytes);
  const RecursiveFilterRun done =
      apply_recursive_filter(backend.executor(), images, filter, filtered, choice);
  if (run != nullptr) *run = done;
  EXPECT_EQ(backend.executor().scratch_arena().used_bytes(), scratch_bytes);
  return result.to_host();
}

template <class Backend>
std::vector<float> apply(Backend& backend, const FilterImage& image, const RecursiveFilter& filter,
                         const Choice& choice = {}, RecursiveFilterRun* run = nullptr) {
  return apply_to<float>(backend, image.elements, image.shape, image.row_stride, 1, filter, choice, run);
}

std::map<std::string, RecursiveFilter> filters_with(FilterBoundary boundary) {
  const auto both = [](const AxisFilter& axis) { return RecursiveFilter{axis, axis}; };
  const std::vector<double> repeated_pole = {-1.6, 0.64};
  const std::vector<double> four_poles = {-0.5, 0.1, -0.2, 0.05};
  const std::vector<double> five_poles = {-0.5, 0.1, -0.2, 0.05, 0.1};
  return {
      {"gaussian 0.5", both(gaussian_filter(0.5, boundary))},
      {"gaussian 3 along y, 1.2 along x", {gaussian_filter(3, boundary), gaussian_filter(1.2, boundary)}},
      {"gaussian 8", both(gaussian_filter(8, boundary))},
      {"gaussian 40", both(gaussian_filter(40, boundary))},
      {"gaussian 5 along y alone", {gaussian_filter(5, boundary), {}}},
      {"gaussian 5 along x alone", {{}, gaussian_filter(5, boundary)}},
      {"deriche 0.7", both(deriche_filter(0.7, 0, boundary))},
      {"deriche 3, second derivative along y",
       {deriche_filter(3, 2, boundary), deriche_filter(5, 0, boundary)}},
      {"deriche 9, first derivative along x",
       {deriche_filter(12, 0, boundary), deriche_filter(9, 1, boundary)}},
      {"deriche 50, second derivative along x",
       {deriche_filter(30, 0, boundary), deriche_filter(50, 2, boundary)}},
      {"first derivative and five poles",
       {deriche_filter(4, 1, boundary), feedback_filter(0.1, five_poles, five_poles, boundary)}},
      {"cubic prefilter", both(bspline_prefilter(3, boundary))},
      {"quintic prefilter", both(bspline_prefilter(5, boundary))},
      {"exponential 0.9, 0.99", {exponential_filter(0.9, boundary), exponential_filter(0.99, boundary)}},
      {"four poles", both(feedback_filter(0.4, four_poles, four_poles, boundary))},
      {"five poles", both(feedback_filter(-0.2, five_poles, five_poles, boundary))},
      {"different directions",
       {feedback_filter(0.01, repeated_pole, five_poles, boundary),
        feedback_filter(0.01, five_poles, repeated_pole, boundary)}},
  };
}

template <class Backend>
class RecursiveFilterKernel : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(RecursiveFilterKernel, testing::Backends, testing::BackendNames);

TYPED_TEST(RecursiveFilterKernel, MatchesTheOracleForEveryFilterAndBoundary) {
  for (const FilterBoundary boundary : kFilterBoundaries) {
    for (const auto& [name, filter] : filters_with(boundary)) {
      SCOPED_TRACE(name + ", " + testing::name_of(boundary));
      for (const FilterShape shape : {FilterShape{1, 1}, {2, 3}, {70, 130}, {65, 64, 3}}) {
        const auto image = make_filter_image(shape, FilterPattern::kRandom, 3);
        EXPECT_EQ(verify_recursive_filter(image, filter, apply(this->backend(), image, filter).data()), "")
            << describe(shape);
      }
    }
  }
}

TYPED_TEST(RecursiveFilterKernel, MatchesTheOracleOnEveryShape) {
  for (const FilterBoundary boundary : kFilterBoundaries) {
    const RecursiveFilter filter{gaussian_filter(4, boundary), gaussian_filter(6, boundary)};
    for (const FilterShape shape : kFilterShapes) {
      for (const auto pattern : {FilterPattern::kRandom, FilterPattern::kConstant, FilterPattern::kSpikes}) {
        const auto image = make_filter_image(shape, pattern);
        EXPECT_EQ(verify_recursive_filter(image, filter, apply(this->backend(), image, filter).data()), "")
            << describe(shape) << ", " << testing::name_of(boundary);
      }
    }
  }
}

TYPED_TEST(RecursiveFilterKernel, MatchesTheOracleOverManyTilesInEachDirection) {
  for (const FilterBoundary boundary : kFilterBoundaries) {
    const RecursiveFilter filter{gaussian_filter(60, boundary), gaussian_filter(12, boundary)};
    for (const FilterShape shape : {FilterShape{200, 390}, {2, 1500}, {1500, 2}}) {
      const auto image = make_filter_image(shape, FilterPattern::kRandom);
      EXPECT_EQ(verify_recursive_filter(image, filter, apply(this->backend(), image, filter).data()), "")
          << describe(shape) << ", " << testing::name_of(boundary);
    }
  }
}

TYPED_TEST(RecursiveFilterKernel, KeepsItsPrecisionWhereSigmaIsInTheThousands) {
  for (const FilterBoundary boundary :
       {FilterBoundary::kClamp, FilterBoundary::kReflect, FilterBoundary::kMirror}) {
    const RecursiveFilter filter{gaussian_filter(3000, boundary), gaussian_filter(1000, boundary)};
    const auto image = make_filter_image({6, 20}, FilterPattern::kRandom);
    EXPECT_EQ(verify_recursive_filter(image, filter, apply(this->backend(), image, filter).data()), "")
        << testing::name_of(boundary);
  }
}

/// The CPU has one method.
using RecursiveFilterOnCuda = testing::OnEveryBackend<testing::CudaBackend>;

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
          RecursiveFilterRun run{};
          const auto result = apply(backend(), image, filter, method, &run);
          EXPECT_EQ(run.method, method);
          EXPECT_LE(run.truncation_bound, kNegligibleTruncation);
          EXPECT_LE(testing::largest_filter_error(image, right, result.data()),
                    testing::recursive_filter_tolerance<float>(filter));
        }
      }
    }
  }
}

TEST_F(RecursiveFilterOnCuda, MatchesTheOracleWhereStatesLieInTheOutput) {
  for (const FilterBoundary boundary :
       {FilterBoundary::kClamp, FilterBoundary::kRepeat, FilterBoundary::kMirror}) {
    const RecursiveFilter filter{gaussian_filter(8, boundary), bspline_prefilter(3, boundary)};
    const FilterShape shape{2700, 2504};
    const auto image = make_filter_image(shape, FilterPattern::kRandom);
    RecursiveFilterRun run{};
    const auto result = apply(backend(), image, filter, Method::kDecaying, &run);
    EXPECT_EQ(verify_recursive_filter(image, filter, result.data()), "") << testing::name_of(boundary);
    EXPECT_GT(run.truncation_bound, 0);
    const ImageView<const float, Space::kDevice> view(nullptr, shape.height, shape.width);
    EXPECT_LT(apply_recursive_filter_scratch_bytes<float>(FilterImages(view), filter, Method::kDecaying),
              image.elements.size() * sizeof(float) / 10);
  }
}

TEST_F(RecursiveFilterOnCuda, MatchesTheOracleWhereStatesLieInAnOutputOfHalves) {
  const RecursiveFilter filter{bspline_prefilter(5, FilterBoundary::kRepeat),
                               exponential_filter(0.8, FilterBoundary::kClamp)};
  const FilterShape shape{3601, 1201, 3};
  auto image = make_filter_image(shape, FilterPattern::kRandom);
  const auto elements = testing::elements_as<Float16>(image);
  const auto result =
      apply_to<Float16>(backend(), elements, shape, image.row_stride, 1, filter, Method::kDecaying);
  EXPECT_EQ(verify_recursive_filter(image, filter, result.data()), "");
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
          for (const Method method : {Method::kOnChip, Method::kDecaying}) {
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
  for (const Method method : {Method::kAutomatic, Method::kOnChip, Method::kDecaying}) {
    RecursiveFilterRun run{};
    const auto result = apply(backend(), image, filter, Choice(method, 0), &run);
    EXPECT_EQ(run.truncation_bound, 0);
    EXPECT_LE(testing::largest_filter_error(image, right, result.data()),
              testing::recursive_filter_tolerance<float>(filter));
  }
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
  EXPECT_THAT(refusal({4, 64 * 41}, wide, Method::kOnChip), HasSubstr("remembers too much"));
  EXPECT_THAT(refusal({4, 64 * 41}, wide, Method::kDecaying), HasSubstr("remembers too much"));
  EXPECT_THAT(refusal({64, 64}, narrow, Method::kOnChip), HasSubstr("accepted"));
  EXPECT_THAT(refusal({8000, 8000}, narrow, Method::kOnChip), HasSubstr("the image has 15625"));
  EXPECT_THAT(refusal({4, 64 * 41}, narrow, Choice(Method::kDecaying, 0)), HasSubstr("remembers too much"));
  const std::vector<double> stable = {-0.5};
  const RecursiveFilter one_way{feedback_filter(1, stable, {}, FilterBoundary::kMirror), {}};
  for (const Method method : {Method::kTiled, Method::kOnChip, Method::kDecaying}) {
    EXPECT_THAT(refusal({64, 64}, one_way, method), HasSubstr("the line method does"));
  }
}

TYPED_TEST(RecursiveFilterKernel, LeavesTheImageAsItIsWithoutAFilter) {
  const auto image = make_filter_image({100, 70, 3}, FilterPattern::kRandom);
  EXPECT_EQ(apply(this->backend(), image, {}), image.elements);
}

TYPED_TEST(RecursiveFilterKernel, BlursAcrossTheDateLineWhereTheBoundaryRepeats) {
  const RecursiveFilter filter{gaussian_filter(3, FilterBoundary::kClamp),
                               gaussian_filter(3, FilterBoundary::kRepeat)};
  FilterImage image = make_filter_image({64, 256}, FilterPattern::kSpikes);
  std::fill(image.elements.begin(), image.elements.end(), 0.0f);
  image.row(32)[0] = 1;
  const auto blurred = apply(this->backend(), image, filter);
  for (std::size_t x = 1; x < 20; ++x) {
    EXPECT_NEAR(blurred[32 * 256 + x], blurred[32 * 256 + 256 - x], 1e-7) << x;
  }
}

TYPED_TEST(RecursiveFilterKernel, GivesTheSameBitsEachTime) {
  const auto image = make_filter_image({500, 701}, FilterPattern::kRandom);
  const RecursiveFilter filter{gaussian_filter(9, FilterBoundary::kReflect),
                               gaussian_filter(9, FilterBoundary::kRepeat)};
  const auto once = apply(this->backend(), image, filter);
  for (int repeat = 0; repeat < 3; ++repeat) EXPECT_TRUE(apply(this->backend(), image, filter) == once);
}

template <class T, class Backend>
void expect_right_for_elements(Backend& backend) {
  for (const FilterBoundary boundary : kFilterBoundaries) {
    const std::vector<double> repeated_pole = {-1.2, 0.36};
    const RecursiveFilter filters[] = {
        {gaussian_filter(3, boundary), gaussian_filter(20, boundary)},
        {deriche_filter(2, 1, boundary), deriche_filter(6, 0, boundary)},
        {bspline_prefilter(5, boundary), feedback_filter(0.2, repeated_pole, {}, boundary)}};
    for (const RecursiveFilter& filter : filters) {
      for (const FilterShape shape : {FilterShape{1, 1}, {66, 129}, {130, 67, 3}, {200, 64, 4}}) {
        FilterImage image = make_filter_image(shape, FilterPattern::kRandom, 1);
        const std::vector<T> elements = testing::elements_as<T>(image);
        const auto result = apply_to<T>(backend, elements, shape, image.row_stride, 1, filter);
        EXPECT_EQ(verify_recursive_filter(image, filter, result.data()), "")
            << describe(shape) << ", " << testing::name_of(boundary);
      }
    }
  }
}

TYPED_TEST(RecursiveFilterKernel, FiltersImagesOfHalves) {
  expect_right_for_elements<Float16>(this->backend());
}

TYPED_TEST(RecursiveFilterKernel, FiltersImagesOfDoubles) {
  expect_right_for_elements<double>(this->backend());
}

TYPED_TEST(RecursiveFilterKernel, FiltersEachImageOfABatchAlone) {
  for (const FilterShape shape : {FilterShape{1, 1}, {5, 70, 3}, {130, 65}}) {
    for (const RecursiveFilter& filter :
         {RecursiveFilter{gaussian_filter(3, FilterBoundary::kRepeat),
                          deriche_filter(9, 0, FilterBoundary::kClamp)},
          RecursiveFilter{feedback_filter(1, std::vector{-0.5}, {}, FilterBoundary::kMirror), {}}}) {
      constexpr std::int64_t kImages = 3;
      std::vector<float> all;
      std::vector<float> each;
      for (std::uint32_t i = 0; i < kImages; ++i) {
        const FilterImage image = make_filter_image(shape, FilterPattern::kRandom, 0, i);
        all.insert(all.end(), image.elements.begin(), image.elements.end());
        const auto alone = apply(this->backend(), image, filter);
        each.insert(each.end(), alone.begin(), alone.end());
      }
      EXPECT_EQ(apply_to<float>(this->backend(), all, shape, shape.width * shape.channels, kImages, filter),
                each)
          << describe(shape);
    }
  }
}

template <class T, class Backend>
void expect_sums(Backend& backend) {
  FilterImage addend = make_filter_image({37, 41, 3}, FilterPattern::kRandom, 0, 1);
  FilterImage image = make_filter_image({37, 41, 3}, FilterPattern::kRandom, 0, 2);
  const std::vector<T> from = testing::elements_as<T>(addend);
  const BackendArray<Backend, T> added(backend, from);
  BackendArray<Backend, T> values(backend, testing::elements_as<T>(image));
  add_scaled<T>(backend.executor(), added.const_span(), -0.75, values.span());
  const std::vector<T> sums = values.to_host();
  const double tolerance = sizeof(T) == sizeof(Float16) ? 1e-3 : 1.2e-7;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double right =
        static_cast<double>(addend.elements[i]) - 0.75 * static_cast<double>(image.elements[i]);
    ASSERT_NEAR(static_cast<double>(sums[i]), right, tolerance) << i;
  }
}

TYPED_TEST(RecursiveFilterKernel, AddsScaledImages) {
  expect_sums<float>(this->backend());
  expect_sums<Float16>(this->backend());
  expect_sums<double>(this->backend());
}

TYPED_TEST(RecursiveFilterKernel, RefusesWhatItCannotDo) {
  using Image = ImageView<const float, TypeParam::kSpace>;
  using Filtered = ImageView<float, TypeParam::kSpace>;
  const auto text_of = [&](const Image& image, const Filtered& filtered,
                           const RecursiveFilter& filter) -> std::string {
    try {
      apply_recursive_filter<float>(this->executor(), image, filter, filtered);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  const auto views = [&](const Image& image, const Filtered& filtered) {
    return text_of(image, filtered, {});
  };
  EXPECT_THAT(views({nullptr, 0, 4}, {nullptr, 0, 4}),
              HasSubstr("the image is 0 x 4 x 1; it must have at least one"));
  EXPECT_THAT(views({nullptr, 4, 4, 5}, {nullptr, 4, 4, 5}), HasSubstr("1 to 4 channels"));
  EXPECT_THAT(views({nullptr, 4, 4, 3, 11}, {nullptr, 4, 4, 3}), HasSubstr("rows are 11 elements apart"));
  EXPECT_THAT(views({nullptr, 4, 4}, {nullptr, 4, 5}), HasSubstr("it must be 4 x 4 x 1 and dense"));
  EXPECT_THAT(views({nullptr, 4, 4}, {nullptr, 4, 4, 1, 8}), HasSubstr("it must be 4 x 4 x 1 and dense"));
  try {
    const FilterImages<const float, TypeParam::kSpace> two(Image{nullptr, 4, 4}, 2);
    apply_recursive_filter<float>(this->executor(), two, {}, Filtered{nullptr, 4, 4});
    ADD_FAILURE() << "two images, one output: accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("there are 2 images and 1 outputs"));
  }
  const std::vector<double> growing = {-1.5};
  EXPECT_THAT(
      text_of({nullptr, 4, 4}, {nullptr, 4, 4}, {feedback_filter(1, growing, {}, FilterBoundary::kZero), {}}),
      HasSubstr("the pole 1.5"));
}

TYPED_TEST(RecursiveFilterKernel, DoesNotStartForACallerWhoHasLeft) {
  struct Always : Interrupt {
    bool requested() const override { return true; }
  } always;
  this->executor().set_interrupt(&always);
  EXPECT_THROW(apply(this->backend(), make_filter_image({8, 8}, FilterPattern::kRandom), {}), Interrupted);
}

TEST(RecursiveFilterOnTheCpu, DoesNotDependOnTheNumberOfThreads) {
  const auto image = make_filter_image({300, 401, 3}, FilterPattern::kRandom);
  const RecursiveFilter filter{gaussian_filter(9, FilterBoundary::kClamp),
                               gaussian_filter(2, FilterBoundary::kMirror)};
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 5}) {
    CpuExecutor executor(threads);
    std::vector<float>& result = results.emplace_back(image.elements.size());
    apply_recursive_filter<float>(executor, HostImage<const float>{image.elements.data(), 300, 401, 3},
                                  filter, HostImage<float>{result.data(), 300, 401, 3});
  }
  EXPECT_TRUE(results[0] == results[1]);
  EXPECT_TRUE(results[0] == results[2]);
}

TEST(RecursiveFilterVerifier, RefusesASmallError) {
  testing::CpuBackend backend;
  const RecursiveFilter filter{gaussian_filter(2, FilterBoundary::kClamp),
                               gaussian_filter(2, FilterBoundary::kClamp)};
  const auto image = make_filter_image({30, 40}, FilterPattern::kRandom);
  auto result = apply(backend, image, filter);
  EXPECT_EQ(verify_recursive_filter(image, filter, result.data()), "");
  result[777] += 3e-6f;
  EXPECT_THAT(verify_recursive_filter(image, filter, result.data()), HasSubstr("the largest error is"));
  result[777] = std::nanf("");
  EXPECT_NE(verify_recursive_filter(image, filter, result.data()), "");
}

}  // namespace
}  // namespace cumulus
