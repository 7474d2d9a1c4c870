#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "kernels/core/cuda_executor.h"
#include "kernels/core/memory.h"
#include "server/runtime/device.h"

namespace cumulus::server {

/// Pinned memory for the heads of arrays that are uploaded: to pin memory takes far longer than to copy so
/// little. Outlives what it gives. Thread-safe.
class PinnedHeads {
 public:
  PinnedHeads() : memory_(allocate_pinned(kHeads * kHeadBytes)) {
    for (std::size_t i = 0; i < kHeads; ++i) free_.push_back(memory_.data() + i * kHeadBytes);
  }
  PinnedHeads(const PinnedHeads&) = delete;
  PinnedHeads& operator=(const PinnedHeads&) = delete;

  /// kHeadBytes; newly pinned where all are in use.
  HostMemory take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return allocate_pinned(kHeadBytes);
    std::byte* const head = free_.back();
    free_.pop_back();
    return {head, kHeadBytes, this, give_back};
  }

 private:
  static constexpr std::size_t kHeads = 64;

  static void give_back(void* heads, std::byte* head, std::size_t /*bytes*/) {
    auto& mine = *static_cast<PinnedHeads*>(heads);
    const std::lock_guard lock(mine.mutex_);
    mine.free_.push_back(head);
  }

  const HostMemory memory_;
  std::mutex mutex_;
  std::vector<std::byte*> free_;
};

}  // namespace cumulus::server
