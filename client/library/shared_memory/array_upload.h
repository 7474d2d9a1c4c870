#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
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

}  // namespace cumulus
