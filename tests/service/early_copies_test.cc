// Copies to a device that begin at a KNOCK, before their CALL.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

#include "tests/service/region_calls_fixture.h"

namespace cumulus::testing {
namespace {

constexpr std::size_t kBytes = 300'000;

class EarlyCopies : public RegionCallsFixture {
 protected:
  EarlyCopies() : RegionCallsFixture(staged_device()) {}

  void SetUp() override {
    open_known(ring_);
    before_ = server_.reserved_bytes();
  }
  /// An array of that letter, in a region that the server knows.
  std::unique_ptr<RawSharedRegion> array_of(char letter) const {
    auto array = std::make_unique<RawSharedRegion>(server_.socket->address());
    EXPECT_TRUE(array->ask_to_call(Message::kArray, kBytes, ring_.text)) << array->text;
    std::memset(array->memory(), letter, kBytes);
    return array;
  }
  static void knock(const RawSharedRegion& array, std::size_t bytes = kBytes) {
    array.send({.kind = Message::kKnock, .bytes = bytes});
  }
  void call_for(const RawSharedRegion& array, std::size_t bytes = kBytes) {
    call(array, SharedMemoryCall::kWriteKnocked, write_text(bytes));
  }
  /// The buffer that the CALL's answer names; empty where it failed.
  static std::string answered(const RawSharedRegion& array) {
    v1::Buffer buffer;
    const RawSharedRegion::Answer answer = array.answer();
    return answer.code == 0 && buffer.ParseFromString(answer.text) ? buffer.name() : "";
  }
  /// Knocks, and waits until all is copied that is.
  void knock_and_copy(const RawSharedRegion& array) {
    const std::size_t copies = staged_.all_copies();
    knock(array);
    ASSERT_TRUE(eventually([&] { return staged_.all_copies() == copies + kCopies; }));
    ASSERT_TRUE(eventually([&] { return staged_.waiting_copies() == 0; }));
  }
  bool all_is_back() {
    return eventually([&] { return server_.reserved_bytes() == before_; });
  }

  static constexpr std::size_t kCopies = 2;  // of an upload: the array, and its head back

