// Transfers that clients ask for on their regions' connections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "google/rpc/status.pb.h"
#include "tests/service/region_calls_fixture.h"
#include "tests/support/status_details.h"

namespace cumulus::testing {
namespace {

using ::testing::HasSubstr;

using RegionCalls = RegionCallsFixture;

TEST_F(RegionCalls, BringArraysThereAndBackAgainAndAgain) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask_to_call(Message::kRing)) << ring.text;
  EXPECT_EQ(ring.said, kTakes);
  make_known(ring);
  for (int i = 0; i < 3; ++i) expect_service(ring);
}

TEST_F(RegionCalls, MayBeToldOfByAKnockAtAnyTime) {
  RawSharedRegion ring(server_.socket->address());
  ASSERT_TRUE(ring.ask_to_call(Message::kRing)) << ring.text;
  ring.send({.kind = Message::kKnock});  // whose it is, is not known
  make_known(ring);
  ring.send({.kind = Message::kKnock});
  ring.send({.kind = Message::kKnock});
  call(ring, SharedMemoryCall::kWrite, write_text(1000));
  ASSERT_EQ(ring.next().kind, Message::kBegin);
  ring.send({.kind = Message::kKnock});
  ring.fill(0, std::string(1000, 'k'), 0);
  EXPECT_EQ(ring.answer().code, 0U);
  expect_service(ring);
}

TEST_F(RegionCalls, AreWaitedForByADrain) {
  RawSharedRegion ring(server_.socket->address());
  open_known(ring);
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
  open_known(first);
  RawSharedRegion second(server_.socket->address());
  ASSERT_TRUE(second.ask_to_call(Message::kRing, 0, first.text)) << second.text;
  EXPECT_EQ(second.said, kTakes | kRegionIsKnown);
  expect_service(second);
  RawSharedRegion array(server_.socket->address());
  ASSERT_TRUE(array.ask_to_call(Message::kArray, 5000, second.text)) << array.text;
  EXPECT_EQ(array.said, kRegionIsTaken | kTakes | kRegionIsKnown);
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
  open_known(ring);
  call(ring, SharedMemoryCall::kRead, read_text(server_.session + "/buffers/none"));
  const RawSharedRegion::Answer answer = ring.answer();
  EXPECT_EQ(answer.code, static_cast<std::uint32_t>(grpc::StatusCode::NOT_FOUND));
  EXPECT_TRUE(answer.of_nothing);
  const google::rpc::Status details = details_of(answer);
  EXPECT_THAT(details.message(), HasSubstr("ReadShared"));
  EXPECT_GT(details.details_size(), 0);
  expect_service(ring);
}

TEST_F(RegionCalls, EndWithTheirDeadlineAndTheirRing) {
  RawSharedRegion ring(server_.socket->address());
  open_known(ring);
  call(ring, SharedMemoryCall::kWrite, write_text(1000), 1'000'000);
  EXPECT_EQ(ring.answer().code, static_cast<std::uint32_t>(grpc::StatusCode::DEADLINE_EXCEEDED));
  EXPECT_TRUE(ring.is_closed());
}

TEST_F(RegionCalls, ThatAreCancelledAreAnswered) {
  RawSharedRegion ring(server_.socket->address());
  open_known(ring);
  call(ring, SharedMemoryCall::kWrite, write_text(1000));
  ring.send({.kind = Message::kCancel});
  EXPECT_EQ(ring.answer().code, static_cast<std::uint32_t>(grpc::StatusCode::CANCELLED));
  EXPECT_TRUE(ring.is_closed()) << "the client might have begun to fill slots";
}

TEST_F(RegionCalls, ThatGiveTheirSlotsNeedNoBegin) {
  RawSharedRegion ring(server_.socket->address());
  open_known(ring);
  const std::string data = random_bytes(2 * kSharedSlotBytes + 5);
  const std::string name = upload(ring, data);
  for (int i = 0; i < 2; ++i) {
    std::memset(ring.memory(), 0, data.size());
    call(ring, SharedMemoryCall::kReadGiven, read_text(name));
    const RawSharedRegion::Answer answer = ring.answer();
    EXPECT_EQ(answer.code, 0U);
    EXPECT_FALSE(answer.of_nothing);
    ASSERT_EQ(answer.said.size(), 3U);
    for (const Message& said : answer.said) EXPECT_EQ(said.kind, Message::kFilled);
    EXPECT_EQ(std::string(ring.memory(), data.size()), data);
  }
}

