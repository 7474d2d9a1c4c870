#pragma once

#include <cstdint>

#include "kernels/bracket_match/match/stack_change.cuh"
#include "kernels/bracket_match/match/stack_lookup.cuh"
#include "kernels/bracket_match/match/tile_memory.cuh"
#include "kernels/primitives/block_scan.cuh"
#include "kernels/primitives/warp_scan.cuh"

// Step 2 of matching: the scan of the tiles' stack changes, and the tree of minima over the tiles' bottoms.

namespace cumulus::bracket_match {

/// As many pops as there are elements empty any stack; added up over the tiles they stay below 2^63 up to
/// 2^37 elements.
__device__ inline StackChange<std::int64_t> change_of_tile(const DeviceTiles& tiles, std::int64_t tile) {
  if (tile >= tiles.count) return {};
  const StackChange<std::int32_t> change = tiles.change[tile];
  const std::int64_t everything = tiles.count * kTileItems;
  return {reaches_beyond_a_beginning(change.closes) ? everything : change.closes, change.opens};
}

/// The stack changes of a thread's tiles, and their aggregate.
struct ThreadTiles {
  std::int64_t first;
  StackChange<std::int64_t> changes[kScanTilesPerThread];
  StackChange<std::int64_t> sum;

  __device__ explicit ThreadTiles(const DeviceTiles& tiles)
      : first((std::int64_t{blockIdx.x} * kScanThreads + threadIdx.x) * kScanTilesPerThread) {
#pragma unroll
    for (int i = 0; i < kScanTilesPerThread; ++i) {
      changes[i] = change_of_tile(tiles, first + i);
      sum = compose(sum, changes[i]);
    }
  }
};

/// Step 2a, where there are several groups of tiles.
/// owns: block b has group b of kScanThreads * kScanTilesPerThread tiles.
/// reads: the tiles' stack changes.
/// writes: the group's aggregate.
/// waits for: nothing of other blocks, so that it cannot deadlock.
/// source: reduce-then-scan over the bicyclic monoid (Levien, 2021).
__global__ void __launch_bounds__(kScanThreads) sum_groups(const DeviceTiles tiles) {
  __shared__ StackChange<std::int64_t> warps[kScanThreads / 32];
  const auto scan = block_exclusive_scan<kScanThreads>(ThreadTiles(tiles).sum, StackChange<std::int64_t>{},
                                                       Compose{}, warps);
  if (threadIdx.x == 0) tiles.groups[blockIdx.x] = scan.total;
}

/// The stack's size before a group. By one warp.
__device__ inline std::int64_t depth_before_group(const DeviceTiles& tiles, std::int64_t group) {
  std::int64_t depth = 0;
#pragma unroll 1
  for (std::int64_t base = 0; base < group; base += 32) {
    const std::int64_t mine = base + threadIdx.x % 32;
    const auto through =
        warp_inclusive_scan(mine < group ? tiles.groups[mine] : StackChange<std::int64_t>{}, Compose{});
    depth = apply(warp_shuffle(through, 31), depth);
  }
  return depth;
}

/// The levels of the tree of minima above the first. By one block.
__device__ inline void build_upper_levels(const DeviceTiles& tiles) {
  std::int64_t below = divide_up(tiles.count, 32);
  for (int level = 2; level < tiles.tree.levels; ++level) {
    for (std::int64_t base = 0; base < below; base += kScanThreads) {
      const std::int64_t child = base + threadIdx.x;
      std::int64_t least = INT64_MAX;
      if (child < below) least = tiles.bottoms[tiles.tree.first[level - 1] + child];
      least = warp_min(least);
      if (child < below && child % 32 == 0) tiles.bottoms[tiles.tree.first[level] + child / 32] = least;
    }
    below = divide_up(below, 32);
    __syncthreads();
  }
}

/// Step 2b.
/// owns: block b has group b of the tiles.
/// reads: the tiles' stack changes, the aggregates of the groups before.
/// writes: each tile's depth and bottom, and the first level of the tree of minima; where there is one group,
///   the whole tree; the last block the final depth.
/// waits for: nothing of other blocks, so that it cannot deadlock; sum_groups has ended.
/// source: as sum_groups.
__global__ void __launch_bounds__(kScanThreads) scan_tiles(const DeviceTiles tiles, Findings* findings) {
  __shared__ StackChange<std::int64_t> warps[kScanThreads / 32];
  __shared__ std::int64_t depth_before;
  if (threadIdx.x < 32) {
    const std::int64_t before = depth_before_group(tiles, blockIdx.x);
    if (threadIdx.x == 0) depth_before = before;
  }
  const ThreadTiles own(tiles);
  const auto scan =  // synchronizes
      block_exclusive_scan<kScanThreads>(own.sum, StackChange<std::int64_t>{}, Compose{}, warps);
  std::int64_t depth = apply(scan.before, depth_before);
  std::int64_t least = INT64_MAX;
#pragma unroll
  for (int i = 0; i < kScanTilesPerThread; ++i) {
    if (own.first + i < tiles.count) {
      tiles.depth[own.first + i] = depth;
      const std::int64_t bottom = max(depth - own.changes[i].closes, std::int64_t{0});
      tiles.bottoms[own.first + i] = bottom;
      least = min(least, bottom);
    }
    depth = apply(own.changes[i], depth);
  }
  static_assert(kScanTilesPerThread == 4, "eight threads have the 32 tiles of a node");
  least = warp_min<8>(least);
  if (tiles.tree.levels > 1 && threadIdx.x % 8 == 0 && own.first < tiles.count) {
    tiles.bottoms[tiles.tree.first[1] + own.first / 32] = least;
  }
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0)
    findings->final_depth = apply(scan.total, depth_before);
  if (gridDim.x > 1) return;
  __syncthreads();
  build_upper_levels(tiles);
}

/// Step 2c, where there are several groups: the upper levels of the tree of minima.
/// owns: one block.
/// reads: the level below.
/// writes: the level.
/// waits for: nothing of other blocks, so that it cannot deadlock; scan_tiles has ended.
/// source: as scan_tiles.
__global__ void __launch_bounds__(kScanThreads) finish_tree(const DeviceTiles tiles) {
  build_upper_levels(tiles);
}

}  // namespace cumulus::bracket_match
