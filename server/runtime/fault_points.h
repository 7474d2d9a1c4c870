#pragma once

#include <absl/status/status.h>

#include "cumulus/config/v1/config.pb.h"
#include "kernels/core/cpu_executor.h"
#include "kernels/core/cuda_executor.h"

/// Faults that tests ask for in the configuration (fault_points), at named places. Only builds with
/// -DCUMULUS_FAULT_POINTS=ON have them; in others no place is ever due, and a configuration that names one is
/// refused.
namespace cumulus::server {

using FaultPoint = config::v1::FaultPoint;

/// INVALID_ARGUMENT where this build has no fault points, or one makes no sense. Before threads exist.
absl::Status set_fault_points(const config::v1::ServerConfig& config);

/// Counts that the place is passed; true where it is to fail now.
bool fault_due(FaultPoint::Place place);
/// Waits where the device is to be slow.
void slow_down_device();
/// Ends the process by SIGKILL where that is due.
void kill_worker_if_due();
/// Puts a kernel that faults on the executor's stream where that is due; CPU threads have no such kernel.
void fault_in_kernel_if_due(CudaExecutor& executor);
inline void fault_in_kernel_if_due(CpuExecutor& /*executor*/) {}

}  // namespace cumulus::server
