// Deadline, cancellation and shutdown free the lane of every RPC, however large the call.
#include <absl/time/clock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/operation_calls.h"

namespace cumulus::testing {
namespace {

constexpr absl::Duration kBar = absl::Milliseconds(100);
constexpr absl::Duration kHeadStart = absl::Milliseconds(40);  // of the call, before it is stopped
constexpr std::size_t kBudget = std::size_t{6} << 30;

server::Configuration one_thread(absl::Duration max_deadline = absl::Minutes(10)) {
  server::Configuration configuration = TestServer::configuration();
  configuration.devices.cpu_threads = 1;  // so that a call that nobody stops takes long enough to be noticed
  configuration.devices.cpu_memory_bytes = kBudget;
  configuration.limits.max_deadline = max_deadline;
  return configuration;
}

/// One RPC's largest call, on a server of its own.
class Interruption : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr int kTries = 5;
  using Stop = std::function<void(grpc::ClientContext&)>;

  void SetUp() override {
    const auto found = operation_calls().find(GetParam());
    ASSERT_NE(found, operation_calls().end()) << GetParam() << " has no case in operation_calls.h";
    call_ = found->second.make(maker_, found->second.many);
  }

  /// The least time, of some tries, from `stopped` to a free lane: a busy machine only adds to it.
  absl::Duration time_to_free(grpc::StatusCode expected, int tries, const Stop& prepare, const Stop& stop) {
    absl::Duration least = absl::InfiniteDuration();
    for (int i = 0; i < tries && least > kBar; ++i) {
      grpc::ClientContext context;
      prepare(context);
      v1::OperationResult result;
      auto answer = std::async(std::launch::async, [&] { return call_(context, result); });
      const auto answered = [&] {
        return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
      };
      while (server_.slot().queue->running() == 0 && !answered()) std::this_thread::yield();
      absl::SleepFor(kHeadStart);
      const absl::Time stopped = absl::Now();
      stop(context);
      while (server_.slot().queue->running() > 0) std::this_thread::yield();
      least = std::min(least, absl::Now() - stopped);
      EXPECT_EQ(answer.get().error_code(), expected) << "or the call is too small to be stopped";
    }
    return least;
  }

  TestServer server_{one_thread()};
  CallMaker maker_{server_, server_.create_session()};
  CallMaker::Call call_;
};

TEST_P(Interruption, FreesTheLane) {
  const auto nothing = [](grpc::ClientContext& /*context*/) {};
  EXPECT_LE(time_to_free(grpc::StatusCode::CANCELLED, kTries, nothing,
                         [](grpc::ClientContext& context) { context.TryCancel(); }),
            kBar)
      << "of a cancelled call";
  absl::Time deadline;
  const auto set_deadline = [&](grpc::ClientContext& context) {
    deadline = absl::Now() + kHeadStart + kHeadStart;
    context.set_deadline(absl::ToChronoTime(deadline));
  };
  const auto await_deadline = [&](grpc::ClientContext& /*context*/) {
    absl::SleepFor(deadline - absl::Now());
  };
  EXPECT_LE(time_to_free(grpc::StatusCode::DEADLINE_EXCEEDED, kTries, set_deadline, await_deadline), kBar)
      << "of a call that is too late";
  EXPECT_LE(time_to_free(grpc::StatusCode::UNAVAILABLE, 1, nothing,
                         [&](grpc::ClientContext& /*context*/) { server_.shut_down(); }),
            10 * kBar)
      << "at a shutdown: a single try, of all that gRPC does besides";
}

INSTANTIATE_TEST_SUITE_P(EveryRpc, Interruption, ::testing::ValuesIn(operation_names()),
                         [](const auto& rpc) { return rpc.param; });

TEST(InterruptionCases, AreOfRpcsThatThereAre) {
  const std::vector<std::string> names = operation_names();
  EXPECT_EQ(names.size(), operation_calls().size());
  for (const auto& [name, calls] : operation_calls()) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
}

TEST(ServersDeadline, EndsACallWhoseClientWouldWaitLonger) {
  TestServer server(one_thread(absl::Milliseconds(200)));
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
