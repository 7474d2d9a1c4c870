#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/core/parallel.h"
#include "kernels/recursive_filter/cpu/boundary_states.h"
#include "kernels/recursive_filter/cpu/line_groups.h"
#include "kernels/recursive_filter/math/line.h"

// Filters a group of lines on the CPU, in several slices where they are long.

namespace cumulus::recursive_filter {

/// Some of a set's lines, as many as a Pack holds, for BoundaryStates.
template <class Value, class T>
class PartOfSet {
 public:
  PartOfSet(LineGroup<T>& group, int set, int part) : group_(group), set_(set), part_(part) {}

  template <class F>
  void read_forward(std::int64_t first, std::int64_t end, const F& f) {
    for (std::int64_t at = first; at < end; at += kSteps) {
      const StepRange steps{at, static_cast<int>(std::min<std::int64_t>(kSteps, end - at))};
      const auto pixels = group_.read(steps, set_);
      for (int i = 0; i < steps.count; ++i) f(pixel_of(pixels, i));
    }
  }
  template <class F>
  void read_backward(std::int64_t first, std::int64_t end, const F& f) {
    for (std::int64_t at = end; at > first; at -= kSteps) {
      const int count = static_cast<int>(std::min<std::int64_t>(kSteps, at - first));
      const auto pixels = group_.read({at - count, count}, set_);
      for (int i = count - 1; i >= 0; --i) f(pixel_of(pixels, i));
    }
  }

 private:
  Value pixel_of(const LaneBlock<const T>& pixels, int i) const {
    return Value::load(pixels.data + i * pixels.step + part_ * Value::kCount);
  }

  LineGroup<T>& group_;
  int set_;
  int part_;
};

/// Filters the lines of a group.
template <class Vectors, int Order, class Real, class T>
class GroupFilter {
  using Value = Pack<Real, Vectors::kBytes>;
  using State = Value[Order];
  /// A set takes so many packs: two where a pixel's Real is twice as wide as a register's float.
  static constexpr int kParts = kLanes / Value::kCount;

 public:
  GroupFilter(const LinePlan<Order, Real>& plan, LineGroup<T>& group)
      : plan_(plan), group_(group), boundary_(plan) {}

  /// Goes on from where it was, to the end or until `slice` is over. Whether it has come to the end.
  bool run(const Slice* slice = nullptr) {
    if (!begin_causal(slice)) return false;
    while (forward_ < group_.length()) {
      filter_forward(steps_from(forward_));
      forward_ += kSteps;
      if (pauses(slice, forward_)) return false;
    }
    if (backward_ == kNotBegun) {
      for_each_part([&](int set, int part) { begin_anticausal(states_[set][part], ends_[set][part]); });
      backward_ = group_.length();
    }
    while (backward_ > 0) {
      backward_ = (backward_ - 1) / kSteps * kSteps;
      filter_backward(steps_from(backward_));
      if (backward_ > 0 && pauses(slice, backward_)) return false;
    }
    return true;
  }

 private:
  static constexpr std::int64_t kNotBegun = -1;

  static bool pauses(const Slice* slice, std::int64_t at) {
    constexpr std::int64_t kPixelsAtOnce = 1024;
    return slice != nullptr && at % kPixelsAtOnce == 0 && slice->over();
  }

  bool begin_causal(const Slice* slice) {
    while (begun_ < group_.sets() * kParts) {
      const int set = begun_ / kParts;
      const int part = begun_ % kParts;
      PartOfSet<Value, T> lines(group_, set, part);
      if (!boundary_.run(slice, lines, states_[set][part], ends_[set][part])) return false;
      ++begun_;
      if (slice != nullptr && slice->over()) return false;
    }
    return true;
  }
  void filter_forward(const StepRange& steps) {
    group_.prepare_forward(steps);
    for (int set = 0; set < group_.sets(); ++set) {
      filter(plan_.causal, states_[set], group_.route_forward(steps, set), steps.count);
    }
    group_.finish_forward(steps);
  }
  void filter_backward(const StepRange& steps) {
    group_.prepare_backward(steps);
    for (int set = 0; set < group_.sets(); ++set) {
      filter(plan_.anticausal, states_[set], backwards(group_.route_backward(steps, set), steps.count),
             steps.count);
    }
    group_.finish_backward(steps);
  }

  template <class F>
  void for_each_part(const F& f) {
    for (int set = 0; set < group_.sets(); ++set) {
      for (int part = 0; part < kParts; ++part) f(set, part);
    }
  }
  StepRange steps_from(std::int64_t at) const {
    return {at, static_cast<int>(std::min<std::int64_t>(kSteps, group_.length() - at))};
  }
  static LaneRoute<T> backwards(const LaneRoute<T>& route, int count) {
    const auto reversed = [count](const auto& block) {
      return std::decay_t<decltype(block)>{block.data + (count - 1) * block.step, -block.step};
    };
    return {reversed(route.from), reversed(route.to)};
  }

  /// The anticausal state after the last pixel, in place of the causal one.
  void begin_anticausal(State& state, const State& end) const {
    Vectors::call([&] {
      State anticausal = {};
      plan_.through_causal.add_product(state, anticausal);
      plan_.through_anticausal.add_product(end, anticausal);
      std::copy_n(anticausal, Order, state);
    });
  }

  static void filter(const Sections<Order, Real>& sections, State (&states)[kParts],
                     const LaneRoute<T>& route, int count) {
    Vectors::call([&] {
      const Sections<Order, Real> own = sections;  // in registers: nothing that is stored can change them
      for (int part = 0; part < kParts; ++part) {
        State state;
        std::copy_n(states[part], Order, state);
        const T* from = route.from.data + part * Value::kCount;
        T* to = route.to.data + part * Value::kCount;
        for (int i = 0; i < count; ++i, from += route.from.step, to += route.to.step) {
          Value pixel = Value::load(from);
          own.filter(state, pixel);
          pixel.store(to);
        }
        std::copy_n(state, Order, states[part]);
      }
    });
  }

  const LinePlan<Order, Real>& plan_;
  LineGroup<T>& group_;
  BoundaryStates<Vectors, Value, Order, Real> boundary_;
  State states_[kMaxSets][kParts];
  State ends_[kMaxSets][kParts];
  int begun_ = 0;                      // so many parts' first states are known
  std::int64_t forward_ = 0;           // so many pixels of each line have been filtered
  std::int64_t backward_ = kNotBegun;  // so many are still to be
};

/// Groups of as many bytes take a good part of a slice, or more than one.
inline constexpr std::int64_t kLongGroupBytes = std::int64_t{4} << 20;

/// A group that can go on in another slice.
template <class Group, class Filter>
struct LongGroup {
  template <class Plan, class... Arguments>
  explicit LongGroup(const Plan& plan, const Arguments&... arguments)
      : lines(arguments...), filter(plan, lines) {}

  Group lines;
  Filter filter;
};

/// `make(i)` makes group i, a LongGroup.
template <class Long, class Make>
void filter_long_groups(CpuExecutor& executor, std::int64_t groups, const Make& make) {
  std::vector<std::unique_ptr<Long>> begun(static_cast<std::size_t>(groups));
  std::vector<std::int64_t> all(begun.size());
  std::iota(all.begin(), all.end(), 0);
  parallel_items(executor, std::move(all), [&](std::int64_t i, const auto& open) {
    std::unique_ptr<Long>& group = begun[static_cast<std::size_t>(i)];
    if (group == nullptr) group = make(i);
    if (!group->filter.run(&open.slice)) return open.left.add(i);
    group.reset();
  });
}

}  // namespace cumulus::recursive_filter
