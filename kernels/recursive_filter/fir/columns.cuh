#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/core/div.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/recursive_filter/fir/axis.cuh"

// A stage along y: a thread has four columns, whose values it loads as vectors, through the caches, and keeps
// in registers while results reach them.

namespace cumulus::recursive_filter {

/// A block has vectors of columns side by side, and rows one below the other.
inline constexpr int kColumnVectors = 32;
inline constexpr int kColumnRuns = 8;
inline constexpr int kColumnThreads = kColumnVectors * kColumnRuns;
/// Groups of results that a thread interpolates.
inline constexpr int kColumnGroups = 4;
/// Blocks that interpolate on a multiprocessor.
constexpr int interpolation_blocks(int taps) { return taps > 12 ? 1 : taps > 10 ? 2 : 3; }
/// Taps that are added at a time, and rows that are on their way meanwhile.
inline constexpr int kColumnTaps = 2;
inline constexpr int kColumnAhead = 2;
/// Rows of the input that a block loads at most, where it does not interpolate.
inline constexpr int kColumnLines =
    (kColumnRuns * kFirRun + kColumnAhead) * static_cast<int>(kFirSmallStep) + kFirWeights;

/// Four neighbouring numbers of a row.
template <class T>
struct alignas(4 * sizeof(T)) ColumnVector {
  T values[4];
};

/// Where this thread's columns are; those beside the image are the last one again.
template <class T, bool kVectors>
class Columns {
 public:
  __device__ Columns(const T* image, std::int64_t number, std::int64_t numbers) : first_(image + number) {
    if constexpr (!kVectors) {
#pragma unroll
      for (int k = 0; k < 4; ++k) beside_[k] = static_cast<int>(min(std::int64_t{k}, numbers - 1 - number));
    }
  }

  /// Of the row that begins `line` units after the first; a unit is what is loaded at once.
  __device__ __forceinline__ void load(int line, float (&to)[4]) const {
    if constexpr (kVectors) {
      const auto vector = reinterpret_cast<const ColumnVector<T>*>(first_)[line];
#pragma unroll
      for (int k = 0; k < 4; ++k) to[k] = static_cast<float>(vector.values[k]);
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k) to[k] = static_cast<float>(first_[std::int64_t{line} + beside_[k]]);
    }
  }
  static constexpr int kUnit = kVectors ? 4 : 1;

 private:
  const T* first_;
  int beside_[4];
};

/// Where the rows from `first` on begin, in units; -1 for one of zeros. Returns whether there is any, to all
/// threads, which pass its barrier.
__device__ __forceinline__ bool place_lines(const AxisStage& stage, std::int64_t first, int count, int unit,
                                            int* lines) {
  bool zeros = false;
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    const std::int64_t line = source_pixel(first + i, stage.axis.in_length, stage.axis.boundary);
    lines[i] = line < 0 ? -1 : static_cast<int>(line * (stage.from_row / unit));
    zeros = zeros || line < 0;
  }
  return __syncthreads_or(zeros) != 0;
}

/// Has the second cache load all that a block reads: its threads wait for that alone.
template <class T>
__device__ __forceinline__ void fetch_lines(const AxisStage& stage, const T* image, std::int64_t number,
                                            int count, int unit, const int* lines) {
  constexpr int kCacheLine = 128 / sizeof(T);
  constexpr int kPieces = 4 * kColumnVectors / kCacheLine;  // of a row
  for (int i = threadIdx.x; i < count * kPieces; i += blockDim.x) {
    const std::int64_t at = number + i % kPieces * kCacheLine;
    const int line = lines[i / kPieces];
    if (line < 0 || at >= stage.numbers) continue;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(image + std::int64_t{line} * unit + at));
  }
}

template <bool kZeros, class Source>
__device__ __forceinline__ void load_line(const Source& columns, int line, float (&to)[4]) {
  if (!kZeros || line >= 0) {
    columns.load(line, to);
  } else {
    to[0] = to[1] = to[2] = to[3] = 0;
  }
}

