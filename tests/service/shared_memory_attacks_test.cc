// What a hostile client can do with memory that the server shares with it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/raw_shared_region.h"
#include "tests/support/shared_memory_server.h"
#include "tests/support/status_details.h"

namespace cumulus::testing {
namespace {

using Message = SharedMemoryMessage;
using ::testing::HasSubstr;

server::Principal caller(const std::string& name, bool proven) {
  server::Principal caller;
  caller.name = name;
  caller.proven = proven;
  return caller;
}

class SharedMemoryAttacks : public ::testing::Test {
 protected:
  std::future<grpc::Status> write(const RawSharedRegion& ring, std::size_t bytes) {
    return std::async(std::launch::async, [this, request = server_.write_request(ring.text, bytes)] {
      grpc::ClientContext context;
      return server_.shared->WriteShared(&context, request, &buffer_);
    });
  }
  /// A client that behaves gets its array through.
  void expect_service() {
    RawSharedRegion ring(server_.socket->address());
    ASSERT_TRUE(ring.ask(Message::kRing)) << ring.text;
    const std::string data = random_bytes(1000);
    auto done = write(ring, data.size());
    ASSERT_EQ(ring.next().kind, Message::kBegin);
    ring.fill(0, data, 0);
    ASSERT_TRUE(done.get().ok());
    EXPECT_EQ(server_.download(buffer_.name()), data);
  }

  SharedMemoryServer server_{host_device()};
  v1::Buffer buffer_;
};

TEST_F(SharedMemoryAttacks, ThatTruncateOrGrowAreRefusedByTheKernel) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask(Message::kRing));
  EXPECT_EQ(::ftruncate(ring.file(), 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(ring.file(), static_cast<off_t>(2 * ring.bytes())), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::fcntl(ring.file(), F_ADD_SEALS, F_SEAL_WRITE), -1);
  expect_service();
}

TEST_F(SharedMemoryAttacks, ThatPunchHolesWhileTheServerReadsGainNothing) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask(Message::kRing));
  std::atomic<bool> stop = false;
  std::thread puncher([&] {
    while (!stop) {
      (void)::fallocate(ring.file(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                        static_cast<off_t>(ring.bytes()));
    }
  });
  const std::string data = random_bytes(kSharedSlots * kSharedSlotBytes);
  auto done = write(ring, data.size());
  EXPECT_EQ(ring.next().kind, Message::kBegin);
  for (std::uint32_t slot = 0; slot < kSharedSlots; ++slot) ring.fill(slot, data, slot * kSharedSlotBytes);
  EXPECT_TRUE(done.get().ok());
  stop = true;
  puncher.join();
  expect_service();
}

TEST_F(SharedMemoryAttacks, ThatWriteWhileTheServerReadsChangeNoBuffer) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask(Message::kRing));
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int value = 0; !stop; ++value) std::memset(ring.memory(), value, ring.bytes());
  });
  const std::string data = random_bytes(kSharedSlots * kSharedSlotBytes);
  auto done = write(ring, data.size());
  EXPECT_EQ(ring.next().kind, Message::kBegin);
  for (std::uint32_t slot = 0; slot < kSharedSlots; ++slot) ring.fill(slot, data, slot * kSharedSlotBytes);
  EXPECT_TRUE(done.get().ok());
  const std::string first = server_.download(buffer_.name());
  EXPECT_EQ(server_.download(buffer_.name()), first);
  stop = true;
  writer.join();
  EXPECT_EQ(server_.download(buffer_.name()), first);
}

