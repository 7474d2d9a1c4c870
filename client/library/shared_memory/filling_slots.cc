#include "library/shared_memory/filling_slots.h"

#include <algorithm>

namespace cumulus {

FillingSlots::FillingSlots(RingCall& call, std::size_t threads) : call_(call), free_(threads) {
  const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(kSharedSlots, threads * kMaxOfAThread));
  for (std::uint32_t slot = 0; slot < count; ++slot) free_[slot % threads].push_back(slot);
}

std::optional<std::uint32_t> FillingSlots::take(std::size_t thread) {
  std::unique_lock lock(mutex_);
  if (!somebody_waits_) note_all_that_came();
  std::vector<std::uint32_t>& own = free_[thread];
  while (own.empty() && !over_) {
    if (somebody_waits_) {
      changed_.wait(lock);
      continue;
    }
    somebody_waits_ = true;
    lock.unlock();
    const std::optional<SharedMemoryMessage> message = call_.next();
    lock.lock();
    somebody_waits_ = false;
    note(message);
    changed_.notify_all();
  }
  if (over_) return std::nullopt;
  const std::uint32_t slot = own.back();
  own.pop_back();
  return slot;
}

void FillingSlots::wait_for(std::size_t count) {
  const std::lock_guard lock(mutex_);
  while (came_back_ < count && !over_) note(call_.next());
}

void FillingSlots::note(const std::optional<SharedMemoryMessage>& message) {
  if (!message.has_value() || message->kind != SharedMemoryMessage::kFree || message->slot >= kSharedSlots) {
    over_ = true;
    return;
  }
  ++came_back_;
  free_[message->slot % free_.size()].push_back(message->slot);
}

void FillingSlots::note_all_that_came() {
  if (!call_.begun()) return;
  while (const std::optional<SharedMemoryMessage> message = call_.next_now()) note(message);
}

}  // namespace cumulus
