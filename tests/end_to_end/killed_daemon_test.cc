// What a daemon that is killed leaves of the memory that it shared: errors in time, no hang, and nothing
// taken.
#include <absl/time/clock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "cumulus/client.h"
#include "tests/end_to_end/restarting_daemon.h"

namespace cumulus::testing {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::int64_t kBytes = 24 * kMiB;

/// How many mappings and descriptors of shared regions this process has.
std::size_t regions_here() {
  std::size_t count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) count += line.find("cumulus-shared") != std::string::npos;
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd", ignored)) {
    const std::string target = std::filesystem::read_symlink(file.path(), ignored).string();
    count += target.find("cumulus-shared") != std::string::npos;
  }
  return count;
}

std::vector<std::uint8_t> pattern(std::size_t seed) {
  std::vector<std::uint8_t> bytes(kBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::uint8_t>((i + seed) * 2654435761U >> 24);
  return bytes;
}

/// A thread's transfers, over and over until one fails.
class Mover {
 public:
  enum class Way { kRing, kArray };
  Mover(const Session& session, Way way)
      : session_(session),
        way_(way),
        bytes_(pattern(static_cast<std::size_t>(way))),
        ended_(std::async(std::launch::async, [this] { return move_until_error(); })) {}

  int rounds() const { return rounds_; }
  /// False where it does not end for a minute, or what came before its end was wrong.
  bool ends_well() const {
    return ended_.wait_for(std::chrono::minutes(1)) == std::future_status::ready && !wrong_;
  }
  absl::Status error() { return ended_.get(); }

 private:
  absl::Status move_until_error() {
    while (true) {
      absl::StatusOr<Array> into = way_ == Way::kRing
                                       ? Array::allocate(ElementType::kUint8, {kBytes})
                                       : session_.allocate_shared(ElementType::kUint8, {kBytes});
      if (!into.ok()) return into.status();
      const absl::StatusOr<Buffer> buffer = session_.upload(ArrayView(bytes_));
      if (!buffer.ok()) return buffer.status();
      if (absl::Status read = session_.download(*buffer, into->mutable_bytes()); !read.ok()) return read;
      wrong_ = wrong_ || std::memcmp(into->bytes().data(), bytes_.data(), bytes_.size()) != 0;
      ++rounds_;
    }
  }

  const Session& session_;
  const Way way_;
  const std::vector<std::uint8_t> bytes_;
  std::atomic<int> rounds_ = 0;
  std::atomic<bool> wrong_ = false;
  std::future<absl::Status> ended_;  // last, as it uses the others
};

TEST(KilledDaemon, EndsTransfersThroughSharedMemoryWithAnErrorAndGivesItBack) {
  Daemon daemon;
  const absl::StatusOr<Client> client =
      Client::connect(daemon.address(), {.max_outage = absl::ZeroDuration()});
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::StatusOr<Session> session = client->create_session();
  ASSERT_TRUE(session.ok()) << session.status();
  absl::StatusOr<Array> kept = session->allocate_shared(ElementType::kUint8, {kBytes});
  ASSERT_TRUE(kept.ok()) << kept.status();
  const std::vector<std::uint8_t> before = pattern(7);
  std::memcpy(kept->mutable_bytes().data(), before.data(), before.size());
  {
    Mover ring(*session, Mover::Way::kRing);
    Mover array(*session, Mover::Way::kArray);
    const absl::Time give_up = absl::Now() + absl::Minutes(1);
    while ((ring.rounds() < 2 || array.rounds() < 2) && absl::Now() < give_up)
      absl::SleepFor(absl::Milliseconds(1));
    EXPECT_GT(regions_here(), 0);
    daemon.program().send(SIGKILL);
    for (Mover* mover : {&ring, &array}) {
      ASSERT_TRUE(mover->ends_well()) << "it hangs, or other bytes came back";
      const absl::Status error = mover->error();
      EXPECT_TRUE(absl::IsUnavailable(error)) << error;
    }
  }
  EXPECT_EQ(std::memcmp(kept->bytes().data(), before.data(), before.size()), 0) << "an array is its client's";
  kept = Array();
  (void)daemon.program().wait();
  EXPECT_FALSE(session->upload(ArrayView(before)).ok());
  EXPECT_EQ(regions_here(), 0) << "rings and arrays of the dead daemon are kept";
}

TEST(KilledDaemon, ThatComesBackGetsTheSameArraysThroughItsOwnMemory) {
  RestartingDaemon daemon;
  const absl::StatusOr<Client> client = Client::connect(daemon.target());
  ASSERT_TRUE(client.ok()) << client.status();
  SessionOptions options;
  options.recreate = true;
  const absl::StatusOr<Session> session = client->create_session(options);
  ASSERT_TRUE(session.ok()) << session.status();
  const std::vector<std::uint8_t> bytes = pattern(3);
  const absl::StatusOr<Buffer> buffer = session->upload(ArrayView(bytes));
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  absl::StatusOr<Array> into = session->allocate_shared(ElementType::kUint8, {kBytes});
  ASSERT_TRUE(into.ok()) << into.status();
  daemon.end(SIGKILL);
  daemon.start();
  const absl::Status read = session->download(*buffer, into->mutable_bytes());
  ASSERT_TRUE(read.ok()) << read;
  EXPECT_EQ(std::memcmp(into->bytes().data(), bytes.data(), bytes.size()), 0);
  const absl::StatusOr<Array> next = session->allocate_shared(ElementType::kUint8, {kBytes});
  ASSERT_TRUE(next.ok()) << next.status();
  into = absl::UnknownError("gone");
  EXPECT_GT(regions_here(), 0) << "the new daemon shares memory too";
}

}  // namespace
}  // namespace cumulus::testing
