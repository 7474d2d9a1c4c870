#pragma once

#include <cuda_fp16.h>
#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/primitives/launch.cuh"
#include "kernels/recursive_filter/fir/boundary.h"
#include "kernels/recursive_filter/fir/tensor_products.cuh"
#include "kernels/recursive_filter/fir/tensor_stage.h"
#include "kernels/recursive_filter/gpu/elements.cuh"

// A stage of small steps in one kernel, along both axes, on matrix units: lines by banded matrices.

namespace cumulus::recursive_filter {

struct TensorStageAxis {
  TensorForm form;
  FilterBoundary boundary;
  std::int64_t in_length, out_length;
  std::int64_t first;
  int taps;
  float high[kTensorTaps], low[kTensorTaps];  // parts of the weights, phase after phase
};

struct TensorStageOnDevice {
  TensorStageAxis y, x;
  TensorTile tile;
  int channels;
  unsigned line_group_factor;  // divides by tile.line_groups
  int numbers_in;           // of a block's row before it is filtered along x
  int numbers_out;          // and after
  int column_units;         // a warp's parts of these
  unsigned column_unit_factor;
  bool aligned_rows, aligned_results;
  std::int64_t from_row, from_image;  // elements from one to the next
  std::int64_t blocks_x, blocks_y;    // of an image
};

/// A thread's part of a warp's fragments: its line of eight, and its pair of numbers along the axis.
struct TensorLane {
  int line = static_cast<int>(threadIdx.x % 32 / 4);
  int pair = static_cast<int>(threadIdx.x % 4);
};

/// Writes the weights of all output blocks of a form, k-step after k-step.
template <class Products>
__device__ void lay_out_weights(const TensorStageAxis& axis, TensorWeights* weights) {
  const TensorForm& form = axis.form;
  const TensorLane lane;
  for (int i = threadIdx.x; i < form.phases * form.steps * 32; i += blockDim.x) {
    const int block = i / 32 / form.steps;
    const int first = (i / 32 - block * form.steps) * kTensorSide;
    const int result = block * kTensorSide + lane.line;
    const int group = result / form.phases;
    const int phase = result - group * form.phases;
    float high[2] = {}, low[2] = {};
    for (int k = 0; k < 2; ++k) {
      const int tap = first + lane.pair + 4 * k - group * form.advance;
      if (tap < 0 || tap >= axis.taps) continue;
      high[k] = axis.high[phase * axis.taps + tap];
      low[k] = axis.low[phase * axis.taps + tap];
    }
    weights[i] = Products::weights(high, low);
  }
}

/// Of kBlocks output blocks and kLines times 16 lines, as the matrix units leave them.
template <int kBlocks, int kLines>
using TensorSums = float[kBlocks][kLines][4];

/// Adds the products of the next k-step to the blocks from kFirst to kLast: load gives its numbers, weights of
/// blocks lie `stride` apart.
template <class Products, int kFirst, int kLast, int kBlocks, int kLines, class Load>
__device__ __forceinline__ void add_step(const TensorWeights*& weights, int stride, const Load& load,
                                         TensorSums<kBlocks, kLines>& sums) {
  float values[kLines][4];
  load(values);
  typename Products::Fragment data[kLines];
#pragma unroll
  for (int line = 0; line < kLines; ++line) data[line] = Products::split(values[line]);
#pragma unroll
  for (int block = kFirst; block < kLast; ++block) {
    const TensorWeights weight = weights[block * stride];
#pragma unroll
    for (int line = 0; line < kLines; ++line) Products::add(data[line], weight, sums[block][line]);
  }
  weights += 32;
}

/// The same of `count` k-steps. Matrix units cut sums off: of Products that are exact, those of kTogether
/// k-steps are added up there, and all else here, where sums are rounded.
template <class Products, int kFirst, int kLast, int kBlocks, int kLines, class Load>
__device__ __forceinline__ void add_steps(int count, const TensorWeights*& weights, int stride,
                                          const Load& load, TensorSums<kBlocks, kLines>& sums) {
  if constexpr (!Products::kRounds) {
#pragma unroll 1
    for (int step = 0; step < count; ++step) {
      add_step<Products, kFirst, kLast>(weights, stride, load, sums);
    }
  } else {
    constexpr int kTogether = kBlocks * kLines > 4 ? 1 : 2;  // as registers allow
#pragma unroll 1
    for (int step = 0; step < count; step += kTogether) {
      TensorSums<kBlocks, kLines> parts = {};
      add_step<Products, kFirst, kLast>(weights, stride, load, parts);
      if (kTogether > 1 && step + 1 < count) add_step<Products, kFirst, kLast>(weights, stride, load, parts);
#pragma unroll
      for (int block = kFirst; block < kLast; ++block) {
#pragma unroll
        for (int i = 0; i < 4 * kLines; ++i) sums[block][i / 4][i % 4] += parts[block][i / 4][i % 4];
      }
    }
  }
}

/// Filters a unit of output blocks: all phases of one, or two that begin `advance` k-steps apart.
template <class Products, int kPhases, int kBlocks, int kLines, class Load>
__device__ __forceinline__ void filter_unit(const TensorForm& form, const TensorWeights* weights,
                                            const Load& load, TensorSums<kBlocks, kLines>& sums) {
  weights += threadIdx.x % 32;
  if constexpr (kPhases > 1) {
    add_steps<Products, 0, kPhases>(form.steps, weights, form.steps * 32, load, sums);
  } else {
    const int stride = -32 * form.advance;
    add_steps<Products, 0, 1>(form.advance, weights, stride, load, sums);
    add_steps<Products, 0, 2>(form.steps - form.advance, weights, stride, load, sums);
    add_steps<Products, 1, 2>(form.advance, weights, stride, load, sums);
  }
}

/// Where a line that is filtered along x, a channel of a row, begins in the input's rows and in the ring.
struct TensorLine {
  int staged, ring;
};
static_assert(sizeof(TensorLine) == kTensorLineBytes);

/// Calls body with the phases of a form as a constant.
template <class Body>
__device__ __forceinline__ void with_phases(int phases, const Body& body) {
  static_assert(kFirSmallStep == 4);
  if (phases == 1) return body(std::integral_constant<int, 1>());
  if (phases == 2) return body(std::integral_constant<int, 2>());
  if (phases == 3) return body(std::integral_constant<int, 3>());
  body(std::integral_constant<int, 4>());
}

/// A block's part of a stage. All its threads call each public function.
template <class Source, bool kExact, int kRingPitch>
class TensorBlock {
  using Products = std::conditional_t<kExact, ExactProducts, NearProducts>;
  using SourceProducts = std::conditional_t<std::is_same_v<Source, __half>, HalfProducts, Products>;

