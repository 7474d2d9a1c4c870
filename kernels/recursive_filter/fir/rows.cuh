#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/primitives/launch.cuh"
#include "kernels/recursive_filter/fir/axis.cuh"
#include "kernels/recursive_filter/fir/taps.cuh"

// A stage of floats along x: eight rows lie in shared memory, each advance-th pixel of a channel in a plane
// of its own; a thread has a run of results; these go through shared memory too, to be stored in vectors.

namespace cumulus::recursive_filter {

inline constexpr int kRowLines = 8;
inline constexpr int kRowThreads = 256;
/// Runs of a block's row, of all channels.
inline constexpr int kRowRuns = kRowThreads / kRowLines;

/// A block's part of a stage. All its threads call each function.
class RowBlock {
 public:
  __device__ RowBlock(const AxisStage& stage, std::int64_t block, float* memory, FirFour<float>* weights)
      : stage_(stage),
        form_(stage.axis.form),
        place_(axis_block(stage, block)),
        planes_(memory),
        results_(memory + kRowLines * stage.pitch),
        weights_(weights),
        first_row_(place_.y * kRowLines),
        first_group_(place_.x * stage.runs * kFirRun),
        rows_(static_cast<int>(min(stage.rows - first_row_, std::int64_t{kRowLines}))) {
    copy_weights(stage, weights);
  }

  /// Brings the input: a thread four neighbouring numbers of some rows, which begin where vectors do.
  __device__ void bring(const float* from) const {
    const FirStageAxis<float>& x = stage_.axis;
    const std::int64_t first_pixel = first_group_ * form_.advance + x.first;
    const auto front = static_cast<int>(first_pixel * stage_.channels & 3);
    const std::int64_t first = first_pixel * stage_.channels - front;
    const int pixels = (stage_.runs * kFirRun + form_.tap_groups() - 1) * form_.advance;
    const int vectors = (pixels * stage_.channels + front + 3) / 4;
    from += place_.image * stage_.from_image + first_row_ * stage_.from_row;
    const int together = min((vectors + 31) / 32 * 32, kRowThreads);  // threads of a row
    const int rows_at_once = kRowThreads / together;
    const int row = static_cast<int>(threadIdx.x) / together;
    if (row >= rows_at_once) return;
    for (int i = static_cast<int>(threadIdx.x) - row * together; i < vectors; i += together) {
      int places[4], sources[4];
      const bool is_whole = place(i * 4 - front, first_pixel, pixels, places, sources) &&
                            stage_.from_vectors && first + i * 4 >= 0 &&
                            first + i * 4 + 4 <= x.in_length * stage_.channels;
      const float* column = is_whole ? from + first + i * 4 : from;
      for (int r = row; r < rows_; r += 4 * rows_at_once) {
        bring_rows(column, r, rows_at_once, is_whole, places, sources);
      }
    }
  }

  /// This thread's run.
  __device__ void filter() const {
    const int row = static_cast<int>(threadIdx.x) % kRowLines;
    int channel = static_cast<int>(threadIdx.x) / kRowLines;
    const int run = stage_.by_channels.divide(channel);
    if (run >= stage_.runs) return;
    const float* values =
        planes_ + row * stage_.pitch + channel * form_.advance * stage_.plane + run * kFirRun;
    const int step = form_.phases * stage_.channels;
    float* results = results_ + row * result_pitch() + run * kFirRun * step + channel;
    const auto take = [&](int phase, const float(&sums)[kFirRun]) {
      float* to = results + phase * stage_.channels;
#pragma unroll
      for (int i = 0; i < kFirRun; ++i, to += step) *to = sums[i];
    };
    if (form_.phases > 1) {
      with_interpolation_chunks(form_.chunks, [&](auto chunks) {
        interpolate_run<chunks.value>(
            weights_, form_.phases, [&](int i) { return reinterpret_cast<const FirFour<float>*>(values)[i]; },
            take);
      });
      return;
    }
    float sums[kFirRun] = {};
    for (int a = 0; a < form_.advance; ++a, values += stage_.plane) {
      add_taps<1, false>(values, values, 0, weights_ + a * form_.chunks, form_.chunks, sums);
    }
    take(0, sums);
  }

