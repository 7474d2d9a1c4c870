#pragma once

// Counts into offsets.

#include <cstdint>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

#include "kernels/core/cuda_error.h"
#include "kernels/core/views.h"
#include "kernels/kd_tree/tuning.h"

namespace cumulus::kd_tree {

/// The thread's neighbouring items of the block's tile; 0 beyond the end.
__device__ inline void load_tile(const std::int64_t* values, std::int64_t count, std::int64_t* items) {
  const std::int64_t first =
      std::int64_t{blockIdx.x} * kAccumulationTile + std::int64_t{threadIdx.x} * kAccumulationItems;
#pragma unroll
  for (int i = 0; i < kAccumulationItems; ++i) items[i] = first + i < count ? values[first + i] : 0;
}

/// Tile aggregates.
/// Owns: block b tile b of the values.
/// Reads: the tile.
/// Writes: sums[b].
/// Waits for: nothing of other blocks.
/// Cannot deadlock: all threads of a block reach its barriers.
/// Source: reduce-then-scan (Merrill and Garland 2016), with CUB's reductions and scans of a block.
__global__ void __launch_bounds__(kAccumulationThreads)
    sum_tiles(const std::int64_t* values, std::int64_t count, std::int64_t* sums) {
  using Reduce = cub::BlockReduce<std::int64_t, kAccumulationThreads>;
  __shared__ typename Reduce::TempStorage storage;
  std::int64_t items[kAccumulationItems];
  load_tile(values, count, items);
  const std::int64_t sum = Reduce(storage).Sum(items);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

/// Each tile aggregate becomes the exclusive prefix of its tile.
/// Owns: one block has all.
/// Reads: the tile aggregates.
/// Writes: the exclusive prefixes, in their place.
/// Waits for: nothing.
/// Cannot deadlock: its barriers are in a loop of as many rounds for each thread.
/// Source: reduce-then-scan (Merrill and Garland 2016), with CUB's reductions and scans of a block.
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

/// Values become inclusive sums.
/// Owns: block b tile b of the values.
/// Reads: the tile and its exclusive prefix.
/// Writes: the tile.
/// Waits for: nothing of other blocks, as the kernel before has written the prefixes.
/// Cannot deadlock: all threads of a block reach its barriers.
/// Source: reduce-then-scan (Merrill and Garland 2016), with CUB's reductions and scans of a block.
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

/// Each of `values`, at least one, becomes the inclusive sum. `tile_sums` has an element for each tile.
inline void accumulate(CUstream_st* stream, std::int64_t* values, std::int64_t count,
                       DeviceSpan<std::int64_t> tile_sums) {
  std::int64_t* sums = tile_sums.data();
  const auto tiles = static_cast<std::int64_t>(tile_sums.size());
  const auto blocks = static_cast<unsigned>(tiles);
  sum_tiles<<<blocks, kAccumulationThreads, 0, stream>>>(values, count, sums);
  scan_tiles<<<1, kAccumulationThreads, 0, stream>>>(sums, tiles);
  accumulate_tiles<<<blocks, kAccumulationThreads, 0, stream>>>(values, count, sums);
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace cumulus::kd_tree
