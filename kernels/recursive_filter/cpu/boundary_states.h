#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/core/slice.h"
#include "kernels/recursive_filter/math/line.h"

namespace cumulus::recursive_filter {

/// As find_boundary_states, for one Pack of lines after the other, but it can go on in another slice.
template <class Vectors, class Value, int Order, class Real>
class BoundaryStates {
  using State = Value[Order];
  using Run = BoundaryRun<Order, Real>;

 public:
  explicit BoundaryStates(const LinePlan<Order, Real>& plan) : plan_(plan) {}

  /// Goes on from where it was, to the end or until `slice`, if there is one, is over. Whether it has come to
  /// the end; the next call is about other lines then.
  template <class Line>
  bool run(const Slice* slice, Line& line, State& start, State& end) {
    if (runs_done_ == kNotBegun) {
      Vectors::call([&] { begin_boundary_states(plan_, line, start, end); });
      runs_done_ = 0;
    }
    int number = 0;
    bool over = false;
    for_each_boundary_run(plan_, start, end, [&](const Run& run, State& into) {
      if (over || number++ < runs_done_) return;
      over = !finish(run, slice, line);
      if (!over) conclude(run, into);
    });
    if (!over) runs_done_ = kNotBegun;
    return !over;
  }

 private:
  static constexpr int kNotBegun = -1;

  template <class Line>
  bool finish(const Run& run, const Slice* slice, Line& line) {
    constexpr std::int64_t kPixelsAtOnce = 4096;
    while (at_ < plan_.run_length) {
      const std::int64_t count = std::min(kPixelsAtOnce, plan_.run_length - at_);
      Vectors::call([&] {
        State state;
        std::copy_n(state_, Order, state);
        advance_boundary_run(plan_, line, run, at_, count, state);
        std::copy_n(state, Order, state_);
      });
      at_ += count;
      if (slice != nullptr && slice->over()) return false;
    }
    return true;
  }
  void conclude(const Run& run, State& into) {
    Vectors::call([&] { run.matrix.add_product(state_, into); });
    std::fill_n(state_, Order, Value());
    at_ = 0;
    ++runs_done_;
  }

  const LinePlan<Order, Real>& plan_;
  int runs_done_ = kNotBegun;  // of the lines at hand
  std::int64_t at_ = 0;        // of the pixels of the run at hand
  State state_ = {};           // of that run
};

}  // namespace cumulus::recursive_filter
