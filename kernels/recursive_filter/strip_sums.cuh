#pragma once

#include "kernels/recursive_filter/strip_filter.h"
#include "kernels/recursive_filter/tile_carries.cuh"

namespace cumulus::recursive_filter {

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

}  // namespace cumulus::recursive_filter
