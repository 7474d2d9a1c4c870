#pragma once

#include <cuda_pipeline.h>

#include <cstdint>

#include "kernels/primitives/warp.cuh"
#include "kernels/recursive_filter/gpu/chunk_sums.cuh"
#include "kernels/recursive_filter/on_chip/published_lines.cuh"

// The on-chip method for float images of one channel that are whole tiles, where boundaries leave no pixel
// out of runs and both directions have the same poles: register-resident tiles. A thread has half of a
// row, and then of a column, in registers. After loading, warps wait for each other in twos, but for the
// barrier at which the tile is transposed in shared memory: while one waits for pixels or carries, others
// filter. Rows come first, so that columns go from registers to the image.
//
// Columns and rows have code of their own here, with the filters' coefficients as operands.

namespace cumulus::recursive_filter {

/// Both axes with unit gains.
template <int Order>
struct RegisterTileConstants : OnChipConstants<Order, float> {
  ChunkSums<Order> sums[2];  // kAlongY, kAlongX
  float scale;               // of filtered pixels

  RegisterTileConstants(const UnitGainAxis& y, const UnitGainAxis& x, const Windows& windows,
                        std::int64_t part, std::int64_t side)
      : OnChipConstants<Order, float>(y.plan, x.plan, windows, part, side),
        sums{ChunkSums<Order>(y.plan), ChunkSums<Order>(x.plan)},
        scale(static_cast<float>(y.scale * x.scale)) {}
};

struct RegisterTileImages {
  const float* image;
  float* filtered;
  std::int64_t image_stride, filtered_stride;
  int row_stride, filtered_row_stride;
  /// sizeof(float), which the compiler must not know: a product added to a pointer is one instruction from
  /// row to row, a sum of numbers of 64 bits two or four.
  int pixel_bytes;
  PublishedMemory published;  // of each tile RegisterTileWords' words
};

/// Arguments of loading come first: fewer lines of the constant cache are missed before it.
template <int Order>
struct RegisterTileFilter : RegisterTileImages, RegisterTileConstants<Order> {};

/// What a tile publishes, line by line: the zero-state responses of its rows, causal and anticausal, of
/// its columns, and the first and the last pixel of each column (of tiles at the image's top and bottom).
template <int Order, int kSide>
struct RegisterTileWords {
  static constexpr int kColumns = 2 * tagged_words(Order) * kSide;
  static constexpr int kBorder = 2 * kColumns;
  static constexpr int kCount = kBorder + kSide;
};

/// Which thread has what: half of a row, then half of a column.
template <int kSide>
struct RegisterTileLayout {
  static constexpr int kPart = kSide / 2;
  static constexpr int kThreads = 2 * kSide;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kWarpRows = 16;
  static constexpr int kWarpColumns = 32;

  __device__ static int warp() { return static_cast<int>(threadIdx.x / 32); }
  __device__ static int lane() { return static_cast<int>(threadIdx.x % 32); }
};

/// A block's tile in shared memory. Where threads read vectors of eight rows, no two of them use the same
/// bank.
template <int kSide>
struct RegisterTilePixels {
  static constexpr int kPitch = kSide + kVector;

  alignas(16) float of[kSide * kPitch];

  __device__ float* row(int row) { return of + row * kPitch; }
};
extern __shared__ float4 register_tile_memory[];

/// A thread's place among rows: a warp has both halves of its rows, and the two threads of a row exchange
/// states by shuffles.
template <int kSide>
struct RegisterRow {
  using Layout = RegisterTileLayout<kSide>;

  int line = Layout::warp() * Layout::kWarpRows + Layout::lane() % Layout::kWarpRows;
  int part = Layout::lane() / Layout::kWarpRows;

  template <int kSlot, int Order>
  __device__ void exchange(float (&numbers)[Order]) const {
#pragma unroll
    for (int k = 0; k < Order; ++k) numbers[k] = __shfl_xor_sync(kFullWarp, numbers[k], Layout::kWarpRows);
  }
};

/// The same among columns: two warps have the halves of neighbouring columns, so that each stores whole cache
/// lines. They exchange states in shared memory, where their pixels were.
template <int kSide>
struct RegisterColumn {
  using Layout = RegisterTileLayout<kSide>;

  RegisterTilePixels<kSide>& pixels;
  int line = Layout::warp() / 2 * Layout::kWarpColumns + Layout::lane();
  int part = Layout::warp() % 2;

  __device__ explicit RegisterColumn(RegisterTilePixels<kSide>& of) : pixels(of) {}

  /// The pixels from kSlot on are not needed any more: no other thread reads them, and each slot is used
  /// once.
  template <int kSlot, int Order>
  __device__ void exchange(float (&numbers)[Order]) const {
    float* mine = pixels.row(part * Layout::kPart + kSlot) + line;
    const float* other = pixels.row((1 - part) * Layout::kPart + kSlot) + line;
#pragma unroll
    for (int k = 0; k < Order; ++k) mine[k * pixels.kPitch] = numbers[k];
    // A barrier of the two warps; 0 is the block's.
    asm volatile("bar.sync %0, 64;" ::"r"(1 + Layout::warp() / 2) : "memory");
#pragma unroll
    for (int k = 0; k < Order; ++k) numbers[k] = other[k * pixels.kPitch];
  }
};

/// The rows of a tile, or its columns. A thread's own direction is the one in which its part of the line
/// comes first: causal for the first part, anticausal for the second.
template <int Order, int kSide, class Place>
class RegisterLines {
 public:
  static constexpr int kPart = RegisterTileLayout<kSide>::kPart;

