// FILTER_EXACT: the serial filter of an image with zeros beyond it over that of an image of ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/service/recursive_filter_fixture.h"

namespace cumulus {
namespace {

using testing::expect_bad_field;
using testing::filter_serially;
using testing::FilterImage;
using testing::FilterPattern;
using testing::FilterShape;
using testing::make_filter_image;
using Request = v1::ApplyRecursiveFilterRequest;

class ExactBoundaries : public testing::RecursiveFilterServer {
 protected:
  template <class T>
  std::vector<T> result_of(const Request& request) {
    const grpc::Status status = apply(request);
    EXPECT_TRUE(status.ok()) << status.error_message();
    const auto* array = testing::find_array(result_, "image");
    return array == nullptr ? std::vector<T>() : testing::values_of<T>(array->inline_array());
  }
};

/// The filter, with zeros beyond, over what it makes of ones along `exact` axes.
std::vector<long double> quotients(const FilterImage& image, const RecursiveFilter& filter,
                                   const RecursiveFilter& exact) {
  std::vector<long double> right = filter_serially(image, filter);
  FilterImage ones = image;
  std::fill(ones.elements.begin(), ones.elements.end(), 1.0F);
  const std::vector<long double> certainty = filter_serially(ones, exact);
  for (std::size_t i = 0; i < right.size(); ++i) right[i] /= certainty[i];
  return right;
}

template <class T>
void expect_near(const std::vector<T>& found, const std::vector<long double>& right, double tolerance) {
  ASSERT_EQ(found.size(), right.size());
  for (std::size_t i = 0; i < right.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(found[i]), static_cast<double>(right[i]), tolerance) << i;
  }
}

void set_gaussian(v1::AxisFilter& axis, double sigma, v1::GaussianMethod method) {
  axis.mutable_gaussian()->set_sigma(sigma);
  axis.mutable_gaussian()->set_method(method);
  axis.set_boundary(v1::FILTER_EXACT);
}

TEST_F(ExactBoundaries, AreMeansOfWhatLiesInside) {
  const FilterImage image = make_filter_image({23, 41, 3}, FilterPattern::kRandom);
  constexpr auto kZero = FilterBoundary::kZero;
  for (const double sigma : {0.5, 3.0, 30.0}) {
    Request request = request_for(image);
    set_gaussian(*request.mutable_y(), sigma, v1::GAUSSIAN_DERICHE);
    set_gaussian(*request.mutable_x(), 2 * sigma, v1::GAUSSIAN_YOUNG);
    const RecursiveFilter both{deriche_filter(sigma, 0, kZero), gaussian_filter(2 * sigma, kZero)};
    expect_near(result_of<float>(request), quotients(image, both, both), 2e-6);
  }
  Request request = request_for(image);
  request.mutable_y()->mutable_exponential()->set_decay(0.9);
  request.mutable_y()->set_boundary(v1::FILTER_EXACT);
  const RecursiveFilter decay{exponential_filter(0.9, kZero), {}};
  expect_near(result_of<float>(request), quotients(image, decay, decay), 2e-6);
}

TEST_F(ExactBoundaries, AreOfTheirAxisAlone) {
  const FilterImage image = make_filter_image({23, 41}, FilterPattern::kRandom);
  Request request = request_for(image);
  set_gaussian(*request.mutable_y(), 4, v1::GAUSSIAN_DERICHE);
  set_gaussian(*request.mutable_x(), 4, v1::GAUSSIAN_DERICHE);
  request.mutable_x()->set_boundary(v1::FILTER_REPEAT);
  const AxisFilter along_y = deriche_filter(4, 0, FilterBoundary::kZero);
  expect_near(result_of<float>(request),
              quotients(image, {along_y, deriche_filter(4, 0, FilterBoundary::kRepeat)}, {along_y, {}}),
              1e-6);
  request.mutable_accumulate()->CopyFrom(request.image());
  request.set_weight(-1);
  const std::vector<float> sums = result_of<float>(request);
  request.clear_accumulate();
  request.clear_weight();
  const std::vector<float> blurred = result_of<float>(request);
  for (std::size_t i = 0; i < sums.size(); ++i) ASSERT_EQ(sums[i], image.elements[i] - blurred[i]);
}

TEST_F(ExactBoundaries, TakeHalvesDoublesAndBatches) {
  FilterImage image = make_filter_image({12, 50, 2}, FilterPattern::kRandom);
  const AxisFilter axis = deriche_filter(3, 0, FilterBoundary::kZero);
  Request request;
  set_gaussian(*request.mutable_y(), 3, v1::GAUSSIAN_DERICHE);
  set_gaussian(*request.mutable_x(), 3, v1::GAUSSIAN_DERICHE);
  const auto expect = [&]<class T>(T /*element*/, v1::ElementType type, double tolerance) {
    std::vector<T> batch = testing::elements_as<T>(image);
    const std::vector<T> one = batch;
    batch.insert(batch.end(), one.begin(), one.end());
    testing::set_inline<T>(*request.mutable_image(), type, {2, 12, 50, 2}, batch);
    const std::vector<T> found = result_of<T>(request);
    std::vector<long double> right = quotients(image, {axis, axis}, {axis, axis});
    right.insert(right.end(), right.begin(), right.begin() + static_cast<std::ptrdiff_t>(right.size()));
    expect_near(found, right, tolerance);
  };
  expect(float{}, v1::FLOAT32, 1e-6);
  expect(double{}, v1::FLOAT64, 1e-13);
  expect(Float16{}, v1::FLOAT16, 0x1p-11);  // rounded once
}

/// Of each type, to its rounding, whatever the method; the part inside is small where sigma is large.
TEST_F(ExactBoundaries, LeaveGreyGrey) {
  for (const auto method : {v1::GAUSSIAN_DERICHE, v1::GAUSSIAN_YOUNG, v1::GAUSSIAN_FIR}) {
    for (const double sigma : {0.5, 3.0, 40.0, 5000.0}) {
      Request request;
      set_gaussian(*request.mutable_y(), sigma, method);
      set_gaussian(*request.mutable_x(), sigma, method);
      testing::set_inline<float>(*request.mutable_image(), v1::FLOAT32, {30, 70},
                                 std::vector<float>(2100, 0.7F));
      for (const float pixel : result_of<float>(request)) ASSERT_NEAR(pixel, 0.7F, 2e-6F) << sigma;
      const Float16 grey = recursive_filter::nearest_float16(0.7F);
      testing::set_inline<Float16>(*request.mutable_image(), v1::FLOAT16, {30, 70},
                                   std::vector<Float16>(2100, grey));
      for (const Float16 pixel : result_of<Float16>(request)) ASSERT_EQ(pixel.bits, grey.bits) << sigma;
    }
  }
}

TEST_F(ExactBoundaries, OfPositiveWeightsAreMeansOfPositiveWeights) {
  const std::vector<float> row = {0, 0, 1000, 0, 3, 0, 0};
  Request request;
  testing::set_inline<float>(*request.mutable_image(), v1::FLOAT32, {1, 7}, row);
  set_gaussian(*request.mutable_x(), 0.8, v1::GAUSSIAN_FIR);
  const std::vector<float> found = result_of<float>(request);
  ASSERT_EQ(found.size(), row.size());
  for (std::size_t at = 0; at < row.size(); ++at) {
    double sum = 0;
    double weights = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const double distance = (static_cast<double>(i) - static_cast<double>(at)) / 0.8;
      weights += std::exp(-0.5 * distance * distance);
      sum += std::exp(-0.5 * distance * distance) * static_cast<double>(row[i]);
    }
    EXPECT_NEAR(found[at], sum / weights, 2e-6 * sum / weights) << at;
  }
}

