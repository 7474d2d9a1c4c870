#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstddef>
#include <span>

namespace cumulus::cli {

/// How long these bytes take to move through so many Unix sockets within this process, a part each, from one
/// thread to another, in pieces of 1 MiB, into memory that is thrown away.
absl::StatusOr<absl::Duration> move_through_sockets(std::span<const std::byte> bytes, int sockets);

}  // namespace cumulus::cli