  __device__ RegisterLines(const OnChipAxis<Order, float>& axis, const ChunkSums<Order>& sums,
                           const Place& place, const PublishedWords& words, int here)
      : axis_(axis), sums_(sums), place_(place), line_states_(axis.transitions, words, here) {}

  /// Filters the thread's pixels; store(k), from the last to the first: pixel k is there.
  template <class BorderPixel, class Store>
  __device__ void filter(const BorderPixel& border_pixel, float (&pixels)[kPart], const Store& store) const {
    const bool second = place_.part != 0;
    float causal[Order], anticausal[Order];
    run(pixels, causal, anticausal);
    float own[Order], state[Order], other[Order];
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      own[k] = state[k] = second ? anticausal[k] : causal[k];
      other[k] = second ? causal[k] : anticausal[k];
    }
    place_.template exchange<0>(other);
    apply_transition(axis_.part_transitions[0], other, state);
    line_states_.publish(second, state);
    line_states_.await_carry(second, border_pixel, state);
    __syncwarp();  // converged, so that the shuffles need not be
#pragma unroll
    for (int k = 0; k < Order; ++k) other[k] = state[k];
    apply_transition(axis_.part_transitions[0], own, other);
    place_.template exchange<Order>(other);
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      causal[k] = second ? other[k] : state[k];
      anticausal[k] = second ? state[k] : other[k];
    }
    filter_part(causal, anticausal, pixels, store);
  }

 private:
  /// Of 32 pixels weighted sums are faster with two poles alone: one pole's recursion is as short, and
  /// loading more poles' weights takes as long as recursions.
  static constexpr bool kBySums = kPart > 32 || Order == 2;

  /// The zero-state responses.
  __device__ void run(const float (&pixels)[kPart], float (&causal)[Order],
                      float (&anticausal)[Order]) const {
    if constexpr (kBySums) {
      sums_.find(pixels, causal, anticausal);
    } else {
#pragma unroll
      for (int k = 0; k < Order; ++k) causal[k] = anticausal[k] = 0;
#pragma unroll
      for (int k = 0; k < kPart; ++k) {
        axis_.line.causal.template advance_unit_gain<true>(causal, pixels[k]);
        axis_.line.causal.template advance_unit_gain<true>(anticausal, pixels[kPart - 1 - k]);
      }
    }
  }

  template <class Store>
  __device__ void filter_part(float (&causal)[Order], const float (&anticausal_carry)[Order],
                              float (&pixels)[kPart], const Store& store) const {
    float anticausal[Order] = {};
    axis_.line.through_anticausal.add_product(anticausal_carry, anticausal);
#pragma unroll
    for (int k = 0; k < kPart; ++k) axis_.line.causal.template filter_unit_gain<true>(causal, pixels[k]);
    axis_.line.through_causal.add_product(causal, anticausal);
#pragma unroll
    for (int k = kPart - 1; k >= 0; --k) {
      axis_.line.anticausal.template filter_unit_gain<true>(anticausal, pixels[k]);
      store(k);
    }
  }

  const OnChipAxis<Order, float>& axis_;
  const ChunkSums<Order>& sums_;
  const Place& place_;
  const PublishedStates<Order, kSide, true> line_states_;
};

/// One tile.
template <int Order, int kSide>
class RegisterTile {
 public:
  using Filter = RegisterTileFilter<Order>;
  using Layout = RegisterTileLayout<kSide>;
  using Pixels = RegisterTilePixels<kSide>;
  static constexpr int kPart = Layout::kPart;

  __device__ RegisterTile(const Filter& f, Pixels& pixels)
      : f_(f),
        shared_(pixels),
        tile_columns_(f.axes[kAlongX].transitions.tiles),
        tile_rows_(f.axes[kAlongY].transitions.tiles),
        column_(static_cast<int>(blockIdx.x)),
        row_(static_cast<int>(blockIdx.y)),
        image_(static_cast<int>(blockIdx.z)) {}

  /// Loads the warp's rows. Where either half of the warps keeps all schedulers busy, the first half loads
  /// first and filters while the others wait.
  __device__ void load() const {
    constexpr bool kStaggered = Layout::kWarps >= 8;
    const bool first = !kStaggered || Layout::warp() < Layout::kWarps / 2;
    if (first) begin_loading();
    if (kStaggered) __syncthreads();
    if (!first) begin_loading();
    __pipeline_wait_prior(0);
    __syncwarp();
  }