 public:
  __device__ TensorBlock(const TensorStageOnDevice& stage, std::int64_t block, const SourceElements& from,
                         std::byte* memory)
      : stage_(stage), tile_(stage.tile) {
    image_ = block / (stage.blocks_x * stage.blocks_y);
    const std::int64_t in_image = block - image_ * stage.blocks_x * stage.blocks_y;
    const std::int64_t block_y = in_image / stage.blocks_x;
    group_x_ = (in_image - block_y * stage.blocks_x) * tile_.column_blocks * kTensorSide;
    group_y_ = block_y * tile_.steps * tile_.row_blocks * kTensorSide;
    source_ = from.template as<Source>() + image_ * stage.from_image;
    row_numbers_ = stage.x.out_length * stage.channels;
    const std::int64_t number = group_x_ * stage.x.form.phases * stage.channels;
    const std::int64_t row = group_y_ * stage.y.form.phases;
    results_ = (image_ * stage.y.out_length + row) * row_numbers_ + number;
    rows_left_ = stage.y.out_length - row;
    columns_left_ = static_cast<int>(min(std::int64_t{stage.numbers_out}, row_numbers_ - number));
    weights_y_ = reinterpret_cast<TensorWeights*>(memory);
    weights_x_ = weights_y_ + stage.y.form.phases * stage.y.form.steps * 32;
    ring_ = reinterpret_cast<float*>(weights_x_ + stage.x.form.phases * stage.x.form.steps * 32);
    staged_ = reinterpret_cast<Source*>(ring_ + tile_.ring_rows * kRingPitch);
    lines_ = reinterpret_cast<TensorLine*>(staged_ + tile_.rows * tile_.pitch);
    places_ = reinterpret_cast<int*>(lines_ + tile_.rows * stage.channels);
    place_columns();
    for (int i = threadIdx.x; i < tile_.rows * stage.channels; i += blockDim.x) {
      const int row = i / stage.channels;
      const int channel = i - row * stage.channels;
      lines_[i] = {row * tile_.pitch + channel + shift_, row * kRingPitch + channel};
    }
    lay_out_weights<Products>(stage.y, weights_y_);
    lay_out_weights<SourceProducts>(stage.x, weights_x_);
    __syncthreads();
  }

