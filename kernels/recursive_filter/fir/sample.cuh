#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/core/div.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/recursive_filter/fir/axis.cuh"
#include "kernels/recursive_filter/fir/both_axes.h"
#include "kernels/recursive_filter/fir/columns.cuh"
#include "kernels/recursive_filter/fir/taps.cuh"

// A stage that samples, along y in registers, then along x out of shared memory, where what is filtered along
// y stays.

namespace cumulus::recursive_filter {

struct SamplingStage {
  FirStageAxis<float> y, x;
  SamplingTile tile;
  int channels;
  int chunks;                                 // of taps along y that are loaded at once
  FirDivisor by_channels, by_planes;          // numbers of a pixel, and of a group
  FirDivisor by_first_vectors, by_vectors;    // that are filtered along y before, and in a step
  FirDivisor by_runs;                         // of a row, of all channels
  FirDivisor by_result_vectors;               // of a row
  std::int64_t from_image, to_row, to_image;  // elements from one to the next
  unsigned from_row_bytes;
  bool from_vectors;  // whether elements are loaded two at a time
};

/// A block's part of a stage. All its threads call each function. Each advance-th pixel of a channel lies in
/// a plane of its own, which is a ring of groups.
template <class T, int kTaps>
class SamplingBlock {
 public:
  __device__ SamplingBlock(const SamplingStage& stage, const AxisBlock& place, const T* from, float* memory)
      : stage_(stage),
        tile_(stage.tile),
        from_(from + place.image * stage.from_image),
        planes_(memory),
        results_(memory + tile_.line_runs * kSamplingRun * tile_.pitch),
        first_group_(place.x * tile_.steps * tile_.runs * kFirRun),
        first_row_(place.y * tile_.line_runs * kSamplingRun) {
    const std::int64_t rows = stage.y.out_length - first_row_;
    rows_ = static_cast<int>(min(rows, std::int64_t{tile_.line_runs * kSamplingRun}));
    first_pixel_ = first_group_ * stage.x.form.advance + stage.x.first;
    front_ = static_cast<int>(first_pixel_ * stage.channels & (kSamplingWide - 1));
  }

  /// Filters groups along y, from the block's `first`-th on, which has its place at `slot`. They
  /// begin some numbers early, at a vector: the ring has room for these, and the last ones come with the next
  /// groups.
  __device__ void filter_along_y(int first, int slot, const FirDivisor& by_vectors, const float* weights,
                                 const int* lines, bool zeros) const {
    for (int task = threadIdx.x; task < by_vectors.value * tile_.line_runs; task += blockDim.x) {
      int vector = task;
      const int row = by_vectors.divide(vector) * kSamplingRun;
      if (row >= rows_) break;
      float sums[kSamplingRun][kSamplingWide] = {};
      sum(first * stage_.by_planes.value + kSamplingWide * vector - front_,
          lines + row * stage_.y.form.advance, weights, zeros, sums);
      keep(row, kSamplingWide * vector - front_, slot, sums);
    }
  }

  /// Filters a step's groups along x, the first of which is at `slot`.
  __device__ void filter_along_x(int slot, const FirFour<float>* weights) const {
    const FirForm& form = stage_.x.form;
    const int runs = stage_.by_runs.value;
    for (int task = threadIdx.x; task < tile_.line_runs * kSamplingRun * runs; task += blockDim.x) {
      int channel = task / kFirRun;
      const int row = stage_.by_runs.divide(channel) * kFirRun + task % kFirRun;
      const int run = stage_.by_channels.divide(channel);
      int at = slot + run * kFirRun;
      if (at >= tile_.ring) at -= tile_.ring;
      const float* plane = planes_ + row * tile_.pitch + channel * form.advance * tile_.plane;
      float sums[kFirRun] = {};
      for (int a = 0; a < form.advance; ++a, plane += tile_.plane) {
        add_taps<1, true>(plane + at, plane + tile_.ring, tile_.ring, weights + a * form.chunks, form.chunks,
                          sums);
      }
      float* results = results_ + row * tile_.results_pitch + run * kFirRun * stage_.channels + channel;
#pragma unroll
      for (int i = 0; i < kFirRun; ++i, results += stage_.channels) *results = sums[i];
    }
  }

  /// The results of a step, whose groups begin at `first`; `to` is the first image's.
  __device__ void store(int first, float* to) const {
    const std::int64_t number = (first_group_ + first) * stage_.channels;
    const std::int64_t numbers = stage_.to_row - number;
    to += first_row_ * stage_.to_row + number;
    const int vectors = stage_.by_result_vectors.value;
    for (int task = threadIdx.x; task < rows_ * vectors; task += blockDim.x) {
      int vector = task;
      const int row = stage_.by_result_vectors.divide(vector);
      if (4 * vector >= numbers) continue;
      const float* results = results_ + row * tile_.results_pitch + 4 * vector;
      *reinterpret_cast<float4*>(to + row * stage_.to_row + 4 * vector) =
          *reinterpret_cast<const float4*>(results);
    }
  }

  /// Steps of this block.
  __device__ int steps() const {
    const int groups = tile_.runs * kFirRun;
    const std::int64_t left = divide_up(stage_.x.form.groups - first_group_, std::int64_t{groups});
    return static_cast<int>(min(left, std::int64_t{tile_.steps}));
  }

