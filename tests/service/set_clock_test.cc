// What goes on while the machine's clock is set: calls neither end before their time nor hang.
#include <absl/time/clock.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <future>
#include <thread>
#include <vector>

#include "cumulus/client.h"
#include "tests/client/fake_server.h"
#include "tests/support/operation_calls.h"
#include "tests/support/transfer_server.h"

namespace {

std::atomic<std::time_t> clock_is_ahead = 0;  // by so many seconds

}  // namespace

/// In place of the C library's, for this program and all of its libraries.
extern "C" int clock_gettime(clockid_t clock, timespec* time) {
  using Function = int (*)(clockid_t, timespec*);
  static const auto kNext = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = kNext(clock, time);
  if (clock == CLOCK_REALTIME) time->tv_sec += clock_is_ahead;
  return result;
}

namespace cumulus::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::time_t kHours = 3 * 3600;               // longer than any limit of the server
constexpr absl::Duration kNoticed = absl::Seconds(3);  // by absl::Now(), too, where it is asked all the time

class SetClock : public ::testing::Test {
 protected:
  SetClock() {
    using Clock = std::chrono::system_clock;
    const Clock::time_point before = Clock::now();
    clock_is_ahead = 1000;
    EXPECT_GT(Clock::now() - before, std::chrono::seconds(900)) << "this program does not set its clock";
    clock_is_ahead = 0;
  }
  ~SetClock() override { clock_is_ahead = 0; }

  static void set_deadline(grpc::ClientContext& context) {
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  }
};

TEST_F(SetClock, TransfersGoOn) {
  TransferServer server(host_device());
  const std::string data = random_bytes(std::size_t{3} << 20);
  for (const std::time_t step : {kHours, -kHours}) {
    clock_is_ahead = 0;
    grpc::ClientContext context;
    set_deadline(context);
    v1::Buffer buffer;
    const auto writer = server.transfer->WriteBuffer(&context, &buffer);
    for (const v1::WriteBufferRequest& chunk : server.messages(data)) {
      EXPECT_TRUE(writer->Write(chunk));
      clock_is_ahead = step;
      absl::SleepFor(kNoticed / 3);  // of three messages; and more than between two looks at those that stall
    }
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    EXPECT_TRUE(status.ok()) << step << ": " << status.error_message();
  }
}

TEST_F(SetClock, AStalledTransferEndsAllTheSame) {
  server::Configuration settings = TransferServer::configuration();
  settings.limits.stalled_transfer = 2 * kNoticed;
  TransferServer server(host_device(), settings);
  grpc::ClientContext context;
  set_deadline(context);
  v1::Buffer buffer;
  const auto writer = server.transfer->WriteBuffer(&context, &buffer);
  EXPECT_TRUE(writer->Write(server.messages(random_bytes(std::size_t{3} << 20)).front()));
  absl::SleepFor(absl::Milliseconds(200));  // until the server waits for the next
  clock_is_ahead = -kHours;
  EXPECT_THAT(writer->Finish().error_message(), HasSubstr("stalled_transfer"));
}

/// Calls one after the other, of which some run and some wait while the clock goes to and fro.
TEST_F(SetClock, OperationsGoOn) {
  TestServer server;
  CallMaker calls(server, server.create_session());
  v1::FilterBoxRequest request;
  request.mutable_image()->set_buffer(calls.put_floats({1024, 1024}));
  request.set_radius_x(8);
  request.set_radius_y(8);
  const CallMaker::Call filter = calls.call(&v1::Operations::Stub::FilterBox, request);
  std::atomic<bool> stop = false;
  const auto call = [&] {
    int answered = 0;
    for (bool fine = true; fine && !stop; ++answered) {
      grpc::ClientContext context;
      set_deadline(context);
      v1::OperationResult result;
      const grpc::Status status = filter(context, result);
      fine = status.ok();
      EXPECT_TRUE(fine) << status.error_message();
    }
    return answered;
  };
  std::future<int> first = std::async(std::launch::async, call);
  std::future<int> second = std::async(std::launch::async, call);
  for (const std::time_t step : {kHours, -kHours, kHours}) {
    absl::SleepFor(absl::Milliseconds(50));
    clock_is_ahead = step;
    absl::SleepFor(kNoticed);
  }
  stop = true;
  EXPECT_GT(first.get() + second.get(), 10);
}

/// By uploads, since what waits in gRPC for a time waits as the machine's clock says.
TEST_F(SetClock, AClientComesBackWhenTheServerSaysWhen) {
  const std::vector<float> pixels = {1, 2, 3, 4, 5, 6};
  FakeServer server;
  const Client client = server.connect();
  server.script.retry_after_milliseconds = 500;
  const absl::StatusOr<Session> session = client.create_session();
  ASSERT_TRUE(session.ok()) << session.status();
  for (const std::time_t step : {kHours, -kHours}) {
    clock_is_ahead = 0;
    server.script.turn_away_uploads = 2;
    auto upload = std::async(std::launch::async, [&] { return session->upload(ArrayView(pixels, {2, 3})); });
    EXPECT_TRUE(eventually([&] { return server.script.turn_away_uploads < 2; }));
    clock_is_ahead = step;
    ASSERT_EQ(upload.wait_for(std::chrono::seconds(30)), std::future_status::ready);
    const absl::StatusOr<Buffer> buffer = upload.get();
    EXPECT_TRUE(buffer.ok()) << step << ": " << buffer.status();
  }
}

}  // namespace
}  // namespace cumulus::testing
