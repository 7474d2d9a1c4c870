// Transfers that clients ask for on their regions' connections, and what hostile clients can do there.
#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <future>
#include <memory>
#include <string>

#include "google/rpc/status.pb.h"
#include "tests/support/raw_shared_region.h"
#include "tests/support/shared_memory_server.h"
#include "tests/support/status_details.h"

namespace cumulus::testing {
namespace {

using Message = SharedMemoryMessage;
using ::testing::HasSubstr;

constexpr std::uint64_t kLong = 10'000'000'000;  // nanoseconds

class RegionCalls : public ::testing::Test {
 protected:
  /// Through a ring, by gRPC: then the server knows whose it is.
  void make_known(const RawSharedRegion& ring) {
    auto done = std::async(std::launch::async, [this, request = server_.write_request(ring.text, 1000)] {
      grpc::ClientContext context;
      v1::Buffer buffer;
      return server_.shared->WriteShared(&context, request, &buffer);
    });
    ASSERT_EQ(ring.next().kind, Message::kBegin);
    ring.fill(0, std::string(1000, 'k'), 0);
    ASSERT_EQ(ring.next().kind, Message::kFree);
    ASSERT_TRUE(done.get().ok());
  }
  std::string write_text(std::size_t bytes) const {
    return server_.write_request("", bytes).SerializeAsString();
  }
  static void call(const RawSharedRegion& region, SharedMemoryCall what, const std::string& text,
                   std::uint64_t nanoseconds = kLong) {
    region.send({.kind = Message::kCall, .slot = static_cast<std::uint32_t>(what), .offset = nanoseconds},
                text);
  }
  static google::rpc::Status details_of(const RawSharedRegion::Answer& answer) {
    google::rpc::Status details;
    EXPECT_TRUE(details.ParseFromString(answer.text));
    return details;
  }
  /// A client that behaves gets its array through, there and back.
  void expect_service(const RawSharedRegion& ring) {
    const std::string data = random_bytes(2 * kSharedSlotBytes + 5);
    call(ring, SharedMemoryCall::kWrite, write_text(data.size()));
    ASSERT_EQ(ring.next().kind, Message::kBegin);
    for (std::uint32_t slot = 0; slot < 3; ++slot) ring.fill(slot, data, slot * kSharedSlotBytes);
    const RawSharedRegion::Answer answer = ring.answer();
    ASSERT_EQ(answer.code, 0U);
    v1::Buffer buffer;
    ASSERT_TRUE(buffer.ParseFromString(answer.text));
    EXPECT_EQ(server_.download(buffer.name()), data);
    v1::ReadSharedRequest request;
    request.set_name(buffer.name());
    call(ring, SharedMemoryCall::kRead, request.SerializeAsString());
    ASSERT_EQ(ring.next().kind, Message::kBegin);
    for (std::uint32_t slot = 0; slot < 3; ++slot) ring.send({.kind = Message::kFree, .slot = slot});
    EXPECT_EQ(ring.answer().code, 0U);
    EXPECT_EQ(std::string(ring.memory(), data.size()), data);
  }

  /// Whether a drain that waits so long sees all end.
  bool all_ends_within(absl::Duration limit) const {
    const absl::Time start = absl::Now();
    server_.calls->wait_for_none(limit);
    return absl::Now() - start < limit;
  }

  SharedMemoryServer server_{host_device()};
};

TEST_F(RegionCalls, BringArraysThereAndBackAgainAndAgain) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask_to_call(Message::kRing)) << ring.text;
  EXPECT_EQ(ring.said, kRegionTakesCalls);
  make_known(ring);
  for (int i = 0; i < 3; ++i) expect_service(ring);
}

TEST_F(RegionCalls, AreWaitedForByADrain) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask_to_call(Message::kRing)) << ring.text;
  make_known(ring);
  EXPECT_TRUE(all_ends_within(absl::Seconds(10)));
  call(ring, SharedMemoryCall::kWrite, write_text(1000));
  ASSERT_EQ(ring.next().kind, Message::kBegin);
  EXPECT_FALSE(all_ends_within(absl::Milliseconds(50)));
  ring.fill(0, std::string(1000, 'd'), 0);
  EXPECT_EQ(ring.answer().code, 0U);
  EXPECT_TRUE(all_ends_within(absl::Seconds(10)));
}