TEST_F(ExactBoundaries, AreRefusedWhereTheFilterIsNoMean) {
  Request request = request_for(make_filter_image({4, 6}, FilterPattern::kRandom));
  request.mutable_x()->set_boundary(v1::FILTER_EXACT);
  request.mutable_x()->mutable_bspline_prefilter()->set_degree(3);
  const std::string right = "FILTER_ZERO, FILTER_CLAMP, FILTER_REPEAT, FILTER_REFLECT or FILTER_MIRROR";
  expect_bad_field(apply(request), "x.boundary", right);
  request.mutable_x()->mutable_feedback()->add_causal(-0.5);
  expect_bad_field(apply(request), "x.boundary", right);
  request.mutable_x()->mutable_gaussian()->set_sigma(2);
  EXPECT_TRUE(apply(request).ok());
  request.mutable_x()->mutable_gaussian()->set_derivative(1);
  expect_bad_field(apply(request), "x.boundary", right);
}

/// What is left out grows as the part inside shrinks.
TEST_F(ExactBoundaries, AreToldWhatIsLeftOutOfThem) {
  Request request = request_for(make_filter_image({1, 64 * 41}, FilterPattern::kRandom));
  set_gaussian(*request.mutable_x(), 3, v1::GAUSSIAN_FIR);
  request.set_tell_method(true);
  ASSERT_TRUE(apply(request).ok());
  const auto bound =
      testing::values_of<double>(testing::find_array(result_, "truncation_bound")->inline_array());
  EXPECT_GT(bound.at(0), 1.5 * 0x1p-46);
  EXPECT_LT(bound.at(0), 2 * 0x1p-46);
  set_gaussian(*request.mutable_x(), 3, v1::GAUSSIAN_DERICHE);
  request.set_method(v1::FILTER_DECAYING);
  request.set_max_truncation_error(0);
  expect_bad_field(apply(request), "max_truncation_error", "is 0; the filter's decay length is too long");
}

}  // namespace
}  // namespace cumulus
