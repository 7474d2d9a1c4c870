#pragma once

#include "kernels/recursive_filter/strips/arguments.h"
#include "kernels/recursive_filter/strips/tile.cuh"

namespace cumulus::recursive_filter {

/// Filters a line of a tile.
template <int Order, int kSide, class Line>
__device__ __forceinline__ void ascend_causally(const StripAxis<Order, kSide>& axis, const Line& line,
                                                float (&state)[Order]) {
  constexpr int kHalf = kStripChunk<Order, kSide> / 2;
  const auto filter = [&](float(&v)[kHalf], int) {
#pragma unroll
    for (int k = 0; k < kHalf; ++k) axis.causal.template filter_unit_gain<true>(state, v[k]);
  };
  ascend<kSide, kHalf>(
      line, [&](float(&v)[kHalf]) { filter(v, 0); }, filter);
}
/// From the line's last pixels on, which are there already.
template <int Order, int kSide, int kHalf, class Line>
__device__ __forceinline__ void descend_anticausally(const StripAxis<Order, kSide>& axis, const Line& line,
                                                     float (&last)[kHalf], float (&state)[Order]) {
  descend<kSide>(line, last, [&](float(&v)[kHalf]) {
#pragma unroll
    for (int k = kHalf - 1; k >= 0; --k) axis.anticausal.template filter_unit_gain<true>(state, v[k]);
  });
}

}  // namespace cumulus::recursive_filter
