#pragma once

#include "kernels/recursive_filter/gpu/tile_lines.cuh"

// A tile of a strip in shared memory, and the ways along its columns and rows.

namespace cumulus::recursive_filter {

/// The four floats behind a row hold a state from one stage to another: of a column, its anticausal zero-
/// state response; of a row, the initial state of its anticausal filter.
struct StripTile {
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

/// Changes a line in place, kHalf pixels at a time, while the next ones are on their way: first(pixels), then
/// second(pixels, i), where pixel i is the first of both.
template <int kHalf, class Line, class First, class Second>
__device__ __forceinline__ void ascend(const Line& line, const First& first, const Second& second) {
  float pixels[kHalf];
  line.load(0, pixels);
#pragma unroll 1
  for (int i = 0; i < kTile; i += 2 * kHalf) {
    float next[kHalf];
    line.load(i + kHalf, next);
    first(pixels);
    line.store(i, pixels);
    if (i + 2 * kHalf < kTile) line.load(i + 2 * kHalf, pixels);
    second(next, i);
    line.store(i + kHalf, next);
  }
}
/// The same from the last pixels, `pixels`, to the first ones: work(pixels).
template <int kHalf, class Line, class Work>
__device__ __forceinline__ void descend(const Line& line, float (&pixels)[kHalf], const Work& work) {
#pragma unroll 1
  for (int i = kTile - 2 * kHalf; i >= 0; i -= 2 * kHalf) {
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
