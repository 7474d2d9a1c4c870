#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/core/memory.h"
#include "proto/shared_memory.h"
#include "server/runtime/descriptor.h"
#include "server/runtime/session_store.h"
#include "server/runtime/shared_memory/region_shares.h"

namespace cumulus::server {

/// Memory that this process made to share it with one client. Its size is sealed: whatever the client does,
/// no access to it here fails. What lies in it the client may change at any time.
class SharedRegion {
 public:
  /// kRing: kSharedSlots slots. kArray: of one array; its writes can be sealed, see freeze().
  /// kDevice: an allocation of a GPU's memory, which is never mapped here.
  enum class Kind { kRing, kArray, kDevice };
  /// Mapped, and registered with the GPU, where one of `devices` is; an array's is not mapped where none is.
  /// RESOURCE_EXHAUSTED where the machine has no memory. `share` lasts as long as the region.
  static absl::StatusOr<std::shared_ptr<SharedRegion>> create(Kind kind, std::size_t bytes,
                                                              const std::vector<DeviceSlot>& devices,
                                                              RegionShares::Share share);
  /// Of kind kDevice and zeros, `counted` by the device; `bytes` is a multiple of kExportedGranularity.
  static absl::StatusOr<std::shared_ptr<SharedRegion>> create_on(Device& device, std::size_t bytes,
                                                                 Reservation counted,
                                                                 RegionShares::Share share);
  ~SharedRegion();
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  Kind kind() const { return kind_; }
  const std::string& id() const { return id_; }  // 128 random bits
  std::size_t bytes() const { return bytes_; }
  int descriptor() const { return file_.number(); }
  /// Where it is mapped; empty where it is not.
  std::span<std::byte> memory() const { return memory_; }
  std::span<std::byte> slot(std::uint32_t index) const;
  /// The first `bytes` of it, to be written to, by one thread at a time.
  std::span<std::byte> slot_to_write(std::uint32_t index, std::size_t bytes);
  /// That `share` lasts as long as the region, which has been made without one. Before others see it.
  void count_in(RegionShares::Share share) { share_ = std::move(share); }

  /// Of kind kDevice: for an array of the session, whose quota has its bytes from now on, unless another's
  /// has them already. FAILED_PRECONDITION (REGION_ELSEWHERE) where the session's device is another one.
  absl::Status use_in(const Session& session);
  const BufferMemory& device_memory() const { return device_memory_; }

  /// Whether an upload of it takes the region itself, frozen.
  bool freezes() const { return kind_ == Kind::kArray && memory_.empty(); }
  /// Of an array's region that is not mapped: nobody can ever change it from now on. False where that is not
  /// so, as the client can still write to it.
  bool freeze() const;
  /// The first `bytes` of it, mapped on their own, to be read. Throws std::bad_alloc.
  HostMemory map_to_read(std::size_t bytes) const;
  /// Puts `data` at that byte of it, without a mapping, so that it can be frozen later. FAILED_PRECONDITION
  /// (REGION_SEALED) where the client has sealed it, RESOURCE_EXHAUSTED where the machine has no memory.
  absl::Status write(std::size_t place, std::span<const std::byte> data) const;
  /// Gives its pages back, also where the client has kept the descriptor; not what is frozen.
  void discard() const;

 private:
  SharedRegion(Kind kind, Descriptor file, std::size_t bytes, RegionShares::Share share);
  absl::Status map();

  const Kind kind_;
  RegionShares::Share share_;
  const Descriptor file_;
  const std::size_t bytes_;
  const std::string id_;
  std::span<std::byte> memory_;
  std::shared_ptr<const void> registration_;
  MappedSlots mapped_;
  // Of kind kDevice.
  Device* device_ = nullptr;
  Reservation device_bytes_;  // declared before the memory, so that it goes first and its count after
  BufferMemory device_memory_;
  std::mutex quota_mutex_;
  Reservation session_bytes_;
};

}  // namespace cumulus::server
