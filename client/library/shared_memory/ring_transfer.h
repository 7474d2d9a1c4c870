#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "cumulus/v1/transfer.pb.h"
#include "library/connection.h"
#include "library/transfer.h"

namespace cumulus {

/// As write_buffer, through memory that client and server share; empty where the array has to go over
/// streams. `options.connections` is the number of threads that copy; 0: by what has helped before.
std::optional<absl::StatusOr<Uploaded>> write_through_ring(Connection& connection, const CallContext& context,
                                                           const v1::WriteSpec& spec,
                                                           std::span<const std::byte> bytes,
                                                           const UploadOptions& options, Checksum checksum);

/// As read_buffer, likewise.
std::optional<absl::Status> read_through_ring(Connection& connection, const CallContext& context,
                                              const std::string& name, std::span<std::byte> destination,
                                              const DownloadOptions& options);

}  // namespace cumulus
