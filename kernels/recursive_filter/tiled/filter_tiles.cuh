#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/recursive_filter/gpu/tile_lines.cuh"

// The tiled method's second pass over the image. A thread filters a column, then a row, in registers in
// float where it is whole. (Where many tiles share a multiprocessor this is faster than gpu/tile_lines.cuh
// in float, and slower where they are few, and in double.)

namespace cumulus::recursive_filter {

/// A whole column or row in registers; every loop over it has constant bounds and is unrolled.
struct LineInRegisters {
  float v[kTile];
  template <class F>
  __device__ void ascending(int /*length*/, const F& f) {
#pragma unroll
    for (int i = 0; i < kTile; ++i) f(v[i]);
  }
  template <class F>
  __device__ void descending(int /*length*/, const F& f) {
#pragma unroll
    for (int i = kTile - 1; i >= 0; --i) f(v[i]);
  }
};

template <int Order, class Real>
__device__ void store_state(const TileCarries& carries, int line, int position, const Real (&state)[Order]) {
  carries.visit([&](const auto& lines) {
#pragma unroll
    for (int k = 0; k < Order; ++k) lines.store(line + k, position, static_cast<float>(state[k]));
  });
}

template <int Order, class Real>
__device__ void load_state(const TileCarries& carries, int line, int position, Real (&state)[Order]) {
  carries.visit([&](const auto& lines) {
#pragma unroll
    for (int k = 0; k < Order; ++k) state[k] = static_cast<Real>(lines.load(line + k, position));
  });
}

/// The carries of a thread's column or row.
template <int Order, class Real>
struct LineCarries {
  Real before[Order], after[Order];

  __device__ void load(const TileCarries& carries, int line, int position) {
    load_state(carries, line, position, before);
    load_state(carries, line + Order, position, after);
  }
};

/// One axis' plan in the second pass. Conversions to double and back would be its longest stall, so pixels
/// become doubles by their bits, 2^896 times smaller; the filters' gains make up for that.
/// (0 stays 0. Infinities and NaNs become large numbers: it is the carries that spread them.)
template <int Order, class Real>
struct FilterAxis : TileAxis<Order, Real> {
  using Base = TileAxis<Order, Real>;

  explicit FilterAxis(const AxisPlan& plan) : Base(plan) {
    if constexpr (kByBits) {
      for (auto* sections : {&this->causal, &this->anticausal}) {
        sections->gain = std::ldexp(sections->gain, kSmaller);
        sections->direct = std::ldexp(sections->direct, kSmaller);
      }
    }
  }

  __device__ static Real taken(float pixel) {
    if constexpr (kByBits) {
      const int bits = __float_as_int(pixel);
      return __hiloint2double((bits >> 3) & static_cast<int>(0x8fffffff), bits << 29);
    } else {
      return Base::taken(pixel);
    }
  }

 private:
  static constexpr bool kByBits = std::is_same_v<Real, double>;
  static constexpr int kSmaller = 1023 - 127;  // the difference of the exponents' biases
};

/// Filters a tile's column or row, in registers where all of it is in the image.
template <int Order, class Real, class Line>
__device__ void finish_line(const FilterAxis<Order, Real>& axis, const Line& line, int length,
                            LineCarries<Order, Real>& carries) {
  if constexpr (std::is_same_v<Real, float>) {
    if (length == kTile) {
      LineInRegisters pixels;
      line.load(0, pixels.v);
      filter_line_in_tile(axis, pixels, length, carries.before, carries.after);
      line.store(0, pixels.v);
      return;
    }
  }
  ChunkedLine<Line> chunked{line};
  filter_line_in_tile(axis, chunked, length, carries.before, carries.after);
}

/// Owns: a block one tile of one channel, in shared memory; a thread a column, then a row. Tiles go from
///   the last to the first: what the first pass read last may still be in the L2 cache.
/// Reads: its pixels and its carries. Writes: its filtered pixels, over the carries in the output.
/// Waits for: nothing of other blocks, so that it cannot deadlock.
/// Source: step (5) of tiled/tiled.cu.
template <int Order, class Real>
__global__ void __launch_bounds__(kTile, filter_blocks(Order, std::is_same_v<Real, float>))
    filter_tiles(const __grid_constant__ TileImages a, const __grid_constant__ FilterAxis<Order, Real> y,
                 const __grid_constant__ FilterAxis<Order, Real> x) {
  __shared__ alignas(16) TilePixels pixels;
  const Tile tile = tile_of(a, gridDim.x - 1 - blockIdx.x);
  begin_loading(a, tile, pixels, evict_first());
  const TileCarries carries = a.carries.at(tile.at);
  const int position = static_cast<int>(threadIdx.x);
  const bool has_column = a.along_columns && position < tile.columns;
  const bool has_row = a.along_rows && position < tile.rows;
  LineCarries<Order, Real> of_column, of_row;
  if (has_column) of_column.load(carries, 0, position);
  if (has_row) of_row.load(carries, 2 * Order, position);
  finish_loading();
  if (has_column) finish_line(y, ColumnAccess{&pixels[0][position]}, tile.rows, of_column);
  __syncthreads();
  if (has_row) finish_line(x, RowAccess{pixels[position]}, tile.columns, of_row);
  __syncthreads();
  store_tile(a, tile, pixels);
}

}  // namespace cumulus::recursive_filter
