#pragma once

#include <cstddef>

#include "kernels/recursive_filter/math/axis_plan.h"
#include "kernels/recursive_filter/tuning.h"

// The zero-state response of a chunk of a line is a sum of its pixels with known weights.
// Where both directions have the same poles, the anticausal state has the causal one's weights in reverse
// order, and two pixels at the same distance from the ends share multiplications:
//
//   causal     = sum_i together_i (x_i + x_{n-1-i}) + sum_i apart_i (x_i - x_{n-1-i})
//   anticausal = the same with a minus sign between the sums, i < n / 2.

namespace cumulus::recursive_filter {

/// Of `kPixels` pixels: for plans with_unit_gains whose directions run_alike.
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

/// The weight of pixel i in the k-th number of the anticausal response of `kPixels` pixels.
template <int Order, int kPixels>
struct AnticausalSums {
  float of[kPixels][Order];

  AnticausalSums(const DirectionPlan& direction, const StateMatrix& through) {
    StateVector response = through * direction.input;
    for (int i = 0; i < kPixels; ++i) {
      for (std::size_t k = 0; k < Order; ++k) of[i][k] = static_cast<float>(response[k]);
      response = direction.transition * response;
    }
  }
};

/// The weights of the pixels of a tile's column or row in its zero-state responses: the causal one, after the
/// last pixel, and the anticausal one, at the first. The terms of a sum, unlike those of a recursion, do not
/// depend on one another, and float is precise enough for them however long the decay length.
template <int Order>
struct RunWeights {
  float causal[kTile][Order], anticausal[kTile][Order];

  explicit RunWeights(const AxisPlan& plan) {
    StateVector of_causal = plan.causal.input;
    StateVector of_anticausal = plan.anticausal.input;
    for (std::size_t distance = 0; distance < kTile; ++distance) {
      for (std::size_t k = 0; k < Order; ++k) {
        causal[kTile - 1 - distance][k] = static_cast<float>(of_causal[k]);
        anticausal[distance][k] = static_cast<float>(of_anticausal[k]);
      }
      of_causal = plan.causal.transition * of_causal;
      of_anticausal = plan.anticausal.transition * of_anticausal;
    }
  }
};

/// True where the responses in both directions to a line and to the reversed line are the same but for gains.
inline bool run_alike(const AxisPlan& plan) {
  for (int row = 0; row < plan.order; ++row) {
    for (int column = 0; column < plan.order; ++column) {
      if (plan.causal.transition.at(row, column) != plan.anticausal.transition.at(row, column)) return false;
    }
  }
  return true;
}

}  // namespace cumulus::recursive_filter
