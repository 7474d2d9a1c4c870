#pragma once

#include <cuda_fp16.h>
#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <numeric>

#include "kernels/core/div.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/recursive_filter/fir/boundary.h"
#include "kernels/recursive_filter/fir/direct.h"

// A stage whose rate stays, along both axes, in one kernel. Pixels lie in shared memory as they do in the
// image, so that vectors of four numbers are brought, and a thread filters all channels of its pixels.

namespace cumulus::recursive_filter {

struct alignas(16) DirectFour {
  float values[4];
};

struct DirectAxis {
  FilterBoundary boundary;
  std::int64_t in_length, out_length;
  std::int64_t first;  // of the first tap, for place 0
  int chunks;
  DirectFour weights[kDirectMaxChunks];
};

struct DirectStage {
  DirectAxis y, x;
  DirectTile tile;
  std::int64_t from_row, from_image, to_row, to_image;  // elements from one to the next
  bool aligned;                                         // whether vectors of the input are
};

__device__ __forceinline__ void load_four(const float* at, float* to) {
  const auto four = *reinterpret_cast<const float4*>(at);
  to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
}
__device__ __forceinline__ void load_four(const __half* at, float* to) {
  const auto four = *reinterpret_cast<const uint2*>(at);
  const float2 low = __half22float2(*reinterpret_cast<const __half2*>(&four.x));
  const float2 high = __half22float2(*reinterpret_cast<const __half2*>(&four.y));
  to[0] = low.x, to[1] = low.y, to[2] = high.x, to[3] = high.y;
}

/// Chunks after which the values of a window of kDirectRun and kNew lie as at first.
template <int kNew>
inline constexpr int kDirectTurns = std::lcm(kNew, kDirectRun + kNew) / kNew;

/// sums[i] += the sum over tap t of weights[t] values[i + t kStep], of `chunks` times kDirectTaps taps.
/// load(values) brings the next kDirectRun, and then kDirectTaps kStep at a time.
template <int kStep, class Load>
__device__ __forceinline__ void add_direct_taps(const DirectFour* weights, int chunks, const Load& load,
                                                float (&sums)[kDirectRun]) {
  constexpr int kNew = kDirectTaps * kStep;
  constexpr int kWindow = kDirectRun + kNew;
  float window[kWindow];
  {
    float begin[kDirectRun];
    load(begin);
#pragma unroll
    for (int i = 0; i < kDirectRun; ++i) window[i] = begin[i];
  }
  while (true) {
#pragma unroll
    for (int turn = 0; turn < kDirectTurns<kNew>; ++turn) {
      const int first = turn * kNew % kWindow;
      float fresh[kNew];
      load(fresh);
#pragma unroll
      for (int i = 0; i < kNew; ++i) window[(first + kDirectRun + i) % kWindow] = fresh[i];
      const DirectFour weight = *weights++;
#pragma unroll
      for (int tap = 0; tap < kDirectTaps; ++tap) {
#pragma unroll
        for (int i = 0; i < kDirectRun; ++i) {
          sums[i] += weight.values[tap] * window[(first + tap * kStep + i) % kWindow];
        }
      }
      if (--chunks == 0) return;
    }
  }
}

/// A block's part of a stage. All its threads call each function.
template <class T, int kChannels, int kNumbers>
class DirectBlock {
 public:
  static constexpr int kThreads = direct_threads(kNumbers);

  __device__ DirectBlock(const DirectStage& stage, std::int64_t block, std::byte* memory)
      : stage_(stage), tile_(stage.tile) {
    const std::int64_t blocks = tile_.blocks_x * tile_.blocks_y;
    image_ = block / blocks;
    const std::int64_t block_y = (block - image_ * blocks) / tile_.blocks_x;
    number_ = (block - image_ * blocks - block_y * tile_.blocks_x) * kNumbers;
    row_ = block_y * tile_.block_rows;
    rows_ = static_cast<int>(min(tile_.block_rows, stage.y.out_length - row_));
    weights_y_ = reinterpret_cast<DirectFour*>(memory);
    weights_x_ = weights_y_ + kDirectMaxChunks;
    ring_ = reinterpret_cast<float*>(weights_x_ + kDirectMaxChunks);
    staged_ = reinterpret_cast<T*>(ring_ + tile_.ring_rows * kPitch);
    for (int i = threadIdx.x; i < kDirectMaxChunks; i += kThreads) {
      weights_y_[i] = stage.y.weights[i];
      weights_x_[i] = stage.x.weights[i];
    }
    const std::int64_t first = number_ + stage.x.first * kChannels;
    const auto results =
        static_cast<int>(min(stage.x.out_length * kChannels - number_, std::int64_t{kNumbers}));
    numbers_in_ = divide_up(results, kDirectRun) * kDirectRun + kDirectTaps * stage.x.chunks * kChannels;
    // Vectors that are there as a whole.
    const std::int64_t end = (stage.x.in_length * kChannels - first) / 4 * 4;
    begin_ = static_cast<int>(min(max((3 - first) / 4 * 4, std::int64_t{0}), std::int64_t{numbers_in_}));
    end_ = stage.aligned ? static_cast<int>(min(max(end, std::int64_t{begin_}), std::int64_t{numbers_in_}))
                         : begin_;
  }