/// What requests are checked by has to be what kernels then read, also where the copy to the device comes
/// late.
TEST(SharedMemoryAttacksOnADevice, ThatWriteBeforeTheCopyAreSeenByTheChecksToo) {
  auto device = staged_device();
  StagedDevice& staged = *device;
  SharedMemoryServer server(std::move(device));
  RawSharedRegion ring(server.socket->address());
  ASSERT_TRUE(ring.ask(Message::kRing));
  v1::Buffer buffer;
  auto done = std::async(std::launch::async, [&] {
    grpc::ClientContext context;
    return server.shared->WriteShared(&context, server.write_request(ring.text, 1000), &buffer);
  });
  ASSERT_EQ(ring.next().kind, Message::kBegin);
  fill_and_overwrite(staged, ring);
  ASSERT_TRUE(done.get().ok());
  server.expect_checks_of_what_is_there(buffer.name(), caller("127.0.0.1", false));
}

TEST_F(SharedMemoryAttacks, WithDoorbellsThatCannotBeAreClosed) {
  constexpr std::size_t kBytes = 3 * kSharedSlotBytes + 5;
  const Message wrong[] = {
      {.kind = Message::kFilled, .slot = kSharedSlots, .offset = 0, .bytes = kSharedSlotBytes},
      {.kind = Message::kFilled, .slot = 0xffffffff, .offset = 0, .bytes = kSharedSlotBytes},
      {.kind = Message::kFilled, .slot = 0, .offset = 1, .bytes = kSharedSlotBytes},
      {.kind = Message::kFilled, .slot = 0, .offset = 4 * kSharedSlotBytes, .bytes = kSharedSlotBytes},
      {.kind = Message::kFilled, .slot = 0, .offset = ~std::uint64_t{0} << 20, .bytes = kSharedSlotBytes},
      {.kind = Message::kFilled, .slot = 0, .offset = 0, .bytes = kSharedSlotBytes + 1},
      {.kind = Message::kFilled, .slot = 0, .offset = 0, .bytes = 5},
      {.kind = Message::kFilled, .slot = 0, .offset = 0, .bytes = 0},
      {.kind = Message::kFilled, .slot = 0, .offset = 0, .bytes = kSharedPieceBytes + 5},
      {.kind = Message::kFilled, .slot = 0, .offset = 5, .bytes = kSharedPieceBytes},
      {.kind = Message::kFilled, .slot = 0, .offset = 3 * kSharedSlotBytes, .bytes = kSharedSlotBytes},
      {.kind = Message::kFree, .slot = 0},
      {.kind = Message::kBegin},
      {.kind = Message::kRing},
      {.kind = 77},
  };
  for (const Message& message : wrong) {
    RawSharedRegion ring(server_.socket->address());
    ASSERT_TRUE(ring.ask(Message::kRing)) << ring.text;
    auto done = write(ring, kBytes);
    ASSERT_EQ(ring.next().kind, Message::kBegin);
    ring.send(message);
    expect_reason(done.get(), grpc::StatusCode::INVALID_ARGUMENT, "UNEXPECTED_DOORBELL");
    EXPECT_TRUE(ring.is_closed());
  }
  EXPECT_TRUE(server_.has_reclaimed_all());
  expect_service();
}

TEST_F(SharedMemoryAttacks, ThatBringAPieceTwiceAreClosed) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask(Message::kRing));
  const std::string data = random_bytes(4 * kSharedSlotBytes);
  auto done = write(ring, data.size());
  ASSERT_EQ(ring.next().kind, Message::kBegin);
  ring.fill(0, data, kSharedSlotBytes);
  ring.fill(1, data, kSharedSlotBytes);
  expect_reason(done.get(), grpc::StatusCode::INVALID_ARGUMENT, "UNEXPECTED_DOORBELL");
  EXPECT_TRUE(server_.has_reclaimed_all());
}

TEST_F(SharedMemoryAttacks, ThatBringAPartOfAPieceTwiceAreClosed) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask(Message::kRing));
  const std::string data = random_bytes(4 * kSharedSlotBytes);
  auto done = write(ring, data.size());
  ASSERT_EQ(ring.next().kind, Message::kBegin);
  ring.fill(0, data, 3 * kSharedPieceBytes, kSharedPieceBytes);
  ring.fill(1, data, kSharedPieceBytes);  // of which that is the third quarter
  expect_reason(done.get(), grpc::StatusCode::INVALID_ARGUMENT, "UNEXPECTED_DOORBELL");
  EXPECT_TRUE(server_.has_reclaimed_all());
}

