// Encoded images as inputs of calls. In builds with OpenImageIO.
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "tests/service/pipeline_fixture.h"

namespace cumulus {
namespace {

using testing::eventually;
using testing::PipelineTest;
using testing::TestServer;

/// The budget of decoded images is what one image of 2 x 2 values takes.
class EncodedImages : public PipelineTest {
 protected:
  static constexpr std::size_t kImageBytes = 2 * 2 * sizeof(float);

  static server::Configuration small() {
    auto configuration = TestServer::configuration();
    configuration.limits.decoded_images_bytes = kImageBytes;
    return configuration;
  }
  EncodedImages() : PipelineTest(small()) {}

  /// A Radiance picture of ones, `width` pixels wide, of which one channel is asked for.
  static v1::BuildSummedAreaTableRequest encoded(int width) {
    const std::string one("\x80\x80\x80\x81", 4);
    std::string file = absl::StrCat("#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 2 +X ", width, "\n");
    for (int i = 0; i < 2 * width; ++i) file += one;
    v1::BuildSummedAreaTableRequest request;
    request.mutable_image()->mutable_encoded()->set_data(file);
    request.mutable_image()->mutable_encoded()->add_channels("G");
    return request;
  }
  std::size_t held() { return server_.runtime.decoded_images->reserved_bytes(); }
};

TEST_F(EncodedImages, AreDecodedAndRunInOneCall) {
  ASSERT_TRUE(build(encoded(2)).ok());
  EXPECT_EQ(testing::values_of<double>(result_.arrays(0).inline_array()), (std::vector<double>{1, 2, 2, 4}));
  EXPECT_EQ(server_.runtime.decoded_images->high_water_bytes(), kImageBytes);
  EXPECT_TRUE(eventually([&] { return held() == 0; })) << held();
}

TEST_F(EncodedImages, AreRefusedBeyondTheirBudgetBeforeAPixelIsRead) {
  const grpc::Status status = build(encoded(3));
  ASSERT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
  EXPECT_EQ(testing::detail_of<google::rpc::QuotaFailure>(status).violations(0).subject(),
            "limits:decoded_images_bytes");
  EXPECT_EQ(server_.runtime.decoded_images->high_water_bytes(), 0u);
}

TEST_F(EncodedImages, CountUntilTheirRequestIsAnswered) {
  const auto busy = occupy_device();
  std::future<grpc::Status> waiting = std::async(std::launch::async, [&] { return build(encoded(2)); });
  ASSERT_TRUE(eventually([&] { return server_.slot().queue->depth() == 1; }));
  EXPECT_EQ(held(), kImageBytes);
  grpc::ClientContext context;
  v1::OperationResult result;
  EXPECT_EQ(server_.operations->BuildSummedAreaTable(&context, encoded(2), &result).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  busy->release();
  EXPECT_TRUE(waiting.get().ok());
  EXPECT_TRUE(eventually([&] { return held() == 0; })) << held();
}

}  // namespace
}  // namespace cumulus
