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
/// does and the result is false. Neighbours along x may be clusters.
template <class Arguments>
bool launch_together(CudaExecutor& executor, void (*kernel)(Arguments), const dim3& blocks, int threads,
                     std::size_t shared_bytes, const Arguments& arguments, int cluster_blocks = 1) {
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeCooperative;
  attributes[0].val.cooperative = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {static_cast<unsigned int>(cluster_blocks), 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = static_cast<unsigned int>(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = executor.stream();
  config.attrs = attributes;
  config.numAttrs = cluster_blocks > 1 ? 2 : 1;
  if (cluster_blocks > 1) {
    // A cooperative launch counts multiprocessors; clusters need neighbouring ones.
    int clusters = 0;
    CUMULUS_CUDA(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config));
    if (std::int64_t{blocks.x} * blocks.y * blocks.z > std::int64_t{clusters} * cluster_blocks) return false;
  }
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
                     std::size_t shared_bytes, const Arguments& arguments, int cluster_blocks = 1) {
  return launch_together(executor, kernel, dim3(static_cast<unsigned int>(blocks)), threads, shared_bytes,
                         arguments, cluster_blocks);
}

}  // namespace cumulus
