#include "server/runtime/transfer/staging_ring.h"

#include <utility>

namespace cumulus::server {

std::shared_ptr<StagingRing> StagingRing::create(Device& device, std::size_t slots, std::size_t slot_bytes) {
  // The constructor is private, where make_shared cannot reach it.
  return std::shared_ptr<StagingRing>(
      new StagingRing(device.allocate_staging(slots * slot_bytes), slots, slot_bytes));
}

StagingRing::StagingRing(HostMemory memory, std::size_t slots, std::size_t slot_bytes)
    : memory_(std::move(memory)) {
  for (std::size_t i = 0; i < slots; ++i) free_.push_back(memory_.data() + i * slot_bytes);
}

void StagingRing::acquire(Take take) {
  std::byte* slot = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      waiting_.push_back(std::move(take));
      return;
    }
    slot = free_.back();
    free_.pop_back();
  }
  take(own(slot));
}

std::size_t StagingRing::free_slots() const {
  const std::lock_guard lock(mutex_);
  return free_.size();
}

StagingRing::Slot StagingRing::own(std::byte* slot) {
  return {slot, [ring = shared_from_this()](std::byte* done) { ring->give_back(done); }};
}

void StagingRing::give_back(std::byte* slot) {
  Take next;
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) {
      free_.push_back(slot);
      return;
    }
    next = std::move(waiting_.front());
    waiting_.pop_front();
  }
  next(own(slot));
}

}  // namespace cumulus::server
