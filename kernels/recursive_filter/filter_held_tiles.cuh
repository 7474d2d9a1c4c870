#pragma once

#include <cuda_pipeline.h>

#include <cstdint>

#include "kernels/recursive_filter/told_lines.cuh"

// The on-chip method for float images of one channel that are whole tiles and whose boundaries leave no pixel
// out of runs: a thread has a stretch of a row, and then of a column, in registers, and shared memory is
// there to turn the tile and for the threads of a line to tell each other what they leave. Rows come first,
// so that columns go from registers to the image.
//
// Columns and rows have code of their own here: their filters' numbers stand in the instructions then.

namespace cumulus::recursive_filter {

template <int Order>
struct HeldFilter : OnChipConstants<Order, float> {
  const float* image;
  float* filtered;
  std::int64_t image_stride, filtered_stride;
  std::int64_t row_stride, filtered_row_stride;
  ToldMemory told;  // of each tile HeldWords' words
};

/// What a tile tells, line by line: the rows' states, causal and anticausal, the columns', and the first and
/// the last pixel of each column (of tiles at the image's top and bottom).
template <int Order, int kSide>
struct HeldWords {
  static constexpr int kColumns = 2 * tagged_words(Order) * kSide;
  static constexpr int kBorder = 2 * kColumns;
  static constexpr int kCount = kBorder + kSide;
};

/// A block's shared memory.
template <int Order, int kSide, int kPart>
struct HeldMemory {
  static constexpr int kParts = kSide / kPart;

  alignas(16) float pixels[kSide][kSide + kVector];
  float parts[kParts][2][Order][kSide];  // what runs over the parts of lines leave
  float carries[2][Order][kSide];        // before the tile's lines, and after them
};
extern __shared__ float4 held_memory[];

/// The rows of a tile, or its columns; a thread has the pixels `part` of `line`.
template <int Order, int kSide, int kPart>
class HeldLines {
 public:
  using Memory = HeldMemory<Order, kSide, kPart>;
  static constexpr int kParts = Memory::kParts;
  static_assert(kParts > 1, "two threads of a line tell and hear");

  __device__ HeldLines(const OnChipAxis<Order, float>& axis, Memory& memory, const ToldWords& words, int here)
      : axis_(axis),
        memory_(memory),
        line_(static_cast<int>(threadIdx.x) % kSide),
        part_(static_cast<int>(threadIdx.x) / kSide),
        told_(axis.moves, words, here) {}

  /// Filters the thread's pixels. Block-wide.
  template <class BorderPixel>
  __device__ void filter(const BorderPixel& border_pixel, float (&pixels)[kPart]) const {
    run(pixels);
    __syncthreads();
    if (part_ < 2) {
      float state[Order] = {};
      walk_parts(part_, kParts, state);
      told_.tell(part_, state);
      told_.hear(part_, border_pixel, state);
#pragma unroll
      for (int k = 0; k < Order; ++k) memory_.carries[part_][k][line_] = state[k];
    }
    __syncthreads();
    filter_part(pixels);
  }

 private:
  /// From nothing, both ways.
  __device__ void run(const float (&pixels)[kPart]) const {
    float causal[Order] = {};
    float anticausal[Order] = {};
#pragma unroll
    for (int k = 0; k < kPart; ++k) {
      axis_.line.causal.advance_unscaled(causal, pixels[k]);
      axis_.line.anticausal.advance_unscaled(anticausal, pixels[kPart - 1 - k]);
    }
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      memory_.parts[part_][0][k][line_] = axis_.line.causal.gain * causal[k];
      memory_.parts[part_][1][k][line_] = axis_.line.anticausal.gain * anticausal[k];
    }
  }

  /// Moves a state over the first `count` parts that lie before the thread's, or the last ones after it.
  __device__ void walk_parts(int anticausal, int count, float (&state)[Order]) const {
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      float own[Order];
#pragma unroll
      for (int k = 0; k < Order; ++k) {
        own[k] = memory_.parts[anticausal != 0 ? kParts - 1 - i : i][anticausal][k][line_];
      }
      move_over(axis_.over_part[anticausal], own, state);
    }
  }

  /// The state before the thread's part, or after it.
  __device__ void find(int anticausal, int count, float (&state)[Order]) const {
#pragma unroll
    for (int k = 0; k < Order; ++k) state[k] = memory_.carries[anticausal][k][line_];
    walk_parts(anticausal, count, state);
  }

  __device__ void filter_part(float (&pixels)[kPart]) const {
    float future[Order];
    find(1, kParts - 1 - part_, future);
    float anticausal[Order] = {};
    axis_.line.through_future.add_product(future, anticausal);
    float causal[Order];
    find(0, part_, causal);
#pragma unroll
    for (int k = 0; k < kPart; ++k) axis_.line.causal.filter(causal, pixels[k]);
    axis_.line.through_causal.add_product(causal, anticausal);
#pragma unroll
    for (int k = kPart - 1; k >= 0; --k) axis_.line.anticausal.filter(anticausal, pixels[k]);
  }

  const OnChipAxis<Order, float>& axis_;
  Memory& memory_;
  const int line_, part_;
  const ToldStates<Order, kSide, true> told_;
};

