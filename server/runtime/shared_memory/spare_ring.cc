#include "server/runtime/shared_memory/spare_ring.h"

#include <algorithm>
#include <utility>

#include "proto/shared_memory.h"

namespace cumulus::server {
namespace {

constexpr std::size_t kRingBytes = kSharedSlots * kSharedSlotBytes;

bool any_gpu(const std::vector<DeviceSlot>& devices) {
  return std::any_of(devices.begin(), devices.end(),
                     [](const DeviceSlot& slot) { return slot.device->space() == Space::kDevice; });
}

}  // namespace

SpareRing::SpareRing(const std::vector<DeviceSlot>& devices, const Configuration::SharedMemory& limits)
    : devices_(devices),
      wanted_(any_gpu(devices) && std::min(limits.max_bytes, limits.max_bytes_per_user) >= kRingBytes) {}

std::shared_ptr<SharedRegion> SpareRing::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(ring_, nullptr);
}

void SpareRing::fill() {
  if (!wanted_) return;
  {
    const std::lock_guard lock(mutex_);
    if (ring_ != nullptr) return;
  }
  auto ring = SharedRegion::create(SharedRegion::Kind::kRing, kRingBytes, devices_, RegionShares::Share());
  if (!ring.ok()) return;  // as the client will be told that asks for one
  const std::lock_guard lock(mutex_);
  ring_ = *std::move(ring);
}

}  // namespace cumulus::server
