#pragma once

#include <cstdint>

#include "kernels/recursive_filter/design.h"
#include "kernels/recursive_filter/math/matrix.h"
#include "kernels/recursive_filter/math/sections.h"

// What both backends compute from, found once per call on the host.
//
// Notation. A direction's state after a pixel is a vector S; the next pixel x makes it L S + b x; the
// filtered pixel is w S + d x (w = (0, ..., 0, 1) and d = 0 where the filter has no zeros). The causal state
// before the first pixel and the anticausal state *over the image itself* (not over the causal result) after
// the last pixel follow from the image alone, by the boundary; call them `start` and `end`. The cascade needs
// the anticausal state over the causal result: with t the causal state of the last pixel it is
//
//   through_causal t + through_anticausal end,
//   through_causal = sum_j Lb^j bb wa La^(j+1),    through_anticausal = H_a(Lb),
//
// where H_a is the causal filter's transfer function with the matrix Lb for z^-1. The same holds at the end
// of any chunk of the image, so that carries in both directions are sums over the image, independent of
// each other. (D. Nehab and A. Maximo, "Parallel recursive filtering of infinite input extensions", 2016,
// solve the same problem in terms of past outputs.)

namespace cumulus::recursive_filter {

/// The arithmetic in which pixels are filtered; everything stored between is float either way.
enum class Precision {
  kSingle,  // filters with a short decay length
  kDouble,
};

/// One direction.
struct DirectionPlan {
  Sections<kMaxFilterOrder, long double> sections;  // those of the plan's order come first; w and d are here
  StateMatrix transition;                           // L
  StateVector input{};                              // b
  StateVector weights() const;                      // w, a row
};

/// The filter of one axis of `length` pixels.
struct AxisPlan {
  int order = 1;  // of both directions; one of kKernelOrders
  std::int64_t length = 0;
  FilterBoundary boundary = FilterBoundary::kZero;
  bool identity = false;  // it leaves its axis as it is
  DirectionPlan causal;
  DirectionPlan anticausal;
  StateMatrix through_causal;
  StateMatrix through_anticausal;

  // start = start_from_causal_run C + start_from_reversed_run D + start_from_first_pixel x[0], where C and D
  // are the causal filter's states after running, from a zero state, over the image and over the reversed
  // image; `end` likewise with the anticausal filter's states after running over the reversed image and over
  // the image. With kMirror a run leaves out the last pixel it comes to.
  StateMatrix start_from_causal_run, start_from_reversed_run;
  StateVector start_from_first_pixel{};
  StateMatrix end_from_anticausal_run, end_from_reversed_run;
  StateVector end_from_last_pixel{};

  bool needs_runs() const { return boundary != FilterBoundary::kZero && boundary != FilterBoundary::kClamp; }
  bool needs_reversed_runs() const { return needs_runs() && boundary != FilterBoundary::kRepeat; }
  std::int64_t pixels_left_out() const { return boundary == FilterBoundary::kMirror ? 1 : 0; }
  /// Pixels, at most `length`, that a run has to see: earlier ones add below 1e-13 of the state's usual size.
  std::int64_t decay_length = 0;
};

/// The same filter with unit gains: states are divided by the gain of their direction, and filtered pixels by
/// both, unless the filter has zeros; `scale` makes up for that.
struct UnitGainAxis {
  AxisPlan plan;
  long double scale = 1;
};
/// Neither direction's gain may be 0: has_zero_gain.
UnitGainAxis with_unit_gains(const AxisPlan& plan);
bool has_zero_gain(const AxisPlan& plan);

/// Orders for which kernels exist. Order 0 gets a pole at 0, which changes nothing; a filter with zeros needs
/// 4 or 5.
inline constexpr int kKernelOrders[] = {1, 2, 3, 4, 5};
int kernel_order(const RecursiveFilter& filter);

/// Calls body.template operator()<Order>() for one of kKernelOrders.
template <class Body>
void with_order(int order, const Body& body) {
  if (order == 1) return body.template operator()<1>();
  if (order == 2) return body.template operator()<2>();
  if (order == 3) return body.template operator()<3>();
  if (order == 4) return body.template operator()<4>();
  return body.template operator()<5>();
}

Precision precision_for(const RecursiveFilter& filter);

/// Throws std::invalid_argument where a pole is unstable.
AxisPlan plan_axis(const AxisFilter& filter, std::int64_t length, int order, Precision precision);

template <int Order, class Real>
Sections<Order, Real> sections_of(const DirectionPlan& direction) {
  Sections<Order, Real> sections{};
  sections.gain = static_cast<Real>(direction.sections.gain);
  sections.single = static_cast<Real>(direction.sections.single);
  for (int k = 0; k < Order / 2; ++k) {
    const auto& pair = direction.sections.pairs[k];
    sections.pairs[k] = {static_cast<Real>(pair.first), static_cast<Real>(pair.second),
                         static_cast<Real>(pair.coupling)};
  }
  for (int k = 0; k < Order; ++k) sections.weights[k] = static_cast<Real>(direction.sections.weights[k]);
  sections.direct = static_cast<Real>(direction.sections.direct);
  return sections;
}

}  // namespace cumulus::recursive_filter
