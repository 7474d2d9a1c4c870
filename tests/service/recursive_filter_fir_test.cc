#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
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

class FirBlurService : public testing::RecursiveFilterServer {};

/// A sky of `level` with a sun in its middle.
FilterImage sky_with_sun(FilterShape shape, float level) {
  FilterImage image = make_filter_image(shape, FilterPattern::kRandom);
  std::fill(image.elements.begin(), image.elements.end(), level);
  image.elements[image.elements.size() / 2] = 65504;
  return image;
}

TEST_F(FirBlurService, BlursASkyWithASunByFirWithoutNegativePixels) {
  const FilterImage image = sky_with_sun({64, 96, 3}, 0.1F);
  Request request = request_for(image);
  request.set_tell_method(true);
  const auto smallest = [&](v1::GaussianMethod method) {
    request.mutable_y()->mutable_gaussian()->set_sigma(2);
    request.mutable_y()->mutable_gaussian()->set_method(method);
    *request.mutable_x() = request.y();
    const grpc::Status status = apply(request);
    EXPECT_TRUE(status.ok()) << status.error_message();
    const auto values = testing::values_of<float>(testing::find_array(result_, "image")->inline_array());
    return *std::min_element(values.begin(), values.end());
  };
  EXPECT_LT(smallest(v1::GAUSSIAN_DERICHE), 0.0F);
  EXPECT_NEAR(smallest(v1::GAUSSIAN_FIR), 0.1F, 1e-7F);
  EXPECT_NEAR(smallest(v1::GAUSSIAN_METHOD_UNSPECIFIED), 0.1F, 1e-7F) << "the default";
  const auto method =
      testing::values_of<std::int32_t>(testing::find_array(result_, "method")->inline_array());
  EXPECT_EQ(method, std::vector<std::int32_t>{v1::FILTER_FIR});
  const auto bound =
      testing::values_of<double>(testing::find_array(result_, "truncation_bound")->inline_array());
  EXPECT_EQ(bound, std::vector<double>{0x1p-46});
  // Along one axis, and as a part of a sum.
  request.clear_y();
  request.set_weight(2);
  *request.mutable_accumulate() = request.image();
  ASSERT_TRUE(apply(request).ok());
  EXPECT_NEAR(testing::values_of<float>(testing::find_array(result_, "image")->inline_array()).front(), 0.3F,
              1e-6F);
}

TEST_F(FirBlurService, LeavesToDericheWhatAGaussianOfNoMethodIsAskedForBesides) {
  Request plain = request_for(make_filter_image({70, 90}, FilterPattern::kRandom));
  plain.mutable_y()->mutable_gaussian()->set_sigma(2);
  *plain.mutable_x() = plain.y();
  plain.set_tell_method(true);
  const auto blurred = [&](Request request, v1::GaussianMethod method) {
    for (v1::AxisFilter* axis : {request.mutable_y(), request.mutable_x()})
      if (axis->has_gaussian()) axis->mutable_gaussian()->set_method(method);
    const grpc::Status status = apply(request);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return testing::find_array(result_, "image")->inline_array().data();
  };
  const auto expect = [&](const Request& request, v1::GaussianMethod method) {
    EXPECT_EQ(blurred(request, v1::GAUSSIAN_METHOD_UNSPECIFIED), blurred(request, method));
  };
  EXPECT_NE(blurred(plain, v1::GAUSSIAN_FIR), blurred(plain, v1::GAUSSIAN_DERICHE));
  expect(plain, v1::GAUSSIAN_FIR);
  Request request = plain;
  request.set_method(v1::FILTER_FIR);
  expect(request, v1::GAUSSIAN_FIR);
  request = plain;
  request.mutable_x()->mutable_gaussian()->set_derivative(1);
  expect(request, v1::GAUSSIAN_DERICHE);
  request = plain;
  request.mutable_y()->mutable_exponential()->set_decay(0.5);
  expect(request, v1::GAUSSIAN_DERICHE);
  request = plain;
  request.set_method(v1::FILTER_TILED);
  expect(request, v1::GAUSSIAN_DERICHE);
  request = plain;
  request.set_max_truncation_error(0);
  expect(request, v1::GAUSSIAN_DERICHE);
  request = plain;
  request.mutable_y()->mutable_gaussian()->set_method(v1::GAUSSIAN_YOUNG);
  EXPECT_TRUE(apply(request).ok());
}

TEST_F(FirBlurService, RefusesWhatFirDoesNotDo) {
  Request fir = request_for(make_filter_image({2, 3}, FilterPattern::kRandom));
  fir.mutable_x()->mutable_gaussian()->set_sigma(2);
  fir.mutable_x()->mutable_gaussian()->set_method(v1::GAUSSIAN_FIR);
  Request request = fir;
  request.mutable_x()->mutable_gaussian()->set_derivative(1);
  expect_bad_field(apply(request), "x.gaussian.derivative", "only 0 with GAUSSIAN_YOUNG and GAUSSIAN_FIR");
  request = fir;
  request.mutable_y()->mutable_exponential()->set_decay(0.5);
  expect_bad_field(apply(request), "y", "a gaussian of GAUSSIAN_FIR along both, or along one alone");
  request = fir;
  request.set_method(v1::FILTER_TILED);
  expect_bad_field(apply(request), "method", "is FILTER_TILED, which is of recursive filters");
  request = fir;
  request.set_max_truncation_error(0);
  expect_bad_field(apply(request), "max_truncation_error", "leave it out with GAUSSIAN_FIR");
  request = fir;
  request.mutable_x()->mutable_gaussian()->set_method(v1::GAUSSIAN_YOUNG);
  request.set_method(v1::FILTER_FIR);
  expect_bad_field(apply(request), "method", "is FILTER_FIR, which is of Gaussians of GAUSSIAN_FIR alone");
}

}  // namespace
}  // namespace cumulus
