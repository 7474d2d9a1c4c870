#include "kernels/recursive_filter/recursive_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <map>
#include <numeric>
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

/// Filters `count` images of `shape`, whose rows are `row_stride` elements apart, into fresh, poisoned
/// memory; checks that exactly the stated scratch was taken.
template <class T, class Backend>
std::vector<T> apply_to(Backend& backend, const std::vector<T>& elements, FilterShape shape,
                        std::int64_t row_stride, std::int64_t count, const RecursiveFilter& filter,
                        Method method = Method::kAutomatic) {
  const auto [height, width, channels] = shape;
  BackendArray<Backend, T> pixels(backend, elements);
  BackendArray<Backend, T> result(backend, static_cast<std::size_t>(count * height * width * channels));
  const FilterImages<const T, Backend::kSpace> images(
      ImageView<const T, Backend::kSpace>(pixels.const_span().data(), height, width, channels, row_stride),
      count);
  const FilterImages<T, Backend::kSpace> filtered(
      ImageView<T, Backend::kSpace>(result.span().data(), height, width, channels), count);
  const std::size_t scratch_bytes = apply_recursive_filter_scratch_bytes(images, filter, method);
  backend.executor().reserve_scratch(scratch_bytes);
  apply_recursive_filter(backend.executor(), images, filter, filtered, method);
  EXPECT_EQ(backend.executor().scratch_arena().used_bytes(), scratch_bytes);
  return result.to_host();
}

template <class Backend>
std::vector<float> apply(Backend& backend, const FilterImage& image, const RecursiveFilter& filter,
                         Method method = Method::kAutomatic) {
  return apply_to<float>(backend, image.elements, image.shape, image.row_stride, 1, filter, method);
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
    for (const FilterShape shape : {FilterShape{330, 650}, {2, 3000}, {3000, 2}}) {
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
    for (const auto pattern : {FilterPattern::kRandom, FilterPattern::kConstant}) {
      const auto image = make_filter_image({6, 70}, pattern);
      EXPECT_EQ(verify_recursive_filter(image, filter, apply(this->backend(), image, filter).data()), "")
          << testing::name_of(boundary);
    }
  }
}

