#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include "server/runtime/device.h"

namespace cumulus::server {

/// What the exception in flight, which came from work on `device`, means to a client whose deadline that is.
/// Call inside a catch block. Marks the device unhealthy where it has failed for good.
absl::Status translate_exception(Device& device, absl::Time deadline);

}  // namespace cumulus::server
