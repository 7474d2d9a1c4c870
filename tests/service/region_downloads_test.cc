// Downloads into an array's region, as the protocol has them, and what a hostile client can do with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "tests/support/raw_shared_region.h"
#include "tests/support/shared_memory_server.h"
#include "tests/support/status_details.h"

namespace cumulus::testing {
namespace {

using Message = SharedMemoryMessage;

/// A server with a buffer of random bytes.
class Served {
 public:
  Served(std::unique_ptr<server::Device> device, std::size_t bytes)
      : server(std::move(device)), data(random_bytes(bytes)) {
    RawSharedRegion array(server.socket->address());
    EXPECT_TRUE(array.ask(Message::kArray, bytes)) << array.text;
    std::memcpy(array.memory(), data.data(), bytes);
    array.unmap();
    v1::Buffer buffer;
    grpc::ClientContext context;
    const grpc::Status status =
        server.shared->WriteShared(&context, server.write_request(array.text, bytes), &buffer);
    EXPECT_TRUE(status.ok()) << status.error_message();
    name = buffer.name();
  }

  std::future<grpc::Status> read(const RawSharedRegion& region, std::int64_t offset = 0) {
    v1::ReadSharedRequest request;
    request.set_name(name);
    request.set_region(region.text);
    request.set_read_offset(offset);
    return std::async(std::launch::async, [this, request] {
      grpc::ClientContext context;
      v1::ReadSharedResponse response;
      return server.shared->ReadShared(&context, request, &response);
    });
  }

