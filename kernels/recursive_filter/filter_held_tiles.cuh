#pragma once

#include <cuda_pipeline.h>

#include <cstdint>

#include "kernels/recursive_filter/told_lines.cuh"

// The on-chip method for float images of one channel that are whole tiles and whose boundaries leave no pixel
// out of runs: a thread has a stretch of a row, and then of a column, in registers. A warp has whole lines
// of a tile, its threads tell each other what they leave by shuffles, and once pixels are asked for no warp
// waits for another but when the tile is turned in shared memory: while one waits for pixels or for the
// neighbours' states, others filter. Rows come first, so that columns go from registers to the image.
//
// Columns and rows have code of their own here: their filters' numbers stand in the instructions then.

namespace cumulus::recursive_filter {

/// Both axes without gains.
template <int Order>
struct HeldConstants : OnChipConstants<Order, float> {
  float scale;  // of filtered pixels

  HeldConstants(const GainlessAxis& y, const GainlessAxis& x, const Windows& windows, std::int64_t part,
                std::int64_t side)
      : OnChipConstants<Order, float>(y.plan, x.plan, windows, part, side),
        scale(static_cast<float>(y.scale * x.scale)) {}
};

template <int Order>
struct HeldFilter : HeldConstants<Order> {
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

/// How a tile's lines are shared out: a warp has kLines of them, kParts threads each.
template <int kSide, int kPart>
struct HeldShares {
  static constexpr int kParts = kSide / kPart;
  static constexpr int kLines = 32 / kParts;
  static constexpr int kThreads = kSide * kParts;
  static constexpr int kWarps = kThreads / 32;

  __device__ static int warp() { return static_cast<int>(threadIdx.x / 32); }
  __device__ static int lane() { return static_cast<int>(threadIdx.x % 32); }
  /// The thread's line, and which pixels of it.
  __device__ static int line() { return warp() * kLines + static_cast<int>(threadIdx.x % kLines); }
  __device__ static int part() { return static_cast<int>(threadIdx.x % 32 / kLines); }
  __device__ static int first_pixel() { return part() * kPart; }
};

/// A block's tile in shared memory. Where threads of a warp read the same columns of different parts, no two
/// of them use the same bank.
template <int kSide, int kPart>
struct HeldPixels {
  static constexpr int kPitch = kSide + kVector;
  static constexpr int kPartPitch = kPart * kPitch + HeldShares<kSide, kPart>::kLines;

  alignas(16) float of[kSide / kPart * kPartPitch];

  __device__ float* row(int row) { return of + row / kPart * kPartPitch + row % kPart * kPitch; }
};
extern __shared__ float4 held_memory[];

/// The rows of a tile, or its columns.
template <int Order, int kSide, int kPart>
class HeldLines {
 public:
  using Shares = HeldShares<kSide, kPart>;
  static constexpr int kParts = Shares::kParts;
  static_assert(kParts % 2 == 0, "the first thread of a line and the last one tell and hear");

  __device__ HeldLines(const OnChipAxis<Order, float>& axis, const ToldWords& words, int here)
      : axis_(axis),
        part_(Shares::part()),
        backwards_(part_ == 0 ? 0 : 1),
        first_lane_(static_cast<int>(threadIdx.x % Shares::kLines)),
        told_(axis.moves, words, here) {}

  /// Filters the thread's pixels; store(k), from the last to the first: pixel k is there. Warp-wide.
  template <class BorderPixel, class Store>
  __device__ void filter(const BorderPixel& border_pixel, float (&pixels)[kPart], const Store& store) const {
    float left[kParts][Order];
    run(pixels, left);
    float state[Order];
#pragma unroll
    for (int k = 0; k < Order; ++k) state[k] = left[0][k];
    if (part_ == 0 || part_ == kParts - 1) {
#pragma unroll
      for (int i = 1; i < kParts; ++i) move_over(axis_.over_part[backwards_], left[i], state);
      told_.tell(backwards_, state);
      told_.hear(backwards_, border_pixel, state);
    }
    __syncwarp();  // together again, or each shuffle finds out by itself
    float causal[Order];
    float future[Order];
    find(left, state, causal, future);
    filter_part(causal, future, pixels, store);
  }

