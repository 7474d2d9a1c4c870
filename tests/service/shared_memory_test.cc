// Transfers through shared memory, as the protocol has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
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

/// An upload through a ring, with its call on a thread of its own.
class RingWrite {
 public:
  RingWrite(const SharedMemoryServer& server, const std::string& region, std::size_t bytes)
      : done_(std::async(std::launch::async, [this, &server, request = server.write_request(region, bytes)] {
          return server.shared->WriteShared(&context, request, &buffer);
        })) {}

  grpc::Status finish() { return done_.get(); }

  grpc::ClientContext context;
  v1::Buffer buffer;

 private:
  std::future<grpc::Status> done_;
};

/// Fills every slot in turn, as it comes free.
void fill_all(const RawSharedRegion& ring, const std::string& data) {
  if (data.empty()) return;
  ASSERT_EQ(ring.next().kind, Message::kBegin);
  std::uint32_t fresh = 0;
  std::size_t out = 0;
  for (std::size_t offset = 0; offset < data.size(); offset += kSharedSlotBytes, ++out) {
    std::uint32_t slot = fresh++;
    if (slot >= kSharedSlots) {
      const Message message = ring.next();
      ASSERT_EQ(message.kind, Message::kFree);
      slot = message.slot;
      --out;
    }
    ring.fill(slot, data, offset);
  }
  for (; out > 0; --out) ASSERT_EQ(ring.next().kind, Message::kFree);
}

std::string read_all(const SharedMemoryServer& server, const RawSharedRegion& ring, const std::string& name,
                     std::size_t bytes) {
  v1::ReadSharedRequest request;
  request.set_name(name);
  request.set_region(ring.text);
  grpc::ClientContext context;
  auto done = std::async(std::launch::async, [&] {
    v1::ReadSharedResponse response;
    return server.shared->ReadShared(&context, request, &response);
  });
  std::string data(bytes, '\0');
  const std::size_t pieces = (bytes + kSharedSlotBytes - 1) / kSharedSlotBytes;
  if (pieces > 0) {
    EXPECT_EQ(ring.next().kind, Message::kBegin);
  }
  std::size_t given = 0;
  for (; given < std::min<std::size_t>(pieces, kSharedSlots); ++given)
    ring.send({.kind = Message::kFree, .slot = static_cast<std::uint32_t>(given)});
  for (std::size_t i = 0; i < pieces; ++i) {
    const Message piece = ring.next();
    if (piece.kind != Message::kFilled || piece.offset + piece.bytes > bytes) break;
    std::memcpy(data.data() + piece.offset, ring.slot(piece.slot), piece.bytes);
    if (given++ < pieces) ring.send({.kind = Message::kFree, .slot = piece.slot});
  }
  const grpc::Status status = done.get();
  EXPECT_TRUE(status.ok()) << status.error_message();
  return data;
}

class SharedRings : public ::testing::TestWithParam<std::string> {
 protected:
  SharedMemoryServer server_{device_of(GetParam())};
};

TEST_P(SharedRings, MoveArraysOfAnySizeOneAfterAnother) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask(Message::kRing)) << ring.text;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, kSharedSlotBytes - 1, kSharedSlotBytes, kSharedSlotBytes + 1,
        kSharedSlots * kSharedSlotBytes, kSharedSlots * kSharedSlotBytes + 1, 40 * kSharedSlotBytes + 77}) {
    const std::string data = random_bytes(size);
    RingWrite write(server_, ring.text, size);
    fill_all(ring, data);
    const grpc::Status status = write.finish();
    ASSERT_TRUE(status.ok()) << size << " bytes: " << status.error_message();
    EXPECT_EQ(server_.download(write.buffer.name()), data) << size << " bytes";
    EXPECT_EQ(read_all(server_, ring, write.buffer.name(), size), data) << size << " bytes";
  }
}

