#pragma once

#include "kernels/core/host_device.h"

namespace cumulus::recursive_filter {

/// One direction of a filter as a chain of sections: one real pole first where the order is odd, then pairs
/// of poles. The textbooks' direct form cancels almost completely where poles lie close to 1, and float32 is
/// lost; here each number of the state is of the size of what it stands for.
///
/// The pair (first, second, coupling) is 1 / ((1 - first z^-1) (1 - second z^-1) + coupling z^-1): two real
/// poles with coupling 0, or conjugate ones rho e^(+-i theta) with first = second = rho, coupling = 2 rho (1
/// - cos theta).
///
/// Filters of more than three poles may have zeros as well: their output weighs the whole state and the
/// pixel.
template <int Order, class Real>
struct Sections {
  struct Pair {
    Real first;
    Real second;
    Real coupling;
  };
  static constexpr int kOrder = Order;
  static constexpr int kPairs = Order / 2;
  static constexpr bool kWeighsState = Order > 3;

  Real gain;
  Real single;
  Pair pairs[kPairs > 0 ? kPairs : 1];
  Real weights[Order];  // of the state in the filtered pixel; without kWeighsState its last number is the
                        // pixel
  Real direct;          // of the pixel itself

  /// Takes one pixel in. `Value` is Real, or several of them side by side.
  template <class Value>
  CUMULUS_HOST_DEVICE inline void advance(Value (&state)[Order], const Value& pixel) const {
    const Value scaled = gain * pixel;
    advance_unit_gain(state, scaled);
  }

  /// Takes in one pixel that has been multiplied by the gain. kShortChain: two
  /// operations of each pair depend on the pixel before, not three, and rounding errs by a tenth more.
  template <bool kShortChain = false, class Value>
  CUMULUS_HOST_DEVICE inline void advance_unit_gain(Value (&state)[Order], const Value& scaled) const {
    Value value = scaled;
    if constexpr (Order % 2 == 1) {
      state[0] = single * state[0] + value;
      value = state[0];
    }
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int k = 0; k < kPairs; ++k) {
      Value& inner = state[Order % 2 + 2 * k];
      Value& outer = state[Order % 2 + 2 * k + 1];
      inner = kShortChain ? (pairs[k].first * inner + value) - pairs[k].coupling * outer
                          : pairs[k].first * inner + (value - pairs[k].coupling * outer);
      outer = pairs[k].second * outer + inner;
      value = outer;
    }
  }

  /// Takes one pixel in and replaces it by the filtered one.
  template <class Value>
  CUMULUS_HOST_DEVICE inline void filter(Value (&state)[Order], Value& pixel) const {
    advance(state, pixel);
    weigh(state, pixel);
  }
  /// The same of a plan with_unit_gains.
  template <bool kShortChain = false, class Value>
  CUMULUS_HOST_DEVICE inline void filter_unit_gain(Value (&state)[Order], Value& pixel) const {
    advance_unit_gain<kShortChain>(state, pixel);
    weigh(state, pixel);
  }

 private:
  template <class Value>
  CUMULUS_HOST_DEVICE inline void weigh(const Value (&state)[Order], Value& pixel) const {
    if constexpr (kWeighsState) {
      pixel = direct * pixel;
      for (int k = 0; k < Order; ++k) pixel += weights[k] * state[k];
    } else {
      pixel = state[Order - 1];
    }
  }
};

}  // namespace cumulus::recursive_filter
