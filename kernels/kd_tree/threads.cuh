#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/core/div.h"

// Kernels with a thread for each point, coordinate, word, segment or query.

namespace cumulus::kd_tree {

/// Blocks of builds, and how many of these have so many threads.
inline constexpr int kPointThreads = 256;
constexpr unsigned point_blocks(std::int64_t threads) {
  return static_cast<unsigned>(divide_up(threads, kPointThreads));
}

__device__ inline std::int64_t thread_number() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

}  // namespace cumulus::kd_tree
