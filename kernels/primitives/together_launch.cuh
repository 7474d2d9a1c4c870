#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/core/cuda_error.h"
#include "kernels/core/cuda_executor.h"

namespace cumulus {

/// Blocks of a kernel that the device holds at once.
template <class Kernel>
std::int64_t resident_blocks(const CudaExecutor& executor, Kernel* kernel, int threads,
                             std::size_t shared_bytes) {
  int blocks = 0;
  CUMULUS_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes));
  return std::int64_t{blocks} * executor.device().multiprocessors();
}

/// Starts a kernel whose blocks wait for each other: all of them run at once, or, where they do not fit, none
/// does and the result is false.
template <class Arguments>
bool launch_together(CudaExecutor& executor, void (*kernel)(Arguments), const dim3& blocks, int threads,
                     std::size_t shared_bytes, const Arguments& arguments) {
  cudaLaunchAttribute together{};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = static_cast<unsigned int>(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = executor.stream();
  config.attrs = &together;
  config.numAttrs = 1;
  const cudaError_t launched = cudaLaunchKernelEx(&config, kernel, arguments);
  if (launched == cudaErrorCooperativeLaunchTooLarge) {
    (void)cudaGetLastError();
    return false;
  }
  CUMULUS_CUDA(launched);
  return true;
}

template <class Arguments>
bool launch_together(CudaExecutor& executor, void (*kernel)(Arguments), std::int64_t blocks, int threads,
                     std::size_t shared_bytes, const Arguments& arguments) {
  return launch_together(executor, kernel, dim3(static_cast<unsigned int>(blocks)), threads, shared_bytes,
                         arguments);
}

}  // namespace cumulus
