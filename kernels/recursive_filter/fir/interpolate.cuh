#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/primitives/launch.cuh"
#include "kernels/recursive_filter/fir/axis.cuh"
#include "kernels/recursive_filter/fir/both_axes.h"
#include "kernels/recursive_filter/fir/columns.cuh"
#include "kernels/recursive_filter/fir/planes.cuh"

// A stage that interpolates, along x in shared memory, then along y in registers.

namespace cumulus::recursive_filter {

struct InterpolationStage {
  FirStageAxis<float> y, x;
  InterpolationTile tile;
  int channels;
  FirDivisor by_channels, by_phases;          // pixels' numbers, and rows along y
  FirDivisor by_runs;                         // of a row, of all channels
  FirDivisor by_vectors;                      // of a row of results
  std::int64_t from_image, to_row, to_image;  // elements from one to the next
  unsigned from_row_bytes;
  bool to_vectors;  // whether elements are stored four at a time
};

/// A run of groups along x: of each phase kFirRun results, `channels` numbers from phase to phase.
template <int kTaps>
__device__ __forceinline__ void interpolate_run(const float* values, const float* weights, int phases,
                                                float* to, int channels) {
  constexpr int kFours = divide_up(kFirRun + kTaps - 1, 4);
  float own[4 * kFours];
#pragma unroll
  for (int i = 0; i < kFours; ++i) {
    const float4 four = reinterpret_cast<const float4*>(values)[i];
    own[4 * i] = four.x, own[4 * i + 1] = four.y, own[4 * i + 2] = four.z, own[4 * i + 3] = four.w;
  }
  for (int phase = 0; phase < phases; ++phase, to += channels) {
    float sums[kFirRun] = {};
#pragma unroll
    for (int tap = 0; tap < kTaps; tap += 2, weights += 2) {
      const float2 weight = *reinterpret_cast<const float2*>(weights);
#pragma unroll
      for (int i = 0; i < kFirRun; ++i) {
        sums[i] += weight.x * own[tap + i];
        sums[i] += weight.y * own[tap + i + 1];
      }
    }
#pragma unroll
    for (int i = 0; i < kFirRun; ++i) to[i * phases * channels] = sums[i];
  }
}

/// A block's part of a stage, but for the last results. All its threads call each function.
template <int kTaps>
class InterpolationBlock {
 public:
  __device__ InterpolationBlock(const InterpolationStage& stage, const AxisBlock& place, float* memory)
      : stage_(stage),
        tile_(stage.tile),
        planes_(memory),
        results_(memory + tile_.lines * tile_.pitch),
        first_pixel_(place.x * tile_.runs * kFirRun + stage.x.first) {}

  /// Brings the input's rows.
  __device__ void bring(const float* from, const int* lines) const {
    const Planes planes{stage_.x, stage_.by_channels, first_pixel_, tile_.runs * kFirRun + kTaps - 1,
                        planes_,  tile_.plane,        tile_.pitch,  true};
    bring_planes<float>(planes, tile_.lines, [&](int row) -> const float* {
      const int line = lines[row];
      const auto* bytes = reinterpret_cast<const char*>(from);
      if (line < 0) return nullptr;
      return reinterpret_cast<const float*>(bytes + std::uint64_t{static_cast<unsigned>(line)} *
                                                        stage_.from_row_bytes);
    });
  }

  /// Eight rows take turns in a warp, so that they lie in different banks.
  __device__ void filter_along_x(const float* weights) const {
    const int runs = stage_.by_runs.value;
    const int tasks = divide_up(tile_.lines, kFirRun) * kFirRun * runs;
    for (int task = threadIdx.x; task < tasks; task += blockDim.x) {
      int channel = task / kFirRun;
      const int row = stage_.by_runs.divide(channel) * kFirRun + task % kFirRun;
      if (row >= tile_.lines) continue;
      const int run = stage_.by_channels.divide(channel);
      const float* values = planes_ + row * tile_.pitch + channel * tile_.plane + run * kFirRun;
      const int step = stage_.x.form.phases * stage_.channels;
      interpolate_run<kTaps>(values, weights, stage_.x.form.phases,
                             results_ + row * tile_.results_pitch + run * kFirRun * step + channel,
                             stage_.channels);
    }
  }

  /// The `line`-th row that is filtered along x, a vector of it.
  __device__ __forceinline__ float4 filtered(int line, int vector) const {
    return *reinterpret_cast<const float4*>(results_ + line * tile_.results_pitch + 4 * vector);
  }

