#pragma once

#include <cstdint>

#include "kernels/recursive_filter/filter_tiles.cuh"

// The tiled method's step between its two passes over the image.

namespace cumulus::recursive_filter {

/// The weights of RunWeights in shared memory, where threads of one warp read those of different numbers.
template <int Order>
struct SharedRunWeights {
  float of[kTile][2 * Order];  // causal, anticausal

  __device__ void fill(const RunWeights<Order>& weights) {
    for (int i = static_cast<int>(threadIdx.x); i < kTile * 2 * Order; i += kRowStateThreads) {
      const int pixel = i / (2 * Order);
      const int k = i % (2 * Order);
      of[pixel][k] = k < Order ? weights.causal[pixel][k] : weights.anticausal[pixel][k - Order];
    }
  }
};

/// Between completing the columns' carries and the rows': the rows' states are those of an image that has not
/// been filtered along y yet. The filters commute: a number of the rows' states, down the rows of a tile, is
/// a column to be filtered along y like any other. Its own carries are the columns' carries, run over along
/// x. The border pixels are such columns too. A thread for each.
template <int Order, class Real>
__global__ void __launch_bounds__(kRowStateThreads)
    filter_row_states(const __grid_constant__ TileImages a, const __grid_constant__ TileAxis<Order, Real> y,
                      const __grid_constant__ RunWeights<Order> x, std::int64_t tiles) {
  constexpr int kStates = 2 * Order;
  __shared__ SharedRunWeights<Order> weights;
  __shared__ float lines[kRowStateThreads][kTile + 1];  // no two threads' lines begin in the same bank
  weights.fill(x);
  __syncthreads();
  // Lines of tiles, then border pixels: of each row of tiles, first and last.
  std::int64_t index = std::int64_t{blockIdx.x} * kRowStateThreads + threadIdx.x;
  const bool is_border = index >= tiles * kStates;
  if (is_border) index -= tiles * kStates;
  const bool is_last = is_border && index % 2 == 1;
  const int line = is_border ? 0 : static_cast<int>(index % kStates);
  std::int64_t tile_index = index / (is_border ? 2 : kStates);
  if (is_border) {
    if (tile_index >= tiles / a.carries.tile_columns) return;
    const std::int64_t channel = tile_index % a.carries.channels;
    const std::int64_t row = tile_index / a.carries.channels;
    tile_index =
        (row * a.carries.tile_columns + (is_last ? a.carries.tile_columns - 1 : 0)) * a.carries.channels +
        channel;
  }
  const Tile tile = tile_of(a, tile_index);
  const TileCarries carries = a.carries.at(tile.at);

  // The pixels of the columns' carries that count, and how far the weights are shifted.
  const bool is_causal = line < Order;
  int first = is_causal ? 0 : tile.anticausal_column;
  int end = is_causal ? tile.causal_columns : tile.columns;
  const int shift = is_causal ? kTile - end : -first;
  if (is_border) {
    first = is_last ? tile.columns - 1 : 0;
    end = first + 1;
  }
  float runs[kStates] = {};
  carries.visit([&](const auto& columns) {
#pragma unroll 4
    for (int i = first; i < end; ++i) {
      const float weight = is_border ? 1.0f : weights.of[i + shift][line];
#pragma unroll
      for (int k = 0; k < kStates; ++k) runs[k] += weight * columns.load(k, i);
    }
  });
  Real before[Order];
  Real after[Order];
#pragma unroll
  for (int k = 0; k < Order; ++k) {
    before[k] = static_cast<Real>(runs[k]);
    after[k] = static_cast<Real>(runs[Order + k]);
  }

  const auto filter_states = [&](const auto& states, int number) {
    SharedPixels pixels{lines[threadIdx.x], 1};
    if (tile.rows == kTile) {
#pragma unroll 16
      for (int i = 0; i < kTile; ++i) pixels.pixels[i] = states.load(number, i);
    } else {
      for (int i = 0; i < tile.rows; ++i) pixels.pixels[i] = states.load(number, i);
    }
    filter_held_line(y, pixels, tile.rows, before, after);
#pragma unroll 4
    for (int i = 0; i < tile.rows; ++i) states.store(number, i, pixels.pixels[i]);
  };
  if (is_border) {
    float* border = (is_last ? a.last_pixels : a.first_pixels) + border_index(a, tile.at, 0);
    filter_states(FloatLines{border, 0, a.carries.channels}, 0);
  } else {
    carries.visit([&](const auto& states) { filter_states(states, kStates + line); });
  }
}

}  // namespace cumulus::recursive_filter
