#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/core/div.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/recursive_filter/fir/axis.cuh"
#include "kernels/recursive_filter/fir/both_axes.h"
#include "kernels/recursive_filter/fir/planes.cuh"
#include "kernels/recursive_filter/fir/taps.cuh"

// Sums along x: eight rows lie in shared memory, each channel of these in a plane of its own; a thread has a
// run of results; these go through shared memory too, to be stored in vectors.

namespace cumulus::recursive_filter {

inline constexpr int kRowLines = 8;
inline constexpr int kRowBlockThreads = 256;
inline constexpr int kRowBlocks = 4;  // that have registers enough on a multiprocessor
/// Runs of a block's row, of all channels.
inline constexpr int kRowRuns = kRowBlockThreads / kRowLines;

/// A block's part of a stage. All its threads call each function.
template <class T>
class RowBlock {
 public:
  __device__ RowBlock(const AxisStage& stage, std::int64_t first_block, float* memory,
                      FirFour<float>* weights)
      : stage_(stage),
        place_(axis_block(stage.blocks_x, stage.blocks_y, first_block)),
        planes_(memory),
        results_(memory + kRowLines * stage.pitch),
        weights_(weights),
        first_row_(place_.y * kRowLines),
        first_pixel_(place_.x * stage.runs * kFirRun),
        rows_(static_cast<int>(min(stage.rows - first_row_, std::int64_t{kRowLines}))) {
    copy_weights(stage.axis, stage.axis.form.tap_groups(), reinterpret_cast<float*>(weights));
  }

  /// Brings the input.
  __device__ void bring(const T* from) const {
    const Planes planes{stage_.axis,
                        stage_.by_channels,
                        first_pixel_ + stage_.axis.first,
                        stage_.runs * kFirRun + stage_.axis.form.tap_groups() - 1,
                        planes_,
                        stage_.plane,
                        stage_.pitch,
                        stage_.from_vectors};
    from += place_.image * stage_.from_image + first_row_ * stage_.from_row;
    bring_planes<T>(planes, rows_, [&](int row) { return from + row * stage_.from_row; });
  }

  /// This thread's run.
  __device__ void filter() const {
    const int row = static_cast<int>(threadIdx.x) % kRowLines;
    int channel = static_cast<int>(threadIdx.x) / kRowLines;
    const int run = stage_.by_channels.divide(channel);
    if (run >= stage_.runs) return;
    const float* values = planes_ + row * stage_.pitch + channel * stage_.plane + run * kFirRun;
    float sums[kFirRun] = {};
    add_taps<1, false>(values, values, 0, weights_, stage_.axis.form.chunks, sums);
    float* results = results_ + row * result_pitch() + run * kFirRun * stage_.channels + channel;
#pragma unroll
    for (int i = 0; i < kFirRun; ++i, results += stage_.channels) *results = sums[i];
  }

  /// The results, each warp a row.
  __device__ void store(T* to) const {
    const int row = static_cast<int>(threadIdx.x) / (kRowBlockThreads / kRowLines);
    if (row >= rows_) return;
    const std::int64_t first = first_pixel_ * stage_.channels;
    const auto numbers = static_cast<int>(min(stage_.axis.out_length * stage_.channels - first,
                                              std::int64_t{row_numbers(stage_.runs, stage_.channels)}));
    to += place_.image * stage_.to_image + (first_row_ + row) * stage_.to_row + first;
    const float* results = results_ + row * result_pitch();
    for (int i = threadIdx.x % (kRowBlockThreads / kRowLines) * 4; i < numbers;
         i += kRowBlockThreads / kRowLines * 4) {
      const auto four = *reinterpret_cast<const float4*>(results + i);
      store_four(to + i, stage_.to_vectors, numbers - i, {four.x, four.y, four.z, four.w});
    }
  }

  /// Results of a block's row.
  __host__ __device__ static int row_numbers(int runs, int channels) { return runs * kFirRun * channels; }

 private:
  __device__ int result_pitch() const { return shared_row_pitch(row_numbers(stage_.runs, stage_.channels)); }

  const AxisStage& stage_;
  AxisBlock place_;
  float *planes_, *results_;
  const FirFour<float>* weights_;
  std::int64_t first_row_, first_pixel_;
  int rows_;
};

/// Owns: kRowLines rows of stage.runs times kFirRun pixels.
/// Reads: the input within reach of these; beside the block what its neighbours read too.
/// Writes: its results. In shared memory: that input, and the results.
/// Waits for: its own threads; all of them pass all barriers, so that it cannot deadlock.
/// Source: the filter between others (fir/gaussian.h), of rows in shared memory.
template <class T>
__global__ void __launch_bounds__(kRowBlockThreads, kRowBlocks)
    filter_rows(const T* from, T* to, const __grid_constant__ AxisStage stage, std::int64_t first_block) {
  extern __shared__ __align__(16) float row_memory[];
  __shared__ FirFour<float> weights[kFirWeights / kFirTaps];
  const RowBlock<T> block(stage, first_block, row_memory, weights);
  wait_for_primary_kernel();
  allow_secondary_kernel();
  block.bring(from);
  __syncthreads();
  block.filter();
  __syncthreads();
  block.store(to);
}

}  // namespace cumulus::recursive_filter
