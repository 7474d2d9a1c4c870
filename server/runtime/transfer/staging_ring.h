#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "server/runtime/device.h"

namespace cumulus::server {

/// A fixed number of host memory slots that a device copies from and to fast (pinned, on a GPU). Thread-safe.
class StagingRing : public std::enable_shared_from_this<StagingRing> {
 public:
  /// The beginning of a slot; the last owner gives it back. Keeps the ring alive.
  using Slot = std::shared_ptr<std::byte>;
  using Take = std::function<void(Slot)>;

  /// Throws what Device::allocate_staging throws.
  static std::shared_ptr<StagingRing> create(Device& device, std::size_t slots, std::size_t slot_bytes);

  /// Calls `take` with a free slot: before it returns where there is one, else on the thread that gives one
  /// back. First come, first served.
  void acquire(Take take);
  std::size_t free_slots() const;

 private:
  StagingRing(HostMemory memory, std::size_t slots, std::size_t slot_bytes);
  Slot own(std::byte* slot);
  void give_back(std::byte* slot);

  const HostMemory memory_;
  mutable std::mutex mutex_;
  std::vector<std::byte*> free_;
  std::deque<Take> waiting_;
};

}  // namespace cumulus::server