  SharedMemoryServer server;
  const std::string data;
  std::string name;
};

class RegionDownloads : public ::testing::TestWithParam<std::string> {};

TEST_P(RegionDownloads, SayTheirPiecesInOrderAndNoMoreThanASocketHolds) {
  constexpr std::size_t kBytes = 65 * kSharedSlotBytes + 5;
  constexpr std::size_t kOffset = 3;
  Served served(device_of(GetParam()), kBytes);
  RawSharedRegion array(served.server.socket->address());
  ASSERT_TRUE(array.ask(Message::kArray, kBytes)) << array.text;
  auto done = served.read(array, kOffset);
  ASSERT_EQ(array.next().kind, Message::kBegin);
  array.send({.kind = Message::kFree});
  const grpc::Status status = done.get();  // without having taken a message
  ASSERT_TRUE(status.ok()) << status.error_message();
  int pieces = 0;
  for (std::size_t offset = kOffset; offset < kBytes; ++pieces) {
    const Message piece = array.next();
    ASSERT_EQ(piece.kind, Message::kFilled);
    ASSERT_EQ(piece.offset, offset);
    offset += piece.bytes;
  }
  EXPECT_LE(pieces, 64);
  EXPECT_EQ(std::memcmp(array.memory(), served.data.data() + kOffset, kBytes - kOffset), 0);
}

TEST_P(RegionDownloads, OfMoreThanARegionHasAreRefused) {
  Served served(device_of(GetParam()), 5001);
  RawSharedRegion array(served.server.socket->address());
  ASSERT_TRUE(array.ask(Message::kArray, 5000)) << array.text;
  expect_bad_field(served.read(array).get(), "region", "has 5000 bytes");
  auto rest = served.read(array, 1);
  ASSERT_EQ(array.next().kind, Message::kBegin);
  array.send({.kind = Message::kFree});
  EXPECT_TRUE(rest.get().ok());
}

TEST_P(RegionDownloads, OfAClientThatHangsUpAreReclaimed) {
  Served served(device_of(GetParam()), 2 * kSharedSlotBytes);
  RawSharedRegion array(served.server.socket->address());
  ASSERT_TRUE(array.ask(Message::kArray, 2 * kSharedSlotBytes)) << array.text;
  auto done = served.read(array);
  ASSERT_EQ(array.next().kind, Message::kBegin);
  array.hang_up();
  EXPECT_EQ(done.get().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(eventually([&] { return served.server.socket->shares().regions() == 0; }));
}

TEST_P(RegionDownloads, OfAClientThatWritesAndTruncatesMeanwhileHarmNobody) {
  constexpr std::size_t kBytes = 16 * kSharedSlotBytes;
  Served served(device_of(GetParam()), kBytes);
  RawSharedRegion array(served.server.socket->address());
  ASSERT_TRUE(array.ask(Message::kArray, kBytes)) << array.text;
  std::atomic<bool> stop = false;
  bool truncated = false;
  std::thread meddler([&] {
    while (!stop) {
      truncated = truncated || ::ftruncate(array.file(), 0) == 0;
      std::memset(array.memory(), 1, kBytes);
    }
  });
  for (int round = 0; round < 3; ++round) {
    auto done = served.read(array);
    EXPECT_EQ(array.next().kind, Message::kBegin);
    array.send({.kind = Message::kFree});
    for (std::size_t came = 0; came < kBytes;) {
      const Message piece = array.next();
      if (piece.kind != Message::kFilled) break;
      came += piece.bytes;
    }
    EXPECT_TRUE(done.get().ok());
  }
  stop = true;
  meddler.join();
  EXPECT_FALSE(truncated);
  EXPECT_TRUE(served.server.download(served.name) == served.data);
}

INSTANTIATE_TEST_SUITE_P(Devices, RegionDownloads, ::testing::Values("host", "staged"),
                         [](const auto& param) { return param.param; });

TEST(RegionDownloadAttacks, WithDoorbellsThatCannotBeAreClosed) {
  const Message wrong[] = {{.kind = Message::kFree, .slot = 1},
                           {.kind = Message::kFilled, .slot = 0, .offset = 0, .bytes = 1},
                           {.kind = 77}};
  Served served(host_device(), kSharedSlotBytes);
  for (const Message& message : wrong) {
    RawSharedRegion array(served.server.socket->address());
    ASSERT_TRUE(array.ask(Message::kArray, kSharedSlotBytes)) << array.text;
    auto done = served.read(array);
    ASSERT_EQ(array.next().kind, Message::kBegin);
    array.send(message);
    expect_reason(done.get(), grpc::StatusCode::INVALID_ARGUMENT, "UNEXPECTED_DOORBELL");
    EXPECT_TRUE(array.is_closed());
  }
}

TEST(RegionDownloadAttacks, ThatGiveTheRegionTwiceAreClosed) {
  auto device = staged_device();
  StagedDevice& staged = *device;
  Served served(std::move(device), kSharedSlotBytes);
  RawSharedRegion array(served.server.socket->address());
  ASSERT_TRUE(array.ask(Message::kArray, kSharedSlotBytes)) << array.text;
  staged.hold();
  auto done = served.read(array);
  ASSERT_EQ(array.next().kind, Message::kBegin);
  array.send({.kind = Message::kFree});
  array.send({.kind = Message::kFree});
  expect_reason(done.get(), grpc::StatusCode::INVALID_ARGUMENT, "UNEXPECTED_DOORBELL");
  staged.release();
}

TEST(RegionDownloadAttacks, ThatSealTheRegionAreRefused) {
  Served served(host_device(), kSharedSlotBytes);
  RawSharedRegion array(served.server.socket->address());
  ASSERT_TRUE(array.ask(Message::kArray, kSharedSlotBytes)) << array.text;
  array.unmap();
  ASSERT_EQ(::fcntl(array.file(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  auto done = served.read(array);
  ASSERT_EQ(array.next().kind, Message::kBegin);
  array.send({.kind = Message::kFree});
  expect_reason(done.get(), grpc::StatusCode::FAILED_PRECONDITION, "REGION_SEALED");
  EXPECT_TRUE(array.is_closed());
}

TEST(RegionDownloadAttacks, ThatPunchHolesMeanwhileGainNothing) {
  Served served(host_device(), 32 * kSharedSlotBytes);
  RawSharedRegion array(served.server.socket->address());
  ASSERT_TRUE(array.ask(Message::kArray, 32 * kSharedSlotBytes)) << array.text;
  std::atomic<bool> stop = false;
  std::thread puncher([&] {
    while (!stop) {
      (void)::fallocate(array.file(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                        static_cast<off_t>(array.bytes()));
    }
  });
  auto done = served.read(array);
  EXPECT_EQ(array.next().kind, Message::kBegin);
  array.send({.kind = Message::kFree});
  EXPECT_TRUE(done.get().ok());
  stop = true;
  puncher.join();
  EXPECT_EQ(served.server.download(served.name), served.data);
}

TEST(RegionDownloadAttacks, AfterAnUploadTookTheRegionChangeNoBuffer) {
  Served served(host_device(), kSharedSlotBytes);
  RawSharedRegion array(served.server.socket->address());
  ASSERT_TRUE(array.ask(Message::kArray, kSharedSlotBytes)) << array.text;
  array.unmap();
  v1::Buffer buffer;
  grpc::ClientContext context;
  ASSERT_TRUE(served.server.shared
                  ->WriteShared(&context, served.server.write_request(array.text, kSharedSlotBytes), &buffer)
                  .ok());
  auto done = served.read(array);
  ASSERT_EQ(array.next().kind, Message::kBegin);
  array.send({.kind = Message::kFree});
  expect_reason(done.get(), grpc::StatusCode::FAILED_PRECONDITION, "REGION_SEALED");
  EXPECT_EQ(served.server.download(buffer.name()), std::string(kSharedSlotBytes, '\0'));
}

}  // namespace
}  // namespace cumulus::testing
