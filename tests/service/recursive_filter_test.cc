#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/service/recursive_filter_fixture.h"

namespace cumulus {
namespace {

using testing::expect_bad_field;
using testing::FilterImage;
using testing::FilterPattern;
using testing::FilterShape;
using testing::make_filter_image;
using Request = v1::ApplyRecursiveFilterRequest;

class RecursiveFilterService : public testing::RecursiveFilterServer {
 protected:
  static Request small_request() { return request_for(make_filter_image({2, 3}, FilterPattern::kRandom)); }

  void expect_result(const FilterImage& image, const Request& request, const RecursiveFilter& filter) {
    const grpc::Status status = apply(request);
    ASSERT_TRUE(status.ok()) << status.error_message();
    const auto* filtered = testing::find_array(result_, "image");
    ASSERT_NE(filtered, nullptr);
    EXPECT_EQ(filtered->inline_array().spec().element_type(), v1::FLOAT32);
    const auto values = testing::values_of<float>(filtered->inline_array());
    ASSERT_EQ(values.size(), image.elements.size());
    EXPECT_EQ(verify_recursive_filter(image, filter, values.data()), "");
  }
};

/// A Gaussian that has the oracle of recursive filters.
void set_deriche(v1::AxisFilter& axis, double sigma) {
  axis.mutable_gaussian()->set_sigma(sigma);
  axis.mutable_gaussian()->set_method(v1::GAUSSIAN_DERICHE);
}

TEST_F(RecursiveFilterService, BlursWithASigmaAndABoundaryPerAxis) {
  const FilterImage image = make_filter_image({20, 31, 3}, FilterPattern::kRandom);
  Request request = request_for(image);
  set_deriche(*request.mutable_y(), 3);
  set_deriche(*request.mutable_x(), 5);
  request.mutable_x()->set_boundary(v1::FILTER_REPEAT);
  expect_result(
      image, request,
      {deriche_filter(3, 0, FilterBoundary::kClamp), deriche_filter(5, 0, FilterBoundary::kRepeat)});
  request.mutable_y()->mutable_gaussian()->set_method(v1::GAUSSIAN_YOUNG);
  request.mutable_x()->mutable_gaussian()->set_derivative(2);
  expect_result(image, request,
                {gaussian_filter(3, FilterBoundary::kClamp), deriche_filter(5, 2, FilterBoundary::kRepeat)});
}

TEST_F(RecursiveFilterService, OffersEveryBoundary) {
  const FilterImage image = make_filter_image({4, 17}, FilterPattern::kRandom);
  const std::pair<v1::FilterBoundary, FilterBoundary> boundaries[] = {
      {v1::FILTER_BOUNDARY_UNSPECIFIED, FilterBoundary::kClamp},
      {v1::FILTER_ZERO, FilterBoundary::kZero},
      {v1::FILTER_CLAMP, FilterBoundary::kClamp},
      {v1::FILTER_REPEAT, FilterBoundary::kRepeat},
      {v1::FILTER_REFLECT, FilterBoundary::kReflect},
      {v1::FILTER_MIRROR, FilterBoundary::kMirror}};
  for (const auto& [wire, boundary] : boundaries) {
    Request request = request_for(image);
    request.mutable_x()->mutable_exponential()->set_decay(0.8);
    request.mutable_x()->set_boundary(wire);
    expect_result(image, request, {{}, exponential_filter(0.8, boundary)});
  }
}

TEST_F(RecursiveFilterService, OffersEveryKernel) {
  const FilterImage image = make_filter_image({16, 9}, FilterPattern::kRandom);
  const auto boundary = FilterBoundary::kMirror;
  const std::vector<double> causal = {-0.5, 0.1};
  const std::vector<double> anticausal = {-0.25};
  Request request = request_for(image);
  request.mutable_y()->set_boundary(v1::FILTER_MIRROR);
  request.mutable_y()->mutable_bspline_prefilter()->set_degree(5);
  expect_result(image, request, {bspline_prefilter(5, boundary), {}});
  auto& feedback = *request.mutable_y()->mutable_feedback();
  for (const double coefficient : causal) feedback.add_causal(coefficient);
  for (const double coefficient : anticausal) feedback.add_anticausal(coefficient);
  expect_result(image, request, {feedback_filter(0.6 * 0.75, causal, anticausal, boundary), {}});
  feedback.set_gain(-2);
  expect_result(image, request, {feedback_filter(-2, causal, anticausal, boundary), {}});
}

template <class T>
void set_image(v1::Source& source, v1::ElementType type, const std::vector<std::int64_t>& shape,
               FilterImage& image) {
  testing::set_inline(source, type, shape, testing::elements_as<T>(image));
}

TEST_F(RecursiveFilterService, TakesHalvesAndDoublesAndGivesThemBack) {
  FilterImage image = make_filter_image({9, 31, 2}, FilterPattern::kRandom);
  const RecursiveFilter filter{deriche_filter(2, 0, FilterBoundary::kReflect), {}};
  Request request;
  set_deriche(*request.mutable_y(), 2);
  request.mutable_y()->set_boundary(v1::FILTER_REFLECT);
  const auto expect = [&]<class T>(T /*element*/, v1::ElementType type) {
    set_image<T>(*request.mutable_image(), type, {9, 31, 2}, image);
    const grpc::Status status = apply(request);
    ASSERT_TRUE(status.ok()) << status.error_message();
    const auto& array = testing::find_array(result_, "image")->inline_array();
    EXPECT_EQ(array.spec().element_type(), type);
    const auto values = testing::values_of<T>(array);
    ASSERT_EQ(values.size(), image.elements.size());
    EXPECT_EQ(verify_recursive_filter(image, filter, values.data()), "");
  };
  expect(Float16{}, v1::FLOAT16);
  expect(double{}, v1::FLOAT64);
}

TEST_F(RecursiveFilterService, FiltersEachImageOfABatch) {
  const FilterImage images[] = {make_filter_image({6, 40, 3}, FilterPattern::kRandom, 0, 1),
                                make_filter_image({6, 40, 3}, FilterPattern::kRandom, 0, 2)};
  std::vector<float> both = images[0].elements;
  both.insert(both.end(), images[1].elements.begin(), images[1].elements.end());
  Request request;
  testing::set_inline(*request.mutable_image(), v1::FLOAT32, {2, 6, 40, 3}, both);
  set_deriche(*request.mutable_x(), 4);
  const grpc::Status status = apply(request);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const auto& array = testing::find_array(result_, "image")->inline_array();
  EXPECT_EQ(array.spec().shape_size(), 4);
  const auto values = testing::values_of<float>(array);
  ASSERT_EQ(values.size(), both.size());
  const RecursiveFilter filter{{}, deriche_filter(4, 0, FilterBoundary::kClamp)};
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(verify_recursive_filter(images[i], filter, values.data() + i * images[i].elements.size()), "");
  }
  testing::set_inline<float>(*request.mutable_image(), v1::FLOAT32, {0, 6, 40, 3}, {});
  expect_bad_field(apply(request), "image", "has no images");
}

TEST_F(RecursiveFilterService, TakesEveryMethodAndSaysWhichRan) {
  const FilterImage image = make_filter_image({130, 75}, FilterPattern::kRandom);
  Request request = request_for(image);
  set_deriche(*request.mutable_y(), 3);
  set_deriche(*request.mutable_x(), 2);
  const RecursiveFilter filter{deriche_filter(3, 0, FilterBoundary::kClamp),
                               deriche_filter(2, 0, FilterBoundary::kClamp)};
  for (const v1::RecursiveFilterMethod method : {v1::RECURSIVE_FILTER_METHOD_UNSPECIFIED, v1::FILTER_BY_LINES,
                                                 v1::FILTER_TILED, v1::FILTER_ON_CHIP, v1::FILTER_DECAYING}) {
    request.set_method(method);
    request.set_tell_method(true);
    expect_result(image, request, filter);
    const auto number = [&]<class T>(T /*type*/, const char* name) {
      return testing::values_of<T>(testing::find_array(result_, name)->inline_array()).at(0);
    };
    ASSERT_EQ(result_.arrays_size(), 3);
    EXPECT_EQ(number(std::int32_t{}, "method"), v1::FILTER_BY_LINES);  // the CPU's way
    EXPECT_EQ(number(double{}, "truncation_bound"), 0);
  }
}

TEST_F(RecursiveFilterService, RefusesAMethodThatCannotDoIt) {
  Request request = request_for(make_filter_image({1, 64 * 41}, FilterPattern::kRandom));
  request.set_method(static_cast<v1::RecursiveFilterMethod>(9));
  request.mutable_x()->mutable_gaussian()->set_sigma(3);
  expect_bad_field(apply(request), "method", "is 9; FILTER_BY_LINES");
  request.set_method(v1::FILTER_DECAYING);
  for (const double error : {-1e-9, 1.5, std::nan("")}) {
    request.set_max_truncation_error(error);
    expect_bad_field(apply(request), "max_truncation_error", "0 (nothing) to 1");
  }
  request.set_max_truncation_error(0);
  expect_bad_field(apply(request), "max_truncation_error", "decay length is too long");
  request.set_max_truncation_error(1e-6);
  EXPECT_TRUE(apply(request).ok());
  request.mutable_x()->mutable_gaussian()->set_sigma(400);
  for (const auto method : {v1::FILTER_DECAYING, v1::FILTER_ON_CHIP}) {
    request.set_method(method);
    expect_bad_field(apply(request), "max_truncation_error", "decay length is too long");
  }
  request.mutable_x()->mutable_gaussian()->set_sigma(40);
  request.set_method(v1::FILTER_DECAYING);
  expect_bad_field(apply(request), "method", "FILTER_DECAYING, which takes filters of at most 4 poles");
  request.mutable_x()->mutable_gaussian()->set_sigma(3);
  request.mutable_x()->set_boundary(v1::FILTER_MIRROR);
  expect_bad_field(apply(request), "method", "no FILTER_MIRROR along x");
  request.set_method(v1::FILTER_TILED);
  EXPECT_TRUE(apply(request).ok());
  auto& feedback = *request.mutable_x()->mutable_feedback();
  feedback.add_causal(-0.5);
  request.mutable_x()->set_boundary(v1::FILTER_MIRROR);
  expect_bad_field(apply(request), "method", "FILTER_BY_LINES is right");
  request.set_method(v1::FILTER_BY_LINES);
  EXPECT_TRUE(apply(request).ok());
  testing::set_inline<double>(*request.mutable_image(), v1::FLOAT64, {2, 3}, std::vector<double>(6));
  request.set_method(v1::FILTER_TILED);
  expect_bad_field(apply(request), "method", "no FLOAT64 image");
}

TEST_F(RecursiveFilterService, KeepsWhatIsNoNumberWithinItsChannelAndItsImage) {
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    FilterImage images[] = {make_filter_image({20, 37, 3}, FilterPattern::kRandom, 0, 1),
                            make_filter_image({20, 37, 3}, FilterPattern::kRandom, 0, 2)};
    std::vector<float> both = images[0].elements;
    both.insert(both.end(), images[1].elements.begin(), images[1].elements.end());
    const std::size_t place = (7 * 37 + 11) * 3 + 1;
    both[place] = bad;
    Request request;
    testing::set_inline(*request.mutable_image(), v1::FLOAT32, {2, 20, 37, 3}, both);
    request.set_non_finite(v1::KEEP_NON_FINITE);
    set_deriche(*request.mutable_y(), 4);
    set_deriche(*request.mutable_x(), 4);
    const grpc::Status status = apply(request);
    ASSERT_TRUE(status.ok()) << status.error_message();
    auto values = testing::values_of<float>(testing::find_array(result_, "image")->inline_array());
    ASSERT_EQ(values.size(), both.size());
    EXPECT_FALSE(std::isfinite(values[place]));
    const RecursiveFilter filter{deriche_filter(4, 0, FilterBoundary::kClamp),
                                 deriche_filter(4, 0, FilterBoundary::kClamp)};
    const std::size_t count = images[0].elements.size();
    EXPECT_EQ(verify_recursive_filter(images[1], filter, values.data() + count), "");
    const auto right = filter_serially(images[0], filter);
    for (std::size_t i = 0; i < count; ++i) {
      if (i % 3 == 1) values[i] = static_cast<float>(right[i]);
    }
    EXPECT_EQ(verify_recursive_filter(images[0], filter, values.data()), "");
  }
}

