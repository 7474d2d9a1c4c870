#pragma once

#include <cuda_runtime.h>

#include "kernels/core/cuda_error.h"
#include "kernels/primitives/launch.cuh"

namespace cumulus::summed_area_table {

/// Launches blocks that wait for each other: the chooser has seen that the device holds them all at once.
template <class Argument>
void launch_resident(const CudaExecutor& executor, void (*kernel)(Argument), const LaunchShape& shape,
                     const Argument& argument) {
  if (!launch_cooperative(executor, kernel, shape, argument))
    CUMULUS_CUDA(cudaErrorCooperativeLaunchTooLarge);
}

}  // namespace cumulus::summed_area_table
