#pragma once

#include <type_traits>

#include "kernels/core/cuda_executor.h"
#include "kernels/primitives/launch.cuh"

// Launching kernels that need much shared memory, or begin before the one in front of them has ended.

namespace cumulus::sampling_table {

/// What a block may have at most, static and dynamic shared memory together.
inline std::size_t max_shared_bytes(const CudaExecutor& executor) {
  int limit = 0;
  CUMULUS_CUDA(
      cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, executor.device().ordinal()));
  return static_cast<std::size_t>(limit);
}

/// Puts a kernel on the executor's stream. With `early`, it may begin, where the device can, when all blocks
/// of the kernel before it have called allow_secondary_kernel, or ended; it waits for each word that they
/// write before it uses it, and for the kernel, by wait_for_primary_kernel, before it ends.
template <auto kKernel, class... Arguments>
void launch(const CudaExecutor& executor, const LaunchShape& shape, bool early,
            const Arguments&... arguments) {
  if (early) {
    launch_dependent<kKernel>(executor.stream(), shape, arguments...);
  } else {
    cumulus::launch(executor.stream(), kKernel, shape, arguments...);
  }
}

/// Calls `launch` with the threads of a block as a constant.
template <class Launch>
void with_threads(int threads, const Launch& launch) {
  switch (threads) {
    case 128:
      return launch(std::integral_constant<int, 128>{});
    case 256:
      return launch(std::integral_constant<int, 256>{});
    case 512:
      return launch(std::integral_constant<int, 512>{});
    default:
      return launch(std::integral_constant<int, 1024>{});
  }
}

}  // namespace cumulus::sampling_table
