#pragma once

#include <cstddef>

#include "kernels/recursive_filter/recursive_filter_plan.h"

// What a run over a stretch of a line leaves, from nothing, is a sum of its pixels with known weights. Where
// both directions have the same poles, the anticausal state has the causal one's weights in reverse order,
// and two pixels at the same distance from the ends share multiplications:
//
//   causal     = sum_i together_i (x_i + x_{n-1-i}) + sum_i apart_i (x_i - x_{n-1-i})
//   anticausal = the same with a minus sign between the sums, i < n / 2.

namespace cumulus::recursive_filter {

/// Of `kPixels` pixels: for plans without_gains whose directions run_alike.
template <int Order, int kPixels>
struct LineSums {
  static_assert(kPixels % 2 == 0);
  static constexpr int kPairs = kPixels / 2;
  static constexpr int kTogether = 0, kApart = 1;

  alignas(16) float weights[kPairs][2][Order];

  explicit LineSums(const AxisPlan& plan) {
    StateVector of_pixel[kPixels];
    StateVector response = plan.causal.input;
    for (int i = kPixels - 1; i >= 0; --i) {
      of_pixel[i] = response;
      response = plan.causal.transition * response;
    }
    for (int i = 0; i < kPairs; ++i) {
      for (std::size_t k = 0; k < Order; ++k) {
        const long double first = of_pixel[i][k];
        const long double second = of_pixel[kPixels - 1 - i][k];
        weights[i][kTogether][k] = static_cast<float>((first + second) / 2);
        weights[i][kApart][k] = static_cast<float>((first - second) / 2);
      }
    }
  }
};

/// True where runs in both directions leave the same of a line and of the reversed line, but for their gains.
inline bool run_alike(const AxisPlan& plan) {
  for (int row = 0; row < plan.order; ++row) {
    for (int column = 0; column < plan.order; ++column) {
      if (plan.causal.transition.at(row, column) != plan.anticausal.transition.at(row, column)) return false;
    }
  }
  return true;
}

}  // namespace cumulus::recursive_filter