  __device__ void run(const TargetElements& to) {
    const TensorForm& y = stage_.y.form;
    const int step_groups = tile_.row_blocks * kTensorSide;
    const std::int64_t groups_left = y.groups - group_y_;
    const int steps =
        static_cast<int>(min(std::int64_t{tile_.steps}, (groups_left + step_groups - 1) / step_groups));
    const int rows_in = y.reach(steps * tile_.row_blocks) * kTensorSide;
    int step = 0;
    wait_for_primary_kernel();
    stage_rows(0);
    for (int row = 0; row < rows_in; row += tile_.rows) {
      __pipeline_wait_prior(0);
      __syncthreads();
      filter_along_x();
      __syncthreads();
      const int end = row + tile_.rows;
      if (end < rows_in) stage_rows(end);
      while (step < steps && y.reach((step + 1) * tile_.row_blocks) * kTensorSide <= end) {
        filter_along_y(step++, to);
      }
    }
  }

 private:
  static constexpr int kWarp = 32;
  static constexpr int kVector = kTensorVectorBytes / sizeof(Source);
  __device__ static int warp() { return static_cast<int>(threadIdx.x) / kWarp; }
  __device__ static int warps() { return static_cast<int>(blockDim.x) / kWarp; }

  /// Where the numbers of a row come from, -1: from nowhere, they are zero; and which of them vectors bring.
  __device__ void place_columns() {
    const TensorStageAxis& x = stage_.x;
    const std::int64_t first = group_x_ * x.form.advance + x.first;
    const std::int64_t begin = first * stage_.channels;
    const std::int64_t aligned = begin & ~std::int64_t{kVector - 1};
    const std::int64_t row_numbers = x.in_length * stage_.channels;
    const int numbers = stage_.numbers_in;
    if (stage_.aligned_rows) {
      shift_ = static_cast<int>(begin - aligned);
      const auto from = static_cast<int>(min(max(-aligned, std::int64_t{0}), std::int64_t{numbers}));
      const auto left = max(std::int64_t{0}, row_numbers - aligned);
      const auto to = static_cast<int>(min(left, std::int64_t{numbers + shift_ + kVector - 1}));
      const int first_vector = (from + kVector - 1) / kVector;
      vectors_ = max(to / kVector - first_vector, 0);
      vector_ = first_vector * kVector;
      inner_begin_ = vectors_ > 0 ? max(vector_ - shift_, 0) : 0;
      inner_end_ = vectors_ > 0 ? min(vector_ + vectors_ * kVector - shift_, numbers) : 0;
    }
    begin_ = aligned + vector_;
    const int thread = static_cast<int>(threadIdx.x);
    vector_rows_ = vectors_ > 0 ? max(static_cast<int>(blockDim.x) / vectors_, 1) : 1;
    vector_row_ = thread / max(vectors_, 1);
    vector_at_ = vector_row_ < vector_rows_ ? thread - vector_row_ * vectors_ : vectors_;
    for (int i = threadIdx.x; i < numbers; i += blockDim.x) {
      const int pixel = i / stage_.channels;
      const std::int64_t source = source_pixel(first + pixel, x.in_length, x.boundary);
      places_[i] =
          source < 0 ? -1 : static_cast<int>(source * stage_.channels + i - pixel * stage_.channels);
    }
  }

