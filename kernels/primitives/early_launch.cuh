#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/core/cuda_error.h"

// Kernels that follow one another at once: the next one is on the multiprocessors before the one before it
// has ended, and waits there.

namespace cumulus {

/// In a kernel that launch_early starts, before it touches device memory: waits for the kernel before it.
__device__ inline void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

/// Starts a kernel that calls wait_for_kernel_before, early where it has been compiled to wait.
template <auto kKernel, class... Arguments>
void launch_early(std::int64_t blocks, int threads, std::size_t shared_bytes, cudaStream_t stream,
                  const Arguments&... arguments) {
  static const bool waits = [] {
    cudaFuncAttributes compiled{};
    CUMULUS_CUDA(cudaFuncGetAttributes(&compiled, kKernel));
    return compiled.ptxVersion >= 90;
  }();
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = static_cast<unsigned int>(blocks);
  config.blockDim = static_cast<unsigned int>(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = waits ? 1 : 0;
  CUMULUS_CUDA(cudaLaunchKernelEx(&config, kKernel, arguments...));
}

}  // namespace cumulus
