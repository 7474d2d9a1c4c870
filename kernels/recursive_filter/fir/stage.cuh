#pragma once

#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/core/div.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/recursive_filter/fir/boundary.h"
#include "kernels/recursive_filter/fir/divisor.cuh"
#include "kernels/recursive_filter/fir/stage.h"
#include "kernels/recursive_filter/fir/taps.cuh"
#include "kernels/recursive_filter/gpu/elements.cuh"

// A stage of small steps in one kernel, along both axes.

namespace cumulus::recursive_filter {

template <class Real>
inline constexpr ElementKind kFirKind = kind_of<Real>();

template <class Real>
struct FirStageAxis {
  FirForm form;
  FilterBoundary boundary;
  std::int64_t in_length, out_length;
  std::int64_t first;
  FirFour<Real> weights[kFirWeights / kFirTaps];  // phase after phase, of each every advance-th tap together
};

template <class Real>
FirStageAxis<Real> axis_on_device(const std::optional<FirPass>& pass, std::int64_t length) {
  FirStageAxis<Real> axis{};
  axis.form = form_of(pass, length);
  axis.in_length = axis.out_length = length;
  axis.weights[0].values[0] = 1;
  if (!pass.has_value()) return axis;
  axis.boundary = pass->boundary;
  axis.in_length = pass->in_length;
  axis.out_length = pass->out_length;
  axis.first = pass->first;
  const std::int64_t taps_each = axis.form.tap_groups();
  for (std::int64_t phase = 0; phase < pass->phases; ++phase) {
    for (std::int64_t tap = 0; tap < pass->taps; ++tap) {
      const std::int64_t at = (phase * pass->advance + tap % pass->advance) * taps_each + tap / pass->advance;
      axis.weights[at / kFirTaps].values[at % kFirTaps] = static_cast<Real>(pass->of_phase(phase)[tap]);
    }
  }
  return axis;
}

template <class Real>
struct FirStageOnDevice {
  FirStageAxis<Real> y, x;
  FirTile tile;
  int channels;
  /// Numbers of a block's row, before and after it is filtered along x.
  int numbers_in;
  FirDivisor numbers_out;
  int runs_x;  // of a row
  FirDivisor by_advance_y, by_ring_groups;
  std::int64_t from_row, from_image, to_row, to_image;  // elements from one to the next
  std::int64_t blocks_x, blocks_y;                      // of an image
};

/// Where a number of the input's rows comes from, -1: from nowhere, it is zero; and where it goes.
struct FirPlace {
  int source, staged;
};
/// A run of results along x: where its values and its results begin.
struct FirRunPlace {
  int staged, ring;
};

static_assert(sizeof(FirPlace) == kFirPlaceBytes && sizeof(FirRunPlace) == kFirPlaceBytes);

/// A block's part of a stage. All its threads call each function.
template <class Real, int kRingPitch>
class FirBlock {
 public:
  __device__ FirBlock(const FirStageOnDevice<Real>& stage, std::int64_t block, std::byte* memory)
      : stage_(stage), tile_(stage.tile) {
    image_ = block / (stage.blocks_x * stage.blocks_y);
    const std::int64_t in_image = block - image_ * stage.blocks_x * stage.blocks_y;
    const std::int64_t block_y = in_image / stage.blocks_x;
    group_x_ = (in_image - block_y * stage.blocks_x) * tile_.column_groups;
    group_y_ = block_y * tile_.steps * tile_.step_groups;
    weights_y_ = reinterpret_cast<FirFour<Real>*>(memory);
    weights_x_ = weights_y_ + kFirWeights / kFirTaps;
    runs_ = reinterpret_cast<FirRunPlace*>(weights_x_ + kFirWeights / kFirTaps);
    staged_ = reinterpret_cast<Real*>(runs_ + kFirWideRow / kFirRun);
    ring_ = staged_ + 2 * tile_.rows * tile_.pitch;
    places_ = reinterpret_cast<FirPlace*>(ring_ + tile_.ring_groups * stage.y.form.advance * kRingPitch);
    for (int i = threadIdx.x; i < kFirWeights / kFirTaps; i += blockDim.x) {
      weights_y_[i] = stage.y.weights[i];
      weights_x_[i] = stage.x.weights[i];
    }
    place_columns();
    place_runs();
    column_ = threadIdx.x;
    part_ = stage.numbers_out.divide(column_);
    parts_ = blockDim.x / stage.numbers_out.value;
    const std::int64_t column = group_x_ * stage.x.form.phases * stage.channels + column_;
    if (column >= stage.x.out_length * stage.channels) part_ = parts_;
    const std::int64_t row = group_y_ * stage.y.form.phases;
    results_ = image_ * stage.to_image + row * stage.to_row + column;
    rows_left_ = stage.y.out_length - row;
    __syncthreads();
  }

