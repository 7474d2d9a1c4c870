#include <cub/device/device_radix_sort.cuh>

#include "bench/baselines/kd_tree_sort.h"
#include "kernels/core/cuda_error.h"

namespace cumulus::bench {

std::size_t sort_pairs_bytes(std::int64_t count) {
  std::size_t bytes = 0;
  const std::uint32_t* none = nullptr;
  std::uint32_t* nowhere = nullptr;
  CUMULUS_CUDA(cub::DeviceRadixSort::SortPairs(nullptr, bytes, none, nowhere, none, nowhere, count));
  return bytes;
}

void sort_pairs(CudaExecutor& executor, const SortPairsJob& job, DeviceSpan<std::byte> scratch) {
  std::size_t bytes = scratch.size();
  CUMULUS_CUDA(cub::DeviceRadixSort::SortPairs(scratch.data(), bytes, job.keys, job.sorted_keys, job.indices,
                                               job.sorted_indices, job.count, 0, 32, executor.stream()));
}

}  // namespace cumulus::bench
