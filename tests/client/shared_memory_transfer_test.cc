// The client library's transfers through shared memory, to a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cumulus/client.h"
#include "library/shared_memory/shared_memory.h"
#include "tests/support/shared_memory_server.h"

namespace cumulus::testing {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::vector<std::uint8_t> some_bytes(std::size_t size) {
  const std::string bytes = random_bytes(size);
  return {bytes.begin(), bytes.end()};
}

Client connect(const SharedMemoryServer& server, bool shared_memory = true) {
  ConnectOptions options;
  options.credentials = Credentials();
  options.shared_memory = shared_memory;
  absl::StatusOr<Client> client = Client::connect(server.address, options);
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

::testing::AssertionResult comes_back(const Session& session, const std::vector<std::uint8_t>& bytes) {
  const absl::StatusOr<Buffer> buffer = session.upload(ArrayView(bytes));
  if (!buffer.ok()) return ::testing::AssertionFailure() << "upload: " << buffer.status();
  const auto back = session.download<std::uint8_t>(*buffer);
  if (!back.ok()) return ::testing::AssertionFailure() << "download: " << back.status();
  return *back == bytes ? ::testing::AssertionSuccess()
                        : ::testing::AssertionFailure() << "other bytes came back";
}

class SharedMemoryTransfers : public ::testing::TestWithParam<std::string> {
 protected:
  SharedMemoryServer server_{device_of(GetParam())};
};

TEST_P(SharedMemoryTransfers, MoveTheSameBytes) {
  const Client client = connect(server_);
  const Session session = *client.create_session();
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, kMiB, 3 * kMiB + 1, 16 * kMiB, 16 * kMiB + 1, 37 * kMiB + 77})
    EXPECT_TRUE(comes_back(session, some_bytes(size))) << size << " bytes";
  EXPECT_EQ(server_.socket->shares().regions(), 1) << "the client had one ring for all";
}

TEST_P(SharedMemoryTransfers, OfManyThreadsHaveRingsOfTheirOwnOrStreams) {
  const Client client = connect(server_);
  const Session session = *client.create_session();
  std::vector<std::future<::testing::AssertionResult>> transfers;
  for (std::size_t i = 0; i < 7; ++i) {
    transfers.push_back(std::async(std::launch::async, [&session, i] {
      ::testing::AssertionResult result = ::testing::AssertionSuccess();
      for (int round = 0; round < 3 && result; ++round)
        result = comes_back(session, some_bytes(5 * kMiB + i));
      return result;
    }));
  }
  for (auto& transfer : transfers) EXPECT_TRUE(transfer.get());
}

TEST_P(SharedMemoryTransfers, OfTwoClientsDoNotMeet) {
  const Client one = connect(server_);
  const Client other = connect(server_);
  const auto repeat = [](const Client& client, std::size_t size) {
    const Session session = *client.create_session();
    for (int round = 0; round < 5; ++round) EXPECT_TRUE(comes_back(session, some_bytes(size)));
  };
  std::thread beside([&] { repeat(other, 18 * kMiB + 3); });
  repeat(one, 17 * kMiB + 5);
  beside.join();
}

TEST_P(SharedMemoryTransfers, SayHowFarTheyAre) {
  const Client client = connect(server_);
  const Session session = *client.create_session();
  const std::vector<std::uint8_t> bytes = some_bytes(20 * kMiB);
  std::int64_t up = 0;
  std::int64_t down = 0;
  const absl::StatusOr<Buffer> buffer =
      session.upload(ArrayView(bytes), {.progress = [&](std::int64_t done, std::int64_t) { up = done; }});
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  ASSERT_TRUE(
      session.download(*buffer, {.progress = [&](std::int64_t done, std::int64_t) { down = done; }}).ok());
  EXPECT_EQ(up, 20 * kMiB);
  EXPECT_EQ(down, 20 * kMiB);
}

TEST_P(SharedMemoryTransfers, ThatAreCancelledLeaveTheNextAlone) {
  const Client client = connect(server_);
  const Session session = *client.create_session();
  const std::vector<std::uint8_t> bytes = some_bytes(32 * kMiB);
  const Cancellation cancellation;
  UploadOptions options;
  options.call.cancellation = cancellation;
  options.progress = [&](std::int64_t, std::int64_t) { cancellation.cancel(); };
  EXPECT_EQ(session.upload(ArrayView(bytes), options).status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(comes_back(session, bytes));
}

TEST_P(SharedMemoryTransfers, OfASessionThatIsMadeAgainHaveTheChecksumsOfStreams) {
  const Client client = connect(server_);
  SessionOptions options;
  options.recreate = true;
  const Session session = *client.create_session(options);
  const std::vector<std::uint8_t> bytes = some_bytes(5 * kMiB + 1);
  const absl::StatusOr<Buffer> buffer = session.upload(ArrayView(bytes));
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  server_.runtime.sessions.expire(absl::InfiniteFuture());
  const auto back = session.download<std::uint8_t>(*buffer);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, bytes);
}

