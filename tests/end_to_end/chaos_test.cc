// 64 clients that behave badly at random, eight of them killed at a time, and what the daemon keeps of it:
// nothing. A soak of another length: CUMULUS_CHAOS_SECONDS=1200 build/release/tests/chaos_test
// --gtest_filter='SlowChaos.*'
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cumulus/v1/operations.grpc.pb.h"
#include "cumulus/v1/server.grpc.pb.h"
#include "cumulus/v1/sessions.grpc.pb.h"
#include "tests/end_to_end/program.h"
#include "tests/support/health_watch.h"
#include "tests/support/process_tree.h"
#include "tests/support/sanitized.h"

namespace cumulus::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// Limits that end soon what the clients leave, and let all of them come from one address.
constexpr char kConfig[] = R"(
  devices { cpu_memory_bytes: 268435456 }
  limits { stalled_transfer { seconds: 2 } }
  connections { half_message { seconds: 2 } }
  principals { defaults { max_sessions: 1024 max_transfers: 1024 max_upload_bytes: 268435456 } }
  scheduling { max_decode_queue_per_client: 64 }
)";

/// What a daemon and its decoders hold.
struct Held {
  std::size_t memory = 0;
  std::size_t handles = 0;
  std::size_t threads = 0;
  std::size_t reserved = 0;  // bytes of its device

  std::string text() const {
    return absl::StrCat(memory >> 20, " MiB, ", handles, " handles, ", threads, " threads, ", reserved,
                        " bytes reserved");
  }
};

std::size_t entries_of(const std::string& folder) {
  std::error_code gone;
  const std::filesystem::directory_iterator entries(folder, gone);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

std::size_t handles_of_tree(pid_t process) {
  std::size_t count = entries_of(absl::StrCat("/proc/", process, "/fd"));
  for (const pid_t child : children_of(process)) count += handles_of_tree(child);
  return count;
}

/// What `later` has more of than `before`, beyond what differs from one idle moment to another.
std::vector<std::string> growth(const Held& before, const Held& later) {
  constexpr std::size_t kMemory = std::size_t{32} << 20;
  constexpr std::size_t kHandles = 12;  // the control's connection, a worker that is replaced
  constexpr std::size_t kThreads = 12;  // gRPC's own come and go
  std::vector<std::string> grown;
  if (later.memory > before.memory + kMemory) grown.emplace_back("memory");
  if (later.handles > before.handles + kHandles) grown.emplace_back("handles");
  if (later.threads > before.threads + kThreads) grown.emplace_back("threads");
  if (later.reserved > before.reserved) grown.emplace_back("reservations");
  return grown;
}

class Chaos : public ::testing::Test {
 protected:
  static constexpr int kProcesses = 8;
  static constexpr int kClientsOfEach = 8;

  static std::vector<std::string> arguments(const TemporaryFolder& folder) {
    std::ofstream(folder / "config") << kConfig;
    return {"--config", folder / "config"};
  }
  std::shared_ptr<grpc::Channel> connect() {
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(daemon_.address(), grpc::InsecureChannelCredentials(), own);
  }

  Held held() {
    const pid_t id = daemon_.program().id();
    Held now{memory_of_tree(id), handles_of_tree(id), entries_of(absl::StrCat("/proc/", id, "/task")), 0};
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(10));
    v1::Capabilities capabilities;
    const grpc::Status status = server_->GetCapabilities(&context, {}, &capabilities);
    EXPECT_TRUE(status.ok()) << status.error_message();
    for (const auto& device : capabilities.devices())
      now.reserved += static_cast<std::size_t>(device.reserved_bytes());
    return now;
  }
  /// What has grown, once nothing more comes back: leases end, caches are trimmed.
  std::vector<std::string> lasting_growth(const Held& before) {
    const auto end = Clock::now() + seconds(12);
    std::vector<std::string> grown = growth(before, held());
    while (!grown.empty() && Clock::now() < end) {
      std::this_thread::sleep_for(milliseconds(250));
      grown = growth(before, held());
    }
    std::printf("before: %s; after: %s\n", before.text().c_str(), held().text().c_str());
    return grown;
  }

  std::unique_ptr<Program> clients() {
    return std::make_unique<Program>(
        CUMULUS_CHAOS_CLIENTS,
        std::vector<std::string>{daemon_.address(), std::to_string(kClientsOfEach), std::to_string(++seed_)});
  }
  /// Chaos for so long; a process of clients is killed every second or so.
  void rage(Clock::duration time) {
    std::vector<std::unique_ptr<Program>> running;
    for (int i = 0; i < kProcesses; ++i) running.push_back(clients());
    int killed = 0;
    for (const auto end = Clock::now() + time; Clock::now() < end;) {
      auto& victim = running[random_() % running.size()];
      ASSERT_TRUE(victim->running()) << victim->wait().output;
      victim->send(SIGKILL);
      (void)victim->wait();
      victim = clients();
      ++killed;
      ASSERT_TRUE(daemon_.program().running()) << daemon_.program().wait().errors;
      // Last, so that the newest clients catch the SIGTERM that ends them: until their main() does, it kills
      // them.
      std::this_thread::sleep_for(milliseconds(1000 + random_() % 500));
    }
    for (const auto& program : running) program->send(SIGTERM);
    for (const auto& program : running) {
      const Ended ended = program->wait();
      EXPECT_EQ(ended.exit_code, 0) << ended.output << ended.errors;
    }
    std::printf("%d processes of %d clients killed\n", killed, kClientsOfEach);
  }

  /// Load, then load again: what is held after the second must be what is held after the first.
  void expect_no_growth(Clock::duration time) {
    rage(time / 4);
    std::this_thread::sleep_for(seconds(5));  // the time of leases, of stalls, and of the trim
    const Held before = held();
    rage(time - time / 4);
    std::vector<std::string> grown = lasting_growth(before);
    if (kSanitized) grown.erase(std::remove(grown.begin(), grown.end(), "memory"), grown.end());
    EXPECT_EQ(absl::StrJoin(grown, ", "), "");
    daemon_.program().send(SIGTERM);
    const Ended ended = daemon_.program().wait();
    EXPECT_EQ(ended.exit_code, 0) << ended.errors;
  }

  const TemporaryFolder folder_;
  Daemon daemon_{arguments(folder_)};
  const std::unique_ptr<v1::Server::Stub> server_ = v1::Server::NewStub(connect());
  unsigned seed_ = 0;
  std::minstd_rand random_{1};
};

