#pragma once

#include <absl/time/time.h>

#include <cstddef>

#include "server/runtime/connections/frame_guard.h"

namespace cumulus::server {

struct ConnectionLimits {
  std::size_t per_client = 0;   // connections of one address
  FrameGuard::Limits frames;    // of one connection
  absl::Duration half_message;  // a connection on which no call begins for so long is closed
};

}  // namespace cumulus::server
