#pragma once

#include <cstdint>

#include "bench/baselines/sampling_table_retired.h"
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

/// Which searches to make, in the first row of a table of any method but kAlias, in device memory.
struct SearchJob {
  sampling::TableView table;
  Search search;
  DeviceSpan<const std::uint32_t> nodes;  ///< retired_nodes
  std::uint32_t lanes;                    ///< Of each warp so many threads search, 1 or 32.
};

/// Adds up the numbers of the cells of each thread's points; `sums` has one a thread, 0 of those that do not
/// search.
void search_cells(CudaExecutor& executor, const SearchJob& job, DeviceSpan<std::uint32_t> sums);

}  // namespace cumulus::bench