TEST_F(RegionCalls, OfMoreThanARingHoldsGiveItWholeAndThenEachSlot) {
  RawSharedRegion ring(server_.socket->address());
  open_known(ring);
  const std::string data = random_bytes((kSharedSlots + 1) * kSharedSlotBytes);
  RawSharedRegion array(server_.socket->address());
  ASSERT_TRUE(array.ask_to_call(Message::kArray, data.size(), ring.text)) << array.text;
  std::memcpy(array.memory(), data.data(), data.size());
  array.unmap();
  call(array, SharedMemoryCall::kWrite, write_text(data.size()));
  const RawSharedRegion::Answer written = array.answer();
  v1::Buffer buffer;
  ASSERT_TRUE(written.code == 0 && buffer.ParseFromString(written.text));
  call(ring, SharedMemoryCall::kReadGiven, read_text(buffer.name()));
  std::string came(data.size(), 0);
  for (std::uint32_t piece = 0; piece <= kSharedSlots; ++piece) {
    const Message said = ring.next();
    ASSERT_EQ(said.kind, Message::kFilled);
    came.replace(said.offset, said.bytes, ring.slot(said.slot), said.bytes);
    if (piece == 0) ring.send({.kind = Message::kFree, .slot = said.slot});
  }
  EXPECT_EQ(ring.answer().code, 0U);
  EXPECT_EQ(came, data);
}

TEST_F(RegionCalls, GiveAnArraysRegionWhole) {
  RawSharedRegion ring(server_.socket->address());
  open_known(ring);
  const std::string data = random_bytes(2 * kSharedSlotBytes + 5);
  const std::string name = upload(ring, data);
  RawSharedRegion array(server_.socket->address());
  ASSERT_TRUE(array.ask_to_call(Message::kArray, data.size(), ring.text)) << array.text;
  call(array, SharedMemoryCall::kReadGiven, read_text(name));
  EXPECT_EQ(array.answer().code, 0U);
  EXPECT_EQ(std::string(array.memory(), data.size()), data);
  RawSharedRegion small(server_.socket->address());
  ASSERT_TRUE(small.ask_to_call(Message::kArray, data.size() - 1, ring.text)) << small.text;
  call(small, SharedMemoryCall::kReadGiven, read_text(name));
  const RawSharedRegion::Answer refused = small.answer();
  EXPECT_EQ(refused.code, static_cast<std::uint32_t>(grpc::StatusCode::INVALID_ARGUMENT));
  EXPECT_TRUE(refused.of_nothing);
}

TEST_F(RegionCalls, AreSeenByWhoLooksAfterTheServer) {
  const std::string trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
  const std::string trace = "00-" + trace_id + "-00f067aa0ba902b7-01";
  RawSharedRegion ring(server_.socket->address());
  open_known(ring);
  const server::Telemetry& telemetry = server_.runtime.telemetry;
  const std::string uploads = "cumulus_rpc_handled_total{code=\"OK\",method=\"WriteShared\"} ";
  const std::string bytes = "cumulus_transfer_bytes_total{direction=\"upload\",transport=\"shared\"} ";
  EXPECT_TRUE(eventually([&] { return telemetry.text().find(bytes + "1000\n") != std::string::npos; }));
  (void)upload(ring, std::string(500, 'x'));
  EXPECT_TRUE(eventually([&] { return telemetry.text().find(uploads + "2\n") != std::string::npos; }));
  EXPECT_THAT(telemetry.text(), HasSubstr(bytes + "1500\n"));
  call(ring, SharedMemoryCall::kRead, read_text(server_.session + "/buffers/none"), kLong, trace);
  EXPECT_EQ(ring.answer().code, static_cast<std::uint32_t>(grpc::StatusCode::NOT_FOUND));
  ASSERT_EQ(telemetry.recent_errors().size(), 1U);
  EXPECT_EQ(telemetry.recent_errors()[0].method, "ReadShared");
  EXPECT_EQ(telemetry.recent_errors()[0].trace_id, trace_id);
  // What closes the connection, too.
  call(ring, SharedMemoryCall::kRead, "no request");
  EXPECT_TRUE(ring.is_closed());
  ASSERT_TRUE(eventually([&] { return telemetry.recent_errors().size() == 2; }));
  EXPECT_EQ(telemetry.recent_errors()[0].code, absl::StatusCode::kInvalidArgument);
}

TEST_F(RegionCalls, WithATraceThatIsNoneHaveNone) {
  RawSharedRegion ring(server_.socket->address());
  open_known(ring);
  const std::string text = read_text(server_.session + "/buffers/none");
  for (const std::string& trace :
       {std::string("\",\"admin\":true"), std::string(kMaxSharedMemoryCall - text.size(), '0')}) {
    call(ring, SharedMemoryCall::kRead, text, kLong, trace);
    EXPECT_EQ(ring.answer().code, static_cast<std::uint32_t>(grpc::StatusCode::NOT_FOUND));
    EXPECT_EQ(server_.runtime.telemetry.recent_errors()[0].trace_id, "");
  }
  // More bytes than there are: all of the text is the request.
  ring.send({.kind = Message::kCall, .slot = 1, .offset = kLong, .bytes = ~std::uint64_t{0}}, text);
  EXPECT_EQ(ring.answer().code, static_cast<std::uint32_t>(grpc::StatusCode::NOT_FOUND));
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

}  // namespace
}  // namespace cumulus::testing
