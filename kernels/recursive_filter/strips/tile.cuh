#pragma once

#include <type_traits>

#include "kernels/recursive_filter/gpu/tile_lines.cuh"
#include "kernels/recursive_filter/strips/strips.h"

// A tile of a strip in shared memory, and the ways along its columns and rows.

namespace cumulus::recursive_filter {

/// The four floats behind a row hold a state from one stage to another: of a column, its anticausal zero-
/// state response; of a row, the initial state of its anticausal filter.
struct GrayTile {
  TilePixels rows;

  __device__ float& at(int row, int column) { return rows[row][column]; }
  /// Of a column that is a multiple of four.
  __device__ float4& vector(int row, int column) { return vector_at(rows, row, column); }
  __device__ ColumnAccess column(int column) { return {&at(0, column)}; }
  __device__ RowAccess row(int row) { return {&at(row, 0)}; }

  template <int Order>
  __device__ void store_state(int line, const float (&state)[Order]) {
    float four[kVector] = {};
#pragma unroll
    for (int k = 0; k < Order; ++k) four[k] = state[k];
    vector(line, kTile) = make_float4(four[0], four[1], four[2], four[3]);
  }
  template <int Order>
  __device__ void load_state(int line, float (&state)[Order]) {
    const float4 four_numbers = vector(line, kTile);
    const float four[kVector] = {four_numbers.x, four_numbers.y, four_numbers.z, four_numbers.w};
#pragma unroll
    for (int k = 0; k < Order; ++k) state[k] = four[k];
  }
};

/// All channels of a tile, interleaved. A column is one of floats. A row is one channel's: row l has channel
/// l % Channels of pixel row l / Channels. Rows of pixels begin at multiples of 16 bytes, eight of them in
/// different banks.
template <int Order, int Channels>
struct alignas(16) ColourTile {
  static constexpr int kLines = kColourTile * Channels;
  static constexpr int kPitch = kLines + kVector;
  static_assert(kLines % 32 == 0);
  using Column = StridedAccess<kPitch>;
  using Row = StridedAccess<Channels>;

  float pixels[kColourTile * kPitch];
  float states[Order][kLines];  // as in GrayTile

  __device__ Column column(int column) { return {pixels + column}; }
  __device__ Row row(int line) { return {pixels + line / Channels * kPitch + line % Channels}; }
  __device__ void store_state(int line, const float (&state)[Order]) {
#pragma unroll
    for (int k = 0; k < Order; ++k) states[k][line] = state[k];
  }
  __device__ void load_state(int line, float (&state)[Order]) const {
#pragma unroll
    for (int k = 0; k < Order; ++k) state[k] = states[k][line];
  }
};

template <int Order, int Channels>
using StripTile = std::conditional_t<Channels == 1, GrayTile, ColourTile<Order, Channels>>;

/// Changes a line in place, kHalf pixels at a time, while the next ones are on their way: first(pixels), then
/// second(pixels, i), where pixel i is the first of both.
template <int kSide, int kHalf, class Line, class First, class Second>
__device__ __forceinline__ void ascend(const Line& line, const First& first, const Second& second) {
  float pixels[kHalf];
  line.load(0, pixels);
#pragma unroll 1
  for (int i = 0; i < kSide; i += 2 * kHalf) {
    float next[kHalf];
    line.load(i + kHalf, next);
    first(pixels);
    line.store(i, pixels);
    if (i + 2 * kHalf < kSide) line.load(i + 2 * kHalf, pixels);
    second(next, i);
    line.store(i + kHalf, next);
  }
}
/// The same from the last pixels, `pixels`, to the first ones: work(pixels).
template <int kSide, int kHalf, class Line, class Work>
__device__ __forceinline__ void descend(const Line& line, float (&pixels)[kHalf], const Work& work) {
#pragma unroll 1
  for (int i = kSide - 2 * kHalf; i >= 0; i -= 2 * kHalf) {
    float next[kHalf];
    line.load(i, next);
    work(pixels);
    line.store(i + kHalf, pixels);
    if (i > 0) line.load(i - kHalf, pixels);
    work(next);
    line.store(i, next);
  }
}

}  // namespace cumulus::recursive_filter
