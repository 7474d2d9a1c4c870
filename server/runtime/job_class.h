#pragma once

namespace cumulus::server {

/// What a call's priority is to a device.
enum class JobClass { kInteractive, kBatch };

}  // namespace cumulus::server
