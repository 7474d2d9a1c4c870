#include <algorithm>
#include <cstring>

#include "kernels/core/parallel.h"
#include "kernels/recursive_filter/recursive_filter.h"
#include "kernels/recursive_filter/recursive_filter_check.h"
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
};

template <class Real>
class LineGroup {
  using Value = Lanes<Real>;
  using Block = Value[kSteps];

 public:
  LineGroup(const LineMemory<const float>& source, const LineMemory<float>& target, std::int64_t length,
            int lines)
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
  template <class T>
  void load(const LineMemory<T>& memory, std::int64_t at, int steps, Block& block) const {
    for (int i = 0; i < steps; ++i) {
      Lanes<float> pixels = {};
      const float* from = memory.first + (at + i) * memory.step;
      if (memory.lane == 1 && lines_ == kLanes) {
        std::memcpy(&pixels, from, sizeof(pixels));
      } else {
        for (int line = 0; line < lines_; ++line) pixels[line] = from[line * memory.lane];
      }
      block[i] = __builtin_convertvector(pixels, Value);
    }
  }
  void store(std::int64_t at, int steps, const Block& block) const {
    for (int i = 0; i < steps; ++i) {
      const Lanes<float> pixels = __builtin_convertvector(block[i], Lanes<float>);
      float* to = target_.first + (at + i) * target_.step;
      if (target_.lane == 1 && lines_ == kLanes) {
        std::memcpy(to, &pixels, sizeof(pixels));
      } else {
        for (int line = 0; line < lines_; ++line) to[line * target_.lane] = pixels[line];
      }
    }
  }

  LineMemory<const float> source_;
  LineMemory<float> target_;
  std::int64_t length_;
  int lines_;
};

/// Filters `lines` neighbouring lines, kLanes at a time, on the executor's threads.
template <int Order, class Real>
void filter_lines(CpuExecutor& executor, const AxisPlan& axis, std::int64_t lines,
                  const LineMemory<const float>& source, const LineMemory<float>& target) {
  const LinePlan<Order, Real> plan(axis);
  const std::int64_t groups = (lines + kLanes - 1) / kLanes;
  const std::int64_t grain = std::max<std::int64_t>(1, kGrainPixels / (axis.length * kLanes));
  parallel_ranges(executor, groups, grain, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t group = first; group < end; ++group) {
      const std::int64_t line = group * kLanes;
      LineGroup<Real> these({source.first + line * source.lane, source.step, source.lane},
                            {target.first + line * target.lane, target.step, target.lane}, axis.length,
                            static_cast<int>(std::min<std::int64_t>(kLanes, lines - line)));
      filter_line<Lanes<Real>>(plan, these);
    }
  });
}

template <int Order, class Real>
void filter_axes(CpuExecutor& executor, const HostImage<const float>& image, const AxisPlan& y,
                 const AxisPlan& x, const HostImage<float>& filtered) {
  for (std::int64_t channel = 0; channel < image.channels; ++channel) {
    filter_lines<Order, Real>(executor, x, image.height,
                              {image.data + channel, image.channels, image.row_stride},
                              {filtered.data + channel, filtered.channels, filtered.row_stride});
  }
  executor.check_interrupt();
  filter_lines<Order, Real>(executor, y, image.width * image.channels,
                            {filtered.data, filtered.row_stride, 1}, {filtered.data, filtered.row_stride, 1});
}

}  // namespace

void apply_recursive_filter(CpuExecutor& executor, HostImage<const float> image,
                            const RecursiveFilter& filter, HostImage<float> filtered,
                            RecursiveFilterMethod method) {
  check_views(image, filtered);
  if (method == RecursiveFilterMethod::kTiled) {
    throw std::invalid_argument(
        "recursive_filter: the tiled method is for GPUs; on the CPU leave the choice open");
  }
  executor.check_interrupt();
  const Precision precision = precision_for(filter);
  const int order = kernel_order(filter);
  const AxisPlan y = plan_axis(filter.y, image.height, order, precision);
  const AxisPlan x = plan_axis(filter.x, image.width, order, precision);
  with_order(order, [&]<int Order>() {
    if (precision == Precision::kSingle) {
      filter_axes<Order, float>(executor, image, y, x, filtered);
    } else {
      filter_axes<Order, double>(executor, image, y, x, filtered);
    }
  });
}

#if !CUMULUS_WITH_CUDA
// A build without CUDA has no device to make an executor of: this satisfies the linker.
void apply_recursive_filter(CudaExecutor& /*executor*/, DeviceImage<const float> /*image*/,
                            const RecursiveFilter& /*filter*/, DeviceImage<float> /*filtered*/,
                            RecursiveFilterMethod /*method*/) {
  throw CudaError(0, "apply_recursive_filter", __FILE__, __LINE__);
}
#endif

}  // namespace cumulus