 private:
  static constexpr unsigned kWarp = 0xffffffff;

  /// From nothing, both ways; `left`: what the line's parts leave, in the order in which the line's first
  /// thread comes to them causally and its last one anticausally.
  __device__ void run(const float (&pixels)[kPart], float (&left)[kParts][Order]) const {
    float causal[Order] = {};
    float anticausal[Order] = {};
#pragma unroll
    for (int k = 0; k < kPart; ++k) {
      axis_.line.causal.advance_unscaled(causal, pixels[k]);
      axis_.line.anticausal.advance_unscaled(anticausal, pixels[kPart - 1 - k]);
    }
#pragma unroll
    for (int i = 0; i < kParts; ++i) {
      const int from = backwards_ != 0 ? kParts - 1 - i : i;
#pragma unroll
      for (int k = 0; k < Order; ++k) left[i][k] = from_part(from, part_ == i ? causal[k] : anticausal[k]);
    }
  }

  /// From the states that the line's first thread has heard, and its last, those at each thread's part.
  __device__ void find(const float (&left)[kParts][Order], float (&state)[Order], float (&causal)[Order],
                       float (&future)[Order]) const {
#pragma unroll
    for (int k = 0; k < Order; ++k) causal[k] = future[k] = state[k];
#pragma unroll
    for (int i = 0; i + 1 < kParts; ++i) {
      move_over(axis_.over_part[backwards_], left[i], state);
#pragma unroll
      for (int k = 0; k < Order; ++k) {
        const float moved = from_part(part_ == i + 1 ? 0 : kParts - 1, state[k]);
        if (part_ == i + 1) causal[k] = moved;
        if (part_ == kParts - 2 - i) future[k] = moved;
      }
    }
  }

  template <class Store>
  __device__ void filter_part(float (&causal)[Order], const float (&future)[Order], float (&pixels)[kPart],
                              const Store& store) const {
    float anticausal[Order] = {};
    axis_.line.through_future.add_product(future, anticausal);
#pragma unroll
    for (int k = 0; k < kPart; ++k) axis_.line.causal.filter_unscaled(causal, pixels[k]);
    axis_.line.through_causal.add_product(causal, anticausal);
#pragma unroll
    for (int k = kPart - 1; k >= 0; --k) {
      axis_.line.anticausal.filter_unscaled(anticausal, pixels[k]);
      store(k);
    }
  }

  __device__ float from_part(int part, float value) const {
    return __shfl_sync(kWarp, value, first_lane_ + part * Shares::kLines);
  }

  const OnChipAxis<Order, float>& axis_;
  const int part_;
  const int backwards_;  // which way the thread's own direction goes
  const int first_lane_;
  const ToldStates<Order, kSide, true> told_;
};

/// One tile.
template <int Order, int kSide, int kPart>
class HeldTile {
 public:
  using Shares = HeldShares<kSide, kPart>;
  using Pixels = HeldPixels<kSide, kPart>;

  __device__ HeldTile(const HeldFilter<Order>& f, Pixels& pixels)
      : f_(f),
        shared_(pixels),
        tile_columns_(f.axes[kAlongX].moves.tiles),
        tile_rows_(f.axes[kAlongY].moves.tiles),
        column_(static_cast<int>(blockIdx.x)),
        row_(static_cast<int>(blockIdx.y)),
        image_(static_cast<int>(blockIdx.z)) {}

  /// The warp's rows. Where both halves of the warps keep all schedulers busy, the first half asks for its
  /// rows first and filters while the others wait for theirs.
  __device__ void load() const {
    constexpr bool kInTurns = Shares::kWarps >= 8;
    const bool first = !kInTurns || Shares::warp() < Shares::kWarps / 2;
    if (first) begin_loading();
    if (kInTurns) __syncthreads();
    if (!first) begin_loading();
    __pipeline_wait_prior(0);
    __syncwarp();
  }

