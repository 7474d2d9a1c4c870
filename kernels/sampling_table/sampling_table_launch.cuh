#pragma once

#include "kernels/core/cuda_executor.h"

// Launching kernels that need much shared memory, or begin before the one in front of them has ended.

namespace cumulus::sampling_launch {

/// What a block may have at most, static and dynamic shared memory together.
inline std::size_t most_shared_bytes(const CudaExecutor& executor) {
  int limit = 0;
  CUMULUS_CUDA(
      cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, executor.device().ordinal()));
  return static_cast<std::size_t>(limit);
}

/// Whether a kernel can begin early on the executor's device.
inline bool begins_early(const CudaExecutor& executor) {
  int major = 0;
  CUMULUS_CUDA(
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, executor.device().ordinal()));
  return major >= 9;
}

/// Puts `kernel` on the executor's stream. With `early`, it may begin, where the device can, when all blocks
/// of the kernel before it have called tell_dependent, or ended; it calls wait_for_told before it reads what
/// they have written, and wait_for_end before it ends.
template <class... Parameters, class... Arguments>
void launch(const CudaExecutor& executor, void (*kernel)(Parameters...), unsigned blocks, int threads,
            std::size_t dynamic_bytes, bool early, const Arguments&... arguments) {
  CUMULUS_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(dynamic_bytes)));
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = dynamic_bytes;
  config.stream = executor.stream();
  config.attrs = &attribute;
  config.numAttrs = early && begins_early(executor) ? 1 : 0;
  CUMULUS_CUDA(cudaLaunchKernelEx(&config, kernel, arguments...));
}

/// By one thread of a block: what it has written may be read by the kernel behind. `told` counts the blocks;
/// it begins with all ones.
__device__ inline void tell_dependent(std::uint32_t* told) {
  __threadfence();
  atomicAdd(told, 1u);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// By a whole block, before it reads what so many blocks have told of. They have begun, and wait for nothing.
__device__ inline void wait_for_told(const std::uint32_t* told, std::uint32_t blocks) {
  if (threadIdx.x == 0) {
    while (*static_cast<const volatile std::uint32_t*>(told) != blocks - 1) __nanosleep(100);
    __threadfence();
  }
  __syncthreads();
}

/// By a whole block: the kernel before has ended, and what it has written is there.
__device__ inline void wait_for_end() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace cumulus::sampling_launch