TEST_F(RecursiveFilterService, AddsToAnotherImage) {
  const FilterImage image = make_filter_image({9, 14}, FilterPattern::kRandom);
  Request request = request_for(image);
  request.mutable_x()->mutable_exponential()->set_decay(0.5);
  ASSERT_TRUE(apply(request).ok());
  const auto alone = testing::values_of<float>(testing::find_array(result_, "image")->inline_array());
  const std::vector<float> tens(image.elements.size(), 10);
  testing::set_inline(*request.mutable_accumulate(), v1::FLOAT32, {9, 14, 1}, tens);
  for (const double weight : {1.0, -4.0, 0.0}) {
    if (weight != 1) request.set_weight(weight);
    const grpc::Status status = apply(request);
    ASSERT_TRUE(status.ok()) << status.error_message();
    const auto sums = testing::values_of<float>(testing::find_array(result_, "image")->inline_array());
    ASSERT_EQ(sums.size(), alone.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      ASSERT_NEAR(sums[i], 10 + weight * static_cast<double>(alone[i]), 2e-6);
    }
  }
}

TEST_F(RecursiveFilterService, RefusesSumsThatDoNotFit) {
  Request request = small_request();
  request.mutable_x()->mutable_exponential()->set_decay(0.5);
  request.set_weight(2);
  expect_bad_field(apply(request), "weight", "without accumulate");
  testing::set_inline<float>(*request.mutable_accumulate(), v1::FLOAT32, {3, 2, 1}, std::vector<float>(6));
  expect_bad_field(apply(request), "accumulate",
                   "is FLOAT32 [3, 2, 1]; the image's FLOAT32 [2, 3, 1] is right");
  testing::set_inline<double>(*request.mutable_accumulate(), v1::FLOAT64, {2, 3, 1}, std::vector<double>(6));
  expect_bad_field(apply(request), "accumulate", "is FLOAT64");
  testing::set_inline<float>(*request.mutable_accumulate(), v1::FLOAT32, {2, 3, 1}, std::vector<float>(6));
  request.set_weight(std::nan(""));
  expect_bad_field(apply(request), "weight", "finite");
}

