#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "library/connection.h"
#include "library/transfer.h"

namespace cumulus {

/// As read_buffer, into an array that allocate_shared_array has made: the server copies to where it lies.
/// Empty where `destination` is none, or the array has to come another way.
std::optional<absl::Status> read_into_shared_array(Connection& connection, const CallContext& context,
                                                   const std::string& name, std::span<std::byte> destination,
                                                   const DownloadOptions& options);

}  // namespace cumulus
