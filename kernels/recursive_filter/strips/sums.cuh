#pragma once

#include "kernels/recursive_filter/gpu/carries.cuh"
#include "kernels/recursive_filter/strips/arguments.h"
#include "kernels/recursive_filter/strips/tile.cuh"

namespace cumulus::recursive_filter {

template <int Order>
__device__ void add_weighted(const float (&weights)[Order], float pixel, float (&state)[Order]) {
#pragma unroll
  for (int k = 0; k < Order; ++k) state[k] += weights[k] * pixel;
}

/// Adds up what anticausal runs over the stretches of a line leave, from the first stretch to the last. A
/// matrix that differs from stretch to stretch is waited for, so what a few stretches leave is kept until the
/// end.
template <int Order>
class LeftByStretches {
 public:
  __device__ void add(const StripAxis<Order>& axis, int stretch, const float (&left)[Order],
                      float (&total)[Order]) {
    if constexpr (kKept) {
#pragma unroll
      for (int j = 0; j + 1 < kStretches; ++j) {
#pragma unroll
        for (int k = 0; k < Order; ++k) left_[j][k] = left_[j + 1][k];
      }
#pragma unroll
      for (int k = 0; k < Order; ++k) left_[kStretches - 1][k] = left[k];
    } else {
      axis.over_stretches[stretch].add_product(left, total);
    }
  }
  __device__ void finish(const StripAxis<Order>& axis, float (&total)[Order]) const {
    if constexpr (kKept) {
      float sum[Order] = {};
#pragma unroll
      for (int j = kStretches - 1; j >= 0; --j) move_over(axis.over_stretches[1], left_[j], sum);
#pragma unroll
      for (int k = 0; k < Order; ++k) total[k] += sum[k];
    }
  }

 private:
  static constexpr int kStretches = kTile / kStripStretch<Order>;
  static constexpr bool kKept = kStretches <= 4;

  float left_[kKept ? kStretches : 1][Order] = {};
};

/// Adds what runs over a row of a tile leave to what runs so far have left of the rows before and after it,
/// of a filter whose directions run_alike.
template <int Order, class Row>
__device__ __forceinline__ void sum_row(const StripAxis<Order>& axis, const Row& row, float (&forward)[Order],
                                        float (&backward)[Order]) {
  constexpr int kStretch = kStripStretch<Order>;
  using Sums = LineSums<Order, kStretch>;
  LeftByStretches<Order> by_stretches;
#pragma unroll 1
  for (int j = 0; j < kTile / kStretch; ++j) {
    float v[kStretch];
    row.load(j * kStretch, v);
    float ahead[Order] = {};
    float apart[Order] = {};
#pragma unroll
    for (int i = 0; i < Sums::kPairs; ++i) {
      const float other = v[kStretch - 1 - i];
      add_weighted(axis.sums.weights[i][Sums::kTogether], v[i] + other, ahead);
      add_weighted(axis.sums.weights[i][Sums::kApart], v[i] - other, apart);
    }
    float left[Order];
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      left[k] = ahead[k] - apart[k];
      ahead[k] += apart[k];
    }
    move_over(axis.over_stretches[1], ahead, forward);
    by_stretches.add(axis, j, left, backward);
  }
  by_stretches.finish(axis, backward);
}
/// The same by runs.
template <int Order, class Row>
__device__ __forceinline__ void run_over_row(const StripAxis<Order>& axis, const Row& row,
                                             float (&forward)[Order], float (&backward)[Order]) {
  constexpr int kStretch = kStripStretch<Order>;
#pragma unroll 1
  for (int j = 0; j < kTile / kStretch; ++j) {
    float v[kStretch];
    row.load(j * kStretch, v);
    float left[Order] = {};
#pragma unroll
    for (int k = 0; k < kStretch; ++k) {
      axis.causal.advance_unscaled(forward, v[k]);
      axis.anticausal.advance_unscaled(left, v[kStretch - 1 - k]);
    }
    axis.over_stretches[j].add_product(left, backward);
  }
}

}  // namespace cumulus::recursive_filter
