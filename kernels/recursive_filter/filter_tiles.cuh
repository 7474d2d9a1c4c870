#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/recursive_filter/line_stretches.cuh"

// The tiled method's passes over the image. A block has a tile and kTile threads: each works on one column,
// then on one row.

namespace cumulus::recursive_filter {

/// What each pixel of a tile's column or row adds to the states that runs over it from nothing leave: after
/// the last pixel the causal one, at the first pixel the anticausal one. Sums over pixels, unlike recursions,
/// need not wait for one another, and float is precise enough for them however long the filter's memory.
template <int Order>
struct RunWeights {
  float causal[kTile][Order], anticausal[kTile][Order];

  explicit RunWeights(const AxisPlan& plan) {
    StateVector of_causal = plan.causal.input;
    StateVector of_anticausal = plan.anticausal.input;
    for (std::size_t distance = 0; distance < kTile; ++distance) {
      for (std::size_t k = 0; k < Order; ++k) {
        causal[kTile - 1 - distance][k] = static_cast<float>(of_causal[k]);
        anticausal[distance][k] = static_cast<float>(of_anticausal[k]);
      }
      of_causal = plan.causal.transition * of_causal;
      of_anticausal = plan.anticausal.transition * of_anticausal;
    }
  }
};

/// The states that runs over a line from nothing leave: over its pixels before `causal_end`, and over those
/// from `anticausal_first` to before `end`.
template <int Order, class Line>
__device__ void run_over(const RunWeights<Order>& weights, const Line& line, int causal_end,
                         int anticausal_first, int end, float (&causal)[Order], float (&anticausal)[Order]) {
  if (causal_end == kTile && anticausal_first == 0) {
#pragma unroll 1
    for (int first = 0; first < kTile; first += kStretch) {
      float pixels[kStretch];
      line.load(first, pixels);
      float of_causal[Order] = {};  // added up by themselves first: fewer roundings a sum
      float of_anticausal[Order] = {};
#pragma unroll
      for (int i = 0; i < kStretch; ++i) {
#pragma unroll
        for (int k = 0; k < Order; ++k) {
          of_causal[k] += weights.causal[first + i][k] * pixels[i];
          of_anticausal[k] += weights.anticausal[first + i][k] * pixels[i];
        }
      }
#pragma unroll
      for (int k = 0; k < Order; ++k) {
        causal[k] += of_causal[k];
        anticausal[k] += of_anticausal[k];
      }
    }
    return;
  }
#pragma unroll 1
  for (int i = 0; i < causal_end; ++i) {
    for (int k = 0; k < Order; ++k) causal[k] += weights.causal[i + kTile - causal_end][k] * line.at(i);
  }
#pragma unroll 1
  for (int i = anticausal_first; i < end; ++i) {
    for (int k = 0; k < Order; ++k) {
      anticausal[k] += weights.anticausal[i - anticausal_first][k] * line.at(i);
    }
  }
}

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

/// Runs over a column or row from nothing, both ways: the causal state goes to `line` of the carries, the
/// anticausal one behind it.
template <int Order, class Pixels>
__device__ void gather_line(const RunWeights<Order>& weights, const Pixels& pixels, int causal_end,
                            int anticausal_first, int end, const TileCarries& carries, int line,
                            int position) {
  float causal[Order] = {};
  float anticausal[Order] = {};
  run_over(weights, pixels, causal_end, anticausal_first, end, causal, anticausal);
  store_state(carries, line, position, causal);
  store_state(carries, line + Order, position, anticausal);
}

/// Filters a column or row for good; its carries begin at `line`.
template <int Order, class Real, class Pixels>
__device__ void finish_line(const TileAxis<Order, Real>& axis, Pixels& pixels, int length,
                            const TileCarries& carries, int line, int position) {
  Real before[Order];
  Real after[Order];
  load_state(carries, line, position, before);
  load_state(carries, line + Order, position, after);
  filter_held_line(axis, pixels, length, before, after);
}

/// First pass: the states that each tile's own pixels leave, as they are, in its columns and in its rows.
template <int Order>
__global__ void __launch_bounds__(kTile, gather_blocks(Order))
    gather_carries(const __grid_constant__ TileImages a, const __grid_constant__ RunWeights<Order> y,
                   const __grid_constant__ RunWeights<Order> x) {
  __shared__ alignas(16) TilePixels pixels;
  const Tile tile = tile_of(a, blockIdx.x);
  const TileCarries carries = a.carries.at(tile.at);
  const int position = static_cast<int>(threadIdx.x);
  begin_loading(a, tile, pixels);
  finish_loading();
  if (a.along_columns && position < tile.columns) {
    gather_line(y, TileColumn{{&pixels[0][position]}}, tile.causal_rows, tile.anticausal_row, tile.rows,
                carries, 0, position);
  }
  if (!a.along_rows || position >= tile.rows) return;
  const TileRow row{{&pixels[position][0]}};
  const std::int64_t border = border_index(a, tile.at, position);
  if (tile.at.column == 0) a.first_pixels[border] = row.at(0);
  if (tile.at.column == a.carries.tile_columns - 1) a.last_pixels[border] = row.at(tile.columns - 1);
  gather_line(x, row, tile.causal_columns, tile.anticausal_column, tile.columns, carries, 2 * Order,
              position);
}

/// Second pass, from the last tile to the first: what the first pass read last may still be in the cache.
template <int Order, class Real>
__global__ void __launch_bounds__(kTile, filter_blocks(Order, std::is_same_v<Real, float>))
    filter_tiles(const __grid_constant__ TileImages a, const __grid_constant__ TileAxis<Order, Real> y,
                 const __grid_constant__ TileAxis<Order, Real> x) {
  __shared__ alignas(16) TilePixels pixels;
  const Tile tile = tile_of(a, std::int64_t{gridDim.x} - 1 - blockIdx.x);
  const TileCarries carries = a.carries.at(tile.at);
  const int position = static_cast<int>(threadIdx.x);
  begin_loading(a, tile, pixels);
  finish_loading();
  if (a.along_columns && position < tile.columns) {
    TileColumn column{{&pixels[0][position]}};
    finish_line(y, column, tile.rows, carries, 0, position);
  }
  __syncthreads();
  if (a.along_rows && position < tile.rows) {
    TileRow row{{&pixels[position][0]}};
    finish_line(x, row, tile.columns, carries, 2 * Order, position);
  }
  __syncthreads();
  store_tile(a, tile, pixels);
}

}  // namespace cumulus::recursive_filter