  __device__ void filter_rows() const {
    const RegisterRow<kSide> place;
    float* own = shared_.row(place.line) + place.part * kPart;
    float pixels[kPart];
#pragma unroll
    for (int k = 0; k < kPart; k += kVector) {
      const float4 four = *reinterpret_cast<const float4*>(own + k);
      pixels[k] = four.x;
      pixels[k + 1] = four.y;
      pixels[k + 2] = four.z;
      pixels[k + 3] = four.w;
    }
    const float* row = rows() + std::int64_t{place.line} * f_.row_stride;
    const RegisterLines<Order, kSide, RegisterRow<kSide>> lines(
        f_.axes[kAlongX], f_.sums[kAlongX], place, words_from(row_, 0, place.line, Words::kCount), column_);
    lines.filter([&](bool last) { return __ldg(row + (last ? tile_columns_ * kSide - 1 : 0)); }, pixels,
                 [&](int k) {
                   if (k % kVector != 0) return;
                   *reinterpret_cast<float4*>(own + k) =
                       make_float4(pixels[k], pixels[k + 1], pixels[k + 2], pixels[k + 3]);
                 });
  }

  __device__ void filter_columns() const {
    const RegisterColumn<kSide> place(shared_);
    const float* own = shared_.row(place.part * kPart) + place.line;
    float pixels[kPart];
#pragma unroll
    for (int k = 0; k < kPart; ++k) pixels[k] = own[k * Pixels::kPitch];
    PublishedWords words = words_from(0, column_, place.line, tile_columns_ * Words::kCount);
    if (place.part == 0 && (row_ == 0 || row_ == tile_rows_ - 1)) {
      words.publish_border(row_, Words::kBorder, pixels[0], shared_.row(kSide - 1)[place.line]);
    }
    const PublishedWords borders = words;
    words.first += Words::kColumns;
    const RegisterLines<Order, kSide, RegisterColumn<kSide>> lines(f_.axes[kAlongY], f_.sums[kAlongY], place,
                                                                   words, row_);
    const std::int64_t end_row = std::int64_t{row_} * kSide + (place.part + 1) * kPart;
    char* to = reinterpret_cast<char*>(f_.filtered + image_ * f_.filtered_stride +
                                       end_row * f_.filtered_row_stride + column_ * kSide + place.line);
    const std::int64_t back = -f_.filtered_row_stride;
    lines.filter(
        [&](bool last) { return borders.await_border(last ? tile_rows_ - 1 : 0, Words::kBorder, last); },
        pixels,
        [&](int k) {
          to += back * f_.pixel_bytes;
          __stcs(reinterpret_cast<float*>(to), f_.scale * pixels[k]);
        });
  }

 private:
  using Words = RegisterTileWords<Order, kSide>;

  __device__ void begin_loading() const {
    constexpr int kRowVectors = kSide / kVector;
    constexpr int kRows = 32 / kRowVectors;  // at a time
    const int row = Layout::warp() * Layout::kWarpRows + Layout::lane() / kRowVectors;
    const int column = Layout::lane() % kRowVectors * kVector;
    const char* from =
        reinterpret_cast<const char*>(rows() + std::int64_t{row} * f_.row_stride + column_ * kSide + column);
    const std::int64_t step = kRows * f_.row_stride;
    float* to = shared_.row(row) + column;
#pragma unroll
    for (int i = 0; i < Layout::kWarpRows / kRows; ++i) {
      __pipeline_memcpy_async(to + i * kRows * Pixels::kPitch, from, sizeof(float4));
      from += step * f_.pixel_bytes;
    }
    __pipeline_commit();
  }

  /// The first pixel of the image's rows that the tile is in.
  __device__ const float* rows() const {
    return f_.image + image_ * f_.image_stride + std::int64_t{row_} * kSide * f_.row_stride;
  }
  __device__ PublishedWords words_from(int row, int column, int line, int stride) const {
    const int tile = (image_ * tile_rows_ + row) * tile_columns_ + column;
    return {f_.published.words + tile * Words::kCount + line, stride, f_.published.tag};
  }

  const Filter& f_;
  Pixels& shared_;
  const int tile_columns_, tile_rows_;
  const int column_, row_, image_;
};

/// Owns: a block one tile of kSide x kSide pixels, in registers but while it is transposed.
/// Reads: its pixels once. Writes: its filtered pixels once; zero-state responses of its rows, then of
///   its columns, in tagged words.
/// Waits for: the words of the tiles in its window and, where the boundary needs runs over the image, of
///   those at its borders: first along x, then along y.
/// No deadlock: all blocks are resident (cooperative launch). A tile's row words depend on its pixels
///   alone, its column words on row words alone.
/// Source: the tiles and carries of Nehab et al. (2011), kept on the chip between their passes.
template <int Order, int kSide, int kBlocks>
__global__ void __launch_bounds__(RegisterTileLayout<kSide>::kThreads, kBlocks)
    filter_register_tiles(const __grid_constant__ RegisterTileFilter<Order> f) {
  using Tile = RegisterTile<Order, kSide>;
  const Tile tile(f, *reinterpret_cast<typename Tile::Pixels*>(register_tile_memory));
  tile.load();
  tile.filter_rows();
  __syncthreads();
  tile.filter_columns();
}

}  // namespace cumulus::recursive_filter
