#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/recursive_filter/fir/boundary.h"
#include "kernels/recursive_filter/fir/gaussian.h"
#include "kernels/recursive_filter/fir/stage.h"
#include "kernels/recursive_filter/gpu/elements.cuh"

// A pass of any step along one axis: for blurs that reach far beyond lines that go on there, since what it
// reads lies too far apart for the shared memory of a block, and for doubles.

namespace cumulus::recursive_filter {

/// A block has its threads side by side along x, a thread kLargeStepResults numbers of a row; along y so many
/// columns, of each of which a thread has as many rows: what neighbours read too is in the first cache.
inline constexpr int kLargeStepThreads = 256;
inline constexpr int kLargeStepResults = 4;
inline constexpr int kLargeStepColumns = 32;
struct LargeStepBlock {
  int numbers, rows;
  __host__ __device__ explicit LargeStepBlock(bool along_x)
      : numbers(along_x ? kLargeStepThreads * kLargeStepResults : kLargeStepColumns),
        rows(along_x ? 1 : kLargeStepThreads * kLargeStepResults / kLargeStepColumns) {}
};
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
  std::int64_t blocks_x;              // of a row
};

/// FirPass::weights.
__device__ inline double fir_weight(const DevicePass& pass, std::int64_t phase, std::int64_t tap) {
  if (pass.is_given) return pass.weights[phase * pass.taps + tap];
  const double distance = (pass.centre + static_cast<double>(tap) -
                           static_cast<double>(phase) / static_cast<double>(pass.phases)) /
                          pass.sigma;
  return pass.scale * exp(-0.5 * distance * distance);
}

/// A thread's results.
template <class T>
struct StepResults {
  std::int64_t at[kLargeStepResults];      // their numbers; -1 beside the image
  const T* lines[kLargeStepResults];       // the first pixels of the lines that they come from
  std::int64_t firsts[kLargeStepResults];  // the pixels of these to which the first taps belong
  int phases[kLargeStepResults];

  __device__ StepResults(const T* from, const DevicePass& pass, const PassExtents& extents,
                         std::int64_t block) {
    const LargeStepBlock shape(pass.along_x);
    const std::int64_t row_numbers = extents.width * extents.channels;
    const std::int64_t block_y = block / extents.blocks_x;
    const int across = pass.along_x ? kLargeStepThreads : kLargeStepColumns;
    const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int r = 0; r < kLargeStepResults; ++r) {
      std::int64_t number = (block - block_y * extents.blocks_x) * shape.numbers + thread % across;
      std::int64_t row = block_y * shape.rows + thread / across;
      (pass.along_x ? number : row) += r * (pass.along_x ? across : kLargeStepThreads / across);
      const bool is_there = number < row_numbers && row < extents.images * extents.height;
      at[r] = is_there ? row * row_numbers + number : -1;
      if (!is_there) number = row = 0;
      const std::int64_t image = row / extents.height;
      const std::int64_t y = row - image * extents.height;
      const std::int64_t place = pass.along_x ? number / extents.channels : y;
      const std::int64_t group = place / pass.phases;
      lines[r] = from + image * extents.from_image +
                 (pass.along_x ? y * extents.from_row + (number - place * extents.channels) : number);
      firsts[r] = group * pass.advance + pass.first;
      phases[r] = static_cast<int>(place - group * pass.phases);
    }
  }

  /// Whether `taps` taps from `tap` on belong to pixels that are there, for all results.
  __device__ bool are_inside(std::int64_t tap, std::int64_t taps, std::int64_t length) const {
    bool inside = true;
#pragma unroll
    for (const std::int64_t first : firsts) inside &= first + tap >= 0 && first + tap + taps <= length;
    return inside;
  }

  /// Adds the sums of `taps` taps from `tap` on, whose pixels are there and lie `step` apart.
  template <class Real>
  __device__ void add_inside(const Real* weights, std::int64_t tap, int taps, int phases_in_all,
                             std::int64_t step, Real (&sums)[kLargeStepResults]) const {
    const T* pixels[kLargeStepResults];
    Real parts[kLargeStepResults] = {};
#pragma unroll
    for (int r = 0; r < kLargeStepResults; ++r) pixels[r] = lines[r] + (firsts[r] + tap) * step;
#pragma unroll 2
    for (int i = 0; i < taps; ++i, weights += phases_in_all) {
#pragma unroll
      for (int r = 0; r < kLargeStepResults; ++r) {
        parts[r] += weights[phases[r]] * static_cast<Real>(__ldg(pixels[r]));
        pixels[r] += step;
      }
    }
#pragma unroll
    for (int r = 0; r < kLargeStepResults; ++r) sums[r] += parts[r];
  }

  /// The same of pixels that may lie beyond the image.
  template <class Real>
  __device__ void add_anywhere(const Real* weights, std::int64_t tap, int taps, const DevicePass& pass,
                               std::int64_t step, Real (&sums)[kLargeStepResults]) const {
    for (int r = 0; r < kLargeStepResults; ++r) {
      Real part = 0;
      for (int i = 0; i < taps; ++i) {
        const std::int64_t source = source_pixel(firsts[r] + tap + i, pass.in_length, pass.boundary);
        if (source < 0) continue;
        part += weights[i * pass.phases + phases[r]] * static_cast<Real>(lines[r][source * step]);
      }
      sums[r] += part;
    }
  }
};

/// Owns: a block a LargeStepBlock of the result, of all images' rows.
/// Reads: the numbers of the input within the pass's reach, through the first cache, where the threads beside
/// it have them too. Writes: its results.
/// Waits for: its block, which computes the weights together, kWeightsAtOnce at a time; all threads of a
/// block pass all its barriers, so that it cannot deadlock. Source: sampling, filtering and interpolating as
/// fir/gaussian.h has it.
template <class T, class Real>
__global__ void __launch_bounds__(kLargeStepThreads)
    filter_any_step(const T* from, TargetElements to, const __grid_constant__ DevicePass pass,
                    PassExtents extents, std::int64_t first_block) {
  __shared__ Real weights[kWeightsAtOnce];
  const std::int64_t step = pass.along_x ? extents.channels : extents.from_row;
  const StepResults<T> results(from, pass, extents, first_block + blockIdx.x);
  const auto phases = static_cast<int>(pass.phases);
  Real sums[kLargeStepResults] = {};
  const std::int64_t most_taps = min(kTapsAtOnce, kWeightsAtOnce / pass.phases);
  for (std::int64_t chunk = 0; chunk < pass.taps; chunk += most_taps) {
    const auto taps = static_cast<int>(min(most_taps, pass.taps - chunk));
    __syncthreads();
    for (int i = threadIdx.x; i < taps * phases; i += kLargeStepThreads) {
      weights[i] = static_cast<Real>(fir_weight(pass, i % phases, chunk + i / phases));
    }
    __syncthreads();
    if (results.are_inside(chunk, taps, pass.in_length)) {
      results.add_inside(weights, chunk, taps, phases, step, sums);
    } else {
      results.add_anywhere(weights, chunk, taps, pass, step, sums);
    }
  }
#pragma unroll
  for (int r = 0; r < kLargeStepResults; ++r) {
    if (results.at[r] >= 0) to.store(results.at[r], sums[r]);
  }
}

}  // namespace cumulus::recursive_filter