/// The length that the environment gives, or else `usual`.
seconds length(seconds usual) {
  const char* const given = std::getenv("CUMULUS_CHAOS_SECONDS");
  return given != nullptr ? seconds(std::atoi(given)) : usual;
}

class SlowChaos : public Chaos {};
TEST_F(SlowChaos, LeavesNothingBehind) { expect_no_growth(length(seconds(60))); }

/// The control of the check above: clients that keep a session with a buffer, and connections.
TEST_F(Chaos, IsNoticedWhereItLeavesSomething) {
  const Held before = held();
  const auto channel = connect();
  v1::Session session;
  grpc::ClientContext context;
  v1::CreateSessionRequest create;
  create.set_session_id("6f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1e2f");
  ASSERT_TRUE(v1::Sessions::NewStub(channel)->CreateSession(&context, create, &session).ok());
  v1::BuildSummedAreaTableRequest request;
  request.mutable_options()->set_session(session.name());
  auto& image = *request.mutable_image()->mutable_inline_array();
  image.mutable_spec()->set_element_type(v1::UINT8);
  for (int axis = 0; axis < 2; ++axis) image.mutable_spec()->add_shape(1000);
  image.set_data(std::string(1'000'000, 'x'));
  const auto operations = v1::Operations::NewStub(channel);
  for (int i = 0; i < 10; ++i) {
    grpc::ClientContext build_context;
    v1::OperationResult result;
    ASSERT_TRUE(operations->BuildSummedAreaTable(&build_context, request, &result).ok());
  }
  std::vector<std::unique_ptr<HealthWatch>> watches;
  for (int i = 0; i < 20; ++i) watches.push_back(std::make_unique<HealthWatch>(connect()));
  EXPECT_EQ(absl::StrJoin(lasting_growth(before), ", "), "memory, handles, reservations");
  Held threads = before;
  threads.threads += 20;  // which no client can bring about
  EXPECT_EQ(growth(before, threads), std::vector<std::string>{"threads"});
}

}  // namespace
}  // namespace cumulus::testing