  __device__ void run(const T* from, T* to) {
    from += image_ * stage_.from_image;
    const int taps_y = kDirectTaps * stage_.y.chunks;
    const int batches = divide_up(rows_ + taps_y, kDirectRows);
    wait_for_primary_kernel();
    stage_rows(from, 0);
    int slot = 0;
    for (int batch = 0; batch < batches; ++batch) {
      __pipeline_wait_prior(0);
      __syncthreads();
      filter_along_x(slot);
      slot += kDirectRows;
      if (slot >= tile_.ring_rows) slot -= tile_.ring_rows;
      __syncthreads();
      if (batch + 1 < batches) stage_rows(from, (batch + 1) * kDirectRows);
      filter_along_y(batch * kDirectRows - taps_y, slot, to);
    }
  }

 private:
  static constexpr int kPitch = direct_ring_pitch(kNumbers);
  static constexpr int kApart = kNumbers / kDirectColumns;
  static constexpr int kRunRows = kDirectRun / kDirectColumns;
  static_assert(kThreads % 32 == 0 && kThreads == kDirectRows * (kNumbers / kDirectRun));
  static_assert(kThreads / kApart * kRunRows == kDirectRows);

  /// Begins to bring kDirectRows rows of the input: a warp one after another, but of numbers that are not
  /// there as whole vectors, a thread whole columns.
  __device__ __forceinline__ void stage_rows(const T* from, int row) const {
    const std::int64_t first_row = row_ + stage_.y.first + row;
#pragma unroll 1
    for (int r = threadIdx.x / 32; r < kDirectRows; r += kThreads / 32) {
      const std::int64_t line = source_pixel(first_row + r, stage_.y.in_length, stage_.y.boundary);
      bring_vectors(from + line * stage_.from_row + (number_ + stage_.x.first * kChannels), line >= 0,
                    staged_ + r * tile_.pitch);
    }
    const int others = begin_ + numbers_in_ - end_;
#pragma unroll 1
    for (int i = threadIdx.x; i < others; i += kThreads) {
      bring_column(from, first_row, i < begin_ ? i : i - begin_ + end_);
    }
    __pipeline_commit();
  }

  __device__ __forceinline__ void bring_vectors(const T* source, bool is_there, T* to) const {
    constexpr int kAtOnce = 4;
    constexpr int kApartVectors = 4 * 32;
    const int begin = begin_ + threadIdx.x % 32 * 4;
    source += begin;
    to += begin;
#pragma unroll 1
    for (int left = end_ - begin; left > 0; left -= kAtOnce * kApartVectors) {
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (k * kApartVectors >= left) continue;
        if (!is_there) {
          for (int i = 0; i < 4; ++i) to[k * kApartVectors + i] = T(0.0F);
          continue;
        }
        __pipeline_memcpy_async(to + k * kApartVectors, source + k * kApartVectors, 4 * sizeof(T));
      }
      source += kAtOnce * kApartVectors;
      to += kAtOnce * kApartVectors;
    }
  }

  __device__ __forceinline__ void bring_column(const T* from, std::int64_t first_row, int i) const {
    const int pixel = i / kChannels;
    const std::int64_t column =
        source_pixel(number_ / kChannels + stage_.x.first + pixel, stage_.x.in_length, stage_.x.boundary);
    from += column * kChannels + (i - pixel * kChannels);
    T* to = staged_ + i;
#pragma unroll 8
    for (int r = 0; r < kDirectRows; ++r, to += tile_.pitch) {
      const std::int64_t line = source_pixel(first_row + r, stage_.y.in_length, stage_.y.boundary);
      if (column < 0 || line < 0) {
        *to = T(0.0F);
      } else if constexpr (sizeof(T) == sizeof(float)) {
        __pipeline_memcpy_async(to, from + line * stage_.from_row, sizeof(T));
      } else {
        *to = from[line * stage_.from_row];
      }
    }
  }

