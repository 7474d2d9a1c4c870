#pragma once

#include <cstdint>

#include "kernels/recursive_filter/recursive_filter_line.h"
#include "kernels/recursive_filter/recursive_filter_tuning.h"

// The line method: a thread filters a whole column, later a whole row.

namespace cumulus::recursive_filter {

/// A line in global memory, for filter_line.
template <class Real>
class ThreadLine {
 public:
  __device__ ThreadLine(const float* source, std::int64_t source_step, float* target,
                        std::int64_t target_step, std::int64_t length)
      : source_(source),
        target_(target),
        source_step_(source_step),
        target_step_(target_step),
        length_(length) {}

  template <class F>
  __device__ void read_forward(std::int64_t first, std::int64_t end, const F& f) const {
    for (std::int64_t i = first; i < end; ++i) f(static_cast<Real>(source_[i * source_step_]));
  }
  template <class F>
  __device__ void read_backward(std::int64_t first, std::int64_t end, const F& f) const {
    for (std::int64_t i = end - 1; i >= first; --i) f(static_cast<Real>(source_[i * source_step_]));
  }
  template <class F>
  __device__ void filter_forward(const F& f) const {
    for (std::int64_t i = 0; i < length_; ++i) {
      Real pixel = static_cast<Real>(source_[i * source_step_]);
      f(pixel);
      target_[i * target_step_] = static_cast<float>(pixel);
    }
  }
  template <class F>
  __device__ void filter_backward(const F& f) const {
    for (std::int64_t i = length_ - 1; i >= 0; --i) {
      Real pixel = static_cast<Real>(target_[i * target_step_]);
      f(pixel);
      target_[i * target_step_] = static_cast<float>(pixel);
    }
  }

 private:
  const float* source_;
  float* target_;
  std::int64_t source_step_;
  std::int64_t target_step_;
  std::int64_t length_;
};

/// Lines of all channels: line l of `lines` begins at element l / channels * line_stride + l % channels.
struct LineLayout {
  std::int64_t line_stride;
  std::int64_t step;
};

template <int Order, class Real>
__global__ void __launch_bounds__(kLineThreads)
    filter_lines(const __grid_constant__ LinePlan<Order, Real> plan, const float* source, LineLayout from,
                 float* target, LineLayout to, std::int64_t lines, std::int64_t channels) {
  const std::int64_t line = std::int64_t{blockIdx.x} * kLineThreads + threadIdx.x;
  if (line >= lines) return;
  const std::int64_t across = line / channels;
  const std::int64_t channel = line % channels;
  ThreadLine<Real> pixels(source + across * from.line_stride + channel, from.step,
                          target + across * to.line_stride + channel, to.step, plan.length);
  filter_line<Real>(plan, pixels);
}

}  // namespace cumulus::recursive_filter