TEST_F(SharedMemoryAttacks, ThatGiveASlotTwiceAreClosed) {
  auto device = staged_device();
  StagedDevice& staged = *device;
  SharedMemoryServer server(std::move(device));
  RawSharedRegion ring(server.socket->address());
  ASSERT_TRUE(ring.ask(Message::kRing));
  v1::Buffer buffer;
  auto done = std::async(std::launch::async, [&] {
    grpc::ClientContext context;
    return server.shared->WriteShared(&context, server.write_request(ring.text, 2 * kSharedSlotBytes),
                                      &buffer);
  });
  ASSERT_EQ(ring.next().kind, Message::kBegin);
  staged.hold();
  const std::string data = random_bytes(2 * kSharedSlotBytes);
  ring.fill(0, data, 0);
  ring.fill(0, data, kSharedSlotBytes);
  expect_reason(done.get(), grpc::StatusCode::INVALID_ARGUMENT, "UNEXPECTED_DOORBELL");
  staged.release();
  EXPECT_TRUE(server.has_reclaimed_all());
}

TEST_F(SharedMemoryAttacks, WithDoorbellsOutsideOfATransferAreClosed) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask(Message::kRing));
  ring.send({.kind = Message::kFilled, .slot = 0, .offset = 0, .bytes = 1});
  EXPECT_TRUE(ring.is_closed());
  EXPECT_TRUE(server_.has_reclaimed_all());
}

TEST_F(SharedMemoryAttacks, WithGarbageAreClosed) {
  for (const std::size_t size : {1, 23, 25, 4096, 100000}) {
    RawSharedRegion ring(server_.socket->address());
    const std::string garbage = random_bytes(size);
    ring.send_bytes(garbage.data(), garbage.size());
    EXPECT_FALSE(ring.take_answer());
    EXPECT_THAT(ring.text, HasSubstr("RING (1), ARRAY (2) or DEVICE (8)")) << size;
    EXPECT_TRUE(ring.is_closed());
  }
  EXPECT_TRUE(server_.has_reclaimed_all());
  expect_service();
}

/// A process that gets a ring, says its id, fills a slot when it may, and then waits for its end.
pid_t start_client(const std::string& address, int id_to) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  RawSharedRegion ring(address);
  if (!ring.ask(Message::kRing)) ::_exit(1);
  (void)!::write(id_to, ring.text.data(), ring.text.size());
  if (ring.next().kind != Message::kBegin) ::_exit(1);
  ring.fill(0, std::string(8 * kSharedSlotBytes, 'a'), 0);
  while (true) ::pause();
}

TEST_F(SharedMemoryAttacks, OfAKilledClientLeaveNothing) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t client = start_client(server_.socket->address(), pipe[1]);
  std::string id(32, '\0');
  ASSERT_EQ(::read(pipe[0], id.data(), id.size()), 32);
  auto done = std::async(std::launch::async, [&] {
    grpc::ClientContext context;
    return server_.shared->WriteShared(&context, server_.write_request(id, 8 * kSharedSlotBytes), &buffer_);
  });
  EXPECT_TRUE(eventually([&] { return server_.reserved_bytes() > 0; }));
  ASSERT_EQ(::kill(client, SIGKILL), 0);
  int status = 0;
  ::waitpid(client, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(done.get().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(server_.has_reclaimed_all());
  for (const int end : pipe) ::close(end);
}

TEST_F(SharedMemoryAttacks, ThatKeepDescriptorsKeepNoMemoryOfTheServers) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask(Message::kRing));
  std::memset(ring.memory(), 1, ring.bytes());
  ASSERT_EQ(ring.taken_bytes(), ring.bytes());
  ring.hang_up();
  EXPECT_TRUE(server_.has_reclaimed_all());
  EXPECT_EQ(ring.taken_bytes(), 0);
}

