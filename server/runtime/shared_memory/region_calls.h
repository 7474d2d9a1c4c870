#pragma once

#include <absl/status/status.h>

#include <memory>
#include <string_view>

#include "proto/shared_memory.h"
#include "server/runtime/principal.h"

namespace cumulus::server {

class SharedLink;

/// Begins the transfers that clients ask for on their regions' connections.
class RegionCalls {
 public:
  virtual ~RegionCalls() = default;
  /// By `caller`, whose region the link's is. `text` is what follows `message`. An error where that is no
  /// call: the link is closed.
  virtual absl::Status begin(const std::shared_ptr<SharedLink>& link, const Principal& caller,
                             const SharedMemoryMessage& message, std::string_view text) = 0;
};

}  // namespace cumulus::server
