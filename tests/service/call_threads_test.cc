// Calls from many threads at once, with cancellations, without gRPC in between: for ThreadSanitizer, which
// cannot see the hand-overs inside gRPC's own library.
#include <absl/time/clock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "server/operations/summed_area_table/build.h"
#include "server/pipeline/pipeline.h"
#include "server/runtime/open_devices.h"
#include "tests/support/blocking_job.h"

namespace cumulus::server {
namespace {

class CallThreads : public ::testing::Test {
 protected:
  static constexpr int kThreads = 6;
  static constexpr int kCalls = 60;

  static Configuration configuration() {
    Configuration configuration = default_configuration();
    configuration.devices.backend = Backend::kCpu;
    configuration.devices.cpu_calls = 3;
    configuration.devices.cpu_memory_bytes = std::size_t{64} << 20;
    return configuration;
  }

  CallThreads() : CallThreads(configuration()) {}

  std::size_t reserved_bytes() { return runtime_.devices.front().device->budget()->reserved_bytes(); }

  Runtime runtime_;

 private:
  explicit CallThreads(Configuration settings) : runtime_(settings, open(settings)) {}
  static std::vector<DeviceSlot> open(Configuration& settings) { return *open_devices(settings); }
};

/// What one call needs while it runs, and how it ended.
struct Running {
  v1::BuildSummedAreaTableRequest request;
  v1::OperationResult result;
  std::atomic<int> answers{0};
  grpc::StatusCode code = grpc::StatusCode::UNKNOWN;
};

std::unique_ptr<OperationRun> run_of(Running& running) {
  auto& array = *running.request.mutable_image()->mutable_inline_array();
  array.mutable_spec()->set_element_type(v1::FLOAT32);
  array.mutable_spec()->add_shape(8);
  array.mutable_spec()->add_shape(8);
  array.mutable_data()->assign(8 * 8 * sizeof(float), '\0');
  return std::make_unique<TypedRun<ops::BuildSummedAreaTable>>(running.request);
}

std::shared_ptr<OperationCall> start(Runtime& runtime, Running& running, absl::Time deadline) {
  auto call = std::make_shared<OperationCall>(runtime, run_of(running), running.request.options(),
                                              running.result, OperationCall::Context{{deadline}, "test"},
                                              [&running](const grpc::Status& status) {
                                                running.code = status.error_code();
                                                running.answers.fetch_add(1, std::memory_order_release);
                                              });
  call->begin();
  return call;
}

bool ended_rightly(grpc::StatusCode code) {
  return code == grpc::StatusCode::OK || code == grpc::StatusCode::CANCELLED ||
         code == grpc::StatusCode::DEADLINE_EXCEEDED || code == grpc::StatusCode::UNAVAILABLE;
}

TEST_F(CallThreads, EveryCallIsAnsweredOnceWhateverCancelsIt) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kCalls; ++i) {
        Running running;
        const bool hurried = i % 3 == 1;
        const absl::Time deadline = absl::Now() + (hurried ? absl::Microseconds(200) : absl::Seconds(30));
        auto call = start(runtime_, running, deadline);
        if ((i + thread) % 2 == 0) call->cancel();
        while (running.answers.load(std::memory_order_acquire) == 0) std::this_thread::yield();
        EXPECT_TRUE(ended_rightly(running.code)) << running.code;
        // The queue may hold the call a little longer than its answer; the request must not go before.
        while (call.use_count() > 1) std::this_thread::yield();
        EXPECT_EQ(running.answers.load(), 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(reserved_bytes(), 0U);
  EXPECT_EQ(runtime_.devices.front().queue->depth(), 0U);
}

/// Is cancelled by another thread while it is put into the queue, which asks for its cost.
class CancelledInPush final : public OperationCall {
 public:
  CancelledInPush(Runtime& runtime, Running& running, Context context)
      : OperationCall(runtime, run_of(running), running.request.options(), running.result, std::move(context),
                      [&running](const grpc::Status& status) {
                        running.code = status.error_code();
                        running.answers.fetch_add(1, std::memory_order_release);
                      }) {}

  double cost_seconds() const override {
    if (std::exchange(asked_, true)) return 0;
    canceller_ = std::thread([this] {
      const_cast<CancelledInPush*>(this)->cancel();
      cancelled_ = true;
    });
    // Long enough for a cancellation that nothing holds up.
    for (int i = 0; i < 200 && !cancelled_; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return 0;
  }
  void wait_until_cancelled() const { canceller_.join(); }

 private:
  mutable bool asked_ = false;
  mutable std::atomic<bool> cancelled_ = false;
  mutable std::thread canceller_;
};

TEST_F(CallThreads, ACancellationMeetsACallThatIsBeingQueued) {
  const auto busy = std::make_shared<testing::BlockingJob>();
  ASSERT_TRUE(runtime_.devices.front().queue->push(busy).ok());
  busy->wait_until_running();
  Running running;
  const auto call = std::make_shared<CancelledInPush>(
      runtime_, running, OperationCall::Context{{absl::Now() + absl::Minutes(1)}, "test", busy->principal()});
  call->begin();
  call->wait_until_cancelled();
  EXPECT_EQ(running.answers.load(), 1) << "it waits for its turn although it was cancelled";
  EXPECT_EQ(running.code, grpc::StatusCode::CANCELLED);
  busy->release();
  while (call.use_count() > 1) std::this_thread::yield();
}

TEST_F(CallThreads, SessionsComeAndGoWhileCallsRunInThem) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kCalls; ++i) {
        const std::string id = std::to_string(thread) + "-" + std::to_string(i);
        const auto session = runtime_.sessions.create_session(
            {id, &runtime_.devices.front(), absl::Minutes(1), std::size_t{1} << 20});
        ASSERT_TRUE(session.ok());
        Running running;
        running.request.mutable_options()->set_session((*session)->name);
        auto call = start(runtime_, running, absl::Now() + absl::Seconds(30));
        if (i % 2 == 0) std::this_thread::yield();
        EXPECT_TRUE(runtime_.sessions.delete_session((*session)->name, {}).ok());
        while (running.answers.load(std::memory_order_acquire) == 0) std::this_thread::yield();
        EXPECT_TRUE(running.code == grpc::StatusCode::OK || running.code == grpc::StatusCode::NOT_FOUND)
            << running.code;
        while (call.use_count() > 1) std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(reserved_bytes(), 0U);
}

}  // namespace
}  // namespace cumulus::server
