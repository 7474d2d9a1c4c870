#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "server/runtime/runtime.h"

namespace cumulus::server {

/// Bytes of a buffer that a call asks for: from `begin` on, before `end`.
struct ReadRange {
  BufferHandle buffer;
  SessionHandle session;
  Device* device = nullptr;
  std::size_t begin = 0;
  std::size_t end = 0;

  /// `limit` 0: to the buffer's end. Renews the session's lease. INVALID_ARGUMENT, NOT_FOUND, or INTERNAL
  /// where the device has failed.
  static absl::StatusOr<ReadRange> find(Runtime& runtime, const Principal& caller, const std::string& name,
                                        std::int64_t offset, std::int64_t limit);
};

}  // namespace cumulus::server
