#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "cumulus/array.h"
#include "cumulus/v1/transfer.pb.h"
#include "library/connection.h"
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

using SharedWriteDone = std::function<void(std::optional<absl::StatusOr<Uploaded>>)>;

/// Likewise, without a checksum, and without waiting: `done` is given the answer, once, on the event loop's
/// thread. False, and `done` is left alone, where `bytes` are no such array. `options.progress` is not
/// called.
bool start_shared_write(Connection& connection, const CallContext& context, const v1::WriteSpec& spec,
                        std::span<const std::byte> bytes, const UploadOptions& options, SharedWriteDone done);

}  // namespace cumulus
