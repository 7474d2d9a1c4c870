// The daemon as a process: a log that nobody reads, signals, the file limit, and how fast it ends.
#include <absl/strings/match.h>
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cumulus/v1/operations.grpc.pb.h"
#include "tests/end_to_end/program.h"

namespace cumulus::testing {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Starts cumulusd by a shell: `script` ends with exec "$@".
std::unique_ptr<Daemon> start_by(const std::string& script, const std::vector<std::string>& arguments = {}) {
  std::vector<std::string> words = {"-c",          script, "sh", test_program("cumulusd").string(),
                                    "--lame-duck", "0"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return std::make_unique<Daemon>(words, "/bin/sh");
}

/// Calls that are refused, and leave a line of more than 128 bytes in the log each.
class RefusedCalls {
 public:
  explicit RefusedCalls(const Daemon& daemon)
      : stub_(v1::Operations::NewStub(
            grpc::CreateChannel(daemon.address(), grpc::InsecureChannelCredentials()))) {}

  /// How long each took, sorted.
  std::vector<Clock::duration> send(int count) {
    std::vector<Clock::duration> times;
    for (int i = 0; i < count; ++i) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
      v1::BuildSummedAreaTableRequest request;
      request.mutable_options()->set_request_id(std::string(128, 'r'));
      v1::OperationResult response;
      const auto start = Clock::now();
      const grpc::Status status = stub_->BuildSummedAreaTable(&context, request, &response);
      times.push_back(Clock::now() - start);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
      if (status.error_code() != grpc::StatusCode::INVALID_ARGUMENT) break;
    }
    std::sort(times.begin(), times.end());
    return times;
  }

 private:
  std::unique_ptr<v1::Operations::Stub> stub_;
};

/// A named pipe with a reader, which does not read.
class UnreadPipe {
 public:
  UnreadPipe() {
    EXPECT_EQ(::mkfifo(path().c_str(), 0600), 0);
    reader_ = ::open(path().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  }
  ~UnreadPipe() { close_reader(); }
  std::string path() const { return folder_ / "pipe"; }
  void close_reader() {
    if (reader_ >= 0) ::close(reader_);
    reader_ = -1;
  }
  /// What is there until `part` has come, or `limit` is over.
  std::string read_until(const std::string& part, milliseconds limit) const {
    std::string text;
    std::string buffer(1 << 16, '\0');
    for (const auto end = Clock::now() + limit; Clock::now() < end && !absl::StrContains(text, part);) {
      const ssize_t count = ::read(reader_, buffer.data(), buffer.size());
      if (count > 0) text.append(buffer, 0, static_cast<std::size_t>(count));
      if (count < 0) std::this_thread::sleep_for(milliseconds(5));
    }
    return text;
  }

 private:
  TemporaryFolder folder_;
  int reader_ = -1;
};

/// Seconds from SIGTERM to the end; it is killed after 20.
double seconds_to_end(Program& program) {
  const auto start = Clock::now();
  program.send(SIGTERM);
  while (program.running() && Clock::now() - start < std::chrono::seconds(20)) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (program.running()) program.send(SIGKILL);
  EXPECT_EQ(program.wait().exit_code, 0);
  return seconds;
}

constexpr double kDrainAndGrace = 3;  // seconds; a client that nobody polls answers no GOAWAY

/// Its log goes into the pipe; not more than 4 KiB of it wait.
std::unique_ptr<Daemon> start_into(const UnreadPipe& pipe) {
  const TemporaryFolder folder;
  std::ofstream(folder / "config") << "logging { max_pending_bytes: 4096 } shutdown { drain { seconds: 1 } }";
  return start_by("exec \"$@\" 2>'" + pipe.path() + "'", {"--config", folder / "config"});
}

TEST(DaemonLog, ThatNobodyReadsHoldsUpNoCallAndNoEnd) {
  const UnreadPipe pipe;
  const auto daemon = start_into(pipe);
  RefusedCalls calls(*daemon);
  const auto before = calls.send(30);  // not half of the pipe
  ASSERT_EQ(before.size(), 30u);
  calls.send(100);
  const auto after = calls.send(1500);  // more than the pipe and all that may be pending
  ASSERT_EQ(after.size(), 1500u);
  EXPECT_LT(after[after.size() / 2], before[before.size() / 2] + milliseconds(50));  // held up, for ever
  EXPECT_LT(seconds_to_end(daemon->program()), kDrainAndGrace);
}

TEST(DaemonLog, SaysWhatItDroppedOnceItIsRead) {
  const UnreadPipe pipe;
  const auto daemon = start_into(pipe);
  RefusedCalls(*daemon).send(1500);
  const std::string said = " log lines were dropped: the log was not read fast enough";
  EXPECT_TRUE(absl::StrContains(pipe.read_until(said, milliseconds(10000)), said));
}

TEST(DaemonLog, WhoseReaderIsGoneEndsNothing) {
  UnreadPipe pipe;
  const auto daemon = start_into(pipe);
  pipe.close_reader();
  EXPECT_EQ(RefusedCalls(*daemon).send(50).size(), 50u);
  EXPECT_LT(seconds_to_end(daemon->program()), kDrainAndGrace);
}

TEST(DaemonLog, FileIsOpenedAnewAtSighup) {
  const TemporaryFolder folder;
  const std::string log = folder / "log";
  std::ofstream(folder / "config") << "logging { file: \"" << log << "\" } shutdown { drain { seconds: 1 } }";
  const auto daemon = start_by("exec \"$@\"", {"--config", folder / "config"});
  RefusedCalls calls(*daemon);
  calls.send(1);
  fs::rename(log, log + ".1");
  daemon->program().send(SIGHUP);
  for (int i = 0; i < 1000 && !fs::exists(log); ++i) std::this_thread::sleep_for(milliseconds(5));
  ASSERT_TRUE(fs::exists(log));
  calls.send(1);
  EXPECT_LT(seconds_to_end(daemon->program()), kDrainAndGrace);
  const std::string text = read_file(log);
  EXPECT_TRUE(absl::StrContains(text, "the log file was reopened")) << text;
  EXPECT_TRUE(absl::StrContains(text, "BuildSummedAreaTable")) << text;
  EXPECT_TRUE(absl::StrContains(text, "drained")) << text;
}

TEST(DaemonLog, OnStandardErrorIsOnlyNotedAtSighup) {
  Daemon daemon({"--lame-duck", "0"});
  daemon.program().send(SIGHUP);
  EXPECT_EQ(RefusedCalls(daemon).send(1).size(), 1u);
  daemon.program().send(SIGTERM);
  const Ended ended = daemon.program().wait();
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_TRUE(absl::StrContains(ended.errors, "there is no file to reopen")) << ended.errors;
}

TEST(DaemonProcess, TellsAServiceManagerWhatItDoes) {
  const TemporaryFolder folder;
  const std::string path = folder / "notify";
  const int manager = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof(name.sun_path));
  std::copy(path.begin(), path.end(), name.sun_path);
  ASSERT_EQ(::bind(manager, reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
  const timeval patience{20, 0};
  ASSERT_EQ(::setsockopt(manager, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
  const auto told = [&] {
    std::string text(100, '\0');
    const ssize_t size = ::recv(manager, text.data(), text.size(), 0);
    return text.substr(0, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  };
  for (const char* how : {"exec \"$@\"", "exec \"$@\" --supervise"}) {
    const auto daemon = start_by("export NOTIFY_SOCKET='" + path + "'; " + how);
    EXPECT_EQ(told(), "READY=1");
    EXPECT_EQ(RefusedCalls(*daemon).send(1).size(), 1U);
    daemon->program().send(SIGTERM);
    EXPECT_EQ(told(), "STOPPING=1");
    EXPECT_EQ(daemon->program().wait().exit_code, 0);
  }
  ::close(manager);
}

TEST(DaemonProcess, RaisesItsLimitOfOpenFiles) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_max <= 256) GTEST_SKIP() << "the hard limit is too low";
  const auto daemon = start_by("ulimit -Sn 64; exec \"$@\"");
  // The soft limit is the first figure of that line.
  std::ifstream limits("/proc/" + std::to_string(daemon->program().id()) + "/limits");
  std::string line;
  while (std::getline(limits, line) && line.rfind("Max open files", 0) != 0) {
  }
  EXPECT_EQ(std::stoull(line.substr(std::string("Max open files").size())), files.rlim_max) << line;
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  grpc::ChannelArguments own;
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection each
  for (int i = 0; i < 100; ++i) {
    channels.push_back(grpc::CreateCustomChannel(daemon->address(), grpc::InsecureChannelCredentials(), own));
    EXPECT_TRUE(
        channels.back()->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10)));
  }
  channels.clear();
  daemon->program().send(SIGTERM);
  const Ended ended = daemon->program().wait();
  EXPECT_TRUE(absl::StrContains(ended.errors, "the hard limit (the soft limit was 64)")) << ended.errors;
}

/// Starts and ends an idle daemon `times` times, of which at least `at_once` have to take less than 0.3 s.
void expect_ends_at_once(std::size_t times, std::size_t at_once) {
  const TemporaryFolder folder;
  std::vector<double> seconds;
  while (seconds.size() < times) {
    const std::string path = folder / "socket";
    Daemon daemon({"--lame-duck", "0", "--listen", "unix:" + path});
    RefusedCalls(daemon).send(1);
    EXPECT_TRUE(fs::exists(path));
    seconds.push_back(seconds_to_end(daemon.program()));
    EXPECT_FALSE(fs::exists(path));
  }
  std::sort(seconds.begin(), seconds.end());
  EXPECT_LT(seconds[at_once - 1], 0.3);
  EXPECT_LT(seconds.back(), kDrainAndGrace);
  std::cout << "of " << times << " ends the median took " << seconds[times / 2] << " s, the longest "
            << seconds.back() << " s\n";
}

// A busy machine may hold a few up.
TEST(DaemonProcess, EndsAtOnceWhenIdle) { expect_ends_at_once(20, 15); }
TEST(NightlyDaemonProcess, EndsAtOnceWhenIdleEachOf200Times) { expect_ends_at_once(200, 200); }

}  // namespace
}  // namespace cumulus::testing