  /// The results, each warp a row.
  __device__ void store(float* to) const {
    const int row = static_cast<int>(threadIdx.x) / (kRowThreads / kRowLines);
    if (row >= rows_) return;
    const std::int64_t first = first_group_ * form_.phases * stage_.channels;
    const std::int64_t numbers = stage_.axis.out_length * stage_.channels - first;
    const auto vectors = static_cast<int>(
        (min(numbers, std::int64_t{row_numbers(stage_.runs, form_, stage_.channels)}) + 3) / 4);
    to += place_.image * stage_.to_image + (first_row_ + row) * stage_.to_row + first;
    const auto* results = reinterpret_cast<const float4*>(results_ + row * result_pitch());
    for (int i = threadIdx.x % (kRowThreads / kRowLines); i < vectors; i += kRowThreads / kRowLines) {
      reinterpret_cast<float4*>(to)[i] = results[i];
    }
  }

  /// Results of a block's row.
  __host__ __device__ static int row_numbers(int runs, const FirForm& form, int channels) {
    return runs * kFirRun * form.phases * channels;
  }
  /// Numbers from row to row: eight rows' vectors, or numbers, in different banks.
  __host__ __device__ static int pitch_of(int numbers) { return (numbers + 31) / 32 * 32 + 4; }

 private:
  /// Where four numbers, from `number` of the block's on, go, and come from where they are not all a vector;
  /// what is needed by none goes behind all planes. Returns whether they lie in the row one after another.
  __device__ bool place(int number, std::int64_t first_pixel, int pixels, int (&places)[4],
                        int (&sources)[4]) const {
    const FirStageAxis<float>& x = stage_.axis;
    int channel = number + stage_.channels * 4;
    int pixel = stage_.by_channels.divide(channel) - 4;
    bool is_whole = true;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const bool is_needed = pixel >= 0 && pixel < pixels;
      int part = is_needed ? pixel : 0;
      const int group = stage_.by_advance.divide(part);
      places[k] = is_needed ? (channel * form_.advance + part) * stage_.plane + group : stage_.pitch - 1;
      const std::int64_t at = first_pixel + pixel;
      if (at >= 0 && at < x.in_length) {
        sources[k] = static_cast<int>(at * stage_.channels + channel);
      } else {
        const std::int64_t source = is_needed ? source_pixel(at, x.in_length, x.boundary) : -1;
        sources[k] = source < 0 ? -1 : static_cast<int>(source * stage_.channels + channel);
        is_whole = false;
      }
      if (++channel == stage_.channels) channel = 0, ++pixel;
    }
    return is_whole;
  }

  /// Up to four rows, `step` from each to the next.
  __device__ __forceinline__ void bring_rows(const float* column, int row, int step, bool is_whole,
                                             const int (&places)[4], const int (&sources)[4]) const {
    float values[4][4];
    column += row * stage_.from_row;
#pragma unroll
    for (int r = 0; r < 4; ++r, column += step * stage_.from_row) {
      if (row + r * step >= rows_) break;
      if (is_whole) {
        const auto four = *reinterpret_cast<const float4*>(column);
        values[r][0] = four.x, values[r][1] = four.y, values[r][2] = four.z, values[r][3] = four.w;
        continue;
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) values[r][k] = sources[k] < 0 ? 0.0F : column[sources[k]];
    }
    float* to = planes_ + row * stage_.pitch;
#pragma unroll
    for (int r = 0; r < 4; ++r, to += step * stage_.pitch) {
      if (row + r * step >= rows_) break;
#pragma unroll
      for (int k = 0; k < 4; ++k) to[places[k]] = values[r][k];
    }
  }

  __device__ int result_pitch() const { return pitch_of(row_numbers(stage_.runs, form_, stage_.channels)); }

  const AxisStage& stage_;
  const FirForm& form_;
  AxisBlock place_;
  float *planes_, *results_;
  const FirFour<float>* weights_;
  std::int64_t first_row_, first_group_;
  int rows_;
};

/// Owns: kRowLines rows of stage.runs times kFirRun groups of pixels, one of each phase.
/// Reads: the input within reach of these; beside the block what its neighbours read too.
/// Writes: its results. In shared memory: that input, and the results.
/// Waits for: its own threads; all of them pass all barriers, so that it cannot deadlock.
/// Source: a polyphase filter (fir/gaussian.h) of rows in shared memory.
__global__ void __launch_bounds__(kRowThreads)
    filter_rows(const float* from, float* to, const __grid_constant__ AxisStage stage,
                std::int64_t first_block) {
  extern __shared__ __align__(16) float row_memory[];
  __shared__ FirFour<float> weights[kFirWeights / kFirTaps];
  const RowBlock block(stage, first_block + blockIdx.x, row_memory, weights);
  wait_for_primary_kernel();
  allow_secondary_kernel();
  block.bring(from);
  __syncthreads();
  block.filter();
  __syncthreads();
  block.store(to);
}

}  // namespace cumulus::recursive_filter
