#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/core/cuda_error.h"
#include "kernels/core/div.h"
#include "kernels/recursive_filter/check.h"
#include "kernels/recursive_filter/fir/blur.h"
#include "kernels/recursive_filter/fir/boundary.h"
#include "kernels/recursive_filter/gpu/elements.cuh"

namespace cumulus {
namespace {

using namespace recursive_filter;

constexpr int kFirThreads = 256;
/// Results of a thread, one block apart.
constexpr int kFirResults = 4;
/// Weights that a block keeps in shared memory at once, of at most so many taps: a float sum of more would
/// err by more.
constexpr std::int64_t kFirWeights = 4096;
constexpr std::int64_t kFirTaps = 128;

/// What a FirPass (fir/gaussian.h) is on the device.
struct DevicePass {
  FilterBoundary boundary;
  std::int64_t in_length;
  std::int64_t phases, advance, first, taps;
  double sigma, centre, scale;
  bool along_x;
};

/// Rows of `width` pixels, image after image.
struct PassExtents {
  std::int64_t height, width;  // of a result
  std::int64_t images, channels;
  std::int64_t from_row, from_image;  // elements from one to the next
};

/// The Gaussian where the tap of a phase stands: FirPass::weights, computed here so that nothing is sent.
__device__ inline double fir_weight(const DevicePass& pass, std::int64_t phase, std::int64_t tap) {
  const double distance = (pass.centre + static_cast<double>(tap) -
                           static_cast<double>(phase) / static_cast<double>(pass.phases)) /
                          pass.sigma;
  return pass.scale * exp(-0.5 * distance * distance);
}

/// Owns: a thread kFirResults numbers of the result, which lie kFirThreads apart.
/// Reads: the numbers of the input within the pass's reach, through the first cache, where the threads beside
/// it have them too. Writes: its results.
/// Waits for: its block, which computes the weights together, kFirWeights at a time; all threads of a block
/// pass all its barriers, so that it cannot deadlock.
/// Source: sampling, filtering and interpolating as fir/gaussian.h has it.
template <class Real>
__global__ void __launch_bounds__(kFirThreads)
    filter_finite(SourceElements from, TargetElements to, DevicePass pass, PassExtents extents) {
  __shared__ Real weights[kFirWeights];
  const std::int64_t row_numbers = extents.width * extents.channels;
  const std::int64_t total = extents.images * extents.height * row_numbers;
  const std::int64_t step = pass.along_x ? extents.channels : extents.from_row;
  const std::int64_t begin = std::int64_t{blockIdx.x} * kFirThreads * kFirResults + threadIdx.x;
  Real sums[kFirResults] = {};
  const std::int64_t most_taps = min(kFirTaps, kFirWeights / pass.phases);
  for (std::int64_t chunk = 0; chunk < pass.taps; chunk += most_taps) {
    const std::int64_t taps = min(most_taps, pass.taps - chunk);
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i < taps * pass.phases; i += kFirThreads) {
      weights[i] = static_cast<Real>(fir_weight(pass, i % pass.phases, chunk + i / pass.phases));
    }
    __syncthreads();
    for (int r = 0; r < kFirResults; ++r) {
      const std::int64_t at = begin + r * kFirThreads;
      if (at >= total) break;
      const std::int64_t row = at / row_numbers;
      const std::int64_t number = at - row * row_numbers;
      const std::int64_t image = row / extents.height;
      const std::int64_t y = row - image * extents.height;
      const std::int64_t place = pass.along_x ? number / extents.channels : y;
      const std::int64_t group = place / pass.phases;
      const Real* weight = weights + (place - group * pass.phases);
      const std::int64_t line =
          image * extents.from_image +
          (pass.along_x ? y * extents.from_row + (number - place * extents.channels) : number);
      const std::int64_t first = group * pass.advance + pass.first + chunk;
      Real sum = 0;
      if (first >= 0 && first + taps <= pass.in_length) {
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          sum += weight[tap * pass.phases] * from.load<Real>(line + (first + tap) * step);
        }
      } else {
        for (std::int64_t tap = 0; tap < taps; ++tap) {
          const std::int64_t source = source_pixel(first + tap, pass.in_length, pass.boundary);
          if (source >= 0) sum += weight[tap * pass.phases] * from.load<Real>(line + source * step);
        }
      }
      sums[r] += sum;
    }
  }
  for (int r = 0; r < kFirResults; ++r) {
    const std::int64_t at = begin + r * kFirThreads;
    if (at < total) to.store(at, sums[r]);
  }
}

DevicePass on_device(const FirPass& pass) {
  return {pass.boundary, pass.in_length, pass.phases, pass.advance, pass.first,
          pass.taps,     pass.sigma,     pass.centre, pass.scale,   pass.along_x};
}

}  // namespace

template <class T>
void fir_gaussian_blur(CudaExecutor& executor, FilterImages<const T, Space::kDevice> images,
                       const FirBlur& blur, FilterImages<T, Space::kDevice> blurred) {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  check_views(images, blurred);
  check_fir_blur(blur);
  const DeviceImage<const T>& shape = images.first;
  FirExtents extents{shape.height, shape.width};
  const std::vector<FirPass> passes = plan_fir_passes(blur, shape.height, shape.width);
  const FirScratch scratch = fir_scratch(passes, extents, shape.channels);
  const DeviceSpan<Real> even = executor.scratch<Real>(static_cast<std::size_t>(images.count * scratch.even));
  const DeviceSpan<Real> odd = executor.scratch<Real>(static_cast<std::size_t>(images.count * scratch.odd));
  executor.bind_thread();
  SourceElements from = source_elements(shape.data);
  std::int64_t from_row = shape.row_stride, from_image = images.image_stride;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    executor.check_interrupt();
    extents = extents_after(passes[i], extents);
    const TargetElements to = i + 1 == passes.size() ? target_elements(blurred.first.data)
                                                     : target_elements((i % 2 == 0 ? even : odd).data());
    const PassExtents of_pass{extents.height, extents.width, images.count,
                              shape.channels, from_row,      from_image};
    const std::int64_t numbers = images.count * extents.height * extents.width * shape.channels;
    filter_finite<Real>
        <<<static_cast<unsigned int>(divide_up(numbers, std::int64_t{kFirThreads} * kFirResults)),
           kFirThreads, 0, executor.stream()>>>(from, to, on_device(passes[i]), of_pass);
    CUMULUS_CUDA(cudaGetLastError());
    from = read_only(to);
    from_row = extents.width * shape.channels;
    from_image = extents.height * from_row;
  }
}

#define CUMULUS_INSTANTIATE(T)                                                                             \
  template void fir_gaussian_blur<T>(CudaExecutor&, FilterImages<const T, Space::kDevice>, const FirBlur&, \
                                     FilterImages<T, Space::kDevice>);
CUMULUS_INSTANTIATE(float)
CUMULUS_INSTANTIATE(Float16)
CUMULUS_INSTANTIATE(double)
#undef CUMULUS_INSTANTIATE

}  // namespace cumulus
