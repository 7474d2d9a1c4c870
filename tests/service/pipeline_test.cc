// What every operation's call shares, seen through one of them.
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/service/pipeline_fixture.h"
#include "tests/support/blocking_job.h"
#include "tests/support/test_server.h"

namespace cumulus {
namespace {

using testing::BlockingJob;
using testing::eventually;
using testing::expect_bad_field;
using testing::expect_reason;
using testing::PipelineTest;
using testing::TestServer;

TEST_F(PipelineTest, OutputsStayOnTheDeviceAndChainOnTheirHandles) {
  auto first = request_in_session();
  ASSERT_TRUE(build(first).ok());
  ASSERT_EQ(result_.arrays_size(), 1);
  const v1::Buffer sums = result_.arrays(0).buffer();
  EXPECT_EQ(sums.size_bytes(), 4 * 8);
  v1::Source image;
  image.set_buffer(sums.name());
  auto second = first;
  *second.mutable_image() = image;
  second.set_accumulator(v1::UINT32);
  expect_bad_field(build(second), "accumulator", "FLOAT64");  // it is a table of doubles, and is known as one
  google::protobuf::Empty empty;
  v1::DeleteSessionRequest end;
  end.set_name(first.options().session());
  grpc::ClientContext context;
  ASSERT_TRUE(server_.sessions->DeleteSession(&context, end, &empty).ok());
  expect_nothing_held();
}

TEST_F(PipelineTest, AnswersWithItsTimingsAndDevice) {
  ASSERT_TRUE(build(request(64, 64)).ok());
  EXPECT_EQ(result_.timings().device(), "cpu");
  EXPECT_GT(result_.timings().compute().nanos(), 0);
  EXPECT_TRUE(result_.timings().has_queue());
  EXPECT_TRUE(result_.timings().has_input());
  EXPECT_TRUE(result_.timings().has_output());
  expect_nothing_held();
}

TEST_F(PipelineTest, ValidateOnlyChecksEverythingAndRunsNothing) {
  auto q = request();
  q.mutable_options()->set_validate_only(true);
  ASSERT_TRUE(build(q).ok());
  EXPECT_EQ(result_.arrays_size(), 0);
  q.set_accumulator(v1::UINT8);
  expect_bad_field(build(q), "accumulator", "UINT8");
}

TEST_F(PipelineTest, RefusesAMissingSource) { expect_bad_field(build({}), "image", "is missing"); }

TEST_F(PipelineTest, RefusesInlineDataThatItsSpecDoesNotDescribe) {
  auto q = request();
  q.mutable_image()->mutable_inline_array()->mutable_data()->pop_back();
  expect_bad_field(build(q), "image.inline_array.data", "15 bytes; the spec says 16");
  q = request();
  q.mutable_image()->mutable_inline_array()->mutable_data()->push_back('x');
  expect_bad_field(build(q), "image.inline_array.data", "17 bytes; the spec says 16");
  q = request();
  q.mutable_image()->mutable_inline_array()->mutable_spec()->set_shape(0, -1);
  expect_bad_field(build(q), "image.inline_array.spec.shape[0]", "-1");
  q = request();
  q.mutable_image()->mutable_inline_array()->mutable_spec()->clear_element_type();
  expect_bad_field(build(q), "image.inline_array.spec.element_type", "set one of UINT8");
}

TEST_F(PipelineTest, RefusesShapesWhoseProductOverflows) {
  auto q = request();
  auto& spec = *q.mutable_image()->mutable_inline_array()->mutable_spec();
  spec.set_shape(0, std::int64_t{1} << 40);
  spec.set_shape(1, std::int64_t{1} << 40);
  EXPECT_EQ(build(q).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(PipelineTest, RefusesMoreInlineDataThanTheLimit) {
  expect_reason(build(request(1, (1 << 18) + 1)), grpc::StatusCode::RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED");
}

TEST_F(PipelineTest, RefusesInlineResultsBeyondTheLimitBeforeRunning) {
  const grpc::Status status = build(request(1, 1 << 18));  // 1 MiB in, 2 MiB of sums out
  ASSERT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("ReadBuffer"), std::string::npos) << status.error_message();
  expect_nothing_held();
}

TEST_F(PipelineTest, RefusesUnknownAndForeignHandlesAlike) {
  auto q = request_in_session();
  ASSERT_TRUE(build(q).ok());
  const std::string theirs = result_.arrays(0).buffer().name();
  auto mine = request();
  mine.mutable_options()->set_session(server_.create_session('1'));
  mine.mutable_image()->set_buffer(theirs);
  expect_bad_field(build(mine), "image.buffer", "not a buffer of the request's session");
  mine.mutable_image()->set_buffer(mine.options().session() + "/buffers/77");
  expect_reason(build(mine), grpc::StatusCode::NOT_FOUND, "BUFFER_NOT_FOUND");
  mine.mutable_options()->clear_session();
  expect_bad_field(build(mine), "options.session", "image.buffer");
}

TEST_F(PipelineTest, RefusesASessionThatIsNotThere) {
  auto q = request();
  q.mutable_options()->set_session("sessions/6f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1e2f");
  expect_reason(build(q), grpc::StatusCode::NOT_FOUND, "SESSION_NOT_FOUND");
}

TEST_F(PipelineTest, RefusesWrongOptions) {
  auto q = request();
  q.mutable_options()->set_request_id(std::string(129, 'x'));
  expect_bad_field(build(q), "options.request_id", "129 bytes");
  q = request();
  q.mutable_options()->set_priority(static_cast<v1::Priority>(9));
  expect_bad_field(build(q), "options.priority", "9");
  q = request();
  q.mutable_options()->mutable_output()->set_evictable(true);
  expect_bad_field(build(q), "options.output.evictable", "inline");
  q = request();
  q.mutable_options()->mutable_output()->mutable_ttl()->set_seconds(1);
  expect_bad_field(build(q), "options.output.ttl", "inline");
  q = request_in_session();
  q.mutable_options()->mutable_output()->mutable_ttl()->set_seconds(-1);
  expect_bad_field(build(q), "options.output.ttl", "more than 0");
}

TEST_F(PipelineTest, AnOutputsTimeToLiveEndsIt) {
  auto q = request_in_session();
  q.mutable_options()->mutable_output()->mutable_ttl()->set_nanos(50000000);
  ASSERT_TRUE(build(q).ok());
  EXPECT_TRUE(result_.arrays(0).buffer().has_expire_time());
  expect_nothing_held();
  q.mutable_image()->set_buffer(result_.arrays(0).buffer().name());
  expect_reason(build(q), grpc::StatusCode::NOT_FOUND, "BUFFER_EXPIRED");
}

TEST_F(PipelineTest, OutputsAreEvictableWhereThatIsAskedFor) {
  auto q = request_in_session();
  ASSERT_TRUE(build(q).ok());
  EXPECT_FALSE(result_.arrays(0).buffer().evictable());
  q.mutable_options()->mutable_output()->set_evictable(true);
  ASSERT_TRUE(build(q).ok());
  EXPECT_TRUE(result_.arrays(0).buffer().evictable());
}

TEST_F(PipelineTest, ARequestWhoseDeadlinePassesInTheQueueNeverRuns) {
  const auto busy = occupy_device();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
  EXPECT_EQ(build(context, request()).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  expect_nothing_held();
  busy->release();
}

TEST_F(PipelineTest, ACancelledRequestLeavesTheQueueAndGivesItsMemoryBack) {
  const auto busy = occupy_device();
  grpc::ClientContext context;
  std::future<grpc::Status> answer =
      std::async(std::launch::async, [&] { return build(context, request()); });
  ASSERT_TRUE(eventually([&] { return server_.slot().queue->depth() == 1; }));
  context.TryCancel();
  EXPECT_EQ(answer.get().error_code(), grpc::StatusCode::CANCELLED);
  expect_nothing_held();
  busy->release();
}

TEST_F(PipelineTest, ABufferDeletedWhileACallWaitsForItIsStillRead) {
  auto q = request_in_session();
  q.mutable_options()->mutable_output()->mutable_inline_array();
  // A float image as a buffer: the 2 x 2 float table of a 2 x 2 image.
  auto make = request();
  make.mutable_options()->set_session(q.options().session());
  make.set_accumulator(v1::FLOAT32);
  ASSERT_TRUE(build(make).ok());
  const std::string name = result_.arrays(0).buffer().name();
  q.mutable_image()->set_buffer(name);

  const auto busy = occupy_device();
  grpc::ClientContext context;
  v1::OperationResult result;
  std::future<grpc::Status> answer = std::async(
      std::launch::async, [&] { return server_.operations->BuildSummedAreaTable(&context, q, &result); });
  ASSERT_TRUE(eventually([&] { return server_.slot().queue->depth() == 1; }));
  v1::DeleteBufferRequest remove;
  remove.set_name(name);
  google::protobuf::Empty empty;
  grpc::ClientContext remove_context;
  ASSERT_TRUE(server_.sessions->DeleteBuffer(&remove_context, remove, &empty).ok());
  busy->release();
  ASSERT_TRUE(answer.get().ok());
  EXPECT_EQ(testing::values_of<double>(result.arrays(0).inline_array()), (std::vector<double>{1, 3, 3, 9}));
  expect_nothing_held();
}

TEST_F(PipelineTest, ADrainingServerRefusesNewWorkAndFinishesTheOld) {
  const auto busy = occupy_device();
  std::future<grpc::Status> waiting = std::async(std::launch::async, [&] {
    v1::OperationResult result;
    grpc::ClientContext context;
    return server_.operations->BuildSummedAreaTable(&context, request(), &result);
  });
  ASSERT_TRUE(eventually([&] { return server_.slot().queue->depth() == 1; }));
  server_.slot().queue->drain();
  const grpc::Status refused = build(request());
  expect_reason(refused, grpc::StatusCode::UNAVAILABLE, "DRAINING");
  EXPECT_GT(testing::detail_of<google::rpc::RetryInfo>(refused).retry_delay().nanos(), 0);
  busy->release();
  EXPECT_TRUE(waiting.get().ok());
}

TEST_F(PipelineTest, WorkForASessionThatEndsMeanwhileIsNotKept) {
  const auto q = request_in_session();
  const auto busy = occupy_device();
  std::future<grpc::Status> answer = std::async(std::launch::async, [&] { return build(q); });
  ASSERT_TRUE(eventually([&] { return server_.slot().queue->depth() == 1; }));
  v1::DeleteSessionRequest end;
  end.set_name(q.options().session());
  google::protobuf::Empty empty;
  grpc::ClientContext context;
  ASSERT_TRUE(server_.sessions->DeleteSession(&context, end, &empty).ok());
  busy->release();
  expect_reason(answer.get(), grpc::StatusCode::NOT_FOUND, "SESSION_NOT_FOUND");
  expect_nothing_held();
}

TEST_F(PipelineTest, ManyClientsAtOnceGetTheirOwnAnswers) {
  std::vector<std::thread> clients;
  for (int client = 1; client <= 8; ++client) {
    clients.emplace_back([&, client] {
      for (int round = 0; round < 20; ++round) {
        v1::BuildSummedAreaTableRequest q;
        testing::set_inline<float>(*q.mutable_image(), v1::FLOAT32, {1, 2}, {static_cast<float>(client), 1});
        v1::OperationResult result;
        grpc::ClientContext context;
        ASSERT_TRUE(server_.operations->BuildSummedAreaTable(&context, q, &result).ok());
        ASSERT_EQ(testing::values_of<double>(result.arrays(0).inline_array()),
                  (std::vector<double>{1.0 * client, client + 1.0}));
      }
    });
  }
  for (std::thread& client : clients) client.join();
  expect_nothing_held();
}

TEST_F(PipelineTest, ACallThatWaitsHoldsItsSessionsLease) {
  v1::CreateSessionRequest create;
  create.set_session_id("6f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1e2f");
  create.mutable_ttl()->set_nanos(100000000);
  v1::Session session;
  grpc::ClientContext context;
  ASSERT_TRUE(server_.sessions->CreateSession(&context, create, &session).ok());
  auto q = request();
  q.mutable_options()->set_session(session.name());
  const auto busy = occupy_device();
  std::future<grpc::Status> answer = std::async(std::launch::async, [&] { return build(q); });
  ASSERT_TRUE(eventually([&] { return server_.slot().queue->depth() == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  busy->release();
  EXPECT_TRUE(answer.get().ok());
  EXPECT_TRUE(eventually([&] { return server_.runtime.sessions.session_count() == 0; }))
      << "it ends after that";
}

class SmallQueue : public PipelineTest {
 protected:
  static server::Configuration small() {
    auto configuration = TestServer::configuration();
    configuration.principals = server::Principals({.max_queue_depth = 1}, {});
    return configuration;
  }
  SmallQueue() : PipelineTest(small()) {}
};

TEST_F(SmallQueue, AFullQueueIsUnavailableAndSaysWhenToRetry) {
  const auto busy = occupy_device();
  std::future<grpc::Status> waiting = std::async(std::launch::async, [&] {
    v1::OperationResult result;
    grpc::ClientContext context;
    return server_.operations->BuildSummedAreaTable(&context, request(), &result);
  });
  ASSERT_TRUE(eventually([&] { return server_.slot().queue->depth() == 1; }));
  const grpc::Status refused = build(request());
  expect_reason(refused, grpc::StatusCode::UNAVAILABLE, "QUEUE_FULL");
  EXPECT_GT(testing::detail_of<google::rpc::RetryInfo>(refused).retry_delay().nanos(), 0);
  busy->release();
  EXPECT_TRUE(waiting.get().ok());
}

class SmallQuota : public PipelineTest {};

TEST_F(SmallQuota, ASessionNeverHoldsMoreThanItsQuota) {
  v1::CreateSessionRequest create;
  create.set_session_id("6f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1e2f");
  create.set_quota_bytes(1000);
  v1::Session session;
  grpc::ClientContext context;
  ASSERT_TRUE(server_.sessions->CreateSession(&context, create, &session).ok());
  auto q = request(16, 16);
  q.mutable_options()->set_session(session.name());
  const grpc::Status status = build(q);
  ASSERT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(testing::detail_of<google::rpc::QuotaFailure>(status).violations(0).subject(), session.name());
  expect_nothing_held();
}

TEST_F(SmallQuota, TheDevicesBudgetIsNeverExceeded) {
  auto q = request_in_session();
  int built = 0;
  grpc::Status status;
  for (; built < 100000; ++built) {
    q = request(256, 512);
    q.mutable_options()->set_session("sessions/6f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1e20");
    status = build(q);
    if (!status.ok()) break;
  }
  EXPECT_EQ(built, 64) << "tables of 1 MiB";
  EXPECT_EQ(testing::detail_of<google::rpc::QuotaFailure>(status).violations_size(), 1);
  EXPECT_LE(server_.slot().device->budget()->high_water_bytes(), TestServer::kBudget);
}

}  // namespace
}  // namespace cumulus
