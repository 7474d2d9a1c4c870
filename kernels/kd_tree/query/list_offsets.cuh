#pragma once

// Counts into offsets.

#include <cstdint>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "kernels/core/cuda_error.h"
#include "kernels/kd_tree/query/plan.h"

namespace cumulus::kd_tree {

inline constexpr int kAccumulationTile = kAccumulationThreads * kAccumulationItems;

/// The thread's neighbouring items of the block's tile; 0 beyond the end.
__device__ inline void load_tile(const std::int64_t* values, std::int64_t count, std::int64_t* items) {
  const std::int64_t first =
      std::int64_t{blockIdx.x} * kAccumulationTile + std::int64_t{threadIdx.x} * kAccumulationItems;
#pragma unroll
  for (int i = 0; i < kAccumulationItems; ++i) items[i] = first + i < count ? values[first + i] : 0;
}

__global__ void __launch_bounds__(kAccumulationThreads)
    sum_tiles(const std::int64_t* values, std::int64_t count, std::int64_t* sums) {
  using Reduce = cub::BlockReduce<std::int64_t, kAccumulationThreads>;
  __shared__ typename Reduce::TempStorage storage;
  std::int64_t items[kAccumulationItems];
  load_tile(values, count, items);
  const std::int64_t sum = Reduce(storage).Sum(items);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

/// One block: each tile's sum becomes that of the tiles before it.
__global__ void __launch_bounds__(kAccumulationThreads) scan_tiles(std::int64_t* sums, std::int64_t tiles) {
  using Scan = cub::BlockScan<std::int64_t, kAccumulationThreads>;
  __shared__ typename Scan::TempStorage storage;
  std::int64_t before = 0;
  for (std::int64_t first = 0; first < tiles; first += kAccumulationThreads) {
    const std::int64_t tile = first + threadIdx.x;
    std::int64_t sum = tile < tiles ? sums[tile] : 0;
    std::int64_t total = 0;
    Scan(storage).ExclusiveSum(sum, sum, total);
    if (tile < tiles) sums[tile] = before + sum;
    before += total;
    __syncthreads();  // before the next round's use of the storage
  }
}

__global__ void __launch_bounds__(kAccumulationThreads)
    accumulate_tiles(std::int64_t* values, std::int64_t count, const std::int64_t* sums) {
  using Scan = cub::BlockScan<std::int64_t, kAccumulationThreads>;
  __shared__ typename Scan::TempStorage storage;
  std::int64_t items[kAccumulationItems];
  load_tile(values, count, items);
  Scan(storage).InclusiveSum(items, items);
  const std::int64_t first =
      std::int64_t{blockIdx.x} * kAccumulationTile + std::int64_t{threadIdx.x} * kAccumulationItems;
#pragma unroll
  for (int i = 0; i < kAccumulationItems; ++i) {
    if (first + i < count) values[first + i] = sums[blockIdx.x] + items[i];
  }
}

/// Each of `values`, at least one, becomes the sum of those up to it. `sums` has room for each tile.
inline void accumulate(CUstream_st* stream, std::int64_t* values, std::int64_t count, std::int64_t* sums) {
  const std::int64_t tiles = accumulation_tiles(count);
  const auto blocks = static_cast<unsigned>(tiles);
  sum_tiles<<<blocks, kAccumulationThreads, 0, stream>>>(values, count, sums);
  scan_tiles<<<1, kAccumulationThreads, 0, stream>>>(sums, tiles);
  accumulate_tiles<<<blocks, kAccumulationThreads, 0, stream>>>(values, count, sums);
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace cumulus::kd_tree
