// The client library's transfers over several connections, to a real server.
#include <absl/time/time.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/library/connection_count.h"
#include "cumulus/client.h"
#include "tests/client/fake_server.h"
#include "tests/support/cutting_proxy.h"
#include "tests/support/transfer_server.h"

namespace cumulus::testing {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::vector<std::uint8_t> some_bytes(std::size_t size) {
  const std::string bytes = random_bytes(size);
  return {bytes.begin(), bytes.end()};
}

/// A client of a server, through a proxy.
class ParallelTransfers : public ::testing::Test {
 protected:
  explicit ParallelTransfers(const server::Configuration& settings = TransferServer::configuration())
      : server_(host_device(), settings),
        proxy_(port_of(server_.address)),
        client_(connect(proxy_.address)) {}

  static int port_of(const std::string& address) { return std::stoi(address.substr(address.find(':') + 1)); }
  static Client connect(const std::string& address) {
    ConnectOptions options;
    options.credentials = Credentials();
    absl::StatusOr<Client> client = Client::connect(address, options);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  Session session() const {
    absl::StatusOr<Session> session = client_.create_session();
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  /// Uploads and downloads; false, with the reason, where other bytes come back.
  static ::testing::AssertionResult comes_back(const Session& session, const std::vector<std::uint8_t>& bytes,
                                               int connections) {
    UploadOptions up;
    up.connections = connections;
    const absl::StatusOr<Buffer> buffer = session.upload(ArrayView(bytes), up);
    if (!buffer.ok()) return ::testing::AssertionFailure() << "upload: " << buffer.status();
    DownloadOptions down;
    down.connections = connections;
    const auto back = session.download<std::uint8_t>(*buffer, down);
    if (!back.ok()) return ::testing::AssertionFailure() << "download: " << back.status();
    if (*back != bytes) return ::testing::AssertionFailure() << "other bytes came back";
    return ::testing::AssertionSuccess();
  }
  bool no_buffers() {
    return eventually([&] { return server_.runtime.sessions.buffer_count() == 0; });
  }

  TransferServer server_;
  CuttingProxy proxy_;
  Client client_;
};

TEST_F(ParallelTransfers, MoveTheSameBytesOverAnyNumberOfConnections) {
  const Session session = this->session();
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kMiB, 3 * kMiB + 1, 9 * kMiB + 77}) {
    const std::vector<std::uint8_t> bytes = some_bytes(size);
    for (const int connections : {1, 2, 4}) {
      EXPECT_TRUE(comes_back(session, bytes, connections)) << size << " bytes, " << connections;
      EXPECT_TRUE(no_buffers());  // there was one, and its handle is gone
    }
  }
}

TEST_F(ParallelTransfers, OpenTheConnectionsThatTheyAreAskedFor) {
  const Session session = this->session();
  EXPECT_EQ(proxy_.connections(), 1);
  EXPECT_TRUE(comes_back(session, some_bytes(8 * kMiB), 4));
  EXPECT_EQ(proxy_.connections(), 4);
  EXPECT_TRUE(comes_back(session, some_bytes(8 * kMiB), 2));
  EXPECT_EQ(proxy_.connections(), 4) << "which are kept";
}

TEST_F(ParallelTransfers, TakeOneConnectionForASmallArrayAndFourForALargeOne) {
  const Session session = this->session();
  EXPECT_TRUE(comes_back(session, some_bytes(15 * kMiB), 0));
  EXPECT_EQ(proxy_.connections(), 1);
  EXPECT_TRUE(comes_back(session, some_bytes(32 * kMiB), 0));
  EXPECT_EQ(proxy_.connections(), 4);
}

TEST_F(ParallelTransfers, GoOnWhereConnectionsBreak) {
  const Session session = this->session();
  const std::vector<std::uint8_t> bytes = some_bytes(12 * kMiB);
  for (const int cuts : {1, 3, 4}) {
    UploadOptions up;
    up.connections = 4;
    proxy_.cut(cuts, kMiB);
    const absl::StatusOr<Buffer> buffer = session.upload(ArrayView(bytes), up);
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    EXPECT_EQ(proxy_.left_to_cut(), 0);
    DownloadOptions down;
    down.connections = 4;
    proxy_.cut(cuts, kMiB);
    const auto back = session.download<std::uint8_t>(*buffer, down);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(proxy_.left_to_cut(), 0);
    EXPECT_TRUE(*back == bytes);
  }
}

TEST_F(ParallelTransfers, TellProgressUpToTheWhole) {
  const Session session = this->session();
  const std::vector<std::uint8_t> bytes = some_bytes(8 * kMiB);
  std::vector<std::int64_t> steps;
  UploadOptions options;
  options.connections = 4;
  options.progress = [&](std::int64_t done, std::int64_t total) {
    EXPECT_EQ(total, static_cast<std::int64_t>(8 * kMiB));
    steps.push_back(done);
  };
  ASSERT_TRUE(session.upload(ArrayView(bytes), options).ok());
  ASSERT_EQ(steps.size(), 8U);
  for (std::size_t i = 0; i < steps.size(); ++i)
    EXPECT_EQ(steps[i], static_cast<std::int64_t>((i + 1) * kMiB));
}

TEST_F(ParallelTransfers, TellWhatHasArrived) {
  const Session session = this->session();
  const std::vector<std::uint8_t> bytes = some_bytes(6 * kMiB + 5);
  const absl::StatusOr<Buffer> buffer = session.upload(ArrayView(bytes));
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  for (const int connections : {1, 4}) {
    std::vector<std::uint8_t> back(bytes.size());
    std::vector<int> times(bytes.size());
    DownloadOptions options;
    options.connections = connections;
    options.arrived = [&](std::int64_t begin, std::int64_t end) {
      EXPECT_TRUE(std::equal(back.begin() + begin, back.begin() + end, bytes.begin() + begin));
      for (std::int64_t i = begin; i < end; ++i) ++times[static_cast<std::size_t>(i)];
    };
    ASSERT_TRUE(session.download(*buffer, std::as_writable_bytes(std::span(back)), options).ok());
    EXPECT_TRUE(times == std::vector<int>(bytes.size(), 1)) << connections << " connections";
  }
}

TEST_F(ParallelTransfers, StopAllTheirStreamsWhenTheyAreCancelled) {
  const Session session = this->session();
  const std::vector<std::uint8_t> bytes = some_bytes(64 * kMiB);
  UploadOptions options;
  options.connections = 4;
  options.call.cancellation.emplace();
  options.progress = [&](std::int64_t, std::int64_t) { options.call.cancellation->cancel(); };
  const absl::StatusOr<Buffer> buffer = session.upload(ArrayView(bytes), options);
  EXPECT_TRUE(absl::IsCancelled(buffer.status())) << buffer.status();
  EXPECT_TRUE(server_.is_empty());
}

TEST_F(ParallelTransfers, SayOnceWhatTheServerRefuses) {
  const Session session = this->session();
  const std::vector<std::uint8_t> bytes = some_bytes(8 * kMiB);
  UploadOptions options;
  options.connections = 4;
  options.ttl = absl::Hours(1000);
  const absl::StatusOr<Buffer> buffer = session.upload(ArrayView(bytes), options);
  EXPECT_TRUE(absl::IsInvalidArgument(buffer.status())) << buffer.status();
  EXPECT_TRUE(server_.is_empty());
}

TEST_F(ParallelTransfers, RefuseNumbersOfConnectionsThatMakeNoSense) {
  const Session session = this->session();
  const std::vector<std::uint8_t> bytes = some_bytes(10);
  UploadOptions up;
  up.connections = 17;
  EXPECT_EQ(session.upload(ArrayView(bytes), up).status().message(),
            "upload: connections is 17; 1 to 16 is right, or 0 for a number by the array's size");
  const absl::StatusOr<Buffer> buffer = session.upload(ArrayView(bytes));
  ASSERT_TRUE(buffer.ok());
  DownloadOptions down;
  down.connections = -1;
  EXPECT_TRUE(absl::IsInvalidArgument(session.download(*buffer, down).status()));
}

class ParallelTransfersOfAFew : public ParallelTransfers {
 protected:
  ParallelTransfersOfAFew() : ParallelTransfers(settings()) {}
  static server::Configuration settings() {
    server::Configuration settings = TransferServer::configuration();
    settings.principals = server::Principals({.max_transfers = 2}, {});
    return settings;
  }
};

TEST_F(ParallelTransfersOfAFew, UseOneConnectionWhereTheClientMayHaveNoMore) {
  EXPECT_TRUE(comes_back(session(), some_bytes(32 * kMiB), 4));
}

TEST(ParallelTransfersToAnOlderServer, SendEachArrayOverOneStream) {
  FakeServer server;  // whose capabilities say nothing of joined uploads
  const Client client = server.connect();
  const absl::StatusOr<Session> session = client.create_session();
  ASSERT_TRUE(session.ok());
  const std::vector<std::uint8_t> bytes = some_bytes(4 * kMiB);
  UploadOptions options;
  options.connections = 4;
  const absl::StatusOr<Buffer> buffer = session->upload(ArrayView(bytes), options);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_EQ(server.script.uploads, 1);
  EXPECT_TRUE(server.transfer.contents(buffer->name()) == std::string(bytes.begin(), bytes.end()));
}

/// As many transfers as are needed to judge a number of connections, the best of which took so long.
void try_out(ConnectionCount& count, int connections, absl::Duration best) {
  for (const int times : {10, 1, 2}) count.note(connections, 100 * kMiB, times * best);
}

TEST(ConnectionCounts, AreThoseThatHaveHelped) {
  ConnectionCount count;
  EXPECT_EQ(count.choose(16 * kMiB - 1), 1);
  EXPECT_EQ(count.choose(16 * kMiB), 2);
  EXPECT_EQ(count.choose(32 * kMiB), 4);
  try_out(count, 4, absl::Seconds(1));
  EXPECT_EQ(count.choose(32 * kMiB), 2) << "which is not known yet";
  try_out(count, 2, absl::Seconds(1.05));
  EXPECT_EQ(count.choose(32 * kMiB), 1);
  try_out(count, 1, absl::Seconds(3));
  EXPECT_EQ(count.choose(32 * kMiB), 2) << "nearly as fast as four";
  count.note(2, 100 * kMiB, absl::Seconds(4));
  EXPECT_EQ(count.choose(32 * kMiB), 4);
  count.note(1, kMiB, absl::Milliseconds(1));
  EXPECT_EQ(count.choose(32 * kMiB), 4) << "small arrays say nothing";
  std::vector<int> later(100);
  std::generate(later.begin(), later.end(), [&] { return count.choose(32 * kMiB); });
  EXPECT_THAT(later, ::testing::Contains(::testing::Ne(4))) << "others are tried now and then";
  EXPECT_GE(std::count(later.begin(), later.end(), 4), 90);
}

TEST(ConnectionCounts, AreNotJudgedByTheTransfersThatMakeTheConnections) {
  ConnectionCount count;
  for (const int milliseconds : {14, 9, 6}) {
    EXPECT_EQ(count.choose(24 * kMiB), 2);
    count.note(2, 24 * kMiB, absl::Milliseconds(milliseconds));
    EXPECT_EQ(count.choose(24 * kMiB), 1) << "by turns";
    count.note(1, 24 * kMiB, absl::Milliseconds(10));
  }
  EXPECT_EQ(count.choose(24 * kMiB), 2);
}

TEST(ConnectionCounts, BelieveABetterRateAtOnce) {
  ConnectionCount count;
  try_out(count, 2, absl::Milliseconds(20));  // beside a burst of other work
  try_out(count, 1, absl::Milliseconds(10));
  EXPECT_EQ(count.choose(24 * kMiB), 1);
  count.note(2, 100 * kMiB, absl::Milliseconds(1));
  EXPECT_EQ(count.choose(24 * kMiB), 2);
}

}  // namespace
}  // namespace cumulus::testing