  StagedDevice& staged_ = static_cast<StagedDevice&>(*server_.runtime.devices.front().device);
  RawSharedRegion ring_{server_.socket->address()};
  std::size_t before_ = 0;
};

TEST_F(EarlyCopies, BeginAtTheKnockAndAreTheirCallsThen) {
  const auto array = array_of('a');
  staged_.hold();
  const std::size_t copies = staged_.all_copies();
  knock(*array);
  ASSERT_TRUE(eventually([&] { return staged_.waiting_copies() == 1; }));
  call_for(*array);
  staged_.release();
  const std::string name = answered(*array);
  EXPECT_EQ(server_.download(name), std::string(kBytes, 'a'));
  server::Principal caller;
  caller.name = "127.0.0.1";
  server_.expect_checks_of_what_is_there(name, caller);
  EXPECT_EQ(server_.reserved_bytes(), before_ + align_block(kBytes)) << "counted once";
  EXPECT_EQ(staged_.all_copies(), copies + kCopies + 2) << "two are of downloads";
}

TEST_F(EarlyCopies, ThatHaveEndedAreTheirCallsToo) {
  const auto array = array_of('a');
  for (const char letter : {'a', 'b', 'c'}) {
    std::memset(array->memory(), letter, kBytes);
    knock_and_copy(*array);
    const std::size_t copies = staged_.all_copies();
    call_for(*array);
    const std::string name = answered(*array);
    EXPECT_EQ(staged_.all_copies(), copies);
    EXPECT_EQ(server_.download(name), std::string(kBytes, letter));
  }
}

TEST_F(EarlyCopies, AreNobodysWhereTheirCallBringsOtherBytes) {
  const auto array = array_of('a');
  knock_and_copy(*array);
  call_for(*array, kBytes - 1);
  EXPECT_EQ(server_.download(answered(*array)), std::string(kBytes - 1, 'a'));
  EXPECT_EQ(server_.reserved_bytes(), before_ + align_block(kBytes - 1));
}

/// The program may have written to its array since the KNOCK where its CALL does not say that it has not.
TEST_F(EarlyCopies, AreNobodysWhereAnotherMessageComesThanTheirCall) {
  for (const bool by_download : {false, true}) {
    const auto array = array_of('a');
    knock_and_copy(*array);
    if (by_download) {
      call(*array, SharedMemoryCall::kReadGiven, read_text(server_.session + "/buffers/none"));
      EXPECT_EQ(array->answer().code, static_cast<std::uint32_t>(grpc::StatusCode::NOT_FOUND));
    }
    std::memset(array->memory(), 'b', kBytes);
    if (by_download) {
      call_for(*array);
    } else {
      call(*array, SharedMemoryCall::kWrite, write_text(kBytes));
    }
    EXPECT_EQ(server_.download(answered(*array)), std::string(kBytes, 'b'));
  }
}

TEST_F(EarlyCopies, OfACallThatIsRefusedLeaveNothingAndTheRegion) {
  const auto array = array_of('a');
  v1::WriteSharedRequest request = server_.write_request("", kBytes);
  request.mutable_spec()->set_session("sessions/of-nobody");
  knock_and_copy(*array);
  call(*array, SharedMemoryCall::kWriteKnocked, request.SerializeAsString());
  const RawSharedRegion::Answer refused = array->answer();
  EXPECT_EQ(refused.code, static_cast<std::uint32_t>(grpc::StatusCode::NOT_FOUND));
  EXPECT_TRUE(refused.of_nothing);
  EXPECT_TRUE(all_is_back());
  knock_and_copy(*array);  // what was asked for was no KNOCK in vain
  call_for(*array);
  EXPECT_EQ(server_.download(answered(*array)), std::string(kBytes, 'a'));
}

TEST_F(EarlyCopies, AreRefusedByTheQuotaOfTheSession) {
  v1::CreateSessionRequest create;
  create.set_session_id("7f0d9a52-3a64-4a3d-9d0a-0f3b8c0d1e20");
  create.set_quota_bytes(static_cast<std::int64_t>(kBytes / 2));
  v1::Session session;
  grpc::ClientContext context;
  ASSERT_TRUE(server_.sessions->CreateSession(&context, create, &session).ok());
  v1::WriteSharedRequest request = server_.write_request("", kBytes);
  request.mutable_spec()->set_session(session.name());
  const auto array = array_of('a');
  staged_.hold();
  knock(*array);
  ASSERT_TRUE(eventually([&] { return staged_.waiting_copies() == 1; }));
  call(*array, SharedMemoryCall::kWriteKnocked, request.SerializeAsString());
  EXPECT_EQ(array->answer().code, static_cast<std::uint32_t>(grpc::StatusCode::RESOURCE_EXHAUSTED));
  staged_.release();
  EXPECT_TRUE(all_is_back());
}

TEST_F(EarlyCopies, OfACallThatIsCancelledLeaveNothing) {
  const auto array = array_of('a');
  staged_.hold();
  knock(*array);
  call_for(*array);
  ASSERT_TRUE(eventually([&] { return staged_.waiting_copies() == 1; }));
  array->send({.kind = Message::kCancel});
  EXPECT_EQ(array->answer().code, static_cast<std::uint32_t>(grpc::StatusCode::CANCELLED));
  staged_.release();
  EXPECT_TRUE(all_is_back());
}

TEST_F(EarlyCopies, ThatFailFailTheirCall) {
  const auto array = array_of('a');
  staged_.fail_once();
  knock(*array);
  call_for(*array);
  EXPECT_EQ(array->answer().code, static_cast<std::uint32_t>(grpc::StatusCode::INTERNAL));
  EXPECT_TRUE(all_is_back());
}

TEST_F(EarlyCopies, OfWhoHangsUpLeaveNothing) {
  for (const bool after_the_call : {false, true}) {
    const auto array = array_of('a');
    staged_.hold();
    knock(*array);
    if (after_the_call) call_for(*array);
    ASSERT_TRUE(eventually([&] { return staged_.waiting_copies() == 1; }));
    array->hang_up();
    const std::string ended = "cumulus_rpc_handled_total{code=\"CANCELLED\",method=\"WriteShared\"} 1";
    EXPECT_TRUE(eventually([&] {
      return !after_the_call || server_.runtime.telemetry.text().find(ended) != std::string::npos;
    }));
    EXPECT_EQ(server_.socket->shares().regions(), 2) << "of which one is copied from still";
    staged_.release();
    EXPECT_TRUE(all_is_back());
    EXPECT_TRUE(eventually([&] { return server_.socket->shares().regions() == 1; }));
  }
}

/// Once: who knocks and does not call gets no copies before calls any more.
TEST_F(EarlyCopies, WhoseCallDoesNotComeLeaveNothing) {
  const auto array = array_of('a');
  knock_and_copy(*array);
  EXPECT_TRUE(all_is_back());
  const std::size_t copies = staged_.all_copies();
  for (int i = 0; i < 50; ++i) knock(*array);
  std::memset(array->memory(), 'b', kBytes);
  call_for(*array);
  EXPECT_EQ(server_.download(answered(*array)), std::string(kBytes, 'b'));
  EXPECT_EQ(staged_.all_copies(), copies + kCopies + 1) << "the upload's own, and the download's";
}

TEST_F(EarlyCopies, AreOneAtATime) {
  const auto first = array_of('a');
  const auto second = array_of('b');
  staged_.hold();
  knock(*first);
  ASSERT_TRUE(eventually([&] { return staged_.waiting_copies() == 1; }));
  const std::size_t reserved = server_.reserved_bytes();
  knock(*second);
  knock(*second);
  call_for(*second);
  ASSERT_TRUE(eventually([&] { return staged_.waiting_copies() == 2; }));
  EXPECT_LE(server_.reserved_bytes(), reserved + align_block(kBytes)) << "the CALL's";
  staged_.release();
  EXPECT_EQ(server_.download(answered(*second)), std::string(kBytes, 'b'));
}

TEST_F(EarlyCopies, OfKnocksThatCannotBeAreNone) {
  const auto array = array_of('a');
  RawSharedRegion nobodys(server_.socket->address());
  ASSERT_TRUE(nobodys.ask_to_call(Message::kArray, kBytes)) << nobodys.text;
  RawSharedRegion quiet(server_.socket->address());
  ASSERT_TRUE(quiet.ask(Message::kArray, kBytes)) << quiet.text;
  const std::size_t copies = staged_.all_copies();
  knock(nobodys);
  knock(quiet);
  for (const std::size_t bytes : {std::size_t{0}, kBytes + 1, ~std::size_t{0}}) knock(*array, bytes);
  knock(ring_);
  call_for(*array);
  EXPECT_EQ(server_.download(answered(*array)), std::string(kBytes, 'a'));
  EXPECT_EQ(staged_.all_copies(), copies + kCopies + 1);
}

/// What others are to have is not taken for what nobody has asked for.
TEST_F(EarlyCopies, AreNoneWhereMemoryIsShort) {
  const auto array = array_of('a');
  auto& budget = *server_.runtime.devices.front().device->budget();
  const auto taken = budget.reserve(budget.limit_bytes() - budget.reserved_bytes() - 3 * kBytes);
  ASSERT_TRUE(taken.ok());
  staged_.hold();
  knock(*array);
  call_for(*array);
  ASSERT_TRUE(eventually([&] { return staged_.waiting_copies() == 1; }));
  EXPECT_TRUE(array->said != 0);
  staged_.release();
  EXPECT_EQ(server_.download(answered(*array)), std::string(kBytes, 'a'));
}

/// What requests are checked by has to be what kernels then read.
TEST_F(EarlyCopies, SeeWhatAHostileClientWritesMeanwhileOnce) {
  const auto array = array_of('a');
  staged_.hold();
  knock(*array);
  ASSERT_TRUE(eventually([&] { return staged_.waiting_copies() == 1; }));
  std::memset(array->memory(), 'b', kBytes);
  staged_.release();
  ASSERT_TRUE(eventually([&] { return staged_.waiting_copies() == 0; }));
  call_for(*array);
  const std::string name = answered(*array);
  std::memset(array->memory(), 'c', kBytes);
  server::Principal caller;
  caller.name = "127.0.0.1";
  server_.expect_checks_of_what_is_there(name, caller);
}

}  // namespace
}  // namespace cumulus::testing
