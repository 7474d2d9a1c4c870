#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "kernels/core/cuda_executor.h"
#include "tests/support/test_server.h"

namespace cumulus::testing {

struct PipelinePlace {
  std::string name;
  bool gpu;
};
inline void PrintTo(const PipelinePlace& place, std::ostream* out) { *out << place.name; }

/// A server, and chains for it.
class RunPipelineTest : public ::testing::TestWithParam<PipelinePlace> {
 protected:
  static constexpr std::int64_t kHeight = 48;
  static constexpr std::int64_t kWidth = 96;

  void SetUp() override {
    if (GetParam().gpu && cuda_device_count() == 0)
      GTEST_SKIP() << "no GPU here: " << cuda_unavailable_reason();
    server_ = std::make_unique<TestServer>(GetParam().gpu ? TestServer::gpu_configuration()
                                                          : TestServer::configuration());
  }

  grpc::Status run(const v1::RunPipelineRequest& request) {
    grpc::ClientContext context;
    result_.Clear();
    return server_->operations->RunPipeline(&context, request, &result_);
  }

  static std::vector<float> map() {
    std::vector<float> texels(kHeight * kWidth);
    std::minstd_rand random(3);
    for (float& texel : texels) texel = static_cast<float>(random() % 4096) / 4096;
    return texels;
  }
  static void read(v1::Source& source, int step, const std::string& array) {
    source.mutable_step_output()->set_step(step);
    source.mutable_step_output()->set_array(array);
  }
  static void keep(v1::RunPipelineRequest& request, int step, const std::string& array,
                   const std::string& name = "") {
    v1::PipelineOutput& output = *request.add_outputs();
    output.mutable_output()->set_step(step);
    output.mutable_output()->set_array(array);
    output.set_name(name);
  }

  // The operations of the chains, without their inputs.
  static v1::ApplyRecursiveFilterRequest blur() {
    v1::ApplyRecursiveFilterRequest request;
    request.mutable_x()->mutable_gaussian()->set_sigma(3);
    request.mutable_y()->mutable_gaussian()->set_sigma(2);
    return request;
  }
  static v1::BuildSamplingTableRequest table() {
    v1::BuildSamplingTableRequest request;
    request.set_method(v1::CUTPOINT_BINARY);
    request.set_invalid_weights(v1::CLAMP);
    return request;
  }
  static v1::DrawSamplesRequest draw() {
    v1::DrawSamplesRequest request;
    request.set_count(500);
    return request;
  }
  static v1::FilterBoxRequest box() {
    v1::FilterBoxRequest request;
    request.set_radius(4);
    return request;
  }

  /// blur -> table -> samples, and blur -> box filter -> summed-area table, of an inline map.
  static v1::RunPipelineRequest five_steps() {
    v1::RunPipelineRequest request;
    auto& blurred = *request.add_steps()->mutable_apply_recursive_filter() = blur();
    set_inline(*blurred.mutable_image(), v1::FLOAT32, {kHeight, kWidth}, map());
    read(*(*request.add_steps()->mutable_build_sampling_table() = table()).mutable_weights(), 0, "image");
    read(*(*request.add_steps()->mutable_draw_samples() = draw()).mutable_table(), 1, "table");
    read(*(*request.add_steps()->mutable_filter_box() = box()).mutable_image(), 0, "image");
    read(*request.add_steps()->mutable_build_summed_area_table()->mutable_image(), 3, "image");
    keep(request, 2, "position");
    keep(request, 2, "pdf", "density");
    keep(request, 4, "sums");
    return request;
  }
  v1::RunPipelineRequest five_steps_in_session() {
    v1::RunPipelineRequest request = five_steps();
    request.mutable_options()->set_session(server_->create_session());
    return request;
  }

  /// Soon: a client may know of a call's end before the server has taken it apart.
  void expect_held(std::size_t bytes) {
    EXPECT_TRUE(eventually([&] { return server_->reserved_bytes() == bytes; })) << server_->reserved_bytes();
    const auto& queue = server_->slot().queue;
    EXPECT_TRUE(eventually([&] { return queue->depth() + queue->running() == 0; }));
  }
  int buffers_of(const std::string& session) {
    v1::ListBuffersRequest request;
    request.set_parent(session);
    v1::ListBuffersResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(server_->sessions->ListBuffers(&context, request, &response).ok());
    return response.buffers_size();
  }

  std::unique_ptr<TestServer> server_;
  v1::OperationResult result_;
};

}  // namespace cumulus::testing