std::vector<std::uint8_t> values_of(const absl::StatusOr<std::vector<std::uint8_t>>& values) {
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? *values : std::vector<std::uint8_t>();
}

Array shared_array(const Session& session, const std::vector<std::uint8_t>& bytes) {
  absl::StatusOr<Array> array =
      session.allocate_shared(ElementType::kUint8, {static_cast<std::int64_t>(bytes.size())});
  EXPECT_TRUE(array.ok()) << array.status();
  if (!bytes.empty()) std::memcpy(array->mutable_bytes().data(), bytes.data(), bytes.size());
  return *std::move(array);
}

TEST_P(SharedMemoryTransfers, TakeSharedArraysAsOftenAsTheyAreUploaded) {
  const Client client = connect(server_);
  const Session session = *client.create_session();
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, 3 * kMiB + 1}) {
    const std::vector<std::uint8_t> first = some_bytes(size);
    const std::vector<std::uint8_t> second = some_bytes(size + 1);
    Array array = shared_array(session, first);
    const absl::StatusOr<Buffer> before = session.upload(array.view());
    ASSERT_TRUE(before.ok()) << before.status();
    if (size > 0) std::memcpy(array.mutable_bytes().data(), second.data(), size);
    const absl::StatusOr<Buffer> after = session.upload(array.view());
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_EQ(values_of(session.download<std::uint8_t>(*before)), first) << size << " bytes";
    EXPECT_EQ(values_of(session.download<std::uint8_t>(*after)),
              std::vector<std::uint8_t>(second.begin(), second.end() - 1))
        << size << " bytes";
  }
}

TEST_P(SharedMemoryTransfers, LeaveNothingOfASharedArray) {
  const Client client = connect(server_);
  {
    const Session session = *client.create_session();
    const std::vector<std::uint8_t> bytes = some_bytes(3 * kMiB);
    const Array array = shared_array(session, bytes);
    const absl::StatusOr<Buffer> buffer = session.upload(array.view());
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    EXPECT_TRUE(
        std::equal(bytes.begin(), bytes.end(), reinterpret_cast<const std::uint8_t*>(array.bytes().data())));
  }
  EXPECT_TRUE(
      eventually([&] { return server_.reserved_bytes() == 0 && server_.socket->shares().bytes() == 0; }));
}

/// What a download announces of its bytes, each piece looked at when it is.
class Announced {
 public:
  explicit Announced(const std::vector<std::uint8_t>& right) : right_(right) {}

  absl::Status download(const Session& session, const Buffer& buffer, std::span<std::byte> here) {
    here_ = here;
    DownloadOptions options;
    options.arrived = [this](std::int64_t begin, std::int64_t end) { take(begin, end); };
    options.progress = [this](std::int64_t done, std::int64_t) { done_ = done; };
    return session.download(buffer, here, options);
  }
  bool each_byte_once() const {
    return std::all_of(times_.begin(), times_.end(), [](int times) { return times == 1; });
  }
  bool in_place() const { return in_place_; }
  bool in_order() const { return in_order_; }
  std::int64_t largest() const { return largest_; }
  std::int64_t done() const { return done_; }

 private:
  void take(std::int64_t begin, std::int64_t end) {
    in_order_ = in_order_ && begin == last_;
    last_ = end;
    largest_ = std::max(largest_, end - begin);
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      ++times_[i];
      in_place_ = in_place_ && here_[i] == std::byte{right_[i]};
    }
  }

  const std::vector<std::uint8_t>& right_;
  std::span<std::byte> here_;
  std::vector<int> times_ = std::vector<int>(right_.size());
  bool in_place_ = true;
  bool in_order_ = true;
  std::int64_t last_ = 0;
  std::int64_t largest_ = 0;
  std::int64_t done_ = 0;
};