 private:
  /// Of two numbers, from the `number`-th of the block's on.
  __device__ __forceinline__ void sum(int number, const int* lines, const float* weights, bool zeros,
                                      float (&sums)[kSamplingRun][kSamplingWide]) const {
    const FirStageAxis<float>& x = stage_.x;
    const std::int64_t at = first_pixel_ * stage_.channels + number;
    if (stage_.from_vectors && !zeros && at >= 0 && at + kSamplingWide <= x.in_length * stage_.channels) {
      const VectorColumns<T, kSamplingWide> columns{from_ + at, stage_.from_row_bytes};
      sum_run<kTaps>(columns, stage_.y.form, lines, weights, stage_.chunks, sums);
      return;
    }
    AnyColumns<T, kSamplingWide> columns{from_, stage_.from_row_bytes, {}};
    int channel = number + stage_.channels;
    std::int64_t pixel = first_pixel_ + stage_.by_channels.divide(channel) - 1;
#pragma unroll
    for (int k = 0; k < kSamplingWide; ++k) {
      const std::int64_t source = source_pixel(pixel, x.in_length, x.boundary);
      columns.places[k] = source < 0 ? -1 : static_cast<int>(source * stage_.channels + channel);
      if (++channel == stage_.channels) channel = 0, ++pixel;
    }
    sum_run<kTaps>(columns, stage_.y.form, lines, weights, stage_.chunks, sums);
  }

  /// Puts a run of rows of two numbers, from the `number`-th of the groups whose place is `slot` on, into
  /// their planes. A number below 0 is one of the groups before.
  __device__ __forceinline__ void keep(int row, int number, int slot,
                                       const float (&sums)[kSamplingRun][kSamplingWide]) const {
    float* rows = planes_ + row * tile_.pitch;
#pragma unroll
    for (int k = 0; k < kSamplingWide; ++k) {
      int pixel = number + k + stage_.by_planes.value;
      const int group = slot + stage_.by_planes.divide(pixel) - 1;
      int channel = pixel;
      const int part = stage_.by_channels.divide(channel);
      int at = group < 0 ? group + tile_.ring : group;
      if (at >= tile_.ring) at -= tile_.ring;
      float* to = rows + (channel * stage_.x.form.advance + part) * tile_.plane + at;
#pragma unroll
      for (int i = 0; i < kSamplingRun; ++i, to += tile_.pitch) *to = sums[i][k];
    }
  }

  const SamplingStage& stage_;
  const SamplingTile& tile_;
  const T* from_;
  float *planes_, *results_;
  std::int64_t first_group_, first_row_;
  std::int64_t first_pixel_;  // of the input, may lie outside
  int front_;                 // numbers from a vector's beginning to it
  int rows_;
};

/// Owns: tile.line_runs times kSamplingRun rows of results, and of these up to tile.steps times tile.runs
/// runs of pixels, a step after another. Reads: the input within reach of these, through the caches; beside
/// the block what its neighbours read too. Writes: its results. In shared memory: what is filtered along y,
/// as far as x reaches, and results. Waits for: its own threads; all of them pass all barriers, so that it
/// cannot deadlock. Source: polyphase filters (fir/gaussian.h), first of lines in registers.
template <class T, int kTaps>
__global__ void __launch_bounds__(kBothAxesThreads, kSamplingBlocks)
    sample_both(const T* from, float* to, const __grid_constant__ SamplingStage stage,
                std::int64_t first_block) {
  extern __shared__ __align__(16) float sampling_memory[];
  __shared__ FirFour<float> weights_x[kFirWeights / kFirTaps];
  __shared__ __align__(16) float weights_y[kColumnWeights];
  __shared__ int lines[kColumnLines];
  const SamplingTile& tile = stage.tile;
  const AxisBlock place = axis_block(tile.blocks_x, tile.blocks_y, first_block);
  const SamplingBlock<T, kTaps> block(stage, place, from, sampling_memory);
  copy_weights(stage.y, stage.chunks * kTaps, weights_y);
  copy_weights(stage.x, stage.x.form.tap_groups(), reinterpret_cast<float*>(weights_x));
  const FirForm& y = stage.y.form;
  const int rows = tile.line_runs * kSamplingRun;
  const bool zeros = place_lines(stage.y, place.y * rows * y.advance + stage.y.first,
                                 lines_of<kTaps>(y, rows, stage.chunks), lines);
  wait_for_primary_kernel();
  allow_secondary_kernel();
  to += place.image * stage.to_image;
  block.filter_along_y(0, 0, stage.by_first_vectors, weights_y, lines, zeros);
  const int groups = tile.runs * kFirRun;
  const int steps = block.steps();
  for (int step = 0, at = 0; step < steps; ++step) {
    int next = at + tile.first_groups;
    if (next >= tile.ring) next -= tile.ring;
    block.filter_along_y(tile.first_groups + step * groups, next, stage.by_vectors, weights_y, lines, zeros);
    __syncthreads();
    block.filter_along_x(at, weights_x);
    __syncthreads();
    block.store(step * groups, to);
    at += groups;
    if (at >= tile.ring) at -= tile.ring;
  }
}

}  // namespace cumulus::recursive_filter
