#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/support/blocking_job.h"
#include "tests/support/test_server.h"

namespace cumulus::testing {

/// What every operation's call shares, seen through BuildSummedAreaTable.
class PipelineTest : public ::testing::Test {
 protected:
  explicit PipelineTest(const server::Configuration& configuration = TestServer::configuration())
      : server_(configuration) {}

  grpc::Status build(const v1::BuildSummedAreaTableRequest& request) {
    grpc::ClientContext context;
    return build(context, request);
  }
  grpc::Status build(grpc::ClientContext& context, const v1::BuildSummedAreaTableRequest& request) {
    result_.Clear();
    return server_.operations->BuildSummedAreaTable(&context, request, &result_);
  }
  static v1::BuildSummedAreaTableRequest request(std::int64_t height = 2, std::int64_t width = 2) {
    v1::BuildSummedAreaTableRequest request;
    set_inline(*request.mutable_image(), v1::FLOAT32, {height, width},
               std::vector<float>(static_cast<std::size_t>(height * width), 1));
    return request;
  }
  v1::BuildSummedAreaTableRequest request_in_session() {
    auto q = request();
    q.mutable_options()->set_session(server_.create_session());
    return q;
  }
  /// A job that keeps the only lane busy until it is released.
  std::shared_ptr<BlockingJob> occupy_device() {
    auto job = std::make_shared<BlockingJob>();
    EXPECT_TRUE(server_.slot().queue->push(job).ok());
    job->wait_until_running();
    return job;
  }
  /// Soon: a client knows that its deadline is over before the server has taken its job out.
  void expect_nothing_held() {
    EXPECT_TRUE(eventually([&] { return server_.reserved_bytes() == 0; })) << server_.reserved_bytes();
    const auto& queue = server_.slot().queue;
    EXPECT_TRUE(eventually([&] { return queue->depth() == 0; })) << queue->depth();
  }

  TestServer server_;
  v1::OperationResult result_;
};

}  // namespace cumulus::testing
