#pragma once

// Tiles of the segments of a level.

#include <cstdint>

#include "kernels/kd_tree/build/layout.h"
#include "kernels/primitives/warp_scan.cuh"

namespace cumulus::kd_tree {

/// A block's tile: `count` points from `first` on, of `segment`.
struct Tile {
  std::int64_t segment;
  std::int64_t number;  // within its segment
  std::int64_t first;   // within its segment
  int count;
};
template <class Key>
__device__ Tile block_tile(const Segment<Key>* segments, std::int64_t tiles) {
  const std::int64_t segment = blockIdx.x / tiles;
  const std::int64_t number = blockIdx.x - segment * tiles;
  const std::int64_t first = number * kTilePoints;
  const std::int64_t rest = segments[segment].count - first;
  return {segment, number, first, static_cast<int>(rest < 0 ? 0 : min(rest, std::int64_t{kTilePoints}))};
}

/// The sum of the threads' numbers, to every thread. `memory` has a word for each warp.
__device__ inline std::uint32_t block_sum(std::uint32_t number, std::uint32_t* memory) {
  const std::uint32_t of_warp = warp_sum(number);
  __syncthreads();  // `memory` may still be read from the call before
  if (threadIdx.x % 32 == 0) memory[threadIdx.x / 32] = of_warp;
  __syncthreads();
  std::uint32_t sum = 0;
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) sum += memory[warp];
  return sum;
}

}  // namespace cumulus::kd_tree
