#pragma once

// Sums and scans over the lanes of a warp, all of which take part.

namespace cumulus::summed_area_table {

__device__ inline int lane_index() { return static_cast<int>(threadIdx.x % 32); }
__device__ inline int warp_index() { return static_cast<int>(threadIdx.x / 32); }

template <class Sum>
__device__ Sum warp_sum(Sum value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
  return value;
}

/// Sums several values over the warp at once, 8 of them in 9 exchanges instead of 40: each step halves the
/// values that a lane has. The lane gets the sum of value number lane_index() / (32 / kCount).
template <int kCount, class Sum>
__device__ Sum warp_sums(Sum (&values)[kCount]) {
  int distance = 16;
#pragma unroll
  for (int half = kCount / 2; half > 0; half /= 2, distance /= 2) {
    const bool upper = (lane_index() & distance) != 0;
#pragma unroll
    for (int k = 0; k < half; ++k) {
      const Sum kept = upper ? values[k + half] : values[k];
      const Sum given = upper ? values[k] : values[k + half];
      values[k] = kept + __shfl_xor_sync(~0u, given, distance);
    }
  }
  Sum sum = values[0];
#pragma unroll
  for (; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  return sum;
}

template <class Sum>
__device__ Sum warp_inclusive_scan(Sum value) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const Sum before = __shfl_up_sync(~0u, value, distance);
    if (lane_index() >= distance) value += before;
  }
  return value;
}

template <class Sum>
__device__ Sum before_lane(Sum inclusive) {
  const Sum before = __shfl_up_sync(~0u, inclusive, 1);
  return lane_index() == 0 ? Sum{0} : before;
}

}  // namespace cumulus::summed_area_table
