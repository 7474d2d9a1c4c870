#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "server/runtime/configuration.h"
#include "server/runtime/session_store.h"

namespace cumulus::server {

/// Opens what `configuration.devices` asks for, with a queue each: every GPU, or the CPU where there is none
/// (auto) or where it is asked for. FAILED_PRECONDITION where GPUs are asked for and there is none, or where
/// a budget is more than the device has; INTERNAL where one does not open. Fills the limits that follow from
/// the devices.
absl::StatusOr<std::vector<DeviceSlot>> open_devices(Configuration& configuration);

}  // namespace cumulus::server
