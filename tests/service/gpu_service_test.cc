// The whole server on a GPU. Its answers are held against oracles, as those of the CPU backend are.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kernels/core/cuda_executor.h"
#include "tests/support/test_server.h"

namespace cumulus {
namespace {

using testing::TestServer;

TEST(GpuMemoryCuda, OnDemandLeavesToOthersWhatIsNotNeeded) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU here: " << cuda_unavailable_reason();
  constexpr std::size_t kBudget = std::size_t{2} << 30;
  const auto free_bytes = [] { return CudaDevice(0).free_bytes(); };
  const std::size_t before = free_bytes();
  const auto device = server::make_gpu_device({.budget_bytes = kBudget, .memory_on_demand = true});
  EXPECT_EQ(device->budget()->limit_bytes(), kBudget);
  EXPECT_GT(free_bytes(), before - kBudget / 2);
  const server::BufferMemory block = device->allocate(kBudget / 4 * 3);
  EXPECT_LT(free_bytes(), before - kBudget / 2);
}

class GpuServiceCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU here: " << cuda_unavailable_reason();
    server_ = std::make_unique<TestServer>(TestServer::gpu_configuration());
  }

  static std::vector<float> ramp(std::size_t count) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 251);
    return values;
  }
  static std::vector<double> sums_of(const std::vector<float>& values, std::size_t height,
                                     std::size_t width) {
    std::vector<double> sums(values.size());
    for (std::size_t y = 0; y < height; ++y) {
      double row = 0;
      for (std::size_t x = 0; x < width; ++x) {
        row += values[y * width + x];
        sums[y * width + x] = row + (y > 0 ? sums[(y - 1) * width + x] : 0);
      }
    }
    return sums;
  }

  std::unique_ptr<TestServer> server_;
};

TEST_F(GpuServiceCuda, SumsAnInlineImage) {
  const std::size_t height = 67;
  const std::size_t width = 129;
  const std::vector<float> values = ramp(height * width);
  v1::BuildSummedAreaTableRequest request;
  testing::set_inline(*request.mutable_image(), v1::FLOAT32, {height, width}, values);
  v1::OperationResult result;
  grpc::ClientContext context;
  const grpc::Status status = server_->operations->BuildSummedAreaTable(&context, request, &result);
  ASSERT_TRUE(status.ok()) << status.error_message();
  // Integers below 2^53: exact in any order.
  EXPECT_EQ(testing::values_of<double>(result.arrays(0).inline_array()), sums_of(values, height, width));
  EXPECT_EQ(result.timings().device(), "cuda0");
  EXPECT_TRUE(testing::eventually([&] { return server_->reserved_bytes() == 0; }));
}

TEST_F(GpuServiceCuda, ChecksAResidentTableByItsHeadAndDrawsFromIt) {
  v1::BuildSamplingTableRequest build;
  build.mutable_options()->set_session(server_->create_session());
  testing::set_inline(*build.mutable_weights(), v1::FLOAT32, {32, 64}, ramp(32 * 64));
  v1::OperationResult result;
  grpc::ClientContext context;
  ASSERT_TRUE(server_->operations->BuildSamplingTable(&context, build, &result).ok());

  v1::DrawSamplesRequest draw;
  *draw.mutable_options() = build.options();
  draw.mutable_options()->mutable_output()->mutable_inline_array();
  draw.mutable_table()->set_buffer(result.arrays(0).buffer().name());
  draw.set_count(1000);
  v1::OperationResult samples;
  grpc::ClientContext draw_context;
  const grpc::Status status = server_->operations->DrawSamples(&draw_context, draw, &samples);
  ASSERT_TRUE(status.ok()) << status.error_message();
  for (const float pdf : testing::values_of<float>(testing::find_array(samples, "pdf")->inline_array())) {
    ASSERT_GT(pdf, 0.0f);
  }
}

TEST_F(GpuServiceCuda, EncodesABatchByColumnsIntoBuffersOfTheRunsSize) {
  std::vector<std::uint8_t> images(3 * 40 * 50);  // columns are constant, but for one pixel
  for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<std::uint8_t>(i % 50 / 5);
  images[2 * 40 * 50 + 7] = 99;
  const std::string session = server_->create_session();
  v1::EncodeRunLengthsRequest encode;
  encode.mutable_options()->set_session(session);
  testing::set_inline(*encode.mutable_array(), v1::UINT8, {3, 40, 50}, images);
  encode.set_order(v1::BY_COLUMNS);
  encode.set_scope(v1::EACH_IMAGE);
  v1::OperationResult runs;
  grpc::ClientContext encode_context;
  ASSERT_TRUE(server_->operations->EncodeRunLengths(&encode_context, encode, &runs).ok());
  EXPECT_EQ(testing::find_array(runs, "symbols")->buffer().size_bytes(), 10 + 10 + 12);

  v1::DecodeRunLengthsRequest decode;
  decode.mutable_options()->set_session(session);
  decode.mutable_options()->mutable_output()->mutable_inline_array();
  decode.mutable_symbols()->set_buffer(testing::find_array(runs, "symbols")->buffer().name());
  decode.mutable_lengths()->set_buffer(testing::find_array(runs, "lengths")->buffer().name());
  decode.set_order(v1::BY_COLUMNS);
  decode.set_max_output_bytes(1 << 20);
  for (const std::int64_t extent : {3, 40, 50}) decode.add_shape(extent);
  v1::OperationResult array;
  grpc::ClientContext decode_context;
  ASSERT_TRUE(server_->operations->DecodeRunLengths(&decode_context, decode, &array).ok());
  EXPECT_EQ(testing::values_of<std::uint8_t>(array.arrays(0).inline_array()), images);
}

TEST_F(GpuServiceCuda, ReportsWhatAKernelFound) {
  v1::BuildSamplingTableRequest request;
  testing::set_inline(*request.mutable_weights(), v1::FLOAT32, {2, 2}, std::vector<float>{1, 1, -1, 1});
  v1::OperationResult result;
  grpc::ClientContext context;
  const grpc::Status status = server_->operations->BuildSamplingTable(&context, request, &result);
  testing::expect_reason(status, grpc::StatusCode::FAILED_PRECONDITION, "INVALID_WEIGHT");
  EXPECT_NE(status.error_message().find("row 1, column 0"), std::string::npos) << status.error_message();
}

TEST_F(GpuServiceCuda, ManyClientsAtOnceGetTheirOwnAnswers) {
  std::vector<std::thread> clients;
  for (int client = 1; client <= 8; ++client) {
    clients.emplace_back([&, client] {
      for (int round = 0; round < 50; ++round) {
        v1::BuildSummedAreaTableRequest q;
        testing::set_inline<float>(*q.mutable_image(), v1::FLOAT32, {1, 2}, {static_cast<float>(client), 1});
        v1::OperationResult result;
        grpc::ClientContext context;
        ASSERT_TRUE(server_->operations->BuildSummedAreaTable(&context, q, &result).ok());
        ASSERT_EQ(testing::values_of<double>(result.arrays(0).inline_array()),
                  (std::vector<double>{1.0 * client, client + 1.0}));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_TRUE(testing::eventually([&] { return server_->reserved_bytes() == 0; }));
  EXPECT_LE(server_->slot().device->budget()->high_water_bytes(), TestServer::kBudget);
}

}  // namespace
}  // namespace cumulus
