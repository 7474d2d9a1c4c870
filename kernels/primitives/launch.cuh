#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "kernels/core/cuda_error.h"
#include "kernels/core/cuda_executor.h"

// Launching kernels: plain; cooperative, where blocks wait for each other; and programmatic dependent, where
// the secondary kernel is on the multiprocessors before the primary one, which is in front of it, has ended.

namespace cumulus {

struct LaunchShape {
  dim3 blocks;
  int threads;
  std::size_t shared_bytes;  // dynamic
  int cluster_blocks;        // neighbours along x

  LaunchShape(const dim3& grid, int threads_of_block, std::size_t dynamic_shared_bytes = 0,
              int blocks_of_cluster = 1)
      : blocks(grid),
        threads(threads_of_block),
        shared_bytes(dynamic_shared_bytes),
        cluster_blocks(blocks_of_cluster) {}
  LaunchShape(std::int64_t grid, int threads_of_block, std::size_t dynamic_shared_bytes = 0,
              int blocks_of_cluster = 1)
      : LaunchShape(dim3(static_cast<unsigned int>(grid)), threads_of_block, dynamic_shared_bytes,
                    blocks_of_cluster) {}

  std::int64_t count() const { return std::int64_t{blocks.x} * blocks.y * blocks.z; }
  cudaLaunchConfig_t on(cudaStream_t stream) const {
    cudaLaunchConfig_t config{};
    config.gridDim = blocks;
    config.blockDim = static_cast<unsigned int>(threads);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    return config;
  }
};

/// How much dynamic shared memory the kernels of this process may have, by kernel and device. The limit is
/// one of the kernel, not of a launch, so it is only ever raised: a thread that launches with less must not
/// take from one that is about to launch with more. By any thread.
class DynamicSharedLimits {
 public:
  static DynamicSharedLimits& of_process() {
    static DynamicSharedLimits limits;
    return limits;
  }

  /// On the current device; false where no block of it can have so much.
  bool raise(const void* kernel, std::size_t bytes) {
    int device = 0;
    CUMULUS_CUDA(cudaGetDevice(&device));
    const std::lock_guard<std::mutex> lock(mutex_);
    auto limit = limits_.find({kernel, device});
    if (limit == limits_.end()) limit = limits_.insert({{kernel, device}, limit_of(kernel)}).first;
    if (bytes <= limit->second) return true;
    const cudaError_t raised =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    if (raised == cudaErrorInvalidValue) {
      (void)cudaGetLastError();
      return false;
    }
    CUMULUS_CUDA(raised);
    limit->second = bytes;
    return true;
  }

 private:
  static std::size_t limit_of(const void* kernel) {
    cudaFuncAttributes attributes{};
    CUMULUS_CUDA(cudaFuncGetAttributes(&attributes, kernel));
    return static_cast<std::size_t>(attributes.maxDynamicSharedSizeBytes);
  }

  std::mutex mutex_;
  std::map<std::pair<const void*, int>, std::size_t> limits_;  // of kernel and device
};

/// Lets a kernel have so much dynamic shared memory; false where no block of the device can. The launches
/// below do so themselves.
template <class... Parameters>
bool allow_dynamic_shared(void (*kernel)(Parameters...), std::size_t bytes) {
  return bytes == 0 || DynamicSharedLimits::of_process().raise(reinterpret_cast<const void*>(kernel), bytes);
}

/// Blocks of a kernel that the device holds at once.
template <class... Parameters>
std::int64_t resident_blocks(const CudaExecutor& executor, void (*kernel)(Parameters...), int threads,
                             std::size_t shared_bytes) {
  if (!allow_dynamic_shared(kernel, shared_bytes)) return 0;
  int blocks = 0;
  CUMULUS_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes));
  return std::int64_t{blocks} * executor.device().multiprocessors();
}

/// Puts a kernel on the stream.
template <class... Parameters, class... Arguments>
void launch(cudaStream_t stream, void (*kernel)(Parameters...), const LaunchShape& shape,
            const Arguments&... arguments) {
  (void)allow_dynamic_shared(kernel, shape.shared_bytes);  // where it is false, the launch fails
  const cudaLaunchConfig_t config = shape.on(stream);
  CUMULUS_CUDA(cudaLaunchKernelEx(&config, kernel, arguments...));
}

/// Puts a kernel on the stream whose blocks, shape.cluster_blocks of them, are resident together.
template <class... Parameters, class... Arguments>
void launch_cluster(cudaStream_t stream, void (*kernel)(Parameters...), const LaunchShape& shape,
                    const Arguments&... arguments) {
  (void)allow_dynamic_shared(kernel, shape.shared_bytes);  // where it is false, the launch fails
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {static_cast<unsigned int>(shape.cluster_blocks), 1, 1};
  cudaLaunchConfig_t config = shape.on(stream);
  config.attrs = &attribute;
  config.numAttrs = shape.cluster_blocks > 1 ? 1 : 0;
  CUMULUS_CUDA(cudaLaunchKernelEx(&config, kernel, arguments...));
}

/// Launches a kernel whose blocks wait for each other: all of them are resident at once, or, where they do
/// not fit, none is and the result is false.
template <class Argument>
bool launch_cooperative(const CudaExecutor& executor, void (*kernel)(Argument), const LaunchShape& shape,
                        const Argument& argument) {
  if (!allow_dynamic_shared(kernel, shape.shared_bytes)) return false;
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeCooperative;
  attributes[0].val.cooperative = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim = {static_cast<unsigned int>(shape.cluster_blocks), 1, 1};
  cudaLaunchConfig_t config = shape.on(executor.stream());
  config.attrs = attributes;
  config.numAttrs = shape.cluster_blocks > 1 ? 2 : 1;
  if (shape.cluster_blocks > 1) {
    // A cooperative launch counts multiprocessors; clusters need neighbouring ones.
    int clusters = 0;
    CUMULUS_CUDA(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config));
    if (shape.count() > std::int64_t{clusters} * shape.cluster_blocks) return false;
  }
  const cudaError_t launched = cudaLaunchKernelEx(&config, kernel, argument);
  if (launched == cudaErrorCooperativeLaunchTooLarge) {
    (void)cudaGetLastError();
    return false;
  }
  CUMULUS_CUDA(launched);
  return true;
}

/// In a secondary kernel, before it touches device memory that kernels before it write: waits for the primary
/// one to end.
__device__ inline void wait_for_primary_kernel() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

/// In a primary kernel: the secondary one may begin, and wait, once all blocks have come here or ended.
__device__ inline void allow_secondary_kernel() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/// Whether `kernel`, as it runs on the current device, is compiled to wait: others must not begin early.
template <class... Parameters>
bool waits_for_primary_kernel(void (*kernel)(Parameters...)) {
  cudaFuncAttributes compiled{};
  CUMULUS_CUDA(cudaFuncGetAttributes(&compiled, kernel));
  return compiled.ptxVersion >= 90;
}

/// Puts a kernel that calls wait_for_primary_kernel on the stream: where it is compiled to wait, it may begin
/// before the one in front of it has ended.
template <auto kKernel, class... Arguments>
void launch_dependent(cudaStream_t stream, const LaunchShape& shape, const Arguments&... arguments) {
  static const bool waits = waits_for_primary_kernel(kKernel);
  (void)allow_dynamic_shared(kKernel, shape.shared_bytes);  // where it is false, the launch fails
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = shape.on(stream);
  config.attrs = &attribute;
  config.numAttrs = waits ? 1 : 0;
  CUMULUS_CUDA(cudaLaunchKernelEx(&config, kKernel, arguments...));
}

}  // namespace cumulus