TEST_P(SharedRings, TakePiecesInAnyOrder) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask(Message::kRing));
  const std::string data = random_bytes(2 * kSharedSlotBytes + 5);
  RingWrite write(server_, ring.text, data.size());
  ASSERT_EQ(ring.next().kind, Message::kBegin);
  for (const std::size_t piece : {2, 0, 1})
    ring.fill(static_cast<std::uint32_t>(3 + piece), data, piece * kSharedSlotBytes);
  ASSERT_TRUE(write.finish().ok());
  EXPECT_EQ(server_.download(write.buffer.name()), data);
}

TEST_P(SharedRings, TakeQuartersOfSlotsAndSeveralInARow) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask(Message::kRing));
  const std::string data = random_bytes(2 * kSharedSlotBytes + 5);
  RingWrite write(server_, ring.text, data.size());
  ASSERT_EQ(ring.next().kind, Message::kBegin);
  ring.fill(7, data, 7 * kSharedPieceBytes);  // to the end
  ring.fill(0, data, 0, kSharedPieceBytes);
  ring.fill(1, data, kSharedPieceBytes, 3 * kSharedPieceBytes);
  ring.fill(2, data, 4 * kSharedPieceBytes, 2 * kSharedPieceBytes);
  ring.fill(3, data, 6 * kSharedPieceBytes, kSharedPieceBytes);
  ASSERT_TRUE(write.finish().ok());
  EXPECT_EQ(server_.download(write.buffer.name()), data);
}

TEST_P(SharedRings, LeaveNothingOfACancelledTransfer) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask(Message::kRing));
  RingWrite write(server_, ring.text, 8 * kSharedSlotBytes);
  ASSERT_EQ(ring.next().kind, Message::kBegin);
  ring.fill(0, random_bytes(8 * kSharedSlotBytes), 0);
  write.context.TryCancel();
  EXPECT_EQ(write.finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(ring.is_closed());
  EXPECT_TRUE(server_.has_reclaimed_all());
}

TEST_P(SharedRings, EndWithTheirDeadline) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask(Message::kRing));
  v1::Buffer buffer;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(300));
  const grpc::Status status =
      server_.shared->WriteShared(&context, server_.write_request(ring.text, 8 * kSharedSlotBytes), &buffer);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(server_.has_reclaimed_all());
}

TEST_P(SharedRings, OfAClientThatHangsUpAreReclaimedWithTheirTransfer) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask(Message::kRing));
  RingWrite write(server_, ring.text, 8 * kSharedSlotBytes);
  ASSERT_EQ(ring.next().kind, Message::kBegin);
  ring.fill(0, random_bytes(8 * kSharedSlotBytes), 0);
  ring.hang_up();
  EXPECT_EQ(write.finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(server_.has_reclaimed_all());
}

TEST_P(SharedRings, HaveOneTransferAtATime) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask(Message::kRing));
  const std::string data = random_bytes(100);
  RingWrite write(server_, ring.text, data.size());
  ASSERT_EQ(ring.next().kind, Message::kBegin);
  expect_reason(RingWrite(server_, ring.text, 50).finish(), grpc::StatusCode::FAILED_PRECONDITION,
                "REGION_BUSY");
  ring.fill(0, data, 0);
  ASSERT_TRUE(write.finish().ok());
  EXPECT_EQ(server_.download(write.buffer.name()), data);
}

TEST_P(SharedRings, CountAgainstTheLimitsOfTransfers) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask(Message::kRing));
  const grpc::Status status = RingWrite(server_, ring.text, 2 * TransferServer::kBudget).finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("max_buffer_bytes"));
  // It had not begun: the ring is as it was.
  const std::string data = random_bytes(7);
  RingWrite write(server_, ring.text, data.size());
  fill_all(ring, data);
  EXPECT_TRUE(write.finish().ok());
}

INSTANTIATE_TEST_SUITE_P(Devices, SharedRings, ::testing::Values("host", "staged"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace cumulus::testing
