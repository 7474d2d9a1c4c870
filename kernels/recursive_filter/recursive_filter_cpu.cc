#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/core/parallel.h"
#include "kernels/recursive_filter/recursive_filter.h"
#include "kernels/recursive_filter/recursive_filter_check.h"
#include "kernels/recursive_filter/recursive_filter_elements.h"
#include "kernels/recursive_filter/recursive_filter_line.h"

// Rows first, from the image to the result, then columns in place. kLanes of them advance side by side, in
// vector registers; rows are turned into columns a small block at a time on their way.

namespace cumulus {
namespace {

using namespace recursive_filter;

template <class Real>
using Lanes __attribute__((vector_size(kLanes * sizeof(Real)))) = Real;

/// Where the lines of a group lie.
template <class T>
struct LineMemory {
  T* first;
  std::int64_t step;  // elements from a pixel to the next of the same line
  std::int64_t lane;  // elements from a line to the next

  LineMemory from_line(std::int64_t line) const { return {first + line * lane, step, lane}; }
};

/// Up to kLanes lines for filter_line.
template <class Real, class T>
class LineGroup {
  using Value = Lanes<Real>;
  using Block = Value[kSteps];

 public:
  LineGroup(const LineMemory<const T>& source, const LineMemory<T>& target, std::int64_t length, int lines)
      : source_(source), target_(target), length_(length), lines_(lines) {}

  template <class F>
  void read_forward(std::int64_t first, std::int64_t end, const F& f) const {
    Block block;
    for (std::int64_t at = first; at < end; at += kSteps) {
      const int steps = static_cast<int>(std::min<std::int64_t>(kSteps, end - at));
      load(source_, at, steps, block);
      for (int i = 0; i < steps; ++i) f(block[i]);
    }
  }
  template <class F>
  void read_backward(std::int64_t first, std::int64_t end, const F& f) const {
    Block block;
    for (std::int64_t at = end; at > first; at -= kSteps) {
      const int steps = static_cast<int>(std::min<std::int64_t>(kSteps, at - first));
      load(source_, at - steps, steps, block);
      for (int i = steps - 1; i >= 0; --i) f(block[i]);
    }
  }
  template <class F>
  void filter_forward(const F& f) const {
    Block block;
    for (std::int64_t at = 0; at < length_; at += kSteps) {
      const int steps = static_cast<int>(std::min<std::int64_t>(kSteps, length_ - at));
      load(source_, at, steps, block);
      for (int i = 0; i < steps; ++i) f(block[i]);
      store(at, steps, block);
    }
  }
  template <class F>
  void filter_backward(const F& f) const {
    Block block;
    for (std::int64_t at = length_; at > 0; at -= kSteps) {
      const int steps = static_cast<int>(std::min<std::int64_t>(kSteps, at));
      load(target_, at - steps, steps, block);
      for (int i = steps - 1; i >= 0; --i) f(block[i]);
      store(at - steps, steps, block);
    }
  }

 private:
  // Out of line: each is called for kSteps pixels of kLanes lines, and inlined everywhere they take minutes
  // to compile.
  template <class Element>
  [[gnu::noinline]] void load(const LineMemory<Element>& memory, std::int64_t at, int steps,
                              Block& block) const {
    for (int i = 0; i < steps; ++i) {
      Lanes<T> pixels = {};
      const T* from = memory.first + (at + i) * memory.step;
      if (memory.lane == 1 && lines_ == kLanes) {
        std::memcpy(&pixels, from, sizeof(pixels));
      } else {
        for (int line = 0; line < lines_; ++line) pixels[line] = from[line * memory.lane];
      }
      block[i] = __builtin_convertvector(pixels, Value);
    }
  }
  [[gnu::noinline]] void store(std::int64_t at, int steps, const Block& block) const {
    for (int i = 0; i < steps; ++i) {
      const Lanes<T> pixels = __builtin_convertvector(block[i], Lanes<T>);
      T* to = target_.first + (at + i) * target_.step;
      if (target_.lane == 1 && lines_ == kLanes) {
        std::memcpy(to, &pixels, sizeof(pixels));
      } else {
        for (int line = 0; line < lines_; ++line) to[line * target_.lane] = pixels[line];
      }
    }
  }