  __device__ void filter_rows() const {
    float* own = shared_.row(Shares::line()) + Shares::first_pixel();
    float pixels[kPart];
#pragma unroll
    for (int k = 0; k < kPart; k += kVector) {
      const float4 four = *reinterpret_cast<const float4*>(own + k);
      pixels[k] = four.x;
      pixels[k + 1] = four.y;
      pixels[k + 2] = four.z;
      pixels[k + 3] = four.w;
    }
    const float* row = rows() + Shares::line() * f_.row_stride;
    const HeldLines<Order, kSide, kPart> lines(f_.axes[kAlongX], words_from(row_, 0, Words::kCount), column_);
    lines.filter([&](bool last) { return __ldg(row + (last ? tile_columns_ * kSide - 1 : 0)); }, pixels,
                 [&](int k) {
                   if (k % kVector != 0) return;
                   *reinterpret_cast<float4*>(own + k) =
                       make_float4(pixels[k], pixels[k + 1], pixels[k + 2], pixels[k + 3]);
                 });
  }

  __device__ void filter_columns() const {
    const float* own = shared_.row(Shares::first_pixel()) + Shares::line();
    float pixels[kPart];
#pragma unroll
    for (int k = 0; k < kPart; ++k) pixels[k] = own[k * Pixels::kPitch];
    ToldWords words = words_from(0, column_, std::int64_t{tile_columns_} * Words::kCount);
    if (Shares::part() == 0 && (row_ == 0 || row_ == tile_rows_ - 1)) {
      words.tell_border(row_, Words::kBorder, pixels[0], shared_.row(kSide - 1)[Shares::line()]);
    }
    const ToldWords borders = words;
    words.first += Words::kColumns;
    const HeldLines<Order, kSide, kPart> lines(f_.axes[kAlongY], words, row_);
    const std::int64_t end_row = std::int64_t{row_} * kSide + Shares::first_pixel() + kPart;
    float* to = f_.filtered + image_ * f_.filtered_stride + end_row * f_.filtered_row_stride +
                column_ * kSide + Shares::line();
    lines.filter(
        [&](bool last) { return borders.hear_border(last ? tile_rows_ - 1 : 0, Words::kBorder, last); },
        pixels,
        [&](int k) {
          to -= f_.filtered_row_stride;
          __stcs(to, f_.scale * pixels[k]);
        });
  }

 private:
  using Words = HeldWords<Order, kSide>;

  __device__ void begin_loading() const {
    constexpr int kRowVectors = kSide / kVector;
    constexpr int kRows = 32 / kRowVectors;  // at a time
    const int row = Shares::warp() * Shares::kLines + Shares::lane() / kRowVectors;
    const int column = Shares::lane() % kRowVectors * kVector;
    const float* from = rows() + row * f_.row_stride + column_ * kSide + column;
    float* to = shared_.row(row) + column;
#pragma unroll
    for (int i = 0; i < Shares::kLines / kRows; ++i) {
      __pipeline_memcpy_async(to + i * kRows * Pixels::kPitch, from, sizeof(float4));
      from += kRows * f_.row_stride;
    }
    __pipeline_commit();
  }

  /// The first pixel of the image's rows that the tile is in.
  __device__ const float* rows() const {
    return f_.image + image_ * f_.image_stride + std::int64_t{row_} * kSide * f_.row_stride;
  }
  __device__ ToldWords words_from(int row, int column, std::int64_t stride) const {
    const std::int64_t tile = (std::int64_t{image_} * tile_rows_ + row) * tile_columns_ + column;
    return {f_.told.words + tile * Words::kCount + Shares::line(), stride, f_.told.tag};
  }

  const HeldFilter<Order>& f_;
  Pixels& shared_;
  const int tile_columns_, tile_rows_;
  const int column_, row_, image_;
};

template <int Order, int kSide, int kPart, int kBlocks>
__global__ void __launch_bounds__(HeldShares<kSide, kPart>::kThreads, kBlocks)
    filter_held_tiles(const __grid_constant__ HeldFilter<Order> f) {
  using Tile = HeldTile<Order, kSide, kPart>;
  const Tile tile(f, *reinterpret_cast<typename Tile::Pixels*>(held_memory));
  tile.load();
  tile.filter_rows();
  __syncthreads();
  tile.filter_columns();
}

}  // namespace cumulus::recursive_filter
