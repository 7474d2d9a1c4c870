#pragma once

// The threads of a block that builds a subtree, and their sums.

#include <cstdint>

#include "kernels/kd_tree/tuning.h"
#include "kernels/primitives/warp.cuh"
#include "kernels/primitives/warp_scan.cuh"

namespace cumulus::kd_tree {

/// The threads of a block, divided among the groups of points of a level: `size` (a power of two) consecutive
/// threads to a group, each with the same number of consecutive points.
struct ThreadGroup {
  unsigned count;  // groups of the block
  unsigned size;
  unsigned number;
  unsigned lane;

  __device__ ThreadGroup(unsigned groups)
      : count(groups), size(blockDim.x / groups), number(threadIdx.x / size), lane(threadIdx.x % size) {}
  __device__ bool leads() const { return lane == 0; }
};

/// The thread's points of its group, as places in shared memory.
struct ThreadPoints {
  std::uint16_t places[kMaxBlockItems];
  std::uint32_t count;
};

/// For every thread the sum over its group. `counters` has three words a group, all zero before the first
/// call of a series; `round` counts the calls of the series. The whole block calls this.
__device__ inline std::uint32_t group_sum(const ThreadGroup& group, std::uint32_t number,
                                          std::uint32_t* counters, unsigned round) {
  if (group.size < 32) {
    for (unsigned offset = group.size / 2; offset > 0; offset /= 2) {
      number += __shfl_xor_sync(kFullWarp, number, static_cast<int>(offset));
    }
    return number;
  }
  number = warp_sum(number);
  if (group.size == 32) return number;
  // Three words in rotation: this round's, the next one's, which no thread reads any more, and the last
  // one's.
  if (threadIdx.x % 32 == 0) atomicAdd(counters + (round % 3) * group.count + group.number, number);
  if (group.leads()) counters[((round + 1) % 3) * group.count + group.number] = 0;
  __syncthreads();
  return counters[(round % 3) * group.count + group.number];
}

/// For every thread the sum over the threads before it in the block. The whole block calls this; `warp_sums`
/// has 32 words.
__device__ inline std::uint32_t exclusive_block_sum(std::uint32_t number, std::uint32_t* warp_sums) {
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  const std::uint32_t inclusive = warp_inclusive_sum(number);
  if (lane == 31) warp_sums[warp] = inclusive;
  __syncthreads();
  if (warp == 0) {
    const std::uint32_t of_warp = lane < blockDim.x / 32 ? warp_sums[lane] : 0;
    warp_sums[lane] = warp_inclusive_sum(of_warp) - of_warp;
  }
  __syncthreads();
  return warp_sums[warp] + inclusive - number;
}

}  // namespace cumulus::kd_tree