TEST_F(SharedMemoryAttacks, ThatHoldSlotsEndLikeAStalledTransfer) {
  server::Configuration settings = SharedMemoryServer::configuration();
  settings.limits.stalled_transfer = absl::Milliseconds(200);
  SharedMemoryServer server(host_device(), settings);
  RawSharedRegion ring(server.socket->address());
  ASSERT_TRUE(ring.ask(Message::kRing));
  v1::Buffer buffer;
  grpc::ClientContext context;
  const grpc::Status status =
      server.shared->WriteShared(&context, server.write_request(ring.text, 2 * kSharedSlotBytes), &buffer);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), HasSubstr("stalled_transfer"));
  EXPECT_TRUE(ring.next().kind == Message::kBegin && ring.is_closed());
  EXPECT_TRUE(server.has_reclaimed_all());
}

TEST_F(SharedMemoryAttacks, WithAnothersRegionFindNone) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask(Message::kRing));
  const server::Principal owner = caller("owner", true);
  EXPECT_TRUE(server_.socket->find(ring.text, owner).ok());
  EXPECT_EQ(server_.socket->find(ring.text, caller("other", true)).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(server_.socket->find(ring.text, caller("owner", false)).status().code(),
            absl::StatusCode::kNotFound);
  expect_reason(write(ring, 1).get(), grpc::StatusCode::NOT_FOUND, "REGION_NOT_FOUND");
  EXPECT_TRUE(server_.socket->find(ring.text, owner).ok());
}

TEST_F(SharedMemoryAttacks, ThatKeepAnArrayWritableAreRefused) {
  RawSharedRegion array(server_.socket->address());
  ASSERT_TRUE(array.ask(Message::kArray, 5000)) << array.text;
  std::memset(array.memory(), 'a', 5000);
  expect_reason(write(array, 5000).get(), grpc::StatusCode::FAILED_PRECONDITION, "REGION_WRITABLE");
  array.unmap();
  const grpc::Status status = write(array, 5000).get();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(::mmap(nullptr, 5000, PROT_READ | PROT_WRITE, MAP_SHARED, array.file(), 0), MAP_FAILED);
  EXPECT_EQ(::pwrite(array.file(), "b", 1, 0), -1);
  EXPECT_NE(::fallocate(array.file(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
  array.hang_up();
  EXPECT_EQ(server_.download(buffer_.name()), std::string(5000, 'a'));
}

TEST_F(SharedMemoryAttacks, ThatUploadMoreThanARegionHasAreRefused) {
  RawSharedRegion array(server_.socket->address());
  ASSERT_TRUE(array.ask(Message::kArray, 5000)) << array.text;
  array.unmap();
  expect_bad_field(write(array, 5001).get(), "region", "has 5000 bytes");
}

TEST_F(SharedMemoryAttacks, HaveAsManyRegionsAndBytesAsTheServerAllows) {
  server::Configuration settings = SharedMemoryServer::configuration();
  settings.shared_memory.max_regions_per_user = 2;
  settings.shared_memory.max_bytes_per_user = kSharedSlots * kSharedSlotBytes + 100;
  SharedMemoryServer server(host_device(), settings);
  {
    RawSharedRegion first(server.socket->address());
    ASSERT_TRUE(first.ask(Message::kRing)) << first.text;
    RawSharedRegion second(server.socket->address());
    EXPECT_FALSE(second.ask(Message::kArray, 101));
    EXPECT_THAT(second.text, HasSubstr("max_bytes_per_user"));
    RawSharedRegion third(server.socket->address());
    ASSERT_TRUE(third.ask(Message::kArray, 100)) << third.text;
    RawSharedRegion fourth(server.socket->address());
    EXPECT_FALSE(fourth.ask(Message::kArray, 1));
    EXPECT_THAT(fourth.text, HasSubstr("max_regions_per_user"));
  }
  EXPECT_TRUE(server.has_reclaimed_all());
}

}  // namespace
}  // namespace cumulus::testing
