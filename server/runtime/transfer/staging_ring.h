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

  enum class Use { kUpload, kDownload };
  struct Size {
    std::size_t slots = 0;
    std::size_t slot_bytes = 0;
    std::size_t kept_for_uploads = 0;  // slots that downloads never take, as their readers may be slow
  };
  /// Throws what Device::allocate_staging throws.
  static std::shared_ptr<StagingRing> create(Device& device, const Size& size);

  /// Calls `take` with a free slot: before it returns where there is one, else on the thread that gives one
  /// back. First come, first served, uploads before downloads.
  void acquire(Use use, Take take);
  std::size_t free_slots() const;

 private:
  StagingRing(HostMemory memory, const Size& size);
  Slot own(std::byte* slot, Use use);
  void give_back(std::byte* slot, Use use);
  /// Whether one that waits may have a free slot, and which.
  bool next_waiting(Use& use) const;

  const HostMemory memory_;
  mutable std::mutex mutex_;
  std::vector<std::byte*> free_;
  const std::size_t max_downloads_;
  std::size_t downloads_ = 0;  // slots that they have
  std::deque<Take> uploads_waiting_;
  std::deque<Take> downloads_waiting_;
};

}  // namespace cumulus::server
