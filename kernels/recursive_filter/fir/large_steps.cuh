#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/recursive_filter/fir/boundary.h"
#include "kernels/recursive_filter/fir/gaussian.h"
#include "kernels/recursive_filter/fir/stage.h"
#include "kernels/recursive_filter/gpu/elements.cuh"

// A pass of any step along one axis, for blurs that reach far beyond lines that go on there: what it reads
// lies too far apart for the shared memory of a block.

namespace cumulus::recursive_filter {

inline constexpr int kLargeStepThreads = 256;
/// Results of a thread, a block apart.
inline constexpr int kLargeStepResults = 4;
/// Weights that a block keeps in shared memory at once, of at most so many taps: a float sum of more would
/// err by more.
inline constexpr std::int64_t kWeightsAtOnce = 4096;
inline constexpr std::int64_t kTapsAtOnce = 128;

/// What a FirPass (fir/gaussian.h) is on the device.
struct DevicePass {
  FilterBoundary boundary;
  std::int64_t in_length;
  std::int64_t phases, advance, first, taps;
  double sigma, centre, scale;
  bool along_x;
  bool is_given;  // by `weights`, phase after phase; else a Gaussian's are computed, so that nothing is sent
  double weights[kFirWeights];
};

/// Rows of `width` pixels, image after image.
struct PassExtents {
  std::int64_t height, width;  // of a result
  std::int64_t images, channels;
  std::int64_t from_row, from_image;  // elements from one to the next
};

/// FirPass::weights.
__device__ inline double fir_weight(const DevicePass& pass, std::int64_t phase, std::int64_t tap) {
  if (pass.is_given) return pass.weights[phase * pass.taps + tap];
  const double distance = (pass.centre + static_cast<double>(tap) -
                           static_cast<double>(phase) / static_cast<double>(pass.phases)) /
                          pass.sigma;
  return pass.scale * exp(-0.5 * distance * distance);
}

/// Owns: a thread kLargeStepResults numbers of the result, which lie kLargeStepThreads apart.
/// Reads: the numbers of the input within the pass's reach, through the first cache, where the threads beside
/// it have them too. Writes: its results.
/// Waits for: its block, which computes the weights together, kWeightsAtOnce at a time; all threads of a
/// block pass all its barriers, so that it cannot deadlock. Source: sampling, filtering and interpolating as
/// fir/gaussian.h has it.
template <class Real>
__global__ void __launch_bounds__(kLargeStepThreads)
    filter_any_step(SourceElements from, TargetElements to, const __grid_constant__ DevicePass pass,
                    PassExtents extents, std::int64_t first_block) {
  __shared__ Real weights[kWeightsAtOnce];
  const std::int64_t row_numbers = extents.width * extents.channels;
  const std::int64_t total = extents.images * extents.height * row_numbers;
  const std::int64_t step = pass.along_x ? extents.channels : extents.from_row;
  const std::int64_t begin = (first_block + blockIdx.x) * kLargeStepThreads * kLargeStepResults + threadIdx.x;
  Real sums[kLargeStepResults] = {};
  const std::int64_t most_taps = min(kTapsAtOnce, kWeightsAtOnce / pass.phases);
  for (std::int64_t chunk = 0; chunk < pass.taps; chunk += most_taps) {
    const std::int64_t taps = min(most_taps, pass.taps - chunk);
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i < taps * pass.phases; i += kLargeStepThreads) {
      weights[i] = static_cast<Real>(fir_weight(pass, i % pass.phases, chunk + i / pass.phases));
    }
    __syncthreads();
    for (int r = 0; r < kLargeStepResults; ++r) {
      const std::int64_t at = begin + r * kLargeStepThreads;
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
  for (int r = 0; r < kLargeStepResults; ++r) {
    const std::int64_t at = begin + r * kLargeStepThreads;
    if (at < total) to.store(at, sums[r]);
  }
}

}  // namespace cumulus::recursive_filter
