#pragma once

#include "kernels/core/cuda_executor.h"

// Launching kernels that need much shared memory.

namespace cumulus::sampling_launch {

/// What a block may have at most, static and dynamic shared memory together.
inline std::size_t most_shared_bytes(const CudaExecutor& executor) {
  int limit = 0;
  CUMULUS_CUDA(
      cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, executor.device().ordinal()));
  return static_cast<std::size_t>(limit);
}

template <class... Parameters, class... Arguments>
void launch(const CudaExecutor& executor, void (*kernel)(Parameters...), unsigned blocks, int threads,
            std::size_t dynamic_bytes, const Arguments&... arguments) {
  CUMULUS_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(dynamic_bytes)));
  kernel<<<blocks, static_cast<unsigned>(threads), dynamic_bytes, executor.stream()>>>(arguments...);
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace cumulus::sampling_launch