  /// Begins to bring as many rows of the input as there is room for. A thread brings whole columns, or every
  /// so many rows of a vector.
  __device__ __forceinline__ void stage_rows(int row) const {
    const TensorStageAxis& y = stage_.y;
    const std::int64_t first = group_y_ * y.form.advance + y.first + row;
    const bool plain = first >= 0 && first + tile_.rows <= y.in_length;
    for (int at = vector_at_; at < vectors_; at += static_cast<int>(blockDim.x)) {
      stage_column<kTensorVectorBytes>(first, plain, vector_row_, vector_rows_, vector_ + at * kVector,
                                       begin_ + at * kVector);
    }
    const int outside = inner_begin_ + stage_.numbers_in - inner_end_;
    for (int i = threadIdx.x; i < outside; i += blockDim.x) {
      const int number = i < inner_begin_ ? i : i - inner_begin_ + inner_end_;
      stage_column<sizeof(Source)>(first, plain, 0, 1, shift_ + number, places_[number]);
    }
    __pipeline_commit();
  }

  /// kBytes of rows from `row` on, `rows` apart, from `place` of a row of the source.
  template <int kBytes>
  __device__ __forceinline__ void stage_column(std::int64_t first, bool plain, int row, int rows, int staged,
                                               std::int64_t place) const {
    const TensorStageAxis& y = stage_.y;
    Source* to = staged_ + row * tile_.pitch + staged;
    const int step = rows * tile_.pitch;
    if (!plain || place < 0) {
      for (int r = row; r < tile_.rows; r += rows, to += step) {
        const std::int64_t line = place < 0 ? -1 : source_pixel(first + r, y.in_length, y.boundary);
        if (line >= 0) {
          copy<kBytes>(source_ + line * stage_.from_row + place, to);
        } else {
#pragma unroll
          for (int i = 0; i < kBytes / static_cast<int>(sizeof(Source)); ++i) to[i] = Source(0.0F);
        }
      }
      return;
    }
    const Source* from = source_ + (first + row) * stage_.from_row + place;
    const std::int64_t source_step = rows * stage_.from_row;
    if constexpr (kBytes >= 4) {
#pragma unroll 4
      for (int r = row; r < tile_.rows; r += rows, to += step, from += source_step) copy<kBytes>(from, to);
    } else {
      constexpr int kAtOnce = 8;
      for (int r = 0; r < tile_.rows; r += kAtOnce) {
        Source values[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i, from += source_step) values[i] = *from;
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i, to += step) *to = values[i];
      }
    }
  }
  template <int kBytes>
  __device__ __forceinline__ static void copy(const Source* from, Source* to) {
    if constexpr (kBytes >= 4) {
      __pipeline_memcpy_async(to, from, kBytes);
    } else {
      *to = *from;
    }
  }

  /// The staged rows into the ring. Neighbouring warps have neighbouring lines, one channel of a row each.
  __device__ __forceinline__ void filter_along_x() {
    const TensorForm& form = stage_.x.form;
    const int units = tile_.column_blocks / form.unit() * tile_.line_groups;
    for (int unit = warp(); unit < units; unit += warps()) {
      const int column = static_cast<int>(unit * stage_.line_group_factor >> 16U);
      const int lines = unit - column * tile_.line_groups;
      if (form.advance > 1) {
        filter_unit_along_x<1, 1>(lines, column);
      } else {
        with_phases(form.phases, [&](auto phases) { filter_unit_along_x<phases.value, 2>(lines, column); });
      }
      __syncwarp();
    }
    x_row_ += tile_.rows;
    if (x_row_ >= tile_.ring_rows) x_row_ -= tile_.ring_rows;
  }

