#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <memory>
#include <string_view>

#include "proto/shared_memory.h"
#include "server/runtime/principal.h"

namespace cumulus::server {

class EarlyCopy;
class SharedLink;
class SharedRegion;

/// Begins the transfers that clients ask for on their regions' connections.
class RegionCalls {
 public:
  virtual ~RegionCalls() = default;
  /// A CALL, and the copy that began at the KNOCK before it, where one did.
  struct Asked {
    const SharedMemoryMessage& message;
    std::string_view text;  // what follows the message
    std::shared_ptr<EarlyCopy> early = nullptr;
  };
  /// By `caller`, whose region the link's is. An error where that is no call: the link is closed.
  virtual absl::Status begin(const std::shared_ptr<SharedLink>& link, const Principal& caller,
                             Asked asked) = 0;
  /// `caller` is about to ask for an upload of the first `bytes` of its array's region. Null where nothing is
  /// copied yet.
  virtual std::shared_ptr<EarlyCopy> begin_early(const std::shared_ptr<SharedRegion>& region,
                                                 const Principal& caller, std::size_t bytes) = 0;
};

}  // namespace cumulus::server
