#pragma once

#include <absl/time/clock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "google/rpc/status.pb.h"
#include "tests/support/raw_shared_region.h"
#include "tests/support/shared_memory_server.h"

namespace cumulus::testing {

/// A server, and clients that ask for transfers on their regions' connections, message by message.
class RegionCallsFixture : public ::testing::Test {
 protected:
  explicit RegionCallsFixture(std::unique_ptr<server::Device> device = host_device())
      : server_(std::move(device)) {}

  using Message = SharedMemoryMessage;
  static constexpr std::uint64_t kLong = 10'000'000'000;  // nanoseconds
  /// What each server says of CALL.
  static constexpr std::uint64_t kTakes =
      kRegionTakesCalls | kRegionTakesGifts | kRegionTakesKnocks | kRegionTakesEarlyCopies;

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
  /// A ring that tells of calls, and that the server knows.
  void open_known(RawSharedRegion& ring) {
    ASSERT_TRUE(ring.ask_to_call(Message::kRing)) << ring.text;
    make_known(ring);
  }
  std::string write_text(std::size_t bytes) const {
    return server_.write_request("", bytes).SerializeAsString();
  }
  static void call(const RawSharedRegion& region, SharedMemoryCall what, const std::string& text,
                   std::uint64_t nanoseconds = kLong, const std::string& trace = "") {
    region.send({.kind = Message::kCall,
                 .slot = static_cast<std::uint32_t>(what),
                 .offset = nanoseconds,
                 .bytes = trace.empty() ? 0 : text.size()},
                text + trace);
  }
  /// An array on the server, which a ring has brought.
  std::string upload(const RawSharedRegion& ring, const std::string& data) {
    call(ring, SharedMemoryCall::kWrite, write_text(data.size()));
    EXPECT_EQ(ring.next().kind, Message::kBegin);
    for (std::uint32_t slot = 0; slot * kSharedSlotBytes < data.size(); ++slot)
      ring.fill(slot, data, slot * kSharedSlotBytes);
    v1::Buffer buffer;
    const RawSharedRegion::Answer answer = ring.answer();
    EXPECT_TRUE(answer.code == 0 && buffer.ParseFromString(answer.text));
    return buffer.name();
  }
  static std::string read_text(const std::string& name) {
    v1::ReadSharedRequest request;
    request.set_name(name);
    return request.SerializeAsString();
  }
  static google::rpc::Status details_of(const RawSharedRegion::Answer& answer) {
    google::rpc::Status details;
    EXPECT_TRUE(details.ParseFromString(answer.text));
    return details;
  }
  /// A client that behaves gets its array through, there and back.
  void expect_service(const RawSharedRegion& ring) {
    const std::string data = random_bytes(2 * kSharedSlotBytes + 5);
    const std::string name = upload(ring, data);
    EXPECT_EQ(server_.download(name), data);
    call(ring, SharedMemoryCall::kRead, read_text(name));
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

  SharedMemoryServer server_;
};

}  // namespace cumulus::testing