  template <int kPhases, int kLines>
  __device__ __forceinline__ void filter_unit_along_x(int lines, int column) {
    constexpr int kBlocks = kPhases > 1 ? kPhases : 2;
    constexpr int kInBlocks = kPhases > 1 ? 1 : 2;
    const TensorForm& form = stage_.x.form;
    const TensorLane lane;
    const TensorLine* line = lines_ + lines * (2 * kLines * kTensorSide) + lane.line;
    const Source* from = staged_ + (column * kInBlocks * kTensorSide * form.advance + lane.pair) * stage_.channels;
    const Source* at[2 * kLines];
#pragma unroll
    for (int i = 0; i < 2 * kLines; ++i) at[i] = from + line[i * kTensorSide].staged;
    const auto load = [&](float(&values)[kLines][4]) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int i = 0; i < 2 * kLines; ++i) {
          values[i / 2][i % 2 + 2 * half] = static_cast<float>(*at[i]);
          at[i] += 4 * stage_.channels;
        }
      }
    };
    TensorSums<kBlocks, kLines> sums = {};
    filter_unit<SourceProducts, kPhases>(form, weights_x_, load, sums);
    float* results =
        ring_ + x_row_ * kRingPitch + (column * kBlocks * kTensorSide + 2 * lane.pair) * stage_.channels;
