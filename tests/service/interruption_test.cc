// Deadline, cancellation and shutdown free the lane of every RPC, however large the call.
#include <absl/time/clock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <future>
#include <ostream>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/operation_calls.h"

namespace cumulus::testing {
namespace {

constexpr absl::Duration kBar = absl::Milliseconds(100);

/// Where the calls run, and how long they may before they are stopped.
struct Place {
  const char* name;
  server::Configuration (*configuration)();
  std::int64_t times;  // as many elements as `many` of operation_calls.h
  absl::Duration head_start;
};

server::Configuration one_thread() {
  server::Configuration configuration = TestServer::configuration();
  configuration.devices.cpu_threads = 1;  // so that a call that nobody stops takes long enough to be noticed
  configuration.devices.cpu_memory_bytes = std::size_t{3} << 30;  // more than the largest call takes
  configuration.limits.max_deadline = absl::Minutes(10);
  return configuration;
}

server::Configuration large_gpu() {
  server::Configuration configuration = TestServer::gpu_configuration();
  configuration.devices.gpu_memory_bytes = std::size_t{32} << 30;
  return configuration;
}

constexpr Place kCpu{"on the CPU", one_thread, 1, absl::Milliseconds(40)};
constexpr Place kGpu{"on a GPU", large_gpu, 4, absl::Milliseconds(1)};

/// The least time, of some tries, from a call's end by others to a free lane: a busy machine only adds to it.
class LaneTimer {
 public:
  using Prepare = std::function<void(grpc::ClientContext&)>;
  /// Ends the call; when it did.
  using Stop = std::function<absl::Time(grpc::ClientContext&)>;

  LaneTimer(TestServer& server, CallMaker::Call call, absl::Duration head_start)
      : server_(server), call_(std::move(call)), head_start_(head_start) {}

  void expect_free(grpc::StatusCode expected, int tries, absl::Duration bar, const Prepare& prepare,
                   const Stop& stop) {
    absl::Duration least = absl::InfiniteDuration();
    for (int i = 0; i < tries && least > bar; ++i) least = std::min(least, once(expected, prepare, stop));
    std::printf("lane free after %.1f ms\n", absl::ToDoubleMilliseconds(least));
    EXPECT_LE(least, bar) << "of a call that ended with " << expected;
  }
  /// By cancellation, by its deadline, and by the server's shutdown, after which the server takes no more.
  void expect_free_lanes() {
    constexpr int kTries = 5;
    const auto nothing = [](grpc::ClientContext& /*context*/) {};
    expect_free(grpc::StatusCode::CANCELLED, kTries, kBar, nothing, [](grpc::ClientContext& context) {
      const absl::Time stopped = absl::Now();
      context.TryCancel();
      return stopped;
    });
    absl::Time deadline;
    const auto set_deadline = [&](grpc::ClientContext& context) {
      deadline = absl::Now() + 2 * head_start_;
      context.set_deadline(absl::ToChronoTime(deadline));
    };
    const auto await_deadline = [&](grpc::ClientContext& /*context*/) {
      absl::SleepFor(deadline - absl::Now());
      return deadline;
    };
    expect_free(grpc::StatusCode::DEADLINE_EXCEEDED, kTries, kBar, set_deadline, await_deadline);
    // A single try, of all that gRPC does besides.
    expect_free(grpc::StatusCode::UNAVAILABLE, 1, 10 * kBar, nothing, [&](grpc::ClientContext& /*context*/) {
      const absl::Time stopped = absl::Now();
      server_.shut_down();
      return stopped;
    });
  }

 private:
  absl::Duration once(grpc::StatusCode expected, const Prepare& prepare, const Stop& stop) {
    grpc::ClientContext context;
    prepare(context);
    v1::OperationResult result;
    auto answer = std::async(std::launch::async, [&] { return call_(context, result); });
    const auto answered = [&] {
      return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    };
    while (server_.slot().queue->running() == 0 && !answered()) std::this_thread::yield();
    absl::SleepFor(head_start_);
    const absl::Time stopped = stop(context);
    while (server_.slot().queue->running() > 0) std::this_thread::yield();
    const absl::Duration time = absl::Now() - stopped;
    const grpc::StatusCode code = answer.get().error_code();
    // A GPU may be done before it is stopped, with whatever fits.
    if (code != grpc::StatusCode::OK || server_.slot().device->space() == Space::kHost) {
      EXPECT_EQ(code, expected) << "or the call is too small to be stopped";
    }
    return time;
  }

  TestServer& server_;
  const CallMaker::Call call_;
  const absl::Duration head_start_;
};

/// For the tests' names.
void PrintTo(const Place* place, std::ostream* out) { *out << place->name; }

bool skipped_without_gpu(const Place& place) {
  return place.configuration == large_gpu && cuda_device_count() == 0;
}

/// One RPC's largest call, on a server of its own. Instantiated as EveryRpc (CPU) and EveryRpcCuda.
class Interruption : public ::testing::TestWithParam<std::tuple<std::string, const Place*>> {};

TEST_P(Interruption, FreesTheLane) {
  const auto& [name, place] = GetParam();
  if (skipped_without_gpu(*place)) GTEST_SKIP() << "no GPU here: " << cuda_unavailable_reason();
  const auto found = operation_calls().find(name);
  ASSERT_NE(found, operation_calls().end()) << name << " has no case in operation_calls.h";
  TestServer server{place->configuration()};
  CallMaker maker{server, server.create_session()};
  LaneTimer(server, found->second.make(maker, place->times * found->second.many), place->head_start)
      .expect_free_lanes();
}

const auto name_of_rpc = [](const auto& test) { return std::get<0>(test.param); };
INSTANTIATE_TEST_SUITE_P(EveryRpc, Interruption,
                         ::testing::Combine(::testing::ValuesIn(operation_names()), ::testing::Values(&kCpu)),
                         name_of_rpc);
INSTANTIATE_TEST_SUITE_P(EveryRpcCuda, Interruption,
                         ::testing::Combine(::testing::ValuesIn(operation_names()), ::testing::Values(&kGpu)),
                         name_of_rpc);

TEST(InterruptionCuda, FreesTheLaneOfASearchOfSeconds) {
  if (skipped_without_gpu(kGpu)) GTEST_SKIP() << "no GPU here: " << cuda_unavailable_reason();
  TestServer server{large_gpu()};
  CallMaker maker{server, server.create_session()};
  LaneTimer(server, make_find_neighbors(maker, 1 << 24, 1 << 14), absl::Milliseconds(100))
      .expect_free_lanes();
}

TEST(InterruptionCases, AreOfRpcsThatThereAre) {
  const std::vector<std::string> names = operation_names();
  EXPECT_EQ(names.size(), operation_calls().size());
  for (const auto& [name, calls] : operation_calls()) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
}

TEST(ServersDeadline, EndsACallWhoseClientWouldWaitLonger) {
  server::Configuration configuration = one_thread();
  configuration.limits.max_deadline = absl::Milliseconds(200);
  TestServer server(configuration);
  CallMaker maker(server, server.create_session());
  const CallMaker::Call call = make_draw_samples(maker, std::int64_t{1} << 26);  // several seconds
  grpc::ClientContext context;
  v1::OperationResult result;
  const absl::Time begin = absl::Now();
  const grpc::Status status = call(context, result);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_NE(status.error_message().find("while the request ran"), std::string::npos)
      << status.error_message();
  EXPECT_LE(absl::Now() - begin, absl::Seconds(2));
}

}  // namespace
}  // namespace cumulus::testing
