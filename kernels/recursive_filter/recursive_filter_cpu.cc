#include <algorithm>
#include <type_traits>

#include "kernels/core/div.h"
#include "kernels/core/parallel.h"
#include "kernels/recursive_filter/check.h"
#include "kernels/recursive_filter/cpu/apply.h"
#include "kernels/recursive_filter/cpu/line_groups.h"
#include "kernels/recursive_filter/cpu/nearest_float16.h"
#include "kernels/recursive_filter/math/line.h"

// Rows first, from the image to the result, then columns in place.

namespace cumulus {
namespace {

using namespace recursive_filter;

/// Some of a set's lines, as many as a Pack holds, for find_boundary_states.
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
  GroupFilter(const LinePlan<Order, Real>& plan, LineGroup<T>& group) : plan_(plan), group_(group) {}

  void run() {
    for_each_part([&](int set, int part) {
      Vectors::call([&] {
        PartOfSet<Value, T> lines(group_, set, part);
        find_boundary_states(plan_, lines, states_[set][part], ends_[set][part]);
      });
    });
    for (std::int64_t at = 0; at < group_.length(); at += kSteps) {
      const StepRange steps = steps_from(at);
      group_.prepare_forward(steps);
      for (int set = 0; set < group_.sets(); ++set) {
        filter(plan_.causal, states_[set], group_.route_forward(steps, set), steps.count);
      }
      group_.finish_forward(steps);
    }
    for_each_part([&](int set, int part) { begin_anticausal(states_[set][part], ends_[set][part]); });
    for (std::int64_t at = (group_.length() - 1) / kSteps * kSteps; at >= 0; at -= kSteps) {
      const StepRange steps = steps_from(at);
      group_.prepare_backward(steps);
      for (int set = 0; set < group_.sets(); ++set) {
        filter(plan_.anticausal, states_[set], backwards(group_.route_backward(steps, set), steps.count),
               steps.count);
      }
      group_.finish_backward(steps);
    }
  }

 private:
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
  State states_[kMaxSets][kParts];
  State ends_[kMaxSets][kParts];
};

template <class Vectors, int Order, class Real, class T>
void filter_rows(CpuExecutor& executor, const AxisPlan& axis, const HostImage<const T>& image,
                 const HostImage<T>& filtered) {
  const LinePlan<Order, Real> plan(axis);
  const std::int64_t groups = divide_up(image.height, kLanes);
  const std::int64_t grain =
      std::max<std::int64_t>(1, kGrainPixels / (image.width * image.channels * kLanes));
  parallel_ranges(executor, groups, grain, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t row = first * kLanes; row < std::min(end * kLanes, image.height); row += kLanes) {
      const auto rows_of = [&](auto view) {
        view.data = view.row(row);
        view.height = std::min<std::int64_t>(kLanes, image.height - row);
        return view;
      };
      RowGroup<Vectors, T> group(rows_of(image), rows_of(filtered));
      GroupFilter<Vectors, Order, Real, T>(plan, group).run();
    }
  });
}

/// `filtered` may be the image itself.
template <class Vectors, int Order, class Real, class T>
void filter_columns(CpuExecutor& executor, const AxisPlan& axis, const HostImage<const T>& image,
                    const HostImage<T>& filtered) {
  const LinePlan<Order, Real> plan(axis);
  const std::int64_t columns = image.width * image.channels;
  const std::int64_t sets = divide_up(columns, kLanes);
  const std::int64_t tasks = kTasksPerThread * executor.threads();
  const std::int64_t group_sets = std::clamp<std::int64_t>(divide_up(sets, tasks), 1, kMaxSets);
  const std::int64_t group_columns = group_sets * kLanes;
  parallel_ranges(executor, divide_up(columns, group_columns), 1, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t at = first * group_columns; at < std::min(end * group_columns, columns);
         at += group_columns) {
      ColumnGroup<T> group({image.data + at, image.row_stride}, {filtered.data + at, filtered.row_stride},
                           image.height, static_cast<int>(std::min(group_columns, columns - at)));
      GroupFilter<Vectors, Order, Real, T>(plan, group).run();
    }
  });
}

/// `filtered` may be the image itself.
template <class Vectors, int Order, class Real, class T>
void filter_axes(CpuExecutor& executor, const HostImage<const T>& image, const AxisPlan& y, const AxisPlan& x,
                 const HostImage<T>& filtered) {
  if (x.identity) return filter_columns<Vectors, Order, Real>(executor, y, image, filtered);
  filter_rows<Vectors, Order, Real>(executor, x, image, filtered);
  executor.check_interrupt();
  if (y.identity) return;
  filter_columns<Vectors, Order, Real>(executor, y, HostImage<const T>(filtered), filtered);
}

struct Plans {
  Precision precision;
  int order;
  AxisPlan y, x;
};

template <class Vectors, class T>
void filter_image(CpuExecutor& executor, const Plans& plans, const HostImage<const T>& image,
                  const HostImage<T>& filtered) {
  executor.check_interrupt();
  with_order(plans.order, [&]<int Order>() {
    if constexpr (std::is_same_v<T, float>) {
      if (plans.precision == Precision::kSingle) {
        return filter_axes<Vectors, Order, float>(executor, image, plans.y, plans.x, filtered);
      }
    }
    filter_axes<Vectors, Order, double>(executor, image, plans.y, plans.x, filtered);
  });
}