TEST_F(RegionCalls, MayBeOnARegionLikeOneThatIsKnown) {
  RawSharedRegion first(server_.socket->address());
  ASSERT_TRUE(first.ask_to_call(Message::kRing)) << first.text;
  make_known(first);
  RawSharedRegion second(server_.socket->address());
  ASSERT_TRUE(second.ask_to_call(Message::kRing, 0, first.text)) << second.text;
  EXPECT_EQ(second.said, kRegionTakesCalls | kRegionIsKnown);
  expect_service(second);
  RawSharedRegion array(server_.socket->address());
  ASSERT_TRUE(array.ask_to_call(Message::kArray, 5000, second.text)) << array.text;
  EXPECT_EQ(array.said, kRegionIsTaken | kRegionTakesCalls | kRegionIsKnown);
  std::memset(array.memory(), 'a', 5000);
  array.unmap();
  call(array, SharedMemoryCall::kWrite, write_text(5000));
  const RawSharedRegion::Answer answer = array.answer();
  v1::Buffer buffer;
  ASSERT_TRUE(answer.code == 0 && buffer.ParseFromString(answer.text));
  EXPECT_EQ(server_.download(buffer.name()), std::string(5000, 'a'));
}

TEST_F(RegionCalls, ThatAreRefusedSayWhyAndLeaveTheRegion) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask_to_call(Message::kRing)) << ring.text;
  make_known(ring);
  v1::ReadSharedRequest request;
  request.set_name(server_.session + "/buffers/none");
  call(ring, SharedMemoryCall::kRead, request.SerializeAsString());
  const RawSharedRegion::Answer answer = ring.answer();
  EXPECT_EQ(answer.code, static_cast<std::uint32_t>(grpc::StatusCode::NOT_FOUND));
  const google::rpc::Status details = details_of(answer);
  EXPECT_THAT(details.message(), HasSubstr("ReadShared"));
  EXPECT_GT(details.details_size(), 0);
  expect_service(ring);
}

TEST_F(RegionCalls, EndWithTheirDeadlineAndTheirRing) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask_to_call(Message::kRing)) << ring.text;
  make_known(ring);
  call(ring, SharedMemoryCall::kWrite, write_text(1000), 1'000'000);
  EXPECT_EQ(ring.answer().code, static_cast<std::uint32_t>(grpc::StatusCode::DEADLINE_EXCEEDED));
  EXPECT_TRUE(ring.is_closed());
}

TEST_F(RegionCalls, ThatAreCancelledAreAnswered) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask_to_call(Message::kRing)) << ring.text;
  make_known(ring);
  call(ring, SharedMemoryCall::kWrite, write_text(1000));
  ring.send({.kind = Message::kCancel});
  EXPECT_EQ(ring.answer().code, static_cast<std::uint32_t>(grpc::StatusCode::CANCELLED));
  EXPECT_TRUE(ring.is_closed()) << "the client might have begun to fill slots";
}

TEST_F(RegionCalls, CountAgainstTheLimitsOfTransfers) {
  server::Configuration settings = SharedMemoryServer::configuration();
  settings.limits.max_buffer_bytes = 2000;
  SharedMemoryServer server(host_device(), settings);
  RawSharedRegion ring(server.socket->address());
  ASSERT_TRUE(ring.ask_to_call(Message::kRing)) << ring.text;
  server::Principal caller;
  caller.name = "127.0.0.1";
  ASSERT_TRUE(server.socket->find(ring.text, caller).ok());
  call(ring, SharedMemoryCall::kWrite, server.write_request("", 2001).SerializeAsString());
  EXPECT_EQ(ring.answer().code, static_cast<std::uint32_t>(grpc::StatusCode::RESOURCE_EXHAUSTED));
}

using RegionCallAttacks = RegionCalls;

TEST_F(RegionCallAttacks, BeforeTheRegionIsAnybodysAreClosed) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask_to_call(Message::kRing)) << ring.text;
  call(ring, SharedMemoryCall::kWrite, write_text(1000));
  EXPECT_TRUE(ring.is_closed());
  EXPECT_TRUE(server_.has_reclaimed_all());
}

TEST_F(RegionCallAttacks, OfWhoDidNotTellOfThemAreClosed) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask(Message::kRing)) << ring.text;
  make_known(ring);
  call(ring, SharedMemoryCall::kWrite, write_text(1000));
  EXPECT_TRUE(ring.is_closed());
}