  /// All staged rows into the ring, from `slot` on. Neighbouring threads have neighbouring rows.
  __device__ __forceinline__ void filter_along_x(int slot) {
    const int row = threadIdx.x % kDirectRows;
    const int begin = threadIdx.x / kDirectRows * kDirectRun;
    if (number_ + begin >= stage_.x.out_length * kChannels) return;
    const T* at = staged_ + row * tile_.pitch + begin;
    float sums[kDirectRun] = {};
    add_direct_taps<kChannels>(
        weights_x_, stage_.x.chunks,
        [&]<int kCount>(float(&values)[kCount]) {
#pragma unroll
          for (int i = 0; i < kCount; i += 4) load_four(at + i, values + i);
          at += kCount;
        },
        sums);
    slot += row;
    if (slot >= tile_.ring_rows) slot -= tile_.ring_rows;
    float* results = ring_ + slot * kPitch + begin;
#pragma unroll
    for (int i = 0; i < kDirectRun; i += 4) {
      *reinterpret_cast<float4*>(results + i) = {sums[i], sums[i + 1], sums[i + 2], sums[i + 3]};
    }
  }

  /// The results of kDirectRows rows, of which `row` is the first; those before the block's own are none.
  /// Their taps' rows begin at `slot`.
  __device__ __forceinline__ void filter_along_y(int row, int slot, T* to) const {
    const int column = threadIdx.x % kApart;
    const int part = threadIdx.x / kApart * kRunRows;
    row += part;
    if (row + kRunRows <= 0 || row >= rows_) return;
    slot += part;
    if (slot >= tile_.ring_rows) slot -= tile_.ring_rows;
    const float* const end = ring_ + tile_.ring_rows * kPitch;
    const float* at = ring_ + slot * kPitch + column;
    float sums[kDirectRun] = {};
    add_direct_taps<kDirectColumns>(
        weights_y_, stage_.y.chunks,
        [&]<int kCount>(float(&values)[kCount]) {
#pragma unroll
          for (int i = 0; i < kCount; i += kDirectColumns) {
#pragma unroll
            for (int c = 0; c < kDirectColumns; ++c) values[i + c] = at[c * kApart];
            at += kPitch;
            if (i / kDirectColumns % kDirectTaps == kDirectTaps - 1 && at >= end) {
              at -= tile_.ring_rows * kPitch;
            }
          }
        },
        sums);
    store(to, row, column, sums);
  }

  __device__ __forceinline__ void store(T* to, int row, int column, const float (&sums)[kDirectRun]) const {
    const auto left =
        static_cast<int>(min(stage_.x.out_length * kChannels - number_, std::int64_t{kNumbers}) - column);
    to += image_ * stage_.to_image + (row_ + row) * stage_.to_row + number_ + column;
#pragma unroll
    for (int r = 0; r < kRunRows; ++r, to += stage_.to_row) {
      if (row + r < 0 || row + r >= rows_) continue;
#pragma unroll
      for (int c = 0; c < kDirectColumns; ++c) {
        if (c * kApart < left) to[c * kApart] = static_cast<T>(sums[r * kDirectColumns + c]);
      }
    }
  }

  const DirectStage& stage_;
  const DirectTile& tile_;
  std::int64_t image_, number_, row_;
  int rows_;
  int numbers_in_, begin_, end_;  // of the input's rows, and which of them come by vectors
  DirectFour *weights_y_, *weights_x_;
  float* ring_;
  T* staged_;
};

/// Owns: a block tile.block_rows rows of kNumbers numbers.
/// Reads: the input within reach of these; rows in order, and beside the block what its neighbours read too.
/// Writes: its results. In shared memory: kDirectRows rows of the input, and of them filtered along x as
/// many as the filter along y reaches.
/// Waits for: its own threads; all of them pass all barriers, so that it cannot deadlock.
/// Source: separable convolution in shared memory (V. Podlozhnyuk, 2007), here down a ring of rows.
template <class T, int kChannels, int kNumbers>
__global__ void __launch_bounds__(direct_threads(kNumbers), direct_blocks(kNumbers))
    filter_direct(const T* from, T* to, const __grid_constant__ DirectStage stage, std::int64_t first_block) {
  extern __shared__ __align__(16) std::byte direct_memory[];
  DirectBlock<T, kChannels, kNumbers>(stage, first_block + blockIdx.x, direct_memory).run(from, to);
}

}  // namespace cumulus::recursive_filter
