// Where sessions and calls go on a server of several devices, and what becomes of them when one fails.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/runtime/fault_watch.h"
#include "tests/support/blocking_job.h"
#include "tests/support/operation_calls.h"
#include "tests/support/transfer_server.h"

namespace cumulus::testing {
namespace {

/// Two devices alike, and their sessions' service.
class Placement : public ::testing::Test {
 protected:
  Placement() {
    keep_grpc_engine();
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    stub_ = v1::Sessions::NewStub(server_->InProcessChannel({}));
  }

  static std::vector<server::DeviceSlot> two_slots() {
    std::vector<server::DeviceSlot> slots(2);
    for (server::DeviceSlot& slot : slots) {
      slot.device = host_device();
      slot.queue = std::make_unique<server::DeviceQueue>(*slot.device);
    }
    return slots;
  }
  static server::Configuration advertising() {
    server::Configuration configuration = TransferServer::configuration();
    configuration.advertise = "replica-7.example:50651";
    return configuration;
  }

  grpc::Status create(int number, v1::Session* session = nullptr) {
    v1::Session ignored;
    v1::CreateSessionRequest request;
    request.set_session_id(absl::StrCat("6f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1e2", number));
    grpc::ClientContext context;
    return stub_->CreateSession(&context, request, session != nullptr ? session : &ignored);
  }
  std::size_t sessions_on(std::size_t device) const {
    return runtime_.sessions.session_count(runtime_.devices[device]);
  }

  server::Runtime runtime_{advertising(), two_slots()};
  server::SessionsService service_{runtime_};
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::Sessions::Stub> stub_;
};

TEST_F(Placement, SpreadsSessionsThatBeginAtOnceOverIdleDevices) {
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) clients.emplace_back([&, i] { EXPECT_TRUE(create(i).ok()); });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(sessions_on(0), 4U);
  EXPECT_EQ(sessions_on(1), 4U);
}

TEST_F(Placement, CountsSessionsThatHaveEndedNoMore) {
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(create(i).ok());
  for (int i = 0; i < 4; ++i) {
    const std::string name = absl::StrCat("sessions/6f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1e2", i);
    const bool first = runtime_.sessions.find_session(name, {}).value()->slot == runtime_.devices.data();
    EXPECT_TRUE(!first || runtime_.sessions.delete_session(name, {}).ok());
  }
  EXPECT_EQ(sessions_on(0), 0U);
  for (int i = 4; i < 6; ++i) ASSERT_TRUE(create(i).ok());
  EXPECT_EQ(sessions_on(0), 2U);
}

TEST_F(Placement, LooksAtTheWorkThatWaits) {
  ASSERT_TRUE(create(0).ok());
  const std::size_t idle = sessions_on(0) == 0 ? 0 : 1;
  // More than the other one's session counts.
  auto job = std::make_shared<BlockingJob>(BlockingJob::Options{.cost_seconds = 60});
  ASSERT_TRUE(runtime_.devices[idle].queue->push(job).ok());
  job->wait_until_running();
  ASSERT_TRUE(create(1).ok());
  EXPECT_EQ(sessions_on(idle), 0U);
  EXPECT_EQ(*runtime_.place_call(), &runtime_.devices[1 - idle]);
  job->release();
}

TEST_F(Placement, LeavesADeviceOutThatHasFailed) {
  runtime_.devices[1].device->mark_unhealthy();
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(create(i).ok());
  EXPECT_EQ(sessions_on(0), 4U);
  EXPECT_EQ(*runtime_.place_call(), &runtime_.devices[0]);
  runtime_.devices[0].device->mark_unhealthy();
  expect_reason(create(5), grpc::StatusCode::INTERNAL, "DEVICE_FAULT");
}

TEST_F(Placement, SaysWhereTheSessionIs) {
  v1::Session session;
  ASSERT_TRUE(create(0, &session).ok());
  EXPECT_EQ(session.endpoint(), "replica-7.example:50651");
}

TEST(FailedDevice, EndsWhatRunsAndWhatWaitsAndTakesNothingMore) {
  TestServer server(server_of_long_calls());
  CallMaker maker(server, server.create_session());
  const CallMaker::Call call = make_find_neighbors(maker, 1 << 19);  // of some seconds
  const auto run = [&] {
    return std::async(std::launch::async, [&] {
      grpc::ClientContext context;
      v1::OperationResult result;
      return call(context, result);
    });
  };
  std::atomic<server::DeviceSlot*> noticed = nullptr;
  const server::FaultWatch watch(server.runtime.devices, [&](server::DeviceSlot& slot) {
    slot.queue->fail(server::failed_device(*slot.device));
    noticed = &slot;
  });
  auto runs = run();
  ASSERT_TRUE(eventually([&] { return server.slot().queue->running() > 0; }));
  auto waits = run();
  ASSERT_TRUE(eventually([&] { return server.slot().queue->depth() > 0; }));
  server.slot().device->mark_unhealthy();
  expect_reason(waits.get(), grpc::StatusCode::INTERNAL, "DEVICE_FAULT");
  expect_reason(runs.get(), grpc::StatusCode::INTERNAL, "DEVICE_FAULT");
  EXPECT_TRUE(eventually([&] { return noticed == &server.slot(); }));  // the calls may end before it looks
  expect_reason(run().get(), grpc::StatusCode::INTERNAL, "DEVICE_FAULT");
}

}  // namespace
}  // namespace cumulus::testing
