#pragma once

#include <cstdint>

#include "kernels/primitives/warp.cuh"

// Sums, minima and maxima over the lanes of a warp. By whole warps.

namespace cumulus {

/// Over the lanes up to and including this one; right in the first kLanes, a power of two, whose values
/// count.
template <int kLanes = 32, class T>
__device__ T warp_inclusive_sum(T value) {
#pragma unroll
  for (int distance = 1; distance < kLanes; distance *= 2) {
    const T before = __shfl_up_sync(kFullWarp, value, distance);
    if (lane_index() >= distance) value += before;
  }
  return value;
}

/// Over the lanes up to and including this one.
template <class T>
__device__ T warp_inclusive_min(T value) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    value =
        min(value, __shfl_up_sync(kFullWarp, value, distance));  // a lane without one before it gets its own
  }
  return value;
}

/// Over the lanes up to and including this one.
template <class T>
__device__ T warp_inclusive_max(T value) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    value = max(value, __shfl_up_sync(kFullWarp, value, distance));
  }
  return value;
}

/// Over this lane and those behind it.
template <class T>
__device__ T warp_suffix_min(T value) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    value = min(value, __shfl_down_sync(kFullWarp, value, distance));
  }
  return value;
}

/// Over all lanes, to each.
template <class T>
__device__ T warp_max(T value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value = max(value, __shfl_xor_sync(kFullWarp, value, distance));
  }
  return value;
}

/// Over aligned groups of kLanes, a power of two, to each.
template <int kLanes = 32, class T>
__device__ T warp_min(T value) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    value = min(value, __shfl_xor_sync(kFullWarp, value, distance));
  }
  return value;
}

/// Over all lanes, to each.
template <class T>
__device__ T warp_sum(T value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(kFullWarp, value, distance);
  return value;
}

/// Over all lanes, to each: of 32-bit numbers by one instruction, where the architecture has it.
__device__ inline std::uint32_t warp_sum(std::uint32_t value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(kFullWarp, value);
#else
  return warp_sum<std::uint32_t>(value);
#endif
}
__device__ inline std::uint32_t warp_min(std::uint32_t value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(kFullWarp, value);
#else
  return warp_min<32>(value);
#endif
}
__device__ inline std::uint32_t warp_max(std::uint32_t value) { return ~warp_min(~value); }

}  // namespace cumulus