/// Filters as floats, in scratch memory, and rounds once.
template <class Vectors>
void filter_halves(CpuExecutor& executor, const Plans& plans, const HostImage<const Float16>& image,
                   const HostImage<Float16>& filtered, HostSpan<float> scratch) {
  const std::int64_t row = filtered.row_stride;
  const std::int64_t grain = std::max<std::int64_t>(1, kGrainPixels / row);
  parallel_ranges(executor, image.height, grain, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t y = first; y < end; ++y) {
      std::copy_n(image.data + y * image.row_stride, row, scratch.data() + y * row);
    }
  });
  const HostImage<float> floats(scratch.data(), image.height, image.width, image.channels);
  filter_image<Vectors, float>(executor, plans, floats, floats);
  parallel_ranges(executor, image.height, grain, [&](std::int64_t first, std::int64_t end) {
    std::transform(scratch.data() + first * row, scratch.data() + end * row, filtered.data + first * row,
                   nearest_float16);
  });
}

}  // namespace

template <class Vectors, class T>
RecursiveFilterRun recursive_filter::apply_with(CpuExecutor& executor,
                                                FilterImages<const T, Space::kHost> images,
                                                const RecursiveFilter& filter,
                                                FilterImages<T, Space::kHost> filtered) {
  check_views(images, filtered);
  executor.check_interrupt();
  const Precision precision = std::is_same_v<T, double> ? Precision::kDouble : precision_for(filter);
  const int order = kernel_order(filter);
  const Plans plans{precision, order, plan_axis(filter.y, images.first.height, order, precision),
                    plan_axis(filter.x, images.first.width, order, precision)};
  if constexpr (std::is_same_v<T, Float16>) {
    const auto scratch = executor.scratch<float>(static_cast<std::size_t>(images.first.elements()));
    for (std::int64_t i = 0; i < images.count; ++i) {
      filter_halves<Vectors>(executor, plans, images[i], filtered[i], scratch);
    }
  } else {
    for (std::int64_t i = 0; i < images.count; ++i) {
      filter_image<Vectors, T>(executor, plans, images[i], filtered[i]);
    }
  }
  return {RecursiveFilterMethod::kLines};
}

template <class T>
RecursiveFilterRun apply_recursive_filter(CpuExecutor& executor, FilterImages<const T, Space::kHost> images,
                                          const RecursiveFilter& filter,
                                          FilterImages<T, Space::kHost> filtered,
                                          const RecursiveFilterChoice& /*choice*/) {
  return with_wide_vectors(
      [&]<class Vectors>() { return apply_with<Vectors, T>(executor, images, filter, filtered); });
}

template <class T>
void add_scaled(CpuExecutor& executor, HostSpan<const T> addend, double weight, HostSpan<T> values) {
  check_addend(addend, values);
  executor.check_interrupt();
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const auto factor = static_cast<Real>(weight);
  const auto count = static_cast<std::int64_t>(values.size());
  parallel_ranges(executor, count, kGrainPixels, [&](std::int64_t first, std::int64_t end) {
    std::transform(addend.data() + first, addend.data() + end, values.data() + first, values.data() + first,
                   [factor](T add, T value) {
                     const Real sum = static_cast<Real>(add) + factor * static_cast<Real>(value);
                     if constexpr (std::is_same_v<T, Float16>) {
                       return nearest_float16(sum);
                     } else {
                       return sum;
                     }
                   });
  });
}

#define CUMULUS_INSTANTIATE(T)                                                   \
  template RecursiveFilterRun recursive_filter::apply_with<PlainVectors, T>(     \
      CpuExecutor&, FilterImages<const T, Space::kHost>, const RecursiveFilter&, \
      FilterImages<T, Space::kHost>);                                            \
  template RecursiveFilterRun apply_recursive_filter<T>(                         \
      CpuExecutor&, FilterImages<const T, Space::kHost>, const RecursiveFilter&, \
      FilterImages<T, Space::kHost>, const RecursiveFilterChoice&);              \
  template void add_scaled<T>(CpuExecutor&, HostSpan<const T>, double, HostSpan<T>);
CUMULUS_INSTANTIATE(float)
CUMULUS_INSTANTIATE(Float16)
CUMULUS_INSTANTIATE(double)
#undef CUMULUS_INSTANTIATE

#if !CUMULUS_WITH_CUDA
// A build without CUDA has no device to make an executor of: this satisfies the linker.
template <class T>
RecursiveFilterRun apply_recursive_filter(CudaExecutor& /*executor*/,
                                          FilterImages<const T, Space::kDevice> /*images*/,
                                          const RecursiveFilter& /*filter*/,
                                          FilterImages<T, Space::kDevice> /*filtered*/,
                                          const RecursiveFilterChoice& /*choice*/) {
  throw CudaError(0, "apply_recursive_filter", __FILE__, __LINE__);
}
template <class T>
void add_scaled(CudaExecutor& /*executor*/, DeviceSpan<const T> /*addend*/, double /*weight*/,
                DeviceSpan<T> /*values*/) {
  throw CudaError(0, "add_scaled", __FILE__, __LINE__);
}
#define CUMULUS_INSTANTIATE(T)                                                      \
  template RecursiveFilterRun apply_recursive_filter<T>(                            \
      CudaExecutor&, FilterImages<const T, Space::kDevice>, const RecursiveFilter&, \
      FilterImages<T, Space::kDevice>, const RecursiveFilterChoice&);               \
  template void add_scaled<T>(CudaExecutor&, DeviceSpan<const T>, double, DeviceSpan<T>);
CUMULUS_INSTANTIATE(float)
CUMULUS_INSTANTIATE(Float16)
CUMULUS_INSTANTIATE(double)
#undef CUMULUS_INSTANTIATE
#endif

}  // namespace cumulus
