// The filters' coefficients, without an image.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/recursive_filter/recursive_filter.h"
#include "tests/cases/recursive_filter_case.h"

namespace cumulus {
namespace {

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
  for (const double sigma : {0.7, 0.85, 1.0, 1.7, 2.0, 4.0, 8.0, 32.0, 200.0, 500.0}) {
    for (int derivative = 0; derivative < (sigma < 1 ? 1 : 3); ++derivative) {
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

/// y[i] = gain x[i] - sum_k coefficients[k] y[i - 1 - k], of a single 1.
std::vector<long double> recursion(double gain, const std::vector<double>& coefficients, std::size_t length) {
  std::vector<long double> y(length);
  y[0] = gain;
  for (std::size_t i = 1; i < length; ++i) {
    for (std::size_t k = 0; k < std::min(i, coefficients.size()); ++k)
      y[i] -= static_cast<long double>(coefficients[k]) * y[i - 1 - k];
  }
  return y;
}

TEST(FeedbackFilter, RespondsAsItsCoefficientsSay) {
  const std::vector<std::vector<double>> filters = {{-0.5},
                                                    {-1.6, 0.64},
                                                    {0, 0, 0, 0, -0.9},
                                                    {0, 0, 0.5},
                                                    {-1.1, 0.3, 0.2, -0.1, 0.02},
                                                    {-2.5, 2.5, -1.25, 0.3125, -0.03125},   // 0.5 five times
                                                    {-4.5, 8.1, -7.29, 3.2805, -0.59049}};  // 0.9, nearly
  constexpr std::int64_t kReach = 300;
  for (const std::vector<double>& coefficients : filters) {
    const auto right = recursion(0.25, coefficients, static_cast<std::size_t>(kReach) + 1);
    const auto largest = static_cast<double>(std::abs(*std::max_element(
        right.begin(), right.end(), [](auto a, auto b) { return std::abs(a) < std::abs(b); })));
    const auto forwards = response_of(feedback_filter(0.25, coefficients, {}, FilterBoundary::kZero), kReach);
    const auto backwards =
        response_of(feedback_filter(0.25, {}, coefficients, FilterBoundary::kZero), kReach);
    for (std::size_t i = 0; i < right.size(); ++i) {
      const auto middle = static_cast<std::size_t>(kReach);
      const auto of_this = static_cast<double>(right[i]);
      ASSERT_NEAR(forwards[middle + i], of_this, 1e-12 * largest) << coefficients.size() << " at " << i;
      ASSERT_NEAR(backwards[middle - i], of_this, 1e-12 * largest) << coefficients.size() << " at " << i;
    }
  }
}

TEST(FeedbackFilter, LeavesAConstantAsItIsWithoutAGain) {
  const std::vector<double> causal = {-0.5, 0.1};
  const std::vector<double> anticausal = {0.7};
  const AxisFilter filter = feedback_filter(std::nullopt, causal, anticausal, FilterBoundary::kClamp);
  for (const long double value : testing::filter_line_serially(std::vector<long double>(20, 3), filter))
    EXPECT_NEAR(static_cast<double>(value), 3, 1e-14);
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

}  // namespace
}  // namespace cumulus
