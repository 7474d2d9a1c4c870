#include <cuda_runtime.h>

#include "kernels/core/cuda_error.h"
#include "kernels/summed_area_table/look_back/launch.cuh"

namespace cumulus::summed_area_table {
namespace {

constexpr int kClearThreads = 256;

/// Owns: thread i the i-th 16 bytes of `scratch`.
/// Reads: nothing. Writes: zeros there.
/// Waits for: nothing of other blocks, so that it cannot deadlock. The kernel of tiles may begin before it
///   ends (programmatic dependent launch).
/// Source: none, a fill.
__global__ void __launch_bounds__(kClearThreads) clear_scratch(uint4* scratch, std::int64_t count) {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  const std::int64_t i = std::int64_t{blockIdx.x} * kClearThreads + threadIdx.x;
  if (i < count) scratch[i] = uint4{};
}

}  // namespace

void clear_before_table(CudaExecutor& executor, DeviceSpan<std::byte> scratch) {
  const auto words = static_cast<std::int64_t>(scratch.size() / sizeof(uint4));
  clear_scratch<<<static_cast<unsigned int>(divide_up(words, kClearThreads)), kClearThreads, 0,
                  executor.stream()>>>(reinterpret_cast<uint4*>(scratch.data()), words);
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace cumulus::summed_area_table
