#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <memory>

struct CUstream_st;

namespace cumulus {

/// Another process's allocation of GPU memory, mapped in this one, between addresses of which nothing lies:
/// a kernel that reads or writes beside it ends with an error, and touches nothing else of this process.
class DeviceMapping {
 public:
  /// Of the addresses before and behind it.
  static constexpr std::size_t kGuardBytes = std::size_t{2} << 20;

  enum class Access { kRead, kReadAndWrite };
  /// Of all of the allocation, whose size `bytes` is, by a descriptor that stays the caller's; for the device
  /// of the current context, on which it has to lie: FAILED_PRECONDITION. INTERNAL where the driver fails.
  static absl::StatusOr<std::unique_ptr<DeviceMapping>> map(int descriptor, std::size_t bytes, Access access);
  ~DeviceMapping();
  DeviceMapping(const DeviceMapping&) = delete;
  DeviceMapping& operator=(const DeviceMapping&) = delete;

  void* data() const { return reinterpret_cast<void*>(place()); }

 private:
  explicit DeviceMapping(std::size_t bytes) : bytes_(bytes) {}
  absl::Status import_allocation(int descriptor);
  absl::Status map_at_an_address(int device, Access access);
  std::size_t reserved_bytes() const { return bytes_ + 2 * kGuardBytes; }
  std::uint64_t place() const { return reserved_ + kGuardBytes; }

  const std::size_t bytes_;
  std::uint64_t handle_ = 0;
  std::uint64_t reserved_ = 0;  // the first address
  bool imported_ = false;
  bool mapped_ = false;
};

/// FAILED_PRECONDITION where no kernel of this thread could use GPU memory, with what would be right.
absl::Status check_cuda_context();
/// Waits for the work that the stream has been given. INTERNAL where it has failed.
absl::Status wait_for_stream(CUstream_st* stream);

}  // namespace cumulus