 private:
  const InterpolationStage& stage_;
  const InterpolationTile& tile_;
  float *planes_, *results_;
  std::int64_t first_pixel_;
};

/// A thread's part along y: kColumnGroups groups of four columns' results, whose values are in registers.
template <int kTaps>
class InterpolatedColumns {
 public:
  /// Loads the values of kTaps taps, from the `line`-th row on.
  __device__ __forceinline__ InterpolatedColumns(const InterpolationBlock<kTaps>& block, int line,
                                                 int vector) {
#pragma unroll
    for (int i = 0; i < kReach; ++i) {
      const float4 four = block.filtered(line + i, vector);
      values_[i][0] = four.x, values_[i][1] = four.y, values_[i][2] = four.z, values_[i][3] = four.w;
    }
  }

  /// A result of each group.
  __device__ __forceinline__ void sum(const float* weights, float (&sums)[kColumnGroups][4]) const {
#pragma unroll
    for (int tap = 0; tap < kTaps; tap += 2) {
      const float2 weight = *reinterpret_cast<const float2*>(weights + tap);
#pragma unroll
      for (int i = 0; i < kColumnGroups; ++i) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          sums[i][k] += weight.x * values_[tap + i][k];
          sums[i][k] += weight.y * values_[tap + i + 1][k];
        }
      }
    }
  }

 private:
  static constexpr int kReach = kColumnGroups + kTaps - 1;

  float values_[kReach][4];
};

/// Owns: tile.line_runs times kColumnGroups groups of rows, one of each phase, of tile.runs runs of groups of
/// pixels.
/// Reads: the input within reach of these. Writes: its results. In shared memory: that input, and what is
/// filtered along x.
/// Waits for: its own threads; all of them pass all barriers, so that it cannot deadlock.
/// Source: polyphase filters (fir/gaussian.h), last of lines in registers.
template <class T, int kTaps>
__global__ void __launch_bounds__(kBothAxesThreads, interpolation_blocks(kTaps))
    interpolate_both(const float* from, T* to, const __grid_constant__ InterpolationStage stage,
                     std::int64_t first_block) {
  extern __shared__ __align__(16) float interpolation_memory[];
  __shared__ __align__(16) float weights_y[kFirSmallStep * kTaps], weights_x[kFirSmallStep * kTaps];
  __shared__ int lines[kColumnRuns * kColumnGroups + kTaps];
  const InterpolationTile& tile = stage.tile;
  const FirForm& form = stage.y.form;
  const AxisBlock place = axis_block(tile.blocks_x, tile.blocks_y, first_block);
  const InterpolationBlock<kTaps> block(stage, place, interpolation_memory);
  const std::int64_t first_group = place.y * tile.line_runs * kColumnGroups;
  copy_weights(stage.y, kTaps, weights_y);
  copy_weights(stage.x, kTaps, weights_x);
  (void)place_lines(stage.y, first_group + stage.y.first, tile.lines, lines);
  wait_for_primary_kernel();
  allow_secondary_kernel();
  block.bring(from + place.image * stage.from_image, lines);
  __syncthreads();
  block.filter_along_x(weights_x);
  __syncthreads();
  int vector = threadIdx.x;
  const int run = stage.by_vectors.divide(vector) * kColumnGroups;
  const std::int64_t number = (place.x * stage.by_vectors.value + vector) * 4;
  const std::int64_t numbers = stage.x.out_length * stage.channels;
  const std::int64_t first_row = (first_group + run) * form.phases;
  auto rows =
      static_cast<int>(min(stage.y.out_length - first_row, std::int64_t{kColumnGroups} * form.phases));
  if (run >= tile.line_runs * kColumnGroups || number >= numbers || rows <= 0) return;
  const InterpolatedColumns<kTaps> results(block, run, vector);
  to += place.image * stage.to_image + first_row * stage.to_row + number;
  const auto count = static_cast<int>(min(numbers - number, std::int64_t{4}));
  // Of each phase there is a row in every group that has begun.
  rows += form.phases - 1;
  for (int phase = 0; phase < form.phases; ++phase, --rows, to += stage.to_row) {
    float sums[kColumnGroups][4] = {};
    results.sum(weights_y + phase * kTaps, sums);
    int groups = rows;
    groups = stage.by_phases.divide(groups);
    T* row = to;
#pragma unroll
    for (int i = 0; i < kColumnGroups; ++i, row += form.phases * stage.to_row) {
      if (i < groups) store_four(row, stage.to_vectors, count, sums[i]);
    }
  }
}

}  // namespace cumulus::recursive_filter