TYPED_TEST(RecursiveFilterKernel, AgreesWithItselfWhicheverMethodIsChosen) {
  if (TypeParam::kSpace == Space::kHost) GTEST_SKIP() << "the CPU has one method";
  for (const FilterBoundary boundary : kFilterBoundaries) {
    const RecursiveFilter filter{gaussian_filter(4, boundary), bspline_prefilter(3, boundary)};
    const auto image = make_filter_image({200, 333, 2}, FilterPattern::kRandom, 5);
    for (const Method method : {Method::kTiled, Method::kLines}) {
      EXPECT_EQ(verify_recursive_filter(image, filter, apply(this->backend(), image, filter, method).data()),
                "")
          << testing::name_of(boundary);
    }
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
  const auto text_of = [&](const Image& image, const Filtered& filtered, const RecursiveFilter& filter,
                           Method method) -> std::string {
    try {
      apply_recursive_filter<float>(this->executor(), image, filter, filtered, method);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  const auto views = [&](const Image& image, const Filtered& filtered) {
    return text_of(image, filtered, {}, Method::kAutomatic);
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
  EXPECT_THAT(text_of({nullptr, 4, 4}, {nullptr, 4, 4},
                      {feedback_filter(1, growing, {}, FilterBoundary::kZero), {}}, Method::kAutomatic),
              HasSubstr("the pole 1.5"));
  const std::vector<double> stable = {-0.5};
  EXPECT_THAT(text_of({nullptr, 4, 4}, {nullptr, 4, 4},
                      {feedback_filter(1, stable, {}, FilterBoundary::kMirror), {}}, Method::kTiled),
              HasSubstr("the tiled method"));
}

TYPED_TEST(RecursiveFilterKernel, DoesNotStartForACallerWhoHasLeft) {
  struct Always : Interrupt {
    bool requested() const override { return true; }
  } always;
  this->executor().set_interrupt(&always);
  EXPECT_THROW(apply(this->backend(), make_filter_image({8, 8}, FilterPattern::kRandom), {}), Interrupted);
}

TEST(Float16, IsRoundedToTheNearestAndToEven) {
  using recursive_filter::nearest_float16;
  for (std::uint32_t bits = 0; bits < 0x7C00u; ++bits) {
    const auto here = static_cast<float>(Float16{static_cast<std::uint16_t>(bits)});
    const float next =
        bits == 0x7BFFu ? 65536.0F : static_cast<float>(Float16{static_cast<std::uint16_t>(bits + 1)});
    const float middle = (here + next) / 2;
    ASSERT_EQ(nearest_float16(here).bits, bits);
    ASSERT_EQ(nearest_float16(-here).bits, bits | 0x8000u);
    ASSERT_EQ(nearest_float16(middle).bits, bits + bits % 2) << middle;
    ASSERT_EQ(nearest_float16(std::nextafter(middle, 0.0F)).bits, bits);
    ASSERT_EQ(nearest_float16(std::nextafter(middle, 1e6F)).bits, bits + 1);
  }
  EXPECT_EQ(nearest_float16(1e9F).bits, 0x7C00u);
  EXPECT_EQ(nearest_float16(-INFINITY).bits, 0xFC00u);
  EXPECT_TRUE(std::isnan(static_cast<float>(nearest_float16(NAN))));
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

/// The response to a single 1, far from the borders.
std::vector<double> response_of(AxisFilter filter, std::int64_t reach) {
  filter.boundary = FilterBoundary::kZero;
  std::vector<long double> line(static_cast<std::size_t>(2 * reach + 1));
  line[static_cast<std::size_t>(reach)] = 1;
  const auto filtered = testing::filter_line_serially(line, filter);
  return {filtered.begin(), filtered.end()};
}

TEST(GaussianFilter, IsCloseToTheGaussianAndHasItsVariance) {
  for (const double sigma : {0.5, 1.0, 2.0, 8.0, 32.0, 500.0}) {
    const auto reach = static_cast<std::int64_t>(14 * sigma + 20);
    const auto response = response_of(gaussian_filter(sigma, FilterBoundary::kZero), reach);
    double sum = 0;
    double variance = 0;
    double largest_error = 0;
    double total = 0;
    for (std::int64_t i = -reach; i <= reach; ++i) {
      total += std::exp(-0.5 * static_cast<double>(i * i) / (sigma * sigma));
    }
    for (std::int64_t i = -reach; i <= reach; ++i) {
      const double value = response[static_cast<std::size_t>(i + reach)];
      const double right = std::exp(-0.5 * static_cast<double>(i * i) / (sigma * sigma)) / total;
      sum += value;
      variance += value * static_cast<double>(i * i);
      largest_error = std::max(largest_error, std::abs(value - right) * total);
    }
    EXPECT_NEAR(sum, 1, 1e-6) << sigma;
    EXPECT_NEAR(variance / (sigma * sigma), 1, 1e-3) << sigma;
    EXPECT_LT(largest_error, sigma < 1 ? 0.16 : 0.04) << sigma;
    RecordProperty("error_at_sigma_" + std::to_string(sigma), std::to_string(largest_error));
  }
}

/// A Gaussian of standard deviation `sigma`, or its derivative.
double gaussian_derivative(double x, double sigma, int derivative) {
  const double u = x / sigma;
  const double value = std::exp(-0.5 * u * u) / (sigma * std::sqrt(2 * 3.14159265358979324));
  return derivative == 0   ? value
         : derivative == 1 ? -u / sigma * value
                           : (u * u - 1) / (sigma * sigma) * value;
}

TEST(DericheFilter, IsCloseToTheGaussianAndItsDerivatives) {
  const double bounds[] = {3e-4, 1.9e-3, 4.5e-3};  // of the largest value
  for (const double sigma : {1.0, 1.7, 2.0, 4.0, 8.0, 32.0, 200.0}) {
    for (int derivative = 0; derivative < 3; ++derivative) {
      const auto reach = static_cast<std::int64_t>(40 * sigma);
      const auto response = response_of(deriche_filter(sigma, derivative, FilterBoundary::kZero), reach);
      double largest = 0;
      double largest_error = 0;
      for (std::int64_t i = -reach; i <= reach; ++i) {
        const double right = gaussian_derivative(static_cast<double>(i), sigma, derivative);
        largest = std::max(largest, std::abs(right));
        largest_error =
            std::max(largest_error, std::abs(response[static_cast<std::size_t>(i + reach)] - right));
      }
      EXPECT_LT(largest_error / largest, bounds[derivative]) << sigma << ", derivative " << derivative;
    }
  }
}

TEST(DericheFilter, HasTheMomentsOfAGaussianAndItsDerivatives) {
  for (const double sigma : {0.5, 0.6, 1.0, 1.7, 2.0, 3.0, 5.0, 16.0, 150.0}) {
    for (int derivative = 0; derivative < 3; ++derivative) {
      const auto reach = static_cast<std::int64_t>(40 * sigma + 20);
      const auto response = response_of(deriche_filter(sigma, derivative, FilterBoundary::kZero), reach);
      double moments[3] = {};
      for (std::int64_t i = -reach; i <= reach; ++i) {
        const double value = response[static_cast<std::size_t>(i + reach)];
        const auto x = static_cast<double>(i);
        moments[0] += value;
        moments[1] -= value * x;
        moments[2] += value * x * x / 2;
      }
      SCOPED_TRACE("sigma " + std::to_string(sigma) + ", derivative " + std::to_string(derivative));
      EXPECT_NEAR(moments[0], derivative == 0 ? 1 : 0, 1e-10);
      EXPECT_NEAR(moments[1] / sigma, derivative == 1 ? 1 / sigma : 0, 1e-11);
      if (derivative == 0 && sigma >= 1) {
        EXPECT_NEAR(2 * moments[2] / (sigma * sigma), 1, 2e-4);
      }
      if (derivative == 2) {
        EXPECT_NEAR(moments[2], 1, 1e-9);
      }
    }
  }
}

TEST(DericheFilter, IsStableUpToTheLargestSigma) {
  for (int derivative = 0; derivative < 3; ++derivative) {
    const AxisFilter filter = deriche_filter(kMaxSigma, derivative, FilterBoundary::kZero);
    EXPECT_FALSE(unstable_pole(filter.causal).has_value());
    EXPECT_FALSE(unstable_pole(filter.anticausal).has_value());
  }
}

TEST(BsplinePrefilter, IsUndoneBySamplingTheSpline) {
  const std::map<int, std::vector<double>> samples = {{3, {4.0 / 6, 1.0 / 6}},
                                                      {5, {66.0 / 120, 26.0 / 120, 1.0 / 120}}};
  for (const auto& [degree, spline] : samples) {
    const auto coefficients = response_of(bspline_prefilter(degree, FilterBoundary::kZero), 60);
    for (std::size_t i = 5; i + 5 < coefficients.size(); ++i) {
      double value = spline[0] * coefficients[i];
      for (std::size_t k = 1; k < spline.size(); ++k)
        value += spline[k] * (coefficients[i - k] + coefficients[i + k]);
      EXPECT_NEAR(value, i == 60 ? 1 : 0, 1e-12) << degree;
    }
  }
}

TEST(FeedbackFilter, FindsThePolesOfItsCoefficients) {
  const std::vector<double> coefficients = {-1.1, 0.3, 0.2, -0.1, 0.02};
  const AxisFilter filter = feedback_filter(2, coefficients, {}, FilterBoundary::kZero);
  ASSERT_EQ(filter.causal.order, 5);
  EXPECT_EQ(filter.anticausal.order, 0);
  std::vector<std::complex<double>> polynomial = {1};
  for (const std::complex<double> pole : filter.causal.poles) {
    polynomial.push_back(0);
    for (std::size_t i = polynomial.size() - 1; i > 0; --i) polynomial[i] -= pole * polynomial[i - 1];
  }
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(polynomial[i + 1].real(), coefficients[i], 1e-14);
    EXPECT_NEAR(polynomial[i + 1].imag(), 0, 1e-15);
  }
}

TEST(FeedbackFilter, KnowsUnstablePoles) {
  const std::vector<double> pair = {-2.0, 1.21};  // 1 +- 0.458i
  const auto pole = unstable_pole(feedback_filter(1, pair, {}, FilterBoundary::kZero).causal);
  ASSERT_TRUE(pole.has_value());
  EXPECT_NEAR(std::abs(*pole), 1.1, 1e-12);
  const std::vector<double> at_one = {-1.0};
  EXPECT_TRUE(unstable_pole(feedback_filter(1, at_one, {}, FilterBoundary::kZero).causal).has_value());
  EXPECT_FALSE(unstable_pole(gaussian_filter(kMaxSigma, FilterBoundary::kZero).causal).has_value());
}

TEST(FilterDesign, RefusesParametersOutOfRange) {
  const auto boundary = FilterBoundary::kClamp;
  for (const double sigma : {0.4, 10001.0, -1.0, std::nan("")}) {
    EXPECT_THROW(gaussian_filter(sigma, boundary), std::invalid_argument) << sigma;
    EXPECT_THROW(deriche_filter(sigma, 1, boundary), std::invalid_argument) << sigma;
  }
  EXPECT_THROW(deriche_filter(2, 3, boundary), std::invalid_argument);
  EXPECT_THROW(deriche_filter(2, -1, boundary), std::invalid_argument);
  EXPECT_THROW(bspline_prefilter(4, boundary), std::invalid_argument);
  for (const double decay : {-0.1, 1.0, std::nan("")}) {
    EXPECT_THROW(exponential_filter(decay, boundary), std::invalid_argument) << decay;
  }
  const std::vector<double> six(6, 0.1);
  EXPECT_THROW(feedback_filter(1, six, {}, boundary), std::invalid_argument);
  EXPECT_THROW(feedback_filter(0, {}, {}, boundary), std::invalid_argument);
  const std::vector<double> bad = {std::nan("")};
  EXPECT_THROW(feedback_filter(1, bad, {}, boundary), std::invalid_argument);
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
