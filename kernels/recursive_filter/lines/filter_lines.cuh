#pragma once

#include <cstdint>

#include "kernels/recursive_filter/gpu/elements.cuh"
#include "kernels/recursive_filter/math/line.h"
#include "kernels/recursive_filter/tuning.h"

// The line method: a thread filters a whole column, later a whole row.

namespace cumulus::recursive_filter {

/// The elements of a pass over lines of all channels of all images: line l begins at element
/// l / (channels * lines of an image) * image_stride + (l / channels % lines of an image) * line_stride + l %
/// channels.
template <class ElementsT>
struct LineElements {
  ElementsT elements;
  std::int64_t image_stride;
  std::int64_t line_stride;
  std::int64_t step;  // from a pixel to the next
};

/// A line in global memory, for filter_line.
template <class Real>
struct ThreadLine {
  LineElements<SourceElements> source;
  LineElements<TargetElements> between, target;
  std::int64_t source_first, between_first, target_first;
  std::int64_t length;

  template <class F>
  __device__ void read_forward(std::int64_t first, std::int64_t end, const F& f) const {
    for (std::int64_t i = first; i < end; ++i) f(source_pixel(i));
  }
  template <class F>
  __device__ void read_backward(std::int64_t first, std::int64_t end, const F& f) const {
    for (std::int64_t i = end - 1; i >= first; --i) f(source_pixel(i));
  }
  template <class F>
  __device__ void filter_forward(const F& f) const {
    for (std::int64_t i = 0; i < length; ++i) {
      Real pixel = source_pixel(i);
      f(pixel);
      between.elements.store(between_first + i * between.step, pixel);
    }
  }
  template <class F>
  __device__ void filter_backward(const F& f) const {
    for (std::int64_t i = length - 1; i >= 0; --i) {
      Real pixel = between.elements.template load<Real>(between_first + i * between.step);
      f(pixel);
      target.elements.store(target_first + i * target.step, pixel);
    }
  }

 private:
  __device__ Real source_pixel(std::int64_t i) const {
    return source.elements.template load<Real>(source_first + i * source.step);
  }
};

struct LinePass {
  LineElements<SourceElements> source;
  LineElements<TargetElements> between,
      target;  // causal results and results: `between` may be either of the others
  std::int64_t images;
  std::int64_t lines;  // of an image
  std::int64_t channels;
};

/// Owns: a thread one column, or row, of one channel.
/// Reads: its pixels; where the boundary needs runs over the image, up to five times. Writes: the causal
///   result, then the result.
/// Waits for: nothing of other threads, so that it cannot deadlock.
/// Source: Ruijters and Thevenaz (2010), the baseline RT of Nehab et al. (2011).
template <int Order, class Real>
__global__ void __launch_bounds__(kLineThreads)
    filter_lines(const __grid_constant__ LinePlan<Order, Real> plan, const __grid_constant__ LinePass pass) {
  const std::int64_t index = std::int64_t{blockIdx.x} * kLineThreads + threadIdx.x;
  if (index >= pass.images * pass.lines * pass.channels) return;
  const std::int64_t channel = index % pass.channels;
  const std::int64_t line = index / pass.channels % pass.lines;
  const std::int64_t image = index / pass.channels / pass.lines;
  const auto first_of = [&](const auto& at) {
    return image * at.image_stride + line * at.line_stride + channel;
  };
  ThreadLine<Real> pixels{
      pass.source,           pass.between, pass.target, first_of(pass.source), first_of(pass.between),
      first_of(pass.target), plan.length};
  filter_line<Real>(plan, pixels);
}

}  // namespace cumulus::recursive_filter