TEST_P(SharedMemoryTransfers, TellWhatHasArrived) {
  const Client client = connect(server_);
  const Session session = *client.create_session();
  for (const std::size_t size : {9 * kMiB + 7, 33 * kMiB + 5}) {
    const std::vector<std::uint8_t> bytes = some_bytes(size);
    const absl::StatusOr<Buffer> buffer = session.upload(ArrayView(bytes));
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    std::vector<std::uint8_t> here(size);
    Announced announced(bytes);
    const absl::Status read = announced.download(session, *buffer, std::as_writable_bytes(std::span(here)));
    ASSERT_TRUE(read.ok()) << read;
    EXPECT_TRUE(announced.each_byte_once()) << size << " bytes";
    EXPECT_TRUE(announced.in_place()) << "bytes were announced before they were there";
    EXPECT_EQ(announced.largest(), kMiB) << "not piece by piece";
    EXPECT_EQ(announced.done(), static_cast<std::int64_t>(size));
    EXPECT_TRUE(size >= 16 * kMiB || announced.in_order()) << "though one thread copies";
  }
  EXPECT_EQ(server_.socket->shares().regions(), 1) << "all through one ring";
}

/// Over one stream, which leaves no ring behind.
absl::StatusOr<Buffer> stream_up(const Session& session, const std::vector<std::uint8_t>& bytes) {
  UploadOptions options;
  options.connections = 1;
  return session.upload(ArrayView(bytes), options);
}

std::vector<std::uint8_t> values_in(const Array& array) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(array.bytes().data());
  return {first, first + array.bytes().size()};
}

TEST_P(SharedMemoryTransfers, FillSharedArraysWithoutARing) {
  for (const std::size_t size : {kMiB, 3 * kMiB + 1, 20 * kMiB + 77}) {
    const Client client = connect(server_);
    const Session session = *client.create_session();
    ASSERT_TRUE(eventually([&] { return server_.socket->shares().regions() == 0; }));
    Array array = shared_array(session, std::vector<std::uint8_t>(size, 1));
    for (int round = 0; round < 2; ++round) {
      const std::vector<std::uint8_t> bytes = some_bytes(size);
      const absl::StatusOr<Buffer> buffer = stream_up(session, bytes);
      ASSERT_TRUE(buffer.ok()) << buffer.status();
      Announced announced(bytes);
      const absl::Status read = announced.download(session, *buffer, array.mutable_bytes());
      ASSERT_TRUE(read.ok()) << read;
      EXPECT_TRUE(values_in(array) == bytes) << size << " bytes";
      EXPECT_TRUE(announced.each_byte_once() && announced.in_order() && announced.in_place());
      EXPECT_EQ(announced.done(), static_cast<std::int64_t>(size));
    }
    EXPECT_EQ(server_.socket->shares().regions(), 1) << "the array's, and no ring's";
  }
}

TEST_P(SharedMemoryTransfers, IntoASharedArrayChangeNothingThatWasUploadedFromIt) {
  const Client client = connect(server_);
  const Session session = *client.create_session();
  const std::vector<std::uint8_t> first = some_bytes(3 * kMiB + 1);
  const std::vector<std::uint8_t> second = some_bytes(3 * kMiB + 1);
  const absl::StatusOr<Buffer> source = stream_up(session, first);
  const absl::StatusOr<Buffer> other = stream_up(session, second);
  ASSERT_TRUE(source.ok() && other.ok());
  Array array = shared_array(session, std::vector<std::uint8_t>(first.size(), 1));
  ASSERT_TRUE(session.download(*source, array.mutable_bytes()).ok());
  const absl::StatusOr<Buffer> taken = session.upload(array.view());
  ASSERT_TRUE(taken.ok()) << taken.status();
  ASSERT_TRUE(session.download(*other, array.mutable_bytes()).ok());
  EXPECT_TRUE(values_in(array) == second);
  EXPECT_TRUE(values_of(session.download<std::uint8_t>(*taken)) == first);
}

INSTANTIATE_TEST_SUITE_P(Devices, SharedMemoryTransfers, ::testing::Values("host", "staged"),
                         [](const auto& param) { return param.param; });

/// Whether the memory at `address` is of a shared region.
bool lies_in_a_region(const void* address) {
  std::ifstream maps("/proc/self/maps");
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (std::string line; std::getline(maps, line);) {
    const std::uintptr_t begin = std::stoull(line, nullptr, 16);
    const std::uintptr_t end = std::stoull(line.substr(line.find('-') + 1), nullptr, 16);
    if (begin <= at && at < end) return line.find("cumulus-shared") != std::string::npos;
  }
  return false;
}