  __device__ void run(const SourceElements& from, const TargetElements& to) {
    const std::int64_t groups_left = stage_.y.form.groups - group_y_;
    const int steps = static_cast<int>(
        min(std::int64_t{tile_.steps}, divide_up(groups_left, std::int64_t{tile_.step_groups})));
    const int rows_in = rows_of(steps);
    const int batch_numbers = tile_.rows * tile_.pitch;
    int step = 0;
    wait_for_primary_kernel();
    stage_rows(from, 0, min(tile_.rows, rows_in), staged_);
    for (int row = 0, buffer = 0; row < rows_in; row += tile_.rows, buffer ^= 1) {
      const int end = min(row + tile_.rows, rows_in);
      __pipeline_wait_prior(0);
      __syncthreads();
      if (end < rows_in) {
        stage_rows(from, end, min(tile_.rows, rows_in - end), staged_ + (buffer ^ 1) * batch_numbers);
      }
      filter_along_x(staged_ + buffer * batch_numbers, row, end - row);
      if (end < rows_of(step + 1)) continue;
      __syncthreads();
      while (step < steps && rows_of(step + 1) <= end) filter_along_y(step++, to);
    }
  }

 private:
  /// Rows of the input that so many steps reach.
  __device__ int rows_of(int steps) const {
    return (steps * tile_.step_groups + stage_.y.form.tap_groups() - 1) * stage_.y.form.advance;
  }

  __device__ void place_columns() {
    const FirStageAxis<Real>& x = stage_.x;
    for (int i = threadIdx.x; i < stage_.numbers_in; i += blockDim.x) {
      const int pixel = i / stage_.channels;
      const int channel = i - pixel * stage_.channels;
      const int group = pixel / x.form.advance;
      const std::int64_t source =
          source_pixel(group_x_ * x.form.advance + x.first + pixel, x.in_length, x.boundary);
      places_[i] = {source < 0 ? -1 : static_cast<int>(source * stage_.channels + channel),
                    (channel * x.form.advance + (pixel - group * x.form.advance)) * tile_.plane + group};
    }
  }

  /// Runs of results along x; where there are several phases, all of a run's together.
  __device__ void place_runs() {
    const FirForm& form = stage_.x.form;
    for (int i = threadIdx.x; i < stage_.runs_x; i += blockDim.x) {
      const int run = i / stage_.channels;
      const int channel = i - run * stage_.channels;
      runs_[i] = {channel * form.advance * tile_.plane + run * kFirRun,
                  run * kFirRun * form.phases * stage_.channels + channel};
    }
  }

