#pragma once

#include <cstdint>

#include "kernels/bracket_match/scratch.h"

// The bicyclic monoid on the device: composition, and scans of it over a warp and a block.

namespace cumulus::bracket_match {

inline constexpr unsigned int kAllLanes = ~0u;

template <class Count>
__device__ StackChange<Count> compose(StackChange<Count> first, StackChange<Count> second) {
  const Count matched = min(first.opens, second.closes);
  return {first.closes + second.closes - matched, first.opens - matched + second.opens};
}

/// The stack's size after `change`.
template <class Count>
__device__ Count apply(StackChange<Count> change, Count depth) {
  return max(depth - change.closes, Count{0}) + change.opens;
}

template <class Count>
__device__ StackChange<Count> shuffle_up(StackChange<Count> change, int lanes) {
  return {__shfl_up_sync(kAllLanes, change.closes, lanes), __shfl_up_sync(kAllLanes, change.opens, lanes)};
}
template <class Count>
__device__ StackChange<Count> shuffle(StackChange<Count> change, int lane) {
  return {__shfl_sync(kAllLanes, change.closes, lane), __shfl_sync(kAllLanes, change.opens, lane)};
}

/// Each lane gets all lanes up to itself.
template <class Count>
__device__ StackChange<Count> warp_prefix(StackChange<Count> change) {
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const StackChange<Count> before = shuffle_up(change, distance);
    if (lane >= distance) change = compose(before, change);
  }
  return change;
}

/// Each thread gets all threads before it, `total` all of them. `warps` is shared memory, one element a
/// warp; it may be written again after the next __syncthreads.
template <int kThreads, class Count>
__device__ StackChange<Count> block_exclusive_prefix(StackChange<Count> change, StackChange<Count>* warps,
                                                     StackChange<Count>& total) {
  constexpr int kWarps = kThreads / 32;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const StackChange<Count> through = warp_prefix(change);
  if (lane == 31) warps[warp] = through;
  __syncthreads();
  const StackChange<Count> scanned = warp_prefix(lane < kWarps ? warps[lane] : StackChange<Count>{});
  total = shuffle(scanned, kWarps - 1);
  StackChange<Count> warps_before = shuffle(scanned, max(warp - 1, 0));
  if (warp == 0) warps_before = {};
  StackChange<Count> lanes_before = shuffle_up(through, 1);
  if (lane == 0) lanes_before = {};
  return compose(warps_before, lanes_before);
}

inline __device__ int highest_bit(std::uint32_t bits) { return 31 - __clz(static_cast<int>(bits)); }
inline __device__ int lowest_bit(std::uint32_t bits) { return __ffs(static_cast<int>(bits)) - 1; }

/// The position of the set bit that has `rank` set bits below it; there must be one.
inline __device__ int select_bit(std::uint32_t bits, int rank) {
  int position = 0;
#pragma unroll
  for (int width = 16; width > 0; width /= 2) {
    const int below = __popc(bits & ((1u << width) - 1));
    if (rank >= below) {
      rank -= below;
      position += width;
      bits >>= width;
    }
  }
  return position;
}

/// The `count` lowest set bits; count may be all of them.
inline __device__ std::uint32_t lowest_set_bits(std::uint32_t bits, int count) {
  if (count >= __popc(bits)) return bits;
  return bits & ((1u << select_bit(bits, count)) - 1);
}

}  // namespace cumulus::bracket_match
