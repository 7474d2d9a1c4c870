#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>

#include "server/runtime/device.h"
#include "server/runtime/memory_budget.h"
#include "server/runtime/shared_memory/region.h"

namespace cumulus::server {

/// The copy of a region's array to a GPU that begins at a KNOCK, while its CALL is still made and read. Until
/// a CALL takes it, what it copies is nobody's; what no CALL takes goes once it is copied. One at a time in a
/// process. Thread-safe.
class EarlyCopy : public std::enable_shared_from_this<EarlyCopy> {
 public:
  /// More takes so long over the bus that a begin of 0.1 ms before is nothing.
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;

  /// Of the region's first `bytes`. Null where there is no such array, another is under way, or the device
  /// has not four times as much memory free: nobody is to be refused for what nobody has asked for.
  static std::shared_ptr<EarlyCopy> begin(Device& device, const std::shared_ptr<SharedRegion>& region,
                                          std::size_t bytes);
  ~EarlyCopy();
  EarlyCopy(const EarlyCopy&) = delete;
  EarlyCopy& operator=(const EarlyCopy&) = delete;

  bool is_of(const Device& device, std::size_t bytes) const {
    return &device == &device_ && bytes == memory_bytes_;
  }
  /// The memory does not count as this copy's any more: admission counts it as its taker's.
  void uncount();
  /// Where the array and its head come to lie, and what is called then; both stay until it is.
  struct Taker {
    BufferMemory& memory;
    HostMemory& head;
    Done done;
  };
  /// Once.
  void give_to(Taker taker);

 private:
  EarlyCopy(Device& device, std::shared_ptr<SharedRegion> region, std::size_t bytes, Reservation counted);
  void copy();
  void end(const absl::Status& status);
  /// Without the lock: the taker may end all that has to do with the copy.
  void hand_over(Taker taker, const absl::Status& status);

  Device& device_;
  const std::shared_ptr<SharedRegion> region_;
  const std::size_t memory_bytes_;
  Reservation counted_;  // before the memory, which goes first
  BufferMemory memory_;
  HostMemory head_;
  std::mutex mutex_;  // of what follows
  std::optional<absl::Status> status_;
  std::optional<Taker> taker_;
};

}  // namespace cumulus::server