TEST_F(RecursiveFilterService, RefusesWhatIsNoFloatImage) {
  Request request = small_request();
  request.mutable_x()->mutable_gaussian()->set_sigma(1);
  testing::set_inline<std::uint8_t>(*request.mutable_image(), v1::UINT8, {1, 2}, {1, 2});
  expect_bad_field(apply(request), "image", "UINT8; FLOAT32 or FLOAT16 or FLOAT64 is right");
  testing::set_inline<float>(*request.mutable_image(), v1::FLOAT32, {2}, {1, 2});
  expect_bad_field(apply(request), "image", "[height, width]");
  testing::set_inline<float>(*request.mutable_image(), v1::FLOAT32, {1, 1, 5}, {1, 2, 3, 4, 5});
  expect_bad_field(apply(request), "image", "5 channels");
}

TEST_F(RecursiveFilterService, RefusesARequestWithoutAnImageOrAFilter) {
  expect_bad_field(apply({}), "image", "is missing");
  Request request = small_request();
  expect_bad_field(apply(request), "x", "at least one of the axes");
  request.mutable_y()->set_boundary(v1::FILTER_ZERO);
  expect_bad_field(apply(request), "y", "has no kernel");
}

TEST_F(RecursiveFilterService, RefusesParametersOutOfRange) {
  const double nan = std::nan("");
  Request request = small_request();
  for (const double sigma : {0.0, 0.49, 10000.5, -3.0, nan}) {
    request.mutable_y()->mutable_gaussian()->set_sigma(sigma);
    expect_bad_field(apply(request), "y.gaussian.sigma", "0.5 to 10000 pixels is right");
  }
  request.mutable_y()->mutable_gaussian()->set_sigma(2);
  for (const int derivative : {-1, 3}) {
    request.mutable_y()->mutable_gaussian()->set_derivative(derivative);
    expect_bad_field(apply(request), "y.gaussian.derivative", "0, 1 or 2 is right");
  }
  request.mutable_y()->mutable_gaussian()->set_derivative(1);
  request.mutable_y()->mutable_gaussian()->set_method(v1::GAUSSIAN_YOUNG);
  expect_bad_field(apply(request), "y.gaussian.derivative", "only 0 with GAUSSIAN_YOUNG");
  request.mutable_y()->mutable_gaussian()->set_method(static_cast<v1::GaussianMethod>(7));
  expect_bad_field(apply(request), "y.gaussian.method", "is 7; GAUSSIAN_DERICHE");
  for (const int degree : {0, 4, -3}) {
    request.mutable_y()->mutable_bspline_prefilter()->set_degree(degree);
    expect_bad_field(apply(request), "y.bspline_prefilter.degree", "3 or 5");
  }
  for (const double decay : {-0.1, 1.0, nan}) {
    request.mutable_y()->mutable_exponential()->set_decay(decay);
    expect_bad_field(apply(request), "y.exponential.decay", "0 to 0.99999");
  }
  request.mutable_y()->set_boundary(static_cast<v1::FilterBoundary>(9));
  expect_bad_field(apply(request), "y.boundary", "is 9; FILTER_ZERO");
}

TEST_F(RecursiveFilterService, RefusesFeedbackThatIsNoStableFilter) {
  Request request = small_request();
  auto& feedback = *request.mutable_x()->mutable_feedback();
  for (const double gain : {0.0, std::numeric_limits<double>::infinity()}) {
    feedback.set_gain(gain);
    expect_bad_field(apply(request), "x.feedback.gain", "other than 0");
  }
  feedback.clear_gain();
  feedback.add_causal(0.1);
  feedback.add_causal(std::nan(""));
  expect_bad_field(apply(request), "x.feedback.causal[1]", "finite");
  feedback.clear_causal();
  for (int k = 0; k < 6; ++k) feedback.add_anticausal(0.1);
  expect_bad_field(apply(request), "x.feedback.anticausal", "6 coefficients; at most 5");
  feedback.clear_anticausal();
  feedback.add_anticausal(-2);
  feedback.add_anticausal(2);
  expect_bad_field(apply(request), "x.feedback.anticausal", "the pole 1 ");
  feedback.clear_anticausal();
  feedback.add_causal(-1);
  expect_bad_field(apply(request), "x.feedback.causal", "has the pole 1 ");
}

}  // namespace
}  // namespace cumulus
