#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/cuda_executor.h"

// What builds for one frame are measured against: one radix sort of 32-bit keys and indices, CUB's.

namespace cumulus::bench {

std::size_t sort_pairs_bytes(std::int64_t count);

struct SortPairsJob {
  const std::uint32_t* keys;
  std::uint32_t* sorted_keys;
  const std::uint32_t* indices;
  std::uint32_t* sorted_indices;
  std::int64_t count;
};

/// In sort_pairs_bytes(count) bytes.
void sort_pairs(CudaExecutor& executor, const SortPairsJob& job, DeviceSpan<std::byte> scratch);

}  // namespace cumulus::bench
