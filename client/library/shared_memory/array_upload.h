#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "cumulus/array.h"
#include "cumulus/v1/transfer.pb.h"
#include "library/connection.h"
#include "library/shared_memory/arrays.h"
#include "library/shared_memory/region_call.h"
#include "library/transfer.h"

namespace cumulus {

/// As Session::allocate_shared.
absl::StatusOr<Array> allocate_shared_array(SharedMemory& memory, ElementType type, Shape shape);

/// As write_buffer, of an array that allocate_shared_array has made; empty where `bytes` are none, or the
/// server cannot take them from where they are.
std::optional<absl::StatusOr<Uploaded>> write_shared_array(Connection& connection, const CallContext& context,
                                                           const v1::WriteSpec& spec,
                                                           std::span<const std::byte> bytes,
                                                           const UploadOptions& options, Checksum checksum);

/// Such an upload under way, for who waits for it now and then.
class SharedWrite {
 public:
  /// Null where `bytes` are no such array. They stay until the write is gone, which is not before its end.
  static std::unique_ptr<SharedWrite> start(Connection& connection, const CallContext& context,
                                            const v1::WriteSpec& spec, std::span<const std::byte> bytes,
                                            const UploadOptions& options);

  /// Waits so long at most; whether the server has answered. By one thread at a time.
  bool wait_for(absl::Duration limit) { return call_->wait_for(limit); }
  /// Waits for the answer; once. Empty where the array has to go another way.
  std::optional<absl::StatusOr<Uploaded>> finish();

 private:
  SharedWrite(Connection& connection, SharedArrays::Hold region, std::span<const std::byte> bytes);

  const std::shared_ptr<SharedArrays> arrays_;
  const SharedArrays::Hold region_;
  const std::span<const std::byte> bytes_;
  const std::shared_ptr<RegionCall> call_;
};

}  // namespace cumulus