/// sums[i] += the sum over tap t of weights[t] times the row of lines[(i + t) step], of `pairs` times
/// kColumnTaps taps. Rows that may be loaded go on for kColumnAhead more.
template <bool kZeros, class Source>
__device__ __forceinline__ void add_rows(const Source& columns, const int* lines, int step,
                                         const float* weights, int pairs, float (&sums)[kFirRun][4]) {
  constexpr int kFilled = kFirRun + kColumnAhead;
  constexpr int kWindow = kFilled + kColumnTaps;
  float window[kWindow][4];
  const auto load = [&](float(&to)[4]) {
    load_line<kZeros>(columns, *lines, to);
    lines += step;
  };
#pragma unroll
  for (int i = 0; i < kFilled; ++i) load(window[i]);
  while (true) {
#pragma unroll
    for (int first = 0; first < kWindow; first += kColumnTaps) {
#pragma unroll
      for (int i = 0; i < kColumnTaps; ++i) load(window[(first + kFilled + i) % kWindow]);
      const float2 weight = *reinterpret_cast<const float2*>(weights);
      weights += kColumnTaps;
#pragma unroll
      for (int i = 0; i < kFirRun; ++i) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          sums[i][k] += weight.x * window[(first + i) % kWindow][k];
          sums[i][k] += weight.y * window[(first + i + 1) % kWindow][k];
        }
      }
      if (--pairs == 0) return;
    }
  }
}

/// Owns: stage.column_runs times kFirRun rows of kColumnVectors vectors of columns.
/// Reads: the input within reach of these, through the caches; beside the block what its neighbours read too.
/// Writes: its results. In shared memory: weights, and where rows begin.
/// Waits for: its own threads; all of them pass the only barrier, so that it cannot deadlock.
/// Source: a polyphase filter (fir/gaussian.h) with a window of lines in registers.
template <class T, bool kVectors>
__global__ void __launch_bounds__(kColumnThreads, 2)
    sum_columns(const T* from, float* to, const __grid_constant__ AxisStage stage, std::int64_t first_block) {
  __shared__ FirFour<float> weights[kFirWeights / kFirTaps];
  __shared__ int lines[kColumnLines];
  const FirForm& form = stage.axis.form;
  const AxisBlock block = axis_block(stage, first_block + blockIdx.x);
  const std::int64_t first_row = block.y * stage.column_runs * kFirRun;
  copy_weights(stage, weights);
  const int reach = (stage.column_runs * kFirRun + kColumnAhead + kColumnTaps * stage.pairs) * form.advance;
  const bool zeros = place_lines(stage, first_row * form.advance + stage.axis.first, reach,
                                 Columns<T, kVectors>::kUnit, lines);
  wait_for_primary_kernel();
  allow_secondary_kernel();
  fetch_lines(stage, from + block.image * stage.from_image, block.x * kColumnVectors * 4, reach,
              Columns<T, kVectors>::kUnit, lines);
  const std::int64_t number = (block.x * kColumnVectors + threadIdx.x % kColumnVectors) * 4;
  const int run = static_cast<int>(threadIdx.x) / kColumnVectors * kFirRun;
  const auto rows_left =
      static_cast<int>(min(stage.axis.out_length - first_row - run, std::int64_t{kFirRun}));
  if (number >= stage.numbers || rows_left <= 0) return;
  const Columns<T, kVectors> columns(from + block.image * stage.from_image, number, stage.numbers);
  float sums[kFirRun][4] = {};
  for (int a = 0; a < form.advance; ++a) {
    const int* own = lines + run * form.advance + a;
    const auto* phase = reinterpret_cast<const float*>(weights + a * form.chunks);
    if (zeros) {
      add_rows<true>(columns, own, form.advance, phase, stage.pairs, sums);
    } else {
      add_rows<false>(columns, own, form.advance, phase, stage.pairs, sums);
    }
  }
  to += block.image * stage.to_image + (first_row + run) * stage.to_row + number;
#pragma unroll
  for (int i = 0; i < kFirRun; ++i, to += stage.to_row) {
    if (i < rows_left) *reinterpret_cast<float4*>(to) = {sums[i][0], sums[i][1], sums[i][2], sums[i][3]};
  }
}

/// A thread's part of an interpolation along y: kColumnGroups groups of four columns' results.
template <class T, int kTaps>
class InterpolatedColumns {
 public:
  template <bool kZeros>
  __device__ __forceinline__ void load(const Columns<float, true>& columns, const int* lines) {
#pragma unroll
    for (int i = 0; i < kReach; ++i) load_line<kZeros>(columns, lines[i], values_[i]);
  }

