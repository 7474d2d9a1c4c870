#pragma once

#include <cstdint>

#include "kernels/recursive_filter/math/axis_plan.h"

// The filter of one row or column as a serial recursion, with exact boundaries: on the CPU, several lines
// side by side; on the GPU, a thread for each.

namespace cumulus::recursive_filter {

/// A matrix as the kernels hold it.
template <int Order, class Real>
struct SmallMatrix {
  Real at[Order][Order];

  /// sum += matrix * vector.
  template <class Value>
  CUMULUS_HOST_DEVICE inline void add_product(const Value (&vector)[Order], Value (&sum)[Order]) const {
    for (int row = 0; row < Order; ++row) {
      for (int column = 0; column < Order; ++column) sum[row] += at[row][column] * vector[column];
    }
  }
};

template <int Order, class Real>
SmallMatrix<Order, Real> small_matrix(const StateMatrix& matrix) {
  SmallMatrix<Order, Real> small;
  for (int row = 0; row < Order; ++row) {
    for (int column = 0; column < Order; ++column)
      small.at[row][column] = static_cast<Real>(matrix.at(row, column));
  }
  return small;
}

/// AxisPlan, in the arithmetic of the kernels.
template <int Order, class Real>
struct LinePlan {
  using Matrix = SmallMatrix<Order, Real>;

  std::int64_t length;
  std::int64_t run_length;  // pixels that a run sees
  std::int64_t left_out;    // at the end of a run
  bool needs_runs;
  bool needs_reversed_runs;
  Sections<Order, Real> causal, anticausal;
  Matrix through_causal, through_anticausal;
  Matrix start_from_causal_run, start_from_reversed_run;
  Matrix end_from_anticausal_run, end_from_reversed_run;
  Real start_from_first_pixel[Order];
  Real end_from_last_pixel[Order];

  explicit LinePlan(const AxisPlan& plan)
      : length(plan.length),
        run_length(plan.decay_length < plan.length - plan.pixels_left_out()
                       ? plan.decay_length
                       : plan.length - plan.pixels_left_out()),
        left_out(plan.pixels_left_out()),
        needs_runs(plan.needs_runs()),
        needs_reversed_runs(plan.needs_reversed_runs()),
        causal(sections_of<Order, Real>(plan.causal)),
        anticausal(sections_of<Order, Real>(plan.anticausal)),
        through_causal(small_matrix<Order, Real>(plan.through_causal)),
        through_anticausal(small_matrix<Order, Real>(plan.through_anticausal)),
        start_from_causal_run(small_matrix<Order, Real>(plan.start_from_causal_run)),
        start_from_reversed_run(small_matrix<Order, Real>(plan.start_from_reversed_run)),
        end_from_anticausal_run(small_matrix<Order, Real>(plan.end_from_anticausal_run)),
        end_from_reversed_run(small_matrix<Order, Real>(plan.end_from_reversed_run)) {
    for (std::size_t i = 0; i < Order; ++i) {
      start_from_first_pixel[i] = static_cast<Real>(plan.start_from_first_pixel[i]);
      end_from_last_pixel[i] = static_cast<Real>(plan.end_from_last_pixel[i]);
    }
  }
};

/// What the first pixel and the last add to the states that the boundary gives: causal before the first
/// pixel, anticausal over the image after the last.
template <class Value, int Order, class Real, class Line>
CUMULUS_HOST_DEVICE inline void begin_boundary_states(const LinePlan<Order, Real>& plan, Line& line,
                                                      Value (&start)[Order], Value (&end)[Order]) {
  Value first = {};
  Value last = {};
  line.read_forward(0, 1, [&](const Value& pixel) { first = pixel; });
  line.read_forward(plan.length - 1, plan.length, [&](const Value& pixel) { last = pixel; });
  for (int i = 0; i < Order; ++i) {
    start[i] = plan.start_from_first_pixel[i] * first;
    end[i] = plan.end_from_last_pixel[i] * last;
  }
}

enum class Direction { kForward, kBackward };

/// A run over a line, from a zero state: `matrix` times the state after it is a part of a boundary's state.
template <int Order, class Real>
struct BoundaryRun {
  Direction direction;
  const Sections<Order, Real>& sections;
  const SmallMatrix<Order, Real>& matrix;
};

/// Calls f(run, state) for each BoundaryRun and the state, `start` or `end`, of which it is a part.
template <class Value, int Order, class Real, class F>
CUMULUS_HOST_DEVICE inline void for_each_boundary_run(const LinePlan<Order, Real>& plan,
                                                      Value (&start)[Order], Value (&end)[Order],
                                                      const F& f) {
  using Run = BoundaryRun<Order, Real>;
  if (!plan.needs_runs) return;
  f(Run{Direction::kForward, plan.causal, plan.start_from_causal_run}, start);
  f(Run{Direction::kBackward, plan.anticausal, plan.end_from_anticausal_run}, end);
  if (!plan.needs_reversed_runs) return;
  f(Run{Direction::kBackward, plan.causal, plan.start_from_reversed_run}, start);
  f(Run{Direction::kForward, plan.anticausal, plan.end_from_reversed_run}, end);
}

/// Takes `state` from the run's pixel `at` on over `count` pixels.
template <class Value, int Order, class Real, class Line>
CUMULUS_HOST_DEVICE inline void advance_boundary_run(const LinePlan<Order, Real>& plan, Line& line,
                                                     const BoundaryRun<Order, Real>& run, std::int64_t at,
                                                     std::int64_t count, Value (&state)[Order]) {
  const auto advance = [&](const Value& pixel) { run.sections.advance(state, pixel); };
  if (run.direction == Direction::kForward) {
    const std::int64_t first = plan.length - plan.left_out - plan.run_length + at;
    line.read_forward(first, first + count, advance);
  } else {
    const std::int64_t end = plan.left_out + plan.run_length - at;
    line.read_backward(end - count, end, advance);
  }
}

/// The states that the boundary gives.
template <class Value, int Order, class Real, class Line>
CUMULUS_HOST_DEVICE inline void find_boundary_states(const LinePlan<Order, Real>& plan, Line& line,
                                                     Value (&start)[Order], Value (&end)[Order]) {
  begin_boundary_states(plan, line, start, end);
  for_each_boundary_run(plan, start, end, [&](const BoundaryRun<Order, Real>& run, Value(&into)[Order]) {
    Value state[Order] = {};
    advance_boundary_run(plan, line, run, 0, plan.run_length, state);
    run.matrix.add_product(state, into);
  });
}

/// Filters one line. A Line reads its source and writes its target, which may be its source:
///   read_forward(first, end, f)               f(pixel) for pixels first, ..., end - 1 of the source
///   read_backward(first, end, f)              f(pixel) for pixels end - 1, ..., first of the source
///   filter_forward(f)                         target = source, then f(target), from the first pixel
///   filter_backward(f)                        f(target), from the last; f replaces the pixel it is given
template <class Value, int Order, class Real, class Line>
CUMULUS_HOST_DEVICE inline void filter_line(const LinePlan<Order, Real>& plan, Line& line) {
  Value causal[Order];
  Value end[Order];
  find_boundary_states(plan, line, causal, end);
  line.filter_forward([&](Value& pixel) { plan.causal.filter(causal, pixel); });
  Value anticausal[Order] = {};
  plan.through_causal.add_product(causal, anticausal);
  plan.through_anticausal.add_product(end, anticausal);
  line.filter_backward([&](Value& pixel) { plan.anticausal.filter(anticausal, pixel); });
}

}  // namespace cumulus::recursive_filter
