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

/// Sums several values over the warp at once, 8 of them in 9 exchanges instead of 40: each step halves the
/// values that a lane has. The lane gets the sum of value number lane_index() / (32 / kCount).
template <int kCount, class T>
__device__ T warp_sums(T (&values)[kCount]) {
  int distance = 16;
#pragma unroll
  for (int half = kCount / 2; half > 0; half /= 2, distance /= 2) {
    const bool upper = (lane_index() & distance) != 0;
#pragma unroll
    for (int k = 0; k < half; ++k) {
      const T kept = upper ? values[k + half] : values[k];
      const T given = upper ? values[k] : values[k + half];
      values[k] = kept + __shfl_xor_sync(kFullWarp, given, distance);
    }
  }
  T sum = values[0];
#pragma unroll
  for (; distance > 0; distance /= 2) sum += __shfl_xor_sync(kFullWarp, sum, distance);
  return sum;
}

/// Each value over the lanes up to and including this one, in aligned groups of kLanes: together, since each
/// step has to wait for the one before.
template <int kLanes = 32, int kCount, class T>
__device__ void warp_inclusive_sums(T (&values)[kCount]) {
#pragma unroll
  for (int distance = 1; distance < kLanes; distance *= 2) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const T before = __shfl_up_sync(kFullWarp, values[i], distance, kLanes);
      if (lane_index() % kLanes >= distance) values[i] += before;
    }
  }
}

/// What the lane before this one has, in aligned groups of kLanes; 0 for the first: of an inclusive sum the
/// exclusive one.
template <int kLanes = 32, class T>
__device__ T before_lane(T inclusive) {
  const T before = __shfl_up_sync(kFullWarp, inclusive, 1, kLanes);
  return lane_index() % kLanes == 0 ? T{0} : before;
}

}  // namespace cumulus
