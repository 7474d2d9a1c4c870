#pragma once

#include "kernels/core/cuda_executor.h"

namespace cumulus {

/// Puts a kernel on the executor's stream that reads an address which is not mapped: the context is lost, as
/// by a kernel's own fault. For tests of what follows; in builds with -DCUMULUS_FAULT_POINTS=ON alone.
void launch_faulting_kernel(CudaExecutor& executor);

}  // namespace cumulus
