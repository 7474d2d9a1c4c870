// What a server that drains begins, what it ends, and what a client learns that speaks to another instance.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>

#include "proto/metadata.h"
#include "tests/support/operation_calls.h"

namespace cumulus::testing {
namespace {

class DrainingServer : public ::testing::Test {
 protected:
  grpc::Status run(const std::string& session) {
    v1::BuildSummedAreaTableRequest request;
    request.mutable_options()->set_session(session);
    set_inline<float>(*request.mutable_image(), v1::FLOAT32, {2, 2}, {1, 2, 3, 4});
    grpc::ClientContext context;
    v1::OperationResult result;
    return server_.operations->BuildSummedAreaTable(&context, request, &result);
  }

  TestServer server_{server_of_long_calls()};
  const std::string session_ = server_.create_session();
};

TEST_F(DrainingServer, RunsCallsOfItsSessionsAlone) {
  server_.runtime.drain.refuse_new();
  EXPECT_TRUE(run(session_).ok());
  const grpc::Status refused = run("");
  expect_reason(refused, grpc::StatusCode::UNAVAILABLE, "DRAINING");
  EXPECT_GT(detail_of<google::rpc::RetryInfo>(refused).retry_delay().nanos(), 0);
}

TEST_F(DrainingServer, EndsWhatRunsAndDoesNotCallItCancelled) {
  CallMaker maker(server_, session_);
  const CallMaker::Call call = make_find_neighbors(maker, 1 << 19);  // of some seconds
  grpc::ClientContext context;
  v1::OperationResult result;
  auto answer = std::async(std::launch::async, [&] { return call(context, result); });
  ASSERT_TRUE(eventually([&] { return server_.slot().queue->running() > 0; }));
  auto waits = std::async(std::launch::async, [&] { return run(session_); });
  ASSERT_TRUE(eventually([&] { return server_.slot().queue->depth() > 0; }));
  server_.runtime.drain.end_all();
  expect_reason(answer.get(), grpc::StatusCode::UNAVAILABLE, "DRAINING");
  expect_reason(waits.get(), grpc::StatusCode::UNAVAILABLE, "DRAINING");
}

/// A call whose client says that its handles are of `instance`.
std::unique_ptr<grpc::ClientContext> of_instance(const std::string& instance) {
  auto context = std::make_unique<grpc::ClientContext>();
  context->AddMetadata(kInstanceKey, instance);
  return context;
}

class Instances : public ::testing::Test {
 protected:
  static constexpr char kOther[] = "0123456789abcdef";
  static constexpr char kUnknown[] = "sessions/7f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1e2f";

  static void expect_restarted(const grpc::Status& status) {
    expect_reason(status, grpc::StatusCode::NOT_FOUND, "INSTANCE_RESTARTED");
  }

  TestServer server_;
};

TEST_F(Instances, ATypoIsNoRestart) {
  v1::GetSessionRequest request;
  request.set_name(kUnknown);
  v1::Session session;
  const auto call = [&](const std::unique_ptr<grpc::ClientContext>& context) {
    return server_.sessions->GetSession(context.get(), request, &session);
  };
  expect_restarted(call(of_instance(kOther)));
  expect_reason(call(of_instance(server_.runtime.instance)), grpc::StatusCode::NOT_FOUND,
                "SESSION_NOT_FOUND");
  expect_reason(call(std::make_unique<grpc::ClientContext>()), grpc::StatusCode::NOT_FOUND,
                "SESSION_NOT_FOUND");
}

TEST_F(Instances, EveryCallThatNamesHandlesLearnsOfTheRestart) {
  const auto context = [] { return of_instance(kOther); };
  const std::string buffer = std::string(kUnknown) + "/buffers/1";
  google::protobuf::Empty empty;
  v1::DeleteSessionRequest delete_session;
  delete_session.set_name(kUnknown);
  expect_restarted(server_.sessions->DeleteSession(context().get(), delete_session, &empty));
  v1::GetBufferRequest get_buffer;
  get_buffer.set_name(buffer);
  v1::Buffer found;
  expect_restarted(server_.sessions->GetBuffer(context().get(), get_buffer, &found));
  v1::ListBuffersRequest list;
  list.set_parent(kUnknown);
  v1::ListBuffersResponse listed;
  expect_restarted(server_.sessions->ListBuffers(context().get(), list, &listed));
  v1::DeleteBufferRequest delete_buffer;
  delete_buffer.set_name(buffer);
  expect_restarted(server_.sessions->DeleteBuffer(context().get(), delete_buffer, &empty));

  v1::ReadBufferRequest read;
  read.set_name(buffer);
  const auto reading = context();
  v1::ReadBufferResponse chunk;
  const auto reader = server_.transfer->ReadBuffer(reading.get(), read);
  EXPECT_FALSE(reader->Read(&chunk));
  expect_restarted(reader->Finish());
  const auto writing = context();
  const auto writer = server_.transfer->WriteBuffer(writing.get(), &found);
  writer->WritesDone();
  expect_restarted(writer->Finish());

  v1::BuildSummedAreaTableRequest build;
  build.mutable_options()->set_session(kUnknown);
  build.mutable_image()->set_buffer(buffer);
  v1::OperationResult result;
  expect_restarted(server_.operations->BuildSummedAreaTable(context().get(), build, &result));
}

TEST_F(Instances, ACallWithoutASessionIsNoBodysHandle) {
  v1::BuildSummedAreaTableRequest request;
  set_inline<float>(*request.mutable_image(), v1::FLOAT32, {2, 2}, {1, 2, 3, 4});
  v1::OperationResult result;
  EXPECT_TRUE(server_.operations->BuildSummedAreaTable(of_instance(kOther).get(), request, &result).ok());
}

}  // namespace
}  // namespace cumulus::testing