TEST(SharedArraysOnTheCpu, BecomeTheBufferWithoutACopy) {
  SharedMemoryServer server(host_device());
  const Client client = connect(server);
  const Session session = *client.create_session();
  const Array array = shared_array(session, some_bytes(3 * kMiB));
  const absl::StatusOr<Buffer> buffer = session.upload(array.view());
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  server::Principal caller;
  caller.name = "127.0.0.1";
  const auto resident = server.runtime.sessions.find_buffer(buffer->name(), caller);
  ASSERT_TRUE(resident.ok()) << resident.status();
  EXPECT_TRUE(lies_in_a_region((*resident)->memory.host_data()));
  EXPECT_FALSE(lies_in_a_region(&server));
}

TEST(SharedArraysOnADevice, AreLeftAloneByADownloadThatWasGivenUp) {
  auto device = staged_device();
  StagedDevice& staged = *device;
  SharedMemoryServer server(std::move(device));
  const Client client = connect(server);
  const Session session = *client.create_session();
  const std::vector<std::uint8_t> bytes = some_bytes(3 * kMiB);
  const absl::StatusOr<Buffer> buffer = session.upload(ArrayView(bytes));
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  Array array = shared_array(session, std::vector<std::uint8_t>(bytes.size(), 1));
  staged.hold();
  const Cancellation cancellation;
  DownloadOptions options;
  options.call.cancellation = cancellation;
  auto download = std::async(std::launch::async,
                             [&] { return session.download(*buffer, array.mutable_bytes(), options); });
  ASSERT_TRUE(eventually([&] { return staged.waiting_copies() > 0; }));
  cancellation.cancel();
  EXPECT_EQ(download.get().code(), absl::StatusCode::kCancelled);
  std::memset(array.mutable_bytes().data(), 2, bytes.size());
  staged.release();
  // With its copies done, of regions the ring is left.
  ASSERT_TRUE(eventually([&] { return server.socket->shares().bytes() == kSharedSlots * kSharedSlotBytes; }));
  const std::vector<std::uint8_t> twos(bytes.size(), 2);
  EXPECT_TRUE(values_in(array) == twos);
  // It is an ordinary array now.
  const absl::StatusOr<Buffer> again = session.upload(array.view());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(values_of(session.download<std::uint8_t>(*again)) == twos);
  ASSERT_TRUE(session.download(*buffer, array.mutable_bytes()).ok());
  EXPECT_TRUE(values_in(array) == bytes);
}

TEST(SharedArraysOnTheCpu, OutliveTheirClient) {
  SharedMemoryServer server(host_device());
  const std::vector<std::uint8_t> bytes = some_bytes(kMiB);
  Array array;
  {
    const Client client = connect(server);
    const Session session = *client.create_session();
    array = shared_array(session, bytes);
    ASSERT_TRUE(session.upload(array.view()).ok());
  }
  EXPECT_TRUE(
      std::equal(bytes.begin(), bytes.end(), reinterpret_cast<const std::uint8_t*>(array.bytes().data())));
}

TEST(SharedMemoryOfTheLibrary, IsLeftAloneWhereTheClientSaysSo) {
  SharedMemoryServer server(host_device());
  const Client client = connect(server, false);
  EXPECT_TRUE(comes_back(*client.create_session(), some_bytes(3 * kMiB)));
  EXPECT_EQ(server.socket->shares().regions(), 0);
}

TEST(SharedMemoryOfTheLibrary, GivesWayToStreamsWhereThereIsNone) {
  server::Configuration settings = SharedMemoryServer::configuration();
  settings.shared_memory.max_bytes_per_user = 1;
  SharedMemoryServer full(host_device(), settings);
  EXPECT_TRUE(comes_back(*connect(full).create_session(), some_bytes(3 * kMiB)));
  settings.shared_memory.new_name = false;
  SharedMemoryServer off(host_device(), settings);
  EXPECT_TRUE(comes_back(*connect(off).create_session(), some_bytes(3 * kMiB)));
}

TEST(SharedMemoryOfTheLibrary, IsOfThisMachineAlone) {
  for (const char* target :
       {"unix:/tmp/socket", "localhost:1", "127.0.0.1:50651", "127.3.2.1:1", "[::1]:50651"})
    EXPECT_TRUE(is_on_this_machine(target)) << target;
  for (const char* target :
       {"gpu7:50651", "10.0.0.7:1", "[fe80::1]:1", "localhost.example:1", "1127.0.0.1:1"})
    EXPECT_FALSE(is_on_this_machine(target)) << target;
}

}  // namespace
}  // namespace cumulus::testing
