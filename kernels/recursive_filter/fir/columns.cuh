#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/core/div.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/recursive_filter/fir/axis.cuh"
#include "kernels/recursive_filter/fir/both_axes.h"

// Sums along y: a thread has four columns, whose values it loads as vectors where they lie so, through the
// caches, and keeps in registers while results reach them.

namespace cumulus::recursive_filter {

/// A block of sum_columns has vectors of columns side by side, and rows one below the other.
inline constexpr int kColumnVectors = 32;
inline constexpr int kColumnThreads = kColumnVectors * kColumnRuns;
/// Taps whose rows are loaded at once.
inline constexpr int kColumnTaps = 8;
/// Weights along y, with zeros after those of each phase, and rows that a block loads at most.
inline constexpr int kColumnWeights = kFirWeights + static_cast<int>(kFirSmallStep) * kMaxColumnTaps;
inline constexpr int kColumnLines = kColumnRuns * kFirRun * static_cast<int>(kFirSmallStep) + kColumnWeights;

/// Neighbouring columns that lie together, where a vector of them begins.
template <class T, int kWide>
struct VectorColumns {
  const T* first;
  unsigned row_bytes;

  __device__ __forceinline__ void load(int line, float (&to)[kWide]) const {
    const auto* row =
        reinterpret_cast<const char*>(first) + std::uint64_t{static_cast<unsigned>(line)} * row_bytes;
    const auto vector = *reinterpret_cast<const RowVector<T, kWide>*>(row);
#pragma unroll
    for (int k = 0; k < kWide; ++k) to[k] = static_cast<float>(vector.values[k]);
  }
};

/// Columns anywhere in a row; those and lines at -1 are zero.
template <class T, int kWide>
struct AnyColumns {
  const T* first;
  unsigned row_bytes;
  int places[kWide];

  __device__ __forceinline__ void load(int line, float (&to)[kWide]) const {
    const auto* row =
        reinterpret_cast<const char*>(first) + std::uint64_t{static_cast<unsigned>(line)} * row_bytes;
#pragma unroll
    for (int k = 0; k < kWide; ++k) {
      to[k] =
          line < 0 || places[k] < 0 ? 0.0F : static_cast<float>(reinterpret_cast<const T*>(row)[places[k]]);
    }
  }
};

/// The rows from `first` on; -1 for one of zeros. Returns whether there is any, to all threads, which pass
/// its barrier.
template <class Real>
__device__ __forceinline__ bool place_lines(const FirStageAxis<Real>& axis, std::int64_t first, int count,
                                            int* lines) {
  bool zeros = false;
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    const std::int64_t line = source_pixel(first + i, axis.in_length, axis.boundary);
    lines[i] = static_cast<int>(line);
    zeros = zeros || line < 0;
  }
  return __syncthreads_or(zeros) != 0;
}

/// Rows that sum_run reaches, of `rows` results.
template <int kTaps>
__device__ __forceinline__ int lines_of(const FirForm& form, int rows, int chunks) {
  return (rows - 1 + chunks * kTaps) * form.advance;
}

/// A run of results: sums[i] is the sum over tap t of a phase's weights[t] times the row that is t + i times
/// form.advance after the phase's first. The rows of kTaps taps are on their way at the same time, since they
/// come from afar.
template <int kTaps, int kRun, int kWide, class Columns>
__device__ __forceinline__ void sum_run(const Columns& columns, const FirForm& form, const int* lines,
                                        const float* weights, int chunks, float (&sums)[kRun][kWide]) {
  constexpr int kReach = kRun + kTaps - 1;
  for (int phase = 0; phase < form.advance; ++phase) {
    const int* line = lines + phase;
    for (int chunk = 0; chunk < chunks; ++chunk, line += kTaps * form.advance, weights += kTaps) {
      float rows[kReach][kWide];
#pragma unroll
      for (int i = 0; i < kReach; ++i) columns.load(line[i * form.advance], rows[i]);
#pragma unroll
      for (int tap = 0; tap < kTaps; tap += 2) {
        const float2 weight = *reinterpret_cast<const float2*>(weights + tap);
#pragma unroll
        for (int i = 0; i < kRun; ++i) {
#pragma unroll
          for (int k = 0; k < kWide; ++k) {
            sums[i][k] += weight.x * rows[tap + i][k];
            sums[i][k] += weight.y * rows[tap + i + 1][k];
          }
        }
      }
    }
  }
}

/// Owns: stage.column_runs times kFirRun rows of kColumnVectors vectors of columns.
/// Reads: the input within reach of these, through the caches; beside the block what its neighbours read too.
/// Writes: its results. In shared memory: weights, and where rows begin.
/// Waits for: its own threads; all of them pass the only barrier, so that it cannot deadlock.
/// Source: the filter between others (fir/gaussian.h), of lines in registers.
template <class T>
__global__ void __launch_bounds__(kColumnThreads, 2)
    sum_columns(const T* from, T* to, const __grid_constant__ AxisStage stage, std::int64_t first_block) {
  __shared__ __align__(16) float weights[kColumnWeights];
  __shared__ int lines[kColumnLines];
  const FirForm& form = stage.axis.form;
  const AxisBlock block = axis_block(stage.blocks_x, stage.blocks_y, first_block);
  const std::int64_t first_row = block.y * stage.column_runs * kFirRun;
  copy_weights(stage.axis, stage.chunks * kColumnTaps, weights);
  const bool zeros =
      place_lines(stage.axis, first_row + stage.axis.first,
                  lines_of<kColumnTaps>(form, stage.column_runs * kFirRun, stage.chunks), lines);
  wait_for_primary_kernel();
  allow_secondary_kernel();
  const std::int64_t number = (block.x * kColumnVectors + threadIdx.x % kColumnVectors) * 4;
  const int run = static_cast<int>(threadIdx.x) / kColumnVectors * kFirRun;
  const auto rows = static_cast<int>(min(stage.axis.out_length - first_row - run, std::int64_t{kFirRun}));
  if (number >= stage.numbers || rows <= 0) return;
  from += block.image * stage.from_image;
  const auto count = static_cast<int>(min(stage.numbers - number, std::int64_t{4}));
  float sums[kFirRun][4] = {};
  if (stage.from_vectors && !zeros) {
    const VectorColumns<T, 4> columns{from + number, stage.from_row_bytes};
    sum_run<kColumnTaps>(columns, form, lines + run, weights, stage.chunks, sums);
  } else {
    AnyColumns<T, 4> columns{from + number, stage.from_row_bytes, {}};
#pragma unroll
    for (int k = 0; k < 4; ++k) columns.places[k] = k < count ? k : -1;
    sum_run<kColumnTaps>(columns, form, lines + run, weights, stage.chunks, sums);
  }
  to += block.image * stage.to_image + (first_row + run) * stage.to_row + number;
#pragma unroll
  for (int i = 0; i < kFirRun; ++i, to += stage.to_row) {
    if (i < rows) store_four(to, stage.to_vectors, count, sums[i]);
  }
}

}  // namespace cumulus::recursive_filter
