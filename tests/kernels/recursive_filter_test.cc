#include "kernels/recursive_filter/recursive_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/recursive_filter/cpu/apply.h"
#include "tests/cases/recursive_filter_case.h"
#include "tests/kernels/recursive_filter_running.h"
#include "tests/support/executors.h"

namespace cumulus {
namespace {

using testing::apply;
using testing::apply_to;
using testing::BackendArray;
using testing::FilterImage;
using testing::FilterPattern;
using testing::filters_with;
using testing::FilterShape;
using ::testing::HasSubstr;
using testing::kFilterBoundaries;
using testing::kFilterShapes;
using testing::make_filter_image;

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

TYPED_TEST(RecursiveFilterKernel, FiltersImagesOfDoublesByEveryFilterAndBoundary) {
  for (const FilterBoundary boundary : kFilterBoundaries) {
    for (const auto& [name, filter] : filters_with(boundary)) {
      SCOPED_TRACE(name + ", " + testing::name_of(boundary));
      for (const FilterShape shape : {FilterShape{1, 1}, {70, 130}, {37, 50, 3}}) {
        FilterImage image = make_filter_image(shape, FilterPattern::kRandom, 3);
        const std::vector<double> elements = testing::elements_as<double>(image);
        const auto result = apply_to<double>(this->backend(), elements, shape, image.row_stride, 1, filter);
        EXPECT_EQ(verify_recursive_filter(image, filter, result.data()), "") << describe(shape);
      }
    }
  }
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
  const std::vector<T> to = testing::elements_as<T>(image);
  BackendArray<Backend, T> values(backend, to);
  add_scaled<T>(backend.executor(), added.const_span(), -0.75, values.span());
  const std::vector<T> sums = values.to_host();
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double right = static_cast<double>(from[i]) - 0.75 * static_cast<double>(to[i]);
    // Half of a half's last place: it is the nearest.
    const double tolerance =
        sizeof(T) == sizeof(Float16) ? std::max(std::abs(right) * 0x1.01p-11, 0x1p-24) : 1.2e-7;
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

template <class T>
void expect_right_with_plain_vectors(FilterShape shape, const RecursiveFilter& filter) {
  FilterImage image = make_filter_image(shape, FilterPattern::kRandom);
  const std::vector<T> pixels = testing::elements_as<T>(image);
  std::vector<T> result(pixels.size());
  const HostImage<const T> source(pixels.data(), shape.height, shape.width, shape.channels);
  const HostImage<T> target(result.data(), shape.height, shape.width, shape.channels);
  CpuExecutor executor;
  executor.reserve_scratch(
      apply_recursive_filter_scratch_bytes<T, Space::kHost>(source, filter, executor.numbers()));
  recursive_filter::apply_with<PlainVectors, T>(executor, source, filter, target);
  EXPECT_EQ(verify_recursive_filter(image, filter, result.data()), "") << describe(shape);
}

// Other tests take the widest vectors that the machine has.
TEST(RecursiveFilterOnTheCpu, MatchesTheOracleWithPlainVectors) {
  for (const FilterBoundary boundary : kFilterBoundaries) {
    for (const auto& [name, filter] : filters_with(boundary)) {
      SCOPED_TRACE(name + ", " + testing::name_of(boundary));
      for (const FilterShape shape : {FilterShape{1, 1}, {70, 130}, {32, 48, 3}}) {
        expect_right_with_plain_vectors<float>(shape, filter);
        expect_right_with_plain_vectors<double>(shape, filter);
      }
      expect_right_with_plain_vectors<Float16>({37, 50, 3}, filter);
    }
  }
}

// Their poles lie so near the origin that all numbers of a state are nearly alike.
TEST(RecursiveFilterOnTheCpu, KeepsItsPrecisionWhereGaussiansAreNarrow) {
  testing::CpuBackend backend;
  for (const FilterBoundary boundary : kFilterBoundaries) {
    for (const double sigma : {0.5, 0.6, 0.8}) {
      for (const int derivative : {0, 1, 2}) {
        if (derivative == 2 && sigma < 0.6) continue;  // as recursive_filter.h says
        SCOPED_TRACE(std::to_string(sigma) + ", derivative " + std::to_string(derivative) + ", " +
                     testing::name_of(boundary));
        const AxisFilter axis = deriche_filter(sigma, derivative, boundary);
        const RecursiveFilter filter{axis, axis};
        const FilterShape shape{70, 130};
        FilterImage image = make_filter_image(shape, FilterPattern::kRandom);
        EXPECT_EQ(verify_recursive_filter(image, filter, apply(backend, image, filter).data()), "");
        const auto doubles = testing::elements_as<double>(image);
        EXPECT_EQ(
            verify_recursive_filter(
                image, filter, apply_to<double>(backend, doubles, shape, image.row_stride, 1, filter).data()),
            "");
        expect_right_with_plain_vectors<float>(shape, filter);
        expect_right_with_plain_vectors<double>(shape, filter);
      }
    }
  }
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
