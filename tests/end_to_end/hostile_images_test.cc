// Images that attack the daemon: what they take of its memory, and of other clients' time.
#include <absl/strings/match.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cumulus/v1/operations.grpc.pb.h"
#include "tests/end_to_end/program.h"
#include "tests/support/hostile_files.h"
#include "tests/support/png_files.h"
#include "tests/support/process_tree.h"
#include "tests/support/tries.h"

namespace cumulus::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Sends images, to be validated only, over a connection of its own.
class Sender {
 public:
  explicit Sender(const std::string& address) {
    grpc::ChannelArguments own;
    own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ =
        v1::Operations::NewStub(grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), own));
  }
  grpc::Status send(const std::string& file, milliseconds limit = std::chrono::seconds(60)) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + limit);
    v1::BuildSummedAreaTableRequest request;
    request.mutable_options()->set_validate_only(true);
    request.set_accumulator(v1::UINT64);
    request.mutable_image()->mutable_encoded()->set_data(file);
    v1::OperationResult response;
    return stub_->BuildSummedAreaTable(&context, request, &response);
  }

 private:
  std::unique_ptr<v1::Operations::Stub> stub_;
};

/// Some 8 KB: noise of 90 x 90 pixels.
std::string small_png() {
  std::mt19937 random(3);
  std::string rows;
  for (int row = 0; row < 90; ++row) {
    rows += '\0';
    for (int column = 0; column < 90; ++column) rows += static_cast<char>(random());
  }
  return png_file(90, 90, rows);
}

/// The most that a daemon and its decoders take while this lives.
class PeakMemory {
 public:
  explicit PeakMemory(pid_t daemon)
      : before_(memory_of_tree(daemon)), thread_([this, daemon] {
          while (!stop_) peak_ = std::max(peak_.load(), memory_of_tree(daemon));
        }) {}
  /// Beyond what it was before.
  std::size_t stop() {
    stop_ = true;
    thread_.join();
    return peak_ - std::min(before_, peak_.load());
  }

 private:
  const std::size_t before_;
  std::atomic<std::size_t> peak_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t kAllowance = std::size_t{64} << 30;  // sanitized decoders have no limit, and shadows
#else
constexpr std::size_t kAllowance = std::size_t{64} << 20;
#endif

TEST(HostileImages, TakeNoMemoryThatWasNotAdmitted) {
  Daemon daemon;
  Sender sender(daemon.address());
  ASSERT_TRUE(sender.send(small_png()).ok());  // loads the libraries
  for (const std::string& file :
       {exr_with_a_huge_attribute(), png_file(2, 1, std::string(3, '\0'), png_texts())}) {
    PeakMemory peak(daemon.program().id());
    for (int i = 0; i < 5; ++i) (void)sender.send(file);
    const std::size_t more = peak.stop();
    std::printf("%zu bytes of file: at most %.1f MiB more\n", file.size(),
                static_cast<double>(more) / (1 << 20));
    EXPECT_LE(more, kAllowance);
  }
  EXPECT_TRUE(sender.send(small_png()).ok());
}

/// As the sum of what is reserved for them: the pixels and the reader's own.
TEST(HostileImages, TakeWhatTheyWereAdmittedWith) {
  Daemon daemon;
  Sender sender(daemon.address());
  ASSERT_TRUE(sender.send(small_png()).ok());
  const std::string file = slow_png();
  PeakMemory peak(daemon.program().id());
  const grpc::Status status = sender.send(file);
  // Said once it is decoded.
  EXPECT_TRUE(absl::StrContains(status.error_message(), "the outputs have 800000000 bytes"))
      << status.error_message();
  EXPECT_LE(peak.stop(), std::size_t{100'000'000} + kAllowance);
}

milliseconds median_of(Sender& sender, const std::string& file, int count) {
  std::vector<Clock::duration> times;
  for (int i = 0; i < count; ++i) {
    const auto start = Clock::now();
    const grpc::Status status = sender.send(file);
    EXPECT_TRUE(status.ok()) << status.error_message();
    times.push_back(Clock::now() - start);
  }
  std::sort(times.begin(), times.end());
  return std::chrono::duration_cast<milliseconds>(times[times.size() / 2]);
}

/// Whether a small PNG takes at most three times as long beside twelve clients that send slow ones.
bool hogs_leave_turns(Daemon& daemon) {
  Sender victim(daemon.address(0));
  const std::string file = small_png();
  const milliseconds alone = median_of(victim, file, 15);
  const std::string slow = slow_png();
  std::atomic<bool> stop = false;
  std::vector<std::thread> hogs;
  for (int i = 0; i < 12; ++i) {
    hogs.emplace_back([&] {
      Sender hog(daemon.address(1));
      while (!stop) (void)hog.send(slow);
    });
  }
  std::this_thread::sleep_for(milliseconds(500));
  const milliseconds beside = median_of(victim, file, 15);
  stop = true;
  for (std::thread& hog : hogs) hog.join();
  std::printf("a small PNG: %d ms alone, %d ms beside 12 hogs\n", static_cast<int>(alone.count()),
              static_cast<int>(beside.count()));
  return beside <= 3 * alone + milliseconds(20);
}

TEST(HostileImages, OfTwelveHogsLeaveAnotherClientItsTurn) {
  const TemporaryFolder folder;
  Daemon daemon({"--listen", "unix:" + (folder / "socket")});
  ASSERT_TRUE(Sender(daemon.address(0)).send(small_png()).ok());
  EXPECT_TRUE(once_in_three([&] { return hogs_leave_turns(daemon); }));
}

TEST(HostileImages, AreDroppedWithTheCallsThatBroughtThem) {
  Daemon daemon;
  Sender sender(daemon.address());
  ASSERT_TRUE(sender.send(small_png()).ok());
  EXPECT_EQ(sender.send(slow_png(20000), milliseconds(100)).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  const auto decoders = [&] {
    const std::vector<pid_t> helper = children_of(daemon.program().id());
    return helper.size() == 1 ? children_of(helper[0]).size() : 99;
  };
  const auto start = Clock::now();
  while (decoders() > 1 && Clock::now() - start < std::chrono::seconds(5))
    std::this_thread::sleep_for(milliseconds(5));
  EXPECT_LE(decoders(), 1u) << "one waits for the next image";
  EXPECT_LT(Clock::now() - start, milliseconds(300));
}

}  // namespace
}  // namespace cumulus::testing