  /// Begins to bring `count` rows of the input to `staged`. A thread brings whole columns.
  __device__ __forceinline__ void stage_rows(const SourceElements& from, int row, int count,
                                             Real* staged) const {
    const FirStageAxis<Real>& y = stage_.y;
    const std::int64_t first = group_y_ * y.form.advance + y.first + row;
    const bool plain = first >= 0 && first + tile_.rows <= y.in_length;
    const std::int64_t image = image_ * stage_.from_image;
    const std::int64_t row_0 = image + first * stage_.from_row;
    for (int i = threadIdx.x; i < stage_.numbers_in; i += blockDim.x) {
      const FirPlace place = places_[i];
      Real* to = staged + place.staged;
      if (plain && place.source >= 0) {
        bring(from, row_0 + place.source, to);
        continue;
      }
      for (int r = 0; r < count; ++r, to += tile_.pitch) {
        const std::int64_t line = source_pixel(first + r, y.in_length, y.boundary);
        const bool is_there = place.source >= 0 && line >= 0;
        *to = is_there ? from.template load<Real>(image + line * stage_.from_row + place.source) : Real{0};
      }
    }
    __pipeline_commit();
  }

  /// The same of a column that is there in all rows of a batch.
  __device__ __forceinline__ void bring(const SourceElements& from, std::int64_t at, Real* to) const {
    constexpr int kAtOnce = 8;
    const std::int64_t step = stage_.from_row;
    if (from.kind == kFirKind<Real>) {
      const Real* source = from.template as<Real>() + at;
      for (int row = 0; row < tile_.rows; row += kAtOnce) {
#pragma unroll
        for (int r = 0; r < kAtOnce; ++r, source += step, to += tile_.pitch) {
          __pipeline_memcpy_async(to, source, sizeof(Real));
        }
      }
      return;
    }
    const __half* source = from.template as<__half>() + at;
    for (int row = 0; row < tile_.rows; row += kAtOnce) {
      __half values[kAtOnce];
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r, source += step) values[r] = *source;
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r, to += tile_.pitch) *to = static_cast<Real>(__half2float(values[r]));
    }
  }

  /// `count` staged rows into the ring. Neighbouring threads have neighbouring rows, a thread one.
  __device__ __forceinline__ void filter_along_x(const Real* staged, int first_row, int count) {
    const FirForm& form = stage_.x.form;
    const int row = threadIdx.x % tile_.rows;
    if (row >= count) return;
    int remainder = first_row + row;
    int slot = stage_.by_advance_y.divide(remainder);
    (void)stage_.by_ring_groups.divide(slot);
    staged += row * tile_.pitch;
    Real* ring = ring_ + (remainder * tile_.ring_groups + slot) * kRingPitch;
    const int step = form.phases * stage_.channels;
    for (int run = threadIdx.x / tile_.rows; run < stage_.runs_x; run += blockDim.x / tile_.rows) {
      const FirRunPlace place = runs_[run];
      const Real* values = staged + place.staged;
      Real* results = ring + place.ring;
      const auto take = [&](int phase, const Real(&sums)[kFirRun]) {
        Real* to = results + phase * stage_.channels;
#pragma unroll
        for (int i = 0; i < kFirRun; ++i, to += step) *to = sums[i];
      };
      if (form.phases > 1) {
        with_interpolation_chunks(form.chunks, [&](auto chunks) {
          interpolate_run<chunks.value>(
              weights_x_, form.phases,
              [&](int i) { return reinterpret_cast<const FirFour<Real>*>(values)[i]; }, take);
        });
        continue;
      }
      Real sums[kFirRun] = {};
      for (int a = 0; a < form.advance; ++a) {
        add_taps<1, false>(values + a * tile_.plane, values, 0, weights_x_ + a * form.chunks, form.chunks,
                           sums);
      }
      take(0, sums);
    }
  }

  /// The results of a step. Neighbouring threads have neighbouring columns, a thread one.
  __device__ __forceinline__ void filter_along_y(int step, const TargetElements& to) {
    const FirForm& form = stage_.y.form;
    const int step_rows = tile_.step_groups * form.phases;
    const std::int64_t first = results_;
    const auto rows_left = static_cast<int>(min(rows_left_, std::int64_t{step_rows}));
    results_ += step_rows * stage_.to_row;
    rows_left_ -= step_rows;
    if (part_ >= parts_) return;
    int first_slot = step * tile_.step_groups;
    (void)stage_.by_ring_groups.divide(first_slot);
    const int ring = tile_.ring_groups * kRingPitch;
    for (int run = part_; run < tile_.step_groups / kFirRun; run += parts_) {
      const int row = run * kFirRun * form.phases;
      int slot = first_slot + run * kFirRun;
      if (slot >= tile_.ring_groups) slot -= tile_.ring_groups;
      const Real* values = ring_ + slot * kRingPitch + column_;
      const auto take = [&](int phase, const Real(&sums)[kFirRun]) {
        store(to, first + (row + phase) * stage_.to_row, form.phases * stage_.to_row, form.phases,
              rows_left - row - phase, sums);
      };
      if (form.phases > 1) {
        const auto load = [&](int /*i*/) {
          FirFour<Real> four;
#pragma unroll
          for (int k = 0; k < kFirTaps; ++k) four.values[k] = values[k * kRingPitch];
          values += kFirTaps * kRingPitch;
          if (values >= ring_ + ring) values -= ring;
          return four;
        };
        with_interpolation_chunks(form.chunks, [&](auto chunks) {
          interpolate_run<chunks.value>(weights_y_, form.phases, load, take);
        });
        continue;
      }
      Real sums[kFirRun] = {};
      for (int a = 0; a < form.advance; ++a) {
        add_taps<kRingPitch, true>(values + a * ring, ring_ + (a + 1) * ring, ring,
                                   weights_y_ + a * form.chunks, form.chunks, sums);
      }
      take(0, sums);
    }
  }

  /// A thread's results, `step` numbers and `rows` rows apart, as far as there are `rows_left`.
  __device__ __forceinline__ static void store(const TargetElements& to, std::int64_t at, std::int64_t step,
                                               int rows, int rows_left, const Real (&sums)[kFirRun]) {
    const auto store_as = [&]<class T>(T* result, const auto& convert) {
      result += at;
#pragma unroll
      for (int i = 0; i < kFirRun; ++i, result += step) {
        if (i * rows < rows_left) *result = convert(sums[i]);
      }
    };
    if (to.kind == kFirKind<Real>) {
      store_as(to.template as<Real>(), [](Real sum) { return sum; });
    } else {
      store_as(to.template as<__half>(), [](Real sum) { return __float2half_rn(static_cast<float>(sum)); });
    }
  }

  const FirStageOnDevice<Real>& stage_;
  const FirTile& tile_;
  std::int64_t image_, group_x_, group_y_;
  FirFour<Real>*weights_y_, *weights_x_;
  Real* staged_;  // two times tile_.rows rows: one is read while the other is brought
  Real* ring_;
  FirPlace* places_;
  FirRunPlace* runs_;
  /// Of the threads of a column, which this is, and how many there are; beside the image, none.
  int column_, part_, parts_;
  /// Of its next step: the first result in this column, and how many rows there are from it on.
  std::int64_t results_, rows_left_;
};

/// Owns: a block tile.steps times tile.step_groups groups of rows of tile.column_groups groups of columns.
/// Reads: the input within reach of these; rows in order, and beside the block what its neighbours read too.
/// Writes: its results. In shared memory: rows of the input, and of them filtered along x as many as the
/// filter along y reaches.
/// Waits for: its own threads; all of them pass all barriers, so that it cannot deadlock.
/// Source: polyphase filters of a changing rate (fir/gaussian.h), down a ring of rows as in fir/direct.cuh.
template <class Real, int kRingPitch>
__global__ void __launch_bounds__(kFirThreads, fir_blocks(sizeof(Real)))
    filter_stage(SourceElements from, TargetElements to, const __grid_constant__ FirStageOnDevice<Real> stage,
                 std::int64_t first_block) {
  extern __shared__ __align__(16) std::byte fir_memory[];
  FirBlock<Real, kRingPitch>(stage, first_block + blockIdx.x, fir_memory).run(from, to);
}

}  // namespace cumulus::recursive_filter
