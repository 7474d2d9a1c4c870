#pragma once

#include "kernels/recursive_filter/strips/arguments.h"
#include "kernels/recursive_filter/strips/tile.cuh"

namespace cumulus::recursive_filter {

/// Filters pixels of a line one after the other. kDirectForm: of three poles, the pair in direct form, which
/// is a multiply-add less, with one instead of two in the dependence chain; meanwhile state[1] is the output
/// before the last.
template <int Order, bool kDirectForm>
class StripRun {
 public:
  __device__ StripRun(const Sections<Order, float>& sections, const DirectForm& by, float (&state)[Order])
      : sections_(sections), by_(by), state_(state) {
    if constexpr (kDirectForm) state_[1] = (state_[2] - state_[1]) * by_.inverse_second;
  }

  __device__ void filter(float& pixel) const {
    if constexpr (kDirectForm) {
      state_[0] = by_.single * state_[0] + pixel;
      pixel = by_.last * state_[2] + (by_.before * state_[1] + state_[0]);
      state_[1] = state_[2];
      state_[2] = pixel;
    } else {
      sections_.template filter_unit_gain<true>(state_, pixel);
    }
  }

  /// Makes the state one of sections again.
  __device__ void finish() const {
    if constexpr (kDirectForm) state_[1] = state_[2] - by_.second * state_[1];
  }

 private:
  static_assert(!kDirectForm || Order == 3);

  const Sections<Order, float>& sections_;
  const DirectForm& by_;
  float (&state_)[Order];
};

/// Filters a line of a tile.
template <bool kDirectForm, int Order, class Line>
__device__ __forceinline__ void ascend_causally(const StripAxis<Order>& axis, const Line& line,
                                                float (&state)[Order]) {
  constexpr int kHalf = kStripChunk<Order> / 2;
  const StripRun<Order, kDirectForm> run(axis.causal, axis.causal_direct, state);
  const auto filter = [&](float(&v)[kHalf], int) {
#pragma unroll
    for (int k = 0; k < kHalf; ++k) run.filter(v[k]);
  };
  ascend<kHalf>(
      line, [&](float(&v)[kHalf]) { filter(v, 0); }, filter);
  run.finish();
}
/// From the line's last pixels on, which are there already; then(pixels), before they are put back.
template <bool kDirectForm, int Order, int kHalf, class Line, class Then>
__device__ __forceinline__ void descend_anticausally(const StripAxis<Order>& axis, const Line& line,
                                                     float (&last)[kHalf], float (&state)[Order],
                                                     const Then& then) {
  const StripRun<Order, kDirectForm> run(axis.anticausal, axis.anticausal_direct, state);
  descend(line, last, [&](float(&v)[kHalf]) {
#pragma unroll
    for (int k = kHalf - 1; k >= 0; --k) run.filter(v[k]);
    then(v);
  });
}
template <bool kDirectForm, int Order, int kHalf, class Line>
__device__ __forceinline__ void descend_anticausally(const StripAxis<Order>& axis, const Line& line,
                                                     float (&last)[kHalf], float (&state)[Order]) {
  descend_anticausally<kDirectForm>(axis, line, last, state, [](float(&)[kHalf]) {});
}

}  // namespace cumulus::recursive_filter
