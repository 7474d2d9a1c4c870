#pragma once

#include "kernels/recursive_filter/gpu/carries.cuh"
#include "kernels/recursive_filter/math/weighted_sums.h"

// Sums of a thread's pixels in place of runs over them: fewer operations, none of which waits for the one
// before.

namespace cumulus::recursive_filter {

/// What runs over a thread's pixels leave. They are summed a stretch at a time: its weights are few enough to
/// stay in uniform registers for all stretches.
template <int Order>
struct StretchSums {
  static constexpr int kPixels = 16;

  LineSums<Order, kPixels> of_stretch;
  SmallMatrix<Order, float> over_stretch;

  explicit StretchSums(const AxisPlan& plan)
      : of_stretch(plan), over_stretch(small_matrix<Order, float>(power(plan.causal.transition, kPixels))) {}

  template <int kAll>
  __device__ void find(const float (&pixels)[kAll], float (&causal)[Order],
                       float (&anticausal)[Order]) const {
    static_assert(kAll % kPixels == 0);
    find_left(pixels, 0, 1, causal);
    find_left(pixels, kAll - kPixels, -1, anticausal);
#pragma unroll
    for (int from = kPixels; from < kAll; from += kPixels) {
      float left[Order];
      find_left(pixels, from, 1, left);
      move_over(over_stretch, left, causal);
      find_left(pixels, kAll - kPixels - from, -1, left);
      move_over(over_stretch, left, anticausal);
    }
  }

 private:
  /// What a run over the stretch from pixel `from` on leaves; `sign`: 1 causally, -1 anticausally.
  template <int kAll>
  __device__ void find_left(const float (&pixels)[kAll], int from, float sign, float (&left)[Order]) const {
    float apart[Order] = {};
#pragma unroll
    for (int k = 0; k < Order; ++k) left[k] = 0;
#pragma unroll
    for (int i = 0; i < of_stretch.kPairs; ++i) {
      const float near = pixels[from + i];
      const float far = pixels[from + kPixels - 1 - i];
#pragma unroll
      for (int k = 0; k < Order; ++k) {
        left[k] += of_stretch.weights[i][of_stretch.kTogether][k] * (near + far);
        apart[k] += of_stretch.weights[i][of_stretch.kApart][k] * (near - far);
      }
    }
#pragma unroll
    for (int k = 0; k < Order; ++k) left[k] += sign * apart[k];
  }
};

}  // namespace cumulus::recursive_filter
