#pragma once

#include <cstdint>

#include "cumulus/sampling.h"
#include "kernels/core/cuda_executor.h"

// What it takes to find the cells of points, and nothing else: a warp is ready when the slowest of its 32
// searches is, the average of which is the third number of Binder and Keller's Table 1. Warps of which one
// thread searches are what its second number is about.

namespace cumulus::bench {

inline constexpr std::uint32_t kSearchesOfThread = 64;

/// Point `i` of a thread, as good as random (the finalizer of MurmurHash3, by A. Appleby).
CUMULUS_HOST_DEVICE inline std::uint32_t searched_point(std::uint32_t thread, std::uint32_t i) {
  std::uint32_t x = thread * kSearchesOfThread + i + 1;
  x = (x ^ x >> 16) * 0x85EBCA6Bu;
  x = (x ^ x >> 13) * 0xC2B2AE35u;
  return x ^ x >> 16;
}

/// Adds up the numbers of the cells of each thread's points, in the first row of a table of any method but
/// kAlias; `sums` has one a thread, in device memory. Of each warp the first `lanes` threads search, 1 or 32;
/// the sums of the others are 0.
void search_cells(CudaExecutor& executor, const sampling::TableHeader& header,
                  DeviceSpan<const std::byte> table, DeviceSpan<std::uint32_t> sums, std::uint32_t lanes);

}  // namespace cumulus::bench
