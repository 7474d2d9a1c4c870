#include "server/runtime/transfer/staging_ring.h"

#include <utility>

namespace cumulus::server {

std::shared_ptr<StagingRing> StagingRing::create(Device& device, const Size& size) {
  // The constructor is private, where make_shared cannot reach it.
  return std::shared_ptr<StagingRing>(
      new StagingRing(device.allocate_staging(size.slots * size.slot_bytes), size));
}

StagingRing::StagingRing(HostMemory memory, const Size& size)
    : memory_(std::move(memory)), max_downloads_(size.slots - size.kept_for_uploads) {
  for (std::size_t i = 0; i < size.slots; ++i) free_.push_back(memory_.data() + i * size.slot_bytes);
}

void StagingRing::acquire(Use use, Take take) {
  std::byte* slot = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (free_.empty() || (use == Use::kDownload && downloads_ >= max_downloads_)) {
      (use == Use::kUpload ? uploads_waiting_ : downloads_waiting_).push_back(std::move(take));
      return;
    }
    slot = free_.back();
    free_.pop_back();
    if (use == Use::kDownload) ++downloads_;
  }
  take(own(slot, use));
}

std::size_t StagingRing::free_slots() const {
  const std::lock_guard lock(mutex_);
  return free_.size();
}

StagingRing::Slot StagingRing::own(std::byte* slot, Use use) {
  return {slot, [ring = shared_from_this(), use](std::byte* done) { ring->give_back(done, use); }};
}

bool StagingRing::next_waiting(Use& use) const {
  use = uploads_waiting_.empty() ? Use::kDownload : Use::kUpload;
  return use == Use::kUpload || (!downloads_waiting_.empty() && downloads_ < max_downloads_);
}

void StagingRing::give_back(std::byte* slot, Use use) {
  Take next;
  {
    const std::lock_guard lock(mutex_);
    if (use == Use::kDownload) --downloads_;
    if (!next_waiting(use)) {
      free_.push_back(slot);
      return;
    }
    auto& waiting = use == Use::kUpload ? uploads_waiting_ : downloads_waiting_;
    next = std::move(waiting.front());
    waiting.pop_front();
    if (use == Use::kDownload) ++downloads_;
  }
  next(own(slot, use));
}

}  // namespace cumulus::server
