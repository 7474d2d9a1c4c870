// What filters do with pixels that are NaN or infinite.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/core/cuda_executor.h"
#include "tests/support/test_server.h"

namespace cumulus {
namespace {

using testing::TestServer;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Device {
  std::string name;
  bool gpu;
};

class NonFinitePixels : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    if (GetParam().gpu && cuda_device_count() == 0)
      GTEST_SKIP() << "no GPU here: " << cuda_unavailable_reason();
    server_ = GetParam().gpu ? std::make_unique<TestServer>(TestServer::gpu_configuration())
                             : std::make_unique<TestServer>();
  }

  static v1::ApplyRecursiveFilterRequest blur(const std::vector<std::int64_t>& shape,
                                              const std::vector<float>& pixels) {
    v1::ApplyRecursiveFilterRequest request;
    testing::set_inline(*request.mutable_image(), v1::FLOAT32, shape, pixels);
    request.mutable_x()->mutable_gaussian()->set_sigma(2);
    request.mutable_y()->mutable_gaussian()->set_sigma(2);
    return request;
  }
  static v1::FilterBoxRequest box(const std::vector<std::int64_t>& shape, const std::vector<float>& pixels) {
    v1::FilterBoxRequest request;
    testing::set_inline(*request.mutable_image(), v1::FLOAT32, shape, pixels);
    request.set_radius(1);
    return request;
  }
  grpc::Status run(const v1::ApplyRecursiveFilterRequest& request) {
    grpc::ClientContext context;
    return server_->operations->ApplyRecursiveFilter(&context, request, &result_);
  }
  grpc::Status run(const v1::FilterBoxRequest& request) {
    grpc::ClientContext context;
    return server_->operations->FilterBox(&context, request, &result_);
  }
  std::vector<float> image() const {
    const auto* array = testing::find_array(result_, "image");
    EXPECT_NE(array, nullptr);
    return array == nullptr ? std::vector<float>() : testing::values_of<float>(array->inline_array());
  }

  /// By default, and where it is asked for by name.
  template <class Request>
  void expect_refused(Request request, const std::string& where, const std::string& column) {
    for (const v1::NonFinitePolicy policy : {v1::NON_FINITE_POLICY_UNSPECIFIED, v1::REFUSE_NON_FINITE}) {
      request.set_non_finite(policy);
      const grpc::Status status = run(request);
      testing::expect_reason(status, grpc::StatusCode::FAILED_PRECONDITION, "NON_FINITE_PIXEL");
      EXPECT_NE(status.error_message().find("image: " + where), std::string::npos) << status.error_message();
      const auto facts = testing::detail_of<google::rpc::ErrorInfo>(status).metadata();
      EXPECT_EQ(facts.at("column"), column);
    }
  }
  /// As with 0 and 65504 in the place of NaN and infinity, bit for bit.
  template <class Make>
  void expect_clamped(const Make& make) {
    std::vector<float> pixels(40 * 50 * 3, 0.5F);
    std::vector<float> right = pixels;
    pixels[700] = kNan, right[700] = 0;
    pixels[3000] = -kInfinity, right[3000] = -65504;
    const std::vector<std::int64_t> shape = {40, 50, 3};
    auto request = make(shape, pixels);
    request.set_non_finite(v1::CLAMP_NON_FINITE);
    ASSERT_TRUE(run(request).ok());
    const std::vector<float> clamped = image();
    ASSERT_TRUE(run(make(shape, right)).ok());
    EXPECT_EQ(clamped, image());
  }

  std::unique_ptr<TestServer> server_;
  v1::OperationResult result_;
};

TEST_P(NonFinitePixels, AreRefusedWithTheFirstOnesPosition) {
  std::vector<float> pixels(30 * 20 * 3, 1);
  pixels[(7 * 20 + 5) * 3 + 2] = -kInfinity;
  pixels[(9 * 20 + 1) * 3] = kNan;
  expect_refused(blur({30, 20, 3}, pixels), "row 7, column 5, channel 2 is -inf", "5");
  v1::ApplyRecursiveFilterRequest inside = blur({30, 20, 3}, pixels);
  inside.mutable_x()->set_boundary(v1::FILTER_EXACT);
  expect_refused(inside, "row 7, column 5, channel 2 is -inf", "5");
  v1::ApplyRecursiveFilterRequest recursive = blur({30, 20, 3}, pixels);
  recursive.mutable_x()->mutable_gaussian()->set_method(v1::GAUSSIAN_DERICHE);
  recursive.mutable_y()->mutable_gaussian()->set_method(v1::GAUSSIAN_DERICHE);
  expect_refused(recursive, "row 7, column 5, channel 2 is -inf", "5");
  expect_refused(box({30, 20, 3}, pixels), "row 7, column 5, channel 2 is -inf", "5");
  std::vector<float> gray(30 * 20, 1);
  gray[599] = kNan;
  expect_refused(box({30, 20}, gray), "row 29, column 19, channel 0 is nan", "19");
}

TEST_P(NonFinitePixels, OfABatchAreRefusedWithTheirImage) {
  std::vector<float> pixels(3 * 8 * 9 * 2, 1);
  pixels[((2 * 8 + 4) * 9 + 3) * 2 + 1] = kInfinity;
  const grpc::Status status = run(blur({3, 8, 9, 2}, pixels));
  testing::expect_reason(status, grpc::StatusCode::FAILED_PRECONDITION, "NON_FINITE_PIXEL");
  EXPECT_NE(status.error_message().find("image 2, row 4, column 3, channel 1 is inf"), std::string::npos)
      << status.error_message();
  EXPECT_EQ(testing::detail_of<google::rpc::ErrorInfo>(status).metadata().at("image"), "2");
}

TEST_P(NonFinitePixels, AreClampedWhereARequestSaysSo) {
  expect_clamped(blur);
  expect_clamped(box);
}

TEST_P(NonFinitePixels, SpreadWhereTheyAreKept) {
  std::vector<float> pixels(8 * 8, 1);
  pixels[27] = kNan;
  auto request = blur({8, 8}, pixels);
  request.set_non_finite(v1::KEEP_NON_FINITE);
  ASSERT_TRUE(run(request).ok());
  EXPECT_TRUE(std::isnan(image()[27]));
  auto boxed = box({8, 8}, pixels);
  boxed.set_non_finite(v1::KEEP_NON_FINITE);
  ASSERT_TRUE(run(boxed).ok());
  EXPECT_TRUE(std::isnan(image()[27]));
}

TEST_P(NonFinitePixels, HaveNoOtherPolicies) {
  auto request = box({1, 2}, {1, 2});
  request.set_non_finite(static_cast<v1::NonFinitePolicy>(9));
  testing::expect_bad_field(run(request), "non_finite", "is 9; REFUSE_NON_FINITE, CLAMP_NON_FINITE or");
}

TEST_P(NonFinitePixels, AreNotLookedForAmongIntegers) {
  v1::FilterBoxRequest request;
  testing::set_inline<std::uint8_t>(*request.mutable_image(), v1::UINT8, {1, 2}, {255, 255});
  request.set_radius(1);
  for (const v1::NonFinitePolicy policy : {v1::REFUSE_NON_FINITE, v1::CLAMP_NON_FINITE}) {
    request.set_non_finite(policy);
    EXPECT_TRUE(run(request).ok());
  }
}

const auto kNames = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(OnTheCpu, NonFinitePixels, ::testing::Values(Device{"Cpu", false}), kNames);
INSTANTIATE_TEST_SUITE_P(OnCuda, NonFinitePixels, ::testing::Values(Device{"Cuda", true}), kNames);

}  // namespace
}  // namespace cumulus