  LineMemory<const T> source_;
  LineMemory<T> target_;
  std::int64_t length_;
  int lines_;
};

/// Filters `lines` neighbouring lines, kLanes at a time, on the executor's threads.
template <int Order, class Real, class T>
void filter_lines(CpuExecutor& executor, const AxisPlan& axis, std::int64_t lines,
                  const LineMemory<const T>& source, const LineMemory<T>& target) {
  const LinePlan<Order, Real> plan(axis);
  const std::int64_t groups = (lines + kLanes - 1) / kLanes;
  const std::int64_t grain = std::max<std::int64_t>(1, kGrainPixels / (axis.length * kLanes));
  parallel_ranges(executor, groups, grain, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t group = first; group < end; ++group) {
      const std::int64_t line = group * kLanes;
      LineGroup<Real, T> these(source.from_line(line), target.from_line(line), axis.length,
                               static_cast<int>(std::min<std::int64_t>(kLanes, lines - line)));
      filter_line<Lanes<Real>>(plan, these);
    }
  });
}

/// `filtered` may be the image itself.
template <int Order, class Real, class T>
void filter_axes(CpuExecutor& executor, const HostImage<const T>& image, const AxisPlan& y, const AxisPlan& x,
                 const HostImage<T>& filtered) {
  for (std::int64_t channel = 0; channel < image.channels; ++channel) {
    filter_lines<Order, Real, T>(executor, x, image.height,
                                 {image.data + channel, image.channels, image.row_stride},
                                 {filtered.data + channel, filtered.channels, filtered.row_stride});
  }
  executor.check_interrupt();
  filter_lines<Order, Real, T>(executor, y, filtered.row_stride, {filtered.data, filtered.row_stride, 1},
                               {filtered.data, filtered.row_stride, 1});
}

struct Plans {
  Precision precision;
  int order;
  AxisPlan y, x;
};

template <class T>
void filter_image(CpuExecutor& executor, const Plans& plans, const HostImage<const T>& image,
                  const HostImage<T>& filtered) {
  executor.check_interrupt();
  with_order(plans.order, [&]<int Order>() {
    if constexpr (std::is_same_v<T, float>) {
      if (plans.precision == Precision::kSingle) {
        return filter_axes<Order, float>(executor, image, plans.y, plans.x, filtered);
      }
    }
    filter_axes<Order, double>(executor, image, plans.y, plans.x, filtered);
  });
}

/// Filters as floats, in scratch memory, and rounds once.
void filter_image(CpuExecutor& executor, const Plans& plans, const HostImage<const Float16>& image,
                  const HostImage<Float16>& filtered, HostSpan<float> scratch) {
  const std::int64_t row = filtered.row_stride;
  const std::int64_t grain = std::max<std::int64_t>(1, kGrainPixels / row);
  parallel_ranges(executor, image.height, grain, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t y = first; y < end; ++y) {
      std::copy_n(image.data + y * image.row_stride, row, scratch.data() + y * row);
    }
  });
  const HostImage<float> floats(scratch.data(), image.height, image.width, image.channels);
  filter_image<float>(executor, plans, floats, floats);
  parallel_ranges(executor, image.height, grain, [&](std::int64_t first, std::int64_t end) {
    std::transform(scratch.data() + first * row, scratch.data() + end * row, filtered.data + first * row,
                   nearest_float16);
  });
}

}  // namespace

template <class T>
RecursiveFilterRun apply_recursive_filter(CpuExecutor& executor, FilterImages<const T, Space::kHost> images,
                                          const RecursiveFilter& filter,
                                          FilterImages<T, Space::kHost> filtered,
                                          const RecursiveFilterChoice& /*choice*/) {
  check_views(images, filtered);
  executor.check_interrupt();
  const Precision precision = std::is_same_v<T, double> ? Precision::kDouble : precision_for(filter);
  const int order = kernel_order(filter);
  const Plans plans{precision, order, plan_axis(filter.y, images.first.height, order, precision),
                    plan_axis(filter.x, images.first.width, order, precision)};
  if constexpr (std::is_same_v<T, Float16>) {
    const auto scratch = executor.scratch<float>(static_cast<std::size_t>(images.first.elements()));
    for (std::int64_t i = 0; i < images.count; ++i) {
      filter_image(executor, plans, images[i], filtered[i], scratch);
    }
  } else {
    for (std::int64_t i = 0; i < images.count; ++i) filter_image<T>(executor, plans, images[i], filtered[i]);
  }
  return {RecursiveFilterMethod::kLines};
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
