// What a daemon that nobody calls takes of a processor.
#include <absl/strings/match.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "cumulus/v1/sessions.grpc.pb.h"
#include "tests/end_to_end/program.h"
#include "tests/support/sanitized.h"
#include "tests/support/tries.h"

namespace cumulus::testing {
namespace {

/// How often threads of a process have waited for something, so far: those that the daemon makes itself,
/// which have the program's name. gRPC's have names of their own, and wake about twice a second each.
long waits(pid_t process) {
  long count = 0;
  for (const auto& thread :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    if (!absl::StartsWith(read_file(thread.path() / "comm"), "cumulusd")) continue;
    std::ifstream status(thread.path() / "status");
    for (std::string word; status >> word;) {
      long times = 0;
      if (word == "voluntary_ctxt_switches:" && status >> times) count += times;
    }
  }
  return count;
}

/// Of the processors, by a process so far.
double processor_seconds(pid_t process) {
  clockid_t clock{};
  timespec time{};
  EXPECT_EQ(::clock_getcpuclockid(process, &clock), 0);
  EXPECT_EQ(::clock_gettime(clock, &time), 0);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST(IdleDaemon, WakesSeldomAndTakesLittleOfAProcessor) {
  Daemon daemon;
  const auto channel = grpc::CreateChannel(daemon.address(), grpc::InsecureChannelCredentials());
  grpc::ClientContext context;
  v1::CreateSessionRequest request;
  request.set_session_id("6f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1e2f");
  v1::Session session;
  const grpc::Status made = v1::Sessions::NewStub(channel)->CreateSession(&context, request, &session);
  ASSERT_TRUE(made.ok()) << made.error_message();
  const pid_t process = daemon.program().id();
  constexpr int kSeconds = 4;
  // The watchdog looks twice in the first 15 seconds.
  EXPECT_TRUE(once_in_three([&] {
    const long waits_before = waits(process);
    const double seconds_before = processor_seconds(process);
    std::this_thread::sleep_for(std::chrono::seconds(kSeconds));
    const long waited = waits(process) - waits_before;
    const double share = (processor_seconds(process) - seconds_before) / kSeconds;
    std::printf("%ld waits in %d s, %.2f %% of a processor\n", waited, kSeconds, 100 * share);
    return waited <= 6 * kSeconds && (kSanitized || share < 0.01);
  }));
}

}  // namespace
}  // namespace cumulus::testing