/// One tile.
template <int Order, int kSide, int kPart>
class HeldTile {
 public:
  using Memory = HeldMemory<Order, kSide, kPart>;
  static constexpr int kThreads = kSide * Memory::kParts;

  __device__ HeldTile(const HeldFilter<Order>& f, Memory& memory, int block)
      : f_(f),
        memory_(memory),
        tile_columns_(f.axes[kAlongX].moves.tiles),
        tile_rows_(f.axes[kAlongY].moves.tiles),
        column_(block % tile_columns_),
        row_(block / tile_columns_ % tile_rows_),
        image_(block / tile_columns_ / tile_rows_),
        line_(static_cast<int>(threadIdx.x) % kSide),
        first_(static_cast<int>(threadIdx.x) / kSide * kPart) {}

  __device__ void load() const {
    constexpr int kRowVectors = kSide / kVector;
    const int column = static_cast<int>(threadIdx.x) % kRowVectors * kVector;
    const int first_row = static_cast<int>(threadIdx.x) / kRowVectors;
    const float* from = rows() + column_ * kSide + column;
#pragma unroll
    for (int i = 0; i < kSide; i += kThreads / kRowVectors) {
      const int row = first_row + i;
      __pipeline_memcpy_async(&memory_.pixels[row][column], from + row * f_.row_stride, sizeof(float4));
    }
    __pipeline_commit();
    finish_loading();
  }

  __device__ void filter_rows() const {
    float* own = &memory_.pixels[line_][first_];
    float pixels[kPart];
#pragma unroll
    for (int k = 0; k < kPart; k += kVector) {
      const float4 four = *reinterpret_cast<const float4*>(own + k);
      pixels[k] = four.x;
      pixels[k + 1] = four.y;
      pixels[k + 2] = four.z;
      pixels[k + 3] = four.w;
    }
    const float* row = rows() + line_ * f_.row_stride;
    const HeldLines<Order, kSide, kPart> lines(f_.axes[kAlongX], memory_, words_from(row_, 0, Words::kCount),
                                               column_);
    lines.filter([&](bool last) { return __ldg(row + (last ? tile_columns_ * kSide - 1 : 0)); }, pixels);
#pragma unroll
    for (int k = 0; k < kPart; k += kVector) {
      *reinterpret_cast<float4*>(own + k) =
          make_float4(pixels[k], pixels[k + 1], pixels[k + 2], pixels[k + 3]);
    }
    __syncthreads();
  }

  __device__ void filter_columns() const {
    float pixels[kPart];
#pragma unroll
    for (int k = 0; k < kPart; ++k) pixels[k] = memory_.pixels[first_ + k][line_];
    ToldWords words = words_from(0, column_, std::int64_t{tile_columns_} * Words::kCount);
    if (first_ == 0 && (row_ == 0 || row_ == tile_rows_ - 1)) {
      words.tell_border(row_, Words::kBorder, pixels[0], memory_.pixels[kSide - 1][line_]);
    }
    const ToldWords borders = words;
    words.first += Words::kColumns;
    const HeldLines<Order, kSide, kPart> lines(f_.axes[kAlongY], memory_, words, row_);
    lines.filter(
        [&](bool last) { return borders.hear_border(last ? tile_rows_ - 1 : 0, Words::kBorder, last); },
        pixels);
    float* to = f_.filtered + image_ * f_.filtered_stride +
                (std::int64_t{row_} * kSide + first_) * f_.filtered_row_stride + column_ * kSide + line_;
#pragma unroll
    for (int k = 0; k < kPart; ++k) __stcs(to + k * f_.filtered_row_stride, pixels[k]);
  }

 private:
  using Words = HeldWords<Order, kSide>;

  /// The first pixel of the image's rows that the tile is in.
  __device__ const float* rows() const {
    return f_.image + image_ * f_.image_stride + std::int64_t{row_} * kSide * f_.row_stride;
  }
  __device__ ToldWords words_from(int row, int column, std::int64_t stride) const {
    const std::int64_t tile = (std::int64_t{image_} * tile_rows_ + row) * tile_columns_ + column;
    return {f_.told.words + tile * Words::kCount + line_, stride, f_.told.tag};
  }

  const HeldFilter<Order>& f_;
  Memory& memory_;
  const int tile_columns_, tile_rows_;
  const int column_, row_, image_;
  const int line_, first_;  // of the thread's pixels
};

template <int Order, int kSide, int kPart, int kBlocks>
__global__ void __launch_bounds__(HeldTile<Order, kSide, kPart>::kThreads, kBlocks)
    filter_held_tiles(const __grid_constant__ HeldFilter<Order> f) {
  using Tile = HeldTile<Order, kSide, kPart>;
  const Tile tile(f, *reinterpret_cast<typename Tile::Memory*>(held_memory), static_cast<int>(blockIdx.x));
  tile.load();
  tile.filter_rows();
  tile.filter_columns();
}

}  // namespace cumulus::recursive_filter
