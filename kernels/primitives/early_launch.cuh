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

/// In a kernel before one that launch_early starts: that one may begin, and wait, once all blocks have come
/// here or ended.
__device__ inline void allow_kernel_behind() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/// Whether `kernel`, as it runs on the current device, is compiled to wait: others must not begin early.
template <class... Parameters>
bool can_begin_early(void (*kernel)(Parameters...)) {
  cudaFuncAttributes compiled{};
  CUMULUS_CUDA(cudaFuncGetAttributes(&compiled, kernel));
  return compiled.ptxVersion >= 90;
}

/// Puts `kernel` on the stream; with `early` it may begin before the one in front of it has ended.
template <class... Parameters, class... Arguments>
void launch_kernel(void (*kernel)(Parameters...), std::int64_t blocks, int threads, std::size_t shared_bytes,
                   cudaStream_t stream, bool early, const Arguments&... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = static_cast<unsigned int>(blocks);
  config.blockDim = static_cast<unsigned int>(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = early ? 1 : 0;
  CUMULUS_CUDA(cudaLaunchKernelEx(&config, kernel, arguments...));
}

/// Starts a kernel that calls wait_for_kernel_before, early where it has been compiled to wait.
template <auto kKernel, class... Arguments>
void launch_early(std::int64_t blocks, int threads, std::size_t shared_bytes, cudaStream_t stream,
                  const Arguments&... arguments) {
  static const bool waits = can_begin_early(kKernel);
  launch_kernel(kKernel, blocks, threads, shared_bytes, stream, waits, arguments...);
}

}  // namespace cumulus