TEST_F(RegionCallAttacks, LikeARegionThatIsNotThereAreNobodys) {
  RawSharedRegion unknown(server_.socket->address());
  ASSERT_TRUE(unknown.ask_to_call(Message::kRing)) << unknown.text;
  for (const std::string& like :
       {std::string(32, '0'), std::string(kMaxSharedMemoryCall, 'x'), unknown.text}) {
    RawSharedRegion ring(server_.socket->address());
    ASSERT_TRUE(ring.ask_to_call(Message::kRing, 0, like)) << ring.text;
    EXPECT_EQ(ring.said, kRegionTakesCalls);
    call(ring, SharedMemoryCall::kWrite, write_text(1000));
    EXPECT_TRUE(ring.is_closed());
  }
}

TEST_F(RegionCallAttacks, ByWhoShowsATokenAreClosed) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask_to_call(Message::kRing)) << ring.text;
  server::Principal caller;
  caller.name = "renderer";
  caller.proven = true;
  ASSERT_TRUE(server_.socket->find(ring.text, caller).ok());
  call(ring, SharedMemoryCall::kWrite, write_text(1000));
  EXPECT_TRUE(ring.is_closed());
}

TEST_F(RegionCallAttacks, OfGarbageAreClosed) {
  v1::WriteSharedRequest with_region = server_.write_request("another", 1000);
  const std::string texts[] = {std::string(1, '\xff'), random_bytes(kMaxSharedMemoryCall),
                               std::string(kMaxSharedMemoryCall + 1, 'a'), with_region.SerializeAsString()};
  for (const std::string& text : texts) {
    RawSharedRegion ring(server_.socket->address());
    ASSERT_TRUE(ring.ask_to_call(Message::kRing)) << ring.text;
    make_known(ring);
    call(ring, SharedMemoryCall::kWrite, text);
    EXPECT_TRUE(ring.is_closed());
  }
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask_to_call(Message::kRing)) << ring.text;
  make_known(ring);
  call(ring, static_cast<SharedMemoryCall>(2), write_text(1000));
  EXPECT_TRUE(ring.is_closed());
}

TEST_F(RegionCallAttacks, WhileATransferUsesTheRegionCloseIt) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask_to_call(Message::kRing)) << ring.text;
  make_known(ring);
  call(ring, SharedMemoryCall::kWrite, write_text(1000));
  ASSERT_EQ(ring.next().kind, Message::kBegin);
  call(ring, SharedMemoryCall::kWrite, write_text(1000));
  EXPECT_TRUE(ring.is_closed());
  EXPECT_TRUE(eventually([&] { return server_.socket->shares().regions() == 0; }));
}

TEST_F(RegionCallAttacks, ThatHangUpInTheMiddleLeaveNothing) {
  for (const bool begun : {false, true}) {
    RawSharedRegion ring(server_.socket->address());
    ASSERT_TRUE(ring.ask_to_call(Message::kRing)) << ring.text;
    make_known(ring);
    call(ring, SharedMemoryCall::kWrite, write_text(4 * kSharedSlotBytes));
    if (begun) {
      ASSERT_EQ(ring.next().kind, Message::kBegin);
    }
    ring.hang_up();
    EXPECT_TRUE(eventually([&] { return server_.socket->shares().regions() == 0; }));
  }
}

/// What requests are checked by has to be what kernels then read.
TEST(RegionCallAttacksOnADevice, ThatWriteBeforeTheCopyAreSeenByTheChecksToo) {
  auto device = staged_device();
  StagedDevice& staged = *device;
  SharedMemoryServer server(std::move(device));
  RawSharedRegion ring(server.socket->address());
  ASSERT_TRUE(ring.ask_to_call(Message::kRing)) << ring.text;
  server::Principal caller;
  caller.name = "127.0.0.1";
  ASSERT_TRUE(server.socket->find(ring.text, caller).ok());
  ring.send({.kind = Message::kCall, .offset = kLong}, server.write_request("", 1000).SerializeAsString());
  ASSERT_EQ(ring.next().kind, Message::kBegin);
  fill_and_overwrite(staged, ring);
  const RawSharedRegion::Answer answer = ring.answer();
  v1::Buffer buffer;
  ASSERT_TRUE(answer.code == 0 && buffer.ParseFromString(answer.text));
  server.expect_checks_of_what_is_there(buffer.name(), caller);
}

}  // namespace
}  // namespace cumulus::testing