#pragma unroll
    for (int i = 0; i < 2 * kLines; ++i) {
      float* to = results + line[i * kTensorSide].ring;
#pragma unroll
      for (int block = 0; block < kBlocks; ++block, to += kTensorSide * stage_.channels) {
        to[0] = sums[block][i / 2][2 * (i % 2)];
        to[stage_.channels] = sums[block][i / 2][2 * (i % 2) + 1];
      }
    }
  }

  /// The results of a step. A warp has 32 columns, of which a thread has two pairs.
  __device__ __forceinline__ void filter_along_y(int step, const TargetElements& to) {
    const TensorForm& form = stage_.y.form;
    const int units = tile_.row_blocks / form.unit() * stage_.column_units;
    for (int unit = warp(); unit < units; unit += warps()) {
      const int row = static_cast<int>(unit * stage_.column_unit_factor >> 16U);
      const int column = (unit - row * stage_.column_units) * kWarp;
      with_phases(form.phases, [&](auto phases) {
        filter_unit_along_y<phases.value>(step, row * form.unit(), column, to);
      });
      __syncwarp();
    }
    y_row_ += tile_.row_blocks * form.advance * kTensorSide;
    while (y_row_ >= tile_.ring_rows) y_row_ -= tile_.ring_rows;
  }

  template <int kPhases>
  __device__ __forceinline__ void filter_unit_along_y(int step, int block, int column,
                                                      const TargetElements& to) {
    constexpr int kBlocks = kPhases > 1 ? kPhases : 2;
    constexpr int kLines = 2;
    const TensorForm& form = stage_.y.form;
    const TensorLane lane;
    column += 2 * lane.line;
    const int ring = tile_.ring_rows * kRingPitch;
    int first = y_row_ + block * form.advance * kTensorSide;
    if (first >= tile_.ring_rows) first -= tile_.ring_rows;
    const float* at = ring_ + (first + lane.pair) * kRingPitch + column;
    const float* end = ring_ + ring;
    const auto load = [&](float(&values)[kLines][4]) {
#pragma unroll
      for (int i = 0; i < 2 * kLines; ++i) {
        const int half = i % 2;
        const auto two =
            *reinterpret_cast<const float2*>(at + half * 4 * kRingPitch + i / 2 * (kWarp / kLines));
        values[i / 2][2 * half] = two.x;
        values[i / 2][2 * half + 1] = two.y;
      }
      at += kTensorSide * kRingPitch;
      if (at >= end) at -= ring;
    };
    TensorSums<kBlocks, kLines> sums = {};
    filter_unit<Products, kPhases>(form, weights_y_, load, sums);
    const int row = (step * tile_.row_blocks + block) * (kTensorSide * kPhases) + 2 * lane.pair;
    const std::int64_t place = results_ + row * row_numbers_ + column;
    const auto rows = static_cast<int>(min(std::int64_t{kBlocks * kTensorSide}, rows_left_ - row));
    const int columns = columns_left_ - column;
    if (to.kind == ElementKind::kFloat) {
      store(to.template as<float>() + place, row_numbers_, rows, columns, sums);
    } else {
      store(to.template as<__half>() + place, row_numbers_, rows, columns, sums);
    }
  }

  __device__ static void put(float* at, float value) { *at = value; }
  __device__ static void put(__half* at, float value) { *at = __float2half_rn(value); }
  __device__ static void put_two(float* at, float first, float second) {
    *reinterpret_cast<float2*>(at) = {first, second};
  }
  __device__ static void put_two(__half* at, float first, float second) {
    *reinterpret_cast<__half2*>(at) = __floats2half2_rn(first, second);
  }

  /// What a thread has of a unit: two rows of each block, as far as there are `rows`, and of each two pairs of
  /// columns, as far as there are `columns`.
  template <class T, int kBlocks>
  __device__ __forceinline__ void store(T* at, std::int64_t row_numbers, int rows, int columns,
                                        const TensorSums<kBlocks, 2>& sums) const {
    constexpr int kApart = kWarp / 2;
    const bool whole = stage_.aligned_results && columns > kApart + 1 && rows > (kBlocks - 1) * kTensorSide + 1;
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        T* to = at;
        at += k == 0 ? row_numbers : (kTensorSide - 1) * row_numbers;
#pragma unroll
        for (int pair = 0; pair < 2; ++pair) {
          const float first = sums[block][pair][k];
          const float second = sums[block][pair][k + 2];
          if (whole) {
            put_two(to + pair * kApart, first, second);
          } else if (block * kTensorSide + k < rows) {
            if (pair * kApart < columns) put(to + pair * kApart, first);
            if (pair * kApart + 1 < columns) put(to + pair * kApart + 1, second);
          }
        }
      }
    }
  }

  const TensorStageOnDevice& stage_;
  const TensorTile& tile_;
  std::int64_t image_, group_x_, group_y_;
  const Source* source_;  // of this image
  /// The first result, and how many rows and columns there are from it on.
  std::int64_t row_numbers_, results_, rows_left_;
  int columns_left_;
  TensorWeights *weights_y_, *weights_x_;
  float* ring_;
  Source* staged_;
  TensorLine* lines_;
  int* places_;
  int x_row_ = 0, y_row_ = 0;  // of the ring: where the next rows go, and where the next step along y begins
  /// Of a row: where vectors begin in the source and here, how many there are, which numbers they bring, and
  /// where the first number lies here.
  std::int64_t begin_;
  int vector_ = 0, vectors_ = 0, inner_begin_ = 0, inner_end_ = 0, shift_ = 0;
  /// Which vector this thread brings, of which row, and of how many rows the block brings vectors at once.
  int vector_at_ = 0, vector_row_ = 0, vector_rows_ = 1;
  bool by_vectors_;
};

/// Owns: a block tile.steps times tile.row_blocks blocks of rows of tile.column_blocks blocks of columns.
/// Reads: the input within reach of these; rows in order, and beside the block what its neighbours read too.
/// Writes: its results. In shared memory: rows of the input, and of them filtered along x as many as the
/// filter along y reaches.
/// Waits for: its own threads; all of them pass all barriers, so that it cannot deadlock.
template <class Source, bool kExact, int kRingPitch>
__global__ void __launch_bounds__(kTensorThreads, kTensorBlocks)
    filter_tensor_stage(SourceElements from, TargetElements to,
                        const __grid_constant__ TensorStageOnDevice stage, std::int64_t first_block) {
  extern __shared__ __align__(16) std::byte fir_memory[];
  TensorBlock<Source, kExact, kRingPitch>(stage, first_block + blockIdx.x, from, fir_memory).run(to);
}

}  // namespace cumulus::recursive_filter