  /// A result of each group.
  __device__ __forceinline__ void sum(const FirFour<float>* weights, float (&sums)[kColumnGroups][4]) const {
#pragma unroll
    for (int chunk = 0; chunk < divide_up(kTaps, kFirTaps); ++chunk) {
      const FirFour<float> four = weights[chunk];
#pragma unroll
      for (int tap = chunk * kFirTaps; tap < min(chunk * kFirTaps + kFirTaps, kTaps); ++tap) {
#pragma unroll
        for (int i = 0; i < kColumnGroups; ++i) {
#pragma unroll
          for (int k = 0; k < 4; ++k) sums[i][k] += four.values[tap % kFirTaps] * values_[tap + i][k];
        }
      }
    }
  }

  /// `rows` of them, `step` elements from each to the next, of `count` columns or, where it is 0, as vectors.
  __device__ __forceinline__ static void store(T* to, std::int64_t step, int rows, int count,
                                               const float (&sums)[kColumnGroups][4]) {
#pragma unroll
    for (int i = 0; i < kColumnGroups; ++i, to += step) {
      if (i >= rows) return;
      ColumnVector<T> vector;
#pragma unroll
      for (int k = 0; k < 4; ++k) vector.values[k] = static_cast<T>(sums[i][k]);
      if (count == 0) {
        *reinterpret_cast<ColumnVector<T>*>(to) = vector;
        continue;
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (k < count) to[k] = vector.values[k];
      }
    }
  }

 private:
  static constexpr int kReach = kColumnGroups + kTaps - 1;

  float values_[kReach][4];
};

/// Owns: stage.column_runs times kColumnGroups groups of rows, one of each phase, of kColumnVectors vectors
/// of columns.
/// Reads: the input within reach of these, through the caches. Writes: its results.
/// Waits for: its own threads; all of them pass the only barrier, so that it cannot deadlock.
/// Source: as sum_columns.
template <class T, int kTaps>
__global__ void __launch_bounds__(kColumnThreads, interpolation_blocks(kTaps))
    interpolate_columns(const float* from, T* to, const __grid_constant__ AxisStage stage,
                        std::int64_t first_block) {
  __shared__ FirFour<float> weights[kFirWeights / kFirTaps];
  __shared__ int lines[kColumnRuns * kColumnGroups + kTaps];
  const FirForm& form = stage.axis.form;
  const AxisBlock block = axis_block(stage, first_block + blockIdx.x);
  const std::int64_t first_group = block.y * stage.column_runs * kColumnGroups;
  copy_weights(stage, weights);
  const bool zeros =
      place_lines(stage, first_group + stage.axis.first, stage.column_runs * kColumnGroups + kTaps,
                  Columns<float, true>::kUnit, lines);
  wait_for_primary_kernel();
  allow_secondary_kernel();
  const std::int64_t number = (block.x * kColumnVectors + threadIdx.x % kColumnVectors) * 4;
  const int run = static_cast<int>(threadIdx.x) / kColumnVectors * kColumnGroups;
  const std::int64_t first_row = (first_group + run) * form.phases;
  auto rows =
      static_cast<int>(min(stage.axis.out_length - first_row, std::int64_t{kColumnGroups} * form.phases));
  if (number >= stage.numbers || rows <= 0) return;
  const Columns<float, true> columns(from + block.image * stage.from_image, number, stage.numbers);
  InterpolatedColumns<T, kTaps> results;
  zeros ? results.template load<true>(columns, lines + run)
        : results.template load<false>(columns, lines + run);
  to += block.image * stage.to_image + first_row * stage.to_row + number;
  const int count = stage.to_vectors ? 0 : static_cast<int>(min(stage.numbers - number, std::int64_t{4}));
  // Of each phase there is a row in every group that has begun.
  rows += form.phases - 1;
  for (int phase = 0; phase < form.phases; ++phase, --rows, to += stage.to_row) {
    float sums[kColumnGroups][4] = {};
    results.sum(weights + phase * form.chunks, sums);
    int groups = rows;
    groups = stage.by_phases.divide(groups);
    results.store(to, form.phases * stage.to_row, groups, count, sums);
  }
}

}  // namespace cumulus::recursive_filter
