// What hostile clients can do with transfers that they ask for on their regions' connections.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "tests/service/region_calls_fixture.h"

namespace cumulus::testing {
namespace {

using Message = SharedMemoryMessage;
using RegionCallAttacks = RegionCallsFixture;

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
    EXPECT_EQ(ring.said, kTakes);
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
    open_known(ring);
    call(ring, SharedMemoryCall::kWrite, text);
    EXPECT_TRUE(ring.is_closed());
  }
  RawSharedRegion ring(server_.socket->address());
  open_known(ring);
  call(ring, static_cast<SharedMemoryCall>(4), write_text(1000));
  EXPECT_TRUE(ring.is_closed());
}

TEST_F(RegionCallAttacks, WhileATransferUsesTheRegionCloseIt) {
  RawSharedRegion ring(server_.socket->address());
  open_known(ring);
  call(ring, SharedMemoryCall::kWrite, write_text(1000));
  ASSERT_EQ(ring.next().kind, Message::kBegin);
  call(ring, SharedMemoryCall::kWrite, write_text(1000));
  EXPECT_TRUE(ring.is_closed());
  EXPECT_TRUE(eventually([&] { return server_.socket->shares().regions() == 0; }));
}

TEST_F(RegionCallAttacks, ThatHangUpInTheMiddleLeaveNothing) {
  for (const bool begun : {false, true}) {
    RawSharedRegion ring(server_.socket->address());
    open_known(ring);
    call(ring, SharedMemoryCall::kWrite, write_text(4 * kSharedSlotBytes));
    if (begun) {
      ASSERT_EQ(ring.next().kind, Message::kBegin);
    }
    ring.hang_up();
    EXPECT_TRUE(eventually([&] { return server_.socket->shares().regions() == 0; }));
  }
}

TEST_F(RegionCallAttacks, ThatGiveAndHangUpLeaveNothing) {
  RawSharedRegion first(server_.socket->address());
  open_known(first);
  const std::string name = upload(first, random_bytes(4 * kSharedSlotBytes));
  for (int i = 0; i < 8; ++i) {
    RawSharedRegion ring(server_.socket->address());
    ASSERT_TRUE(ring.ask_to_call(Message::kRing, 0, first.text)) << ring.text;
    call(ring, SharedMemoryCall::kReadGiven, read_text(name));
    ring.hang_up();
  }
  first.hang_up();
  EXPECT_TRUE(eventually([&] { return server_.socket->shares().regions() == 0; }));
}

TEST_F(RegionCallAttacks, ThatGiveAgainWhatTheyGaveAreClosed) {
  RawSharedRegion ring(server_.socket->address());
  open_known(ring);
  const std::string name = upload(ring, random_bytes(4 * kSharedSlotBytes));
  call(ring, SharedMemoryCall::kReadGiven, read_text(name));
  for (int i = 0; i < 5; ++i) ring.send({.kind = Message::kFree, .slot = 0});
  EXPECT_TRUE(ring.is_closed());
  EXPECT_TRUE(eventually([&] { return server_.socket->shares().regions() == 0; }));
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
  ring.send({.kind = Message::kCall, .offset = 10'000'000'000},
            server.write_request("", 1000).SerializeAsString());
  ASSERT_EQ(ring.next().kind, Message::kBegin);
  fill_and_overwrite(staged, ring);
  const RawSharedRegion::Answer answer = ring.answer();
  v1::Buffer buffer;
  ASSERT_TRUE(answer.code == 0 && buffer.ParseFromString(answer.text));
  server.expect_checks_of_what_is_there(buffer.name(), caller);
}

}  // namespace
}  // namespace cumulus::testing
