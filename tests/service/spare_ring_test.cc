#include "server/runtime/shared_memory/spare_ring.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "proto/shared_memory.h"
#include "tests/support/eventually.h"
#include "tests/support/raw_shared_region.h"
#include "tests/support/shared_memory_server.h"

namespace cumulus::testing {
namespace {

constexpr std::size_t kRingBytes = kSharedSlots * kSharedSlotBytes;

std::vector<server::DeviceSlot> slot_of(std::unique_ptr<server::Device> device) {
  std::vector<server::DeviceSlot> slots(1);
  slots[0].device = std::move(device);
  return slots;
}

server::Configuration::SharedMemory room_for(std::size_t bytes) {
  server::Configuration::SharedMemory limits;
  limits.max_bytes = limits.max_bytes_per_user = bytes;
  return limits;
}

TEST(SpareRing, IsMadeOnAGpuAndTakenOnce) {
  const auto slots = slot_of(std::make_unique<StagedDevice>(1 << 20));
  server::SpareRing spare(slots, room_for(kRingBytes));
  EXPECT_EQ(spare.take(), nullptr);
  spare.fill();
  const auto ring = spare.take();
  ASSERT_NE(ring, nullptr);
  EXPECT_EQ(ring->kind(), server::SharedRegion::Kind::kRing);
  EXPECT_EQ(ring->memory().size(), kRingBytes);
  EXPECT_EQ(spare.take(), nullptr);
  spare.fill();
  const auto next = spare.take();
  ASSERT_NE(next, nullptr);
  EXPECT_NE(next->id(), ring->id());
}

TEST(SpareRing, IsNotMadeWhereNoClientMayHaveOneOrItIsSoonMade) {
  const auto gpu = slot_of(std::make_unique<StagedDevice>(1 << 20));
  server::SpareRing too_large(gpu, room_for(kRingBytes - 1));
  too_large.fill();
  EXPECT_EQ(too_large.take(), nullptr);
  const auto cpu = slot_of(server::make_cpu_device({.threads = 1, .landing_bytes = 4096}));
  server::SpareRing soon_made(cpu, room_for(kRingBytes));
  soon_made.fill();
  EXPECT_EQ(soon_made.take(), nullptr);
}

TEST(SpareRing, CountsAsItsClientsOnceItIsTaken) {
  SharedMemoryServer server(std::make_unique<StagedDevice>(TransferServer::kBudget));
  const auto shared_bytes = [&] { return server.socket->shares().bytes(); };
  EXPECT_EQ(shared_bytes(), 0U);
  {
    RawSharedRegion first(server.socket->address());
    ASSERT_TRUE(first.ask(SharedMemoryMessage::kRing, 0));
    EXPECT_EQ(shared_bytes(), kRingBytes);
    RawSharedRegion second(server.socket->address());
    ASSERT_TRUE(second.ask(SharedMemoryMessage::kRing, 0));
    EXPECT_EQ(shared_bytes(), 2 * kRingBytes);
  }
  EXPECT_TRUE(eventually([&] { return shared_bytes() == 0; }));
}

}  // namespace
}  // namespace cumulus::testing
