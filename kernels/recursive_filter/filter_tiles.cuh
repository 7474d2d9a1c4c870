#pragma once

#include <cstdint>

#include "kernels/recursive_filter/recursive_filter_line.h"
#include "kernels/recursive_filter/tile_carries.cuh"

// The tiled method's passes over the image. A block has a tile and kTile threads: each filters one column,
// held in registers, then, turned around through shared memory, one row. Tiles that the image's border cuts,
// or that leave pixels out of their runs, work in shared memory instead.

namespace cumulus::recursive_filter {

/// What tiles need of one axis' plan.
template <int Order, class Real>
struct TileAxis {
  Sections<Order, Real> causal, anticausal;
  SmallMatrix<Order, Real> through_causal, through_future;
  int left_out;  // pixels at the end of a run over the image

  explicit TileAxis(const AxisPlan& plan)
      : causal(sections_of<Order, Real>(plan.causal)),
        anticausal(sections_of<Order, Real>(plan.anticausal)),
        through_causal(small_matrix<Order, Real>(plan.through_causal)),
        through_future(small_matrix<Order, Real>(plan.through_future)),
        left_out(static_cast<int>(plan.pixels_left_out())) {}
};

template <int Order, class Real>
struct TileArguments {
  const float* image;
  std::int64_t row_stride;
  std::int64_t height;
  CarryMap carries;     // and the output
  float* first_pixels;  // of each row, filtered along y
  float* last_pixels;
  TileAxis<Order, Real> y, x;
};

/// One tile, and which of its pixels take part in runs.
struct Tile {
  std::int64_t row, column, channel;
  int rows, columns;                      // inside the image
  int causal_rows, causal_columns;        // runs from the first end before these
  int anticausal_row, anticausal_column;  // runs from the last end with these

  __device__ bool plain() const {
    return causal_rows == kTile && causal_columns == kTile && anticausal_row == 0 && anticausal_column == 0;
  }
};

template <int Order, class Real>
__device__ Tile tile_of(const TileArguments<Order, Real>& a, std::int64_t index) {
  Tile tile;
  tile.channel = index % a.carries.channels;
  tile.column = index / a.carries.channels % a.carries.tile_columns;
  tile.row = index / a.carries.channels / a.carries.tile_columns;
  tile.rows = static_cast<int>(min(a.height - tile.row * kTile, std::int64_t{kTile}));
  tile.columns = static_cast<int>(min(a.carries.width - tile.column * kTile, std::int64_t{kTile}));
  tile.causal_rows = tile.rows - (tile.row == a.carries.tile_rows - 1 ? a.y.left_out : 0);
  tile.causal_columns = tile.columns - (tile.column == a.carries.tile_columns - 1 ? a.x.left_out : 0);
  tile.anticausal_row = tile.row == 0 ? a.y.left_out : 0;
  tile.anticausal_column = tile.column == 0 ? a.x.left_out : 0;
  return tile;
}

using TilePixels = float[kTile][kTile + 1];  // no two rows begin in the same bank

/// A whole column or row in registers; every loop over it has constant bounds and is unrolled.
struct HeldPixels {
  float v[kTile];
  __device__ float& operator[](int i) { return v[i]; }
  template <class F>
  __device__ void ascending(int /*first*/, int /*end*/, const F& f) {
#pragma unroll
    for (int i = 0; i < kTile; ++i) f(v[i]);
  }
  template <class F>
  __device__ void descending(int /*first*/, int /*end*/, const F& f) {
#pragma unroll
    for (int i = kTile - 1; i >= 0; --i) f(v[i]);
  }
};

/// A column or row of a tile in shared memory.
struct SharedPixels {
  float* pixels;
  int step;
  template <class F>
  __device__ void ascending(int first, int end, const F& f) {
#pragma unroll 1
    for (int i = first; i < end; ++i) f(pixels[i * step]);
  }
  template <class F>
  __device__ void descending(int first, int end, const F& f) {
#pragma unroll 1
    for (int i = end - 1; i >= first; --i) f(pixels[i * step]);
  }
};

template <int Order, class Real, class Pixels>
__device__ void run_causal(const TileAxis<Order, Real>& axis, Pixels& line, int end, Real (&state)[Order]) {
  line.ascending(0, end, [&](float& pixel) { axis.causal.advance(state, static_cast<Real>(pixel)); });
}

template <int Order, class Real, class Pixels>
__device__ void run_anticausal(const TileAxis<Order, Real>& axis, Pixels& line, int first, int end,
                               Real (&state)[Order]) {
  line.descending(first, end,
                  [&](float& pixel) { axis.anticausal.advance(state, static_cast<Real>(pixel)); });
}

/// Filters the line's first `length` pixels in place, given the causal state before them and the anticausal
/// state over the image after them. `causal` becomes the causal state of the last pixel.
template <int Order, class Real, class Pixels>
__device__ void filter_held_line(const TileAxis<Order, Real>& axis, Pixels& line, int length,
                                 Real (&causal)[Order], const Real (&after)[Order]) {
  line.ascending(0, length, [&](float& pixel) {
    axis.causal.advance(causal, static_cast<Real>(pixel));
    pixel = static_cast<float>(causal[Order - 1]);
  });
  Real anticausal[Order] = {};
  axis.through_causal.add_product(causal, anticausal);
  axis.through_future.add_product(after, anticausal);
  line.descending(0, length, [&](float& pixel) {
    axis.anticausal.advance(anticausal, static_cast<Real>(pixel));
    pixel = static_cast<float>(anticausal[Order - 1]);
  });
}

template <int Order, class Real>
__device__ void store_state(const TileCarries& carries, int line, int position, const Real (&state)[Order]) {
#pragma unroll
  for (int k = 0; k < Order; ++k) carries.at(line + k, position) = static_cast<float>(state[k]);
}

template <int Order, class Real>
__device__ void load_state(const TileCarries& carries, int line, int position, Real (&state)[Order]) {
#pragma unroll
  for (int k = 0; k < Order; ++k) state[k] = static_cast<Real>(carries.at(line + k, position));
}

/// Runs over a column from nothing, both ways, and filters it as if nothing lay around the tile.
template <int Order, class Real, class Pixels>
__device__ void gather_column(const TileAxis<Order, Real>& axis, Pixels& column, const Tile& tile,
                              const TileCarries& carries, int x) {
  Real anticausal[Order] = {};
  run_anticausal(axis, column, tile.anticausal_row, tile.rows, anticausal);
  store_state(carries, Order, x, anticausal);
  Real causal[Order] = {};
  if (tile.causal_rows != tile.rows) {
    run_causal(axis, column, tile.causal_rows, causal);
    store_state(carries, 0, x, causal);
  }
  Real before[Order] = {};
  const Real after[Order] = {};
  filter_held_line(axis, column, tile.rows, before, after);
  if (tile.causal_rows == tile.rows) store_state(carries, 0, x, before);
}

template <int Order, class Real, class Pixels>
__device__ void gather_row(const TileAxis<Order, Real>& axis, Pixels& row, const Tile& tile,
                           const TileCarries& carries, int y) {
  Real causal[Order] = {};
  Real anticausal[Order] = {};
  run_causal(axis, row, tile.causal_columns, causal);
  run_anticausal(axis, row, tile.anticausal_column, tile.columns, anticausal);
  store_state(carries, 2 * Order, y, causal);
  store_state(carries, 3 * Order, y, anticausal);
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

/// Brings the tile in, calls on_column(column, x) for the thread's column and on_row(row, y) for its row. If
/// `Keep`, what they make of the tile is then in `pixels`.
template <bool Keep, int Order, class Real, class OnColumn, class OnRow>
__device__ void pass_over_tile(const TileArguments<Order, Real>& a, const Tile& tile, TilePixels& pixels,
                               const OnColumn& on_column, const OnRow& on_row) {
  const int thread = static_cast<int>(threadIdx.x);
  const float* column_of_image = a.image + tile.row * kTile * a.row_stride +
                                 (tile.column * kTile + thread) * a.carries.channels + tile.channel;
  if (tile.plain()) {
    HeldPixels line;
#pragma unroll
    for (int i = 0; i < kTile; ++i) line[i] = __ldg(column_of_image + i * a.row_stride);
    on_column(line, thread);
#pragma unroll
    for (int i = 0; i < kTile; ++i) pixels[i][thread] = line[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) line[i] = pixels[thread][i];
    on_row(line, thread);
    if constexpr (Keep) {
#pragma unroll
      for (int i = 0; i < kTile; ++i) pixels[thread][i] = line[i];
    }
    return;
  }
  if (thread < tile.columns) {
    for (int i = 0; i < tile.rows; ++i) pixels[i][thread] = __ldg(column_of_image + i * a.row_stride);
    SharedPixels column{&pixels[0][thread], kTile + 1};
    on_column(column, thread);
  }
  __syncthreads();
  if (thread < tile.rows) {
    SharedPixels row{&pixels[thread][0], 1};
    on_row(row, thread);
  }
}

/// First pass: each tile's own states.
template <int Order, class Real>
__global__ void __launch_bounds__(kTile)
    gather_carries(const __grid_constant__ TileArguments<Order, Real> a) {
  __shared__ TilePixels pixels;
  const Tile tile = tile_of(a, blockIdx.x);
  const TileCarries carries = a.carries.at(tile.row, tile.column, tile.channel);
  pass_over_tile<false>(
      a, tile, pixels, [&](auto& column, int x) { gather_column(a.y, column, tile, carries, x); },
      [&](auto& row, int y) {
        const std::int64_t line = (tile.row * kTile + y) * a.carries.channels + tile.channel;
        if (tile.column == 0) a.first_pixels[line] = pixels[y][0];
        if (tile.column == a.carries.tile_columns - 1) a.last_pixels[line] = pixels[y][tile.columns - 1];
        gather_row(a.x, row, tile, carries, y);
      });
}

/// Second pass, from the last tile to the first: what the first pass read last may still be in the cache.
template <int Order, class Real>
__global__ void __launch_bounds__(kTile) filter_tiles(const __grid_constant__ TileArguments<Order, Real> a) {
  __shared__ TilePixels pixels;
  const Tile tile = tile_of(a, std::int64_t{gridDim.x} - 1 - blockIdx.x);
  const TileCarries carries = a.carries.at(tile.row, tile.column, tile.channel);
  pass_over_tile<true>(
      a, tile, pixels, [&](auto& column, int x) { finish_line(a.y, column, tile.rows, carries, 0, x); },
      [&](auto& row, int y) { finish_line(a.x, row, tile.columns, carries, 2 * Order, y); });
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.x);
  if (thread >= tile.columns) return;
  float* column_of_output = a.carries.filtered + tile.row * kTile * a.carries.width * a.carries.channels +
                            (tile.column * kTile + thread) * a.carries.channels + tile.channel;
#pragma unroll 8
  for (int i = 0; i < tile.rows; ++i) {
    __stcs(column_of_output + i * a.carries.width * a.carries.channels, pixels[i][thread]);
  }
}

/// What a column's carries do to its pixels inside a tile: pixel y of it, filtered from nothing, lacks
/// before[y] . (state before) + after[rows - y] . (state after).
template <int Order>
struct ColumnResponse {
  float before[kTile][Order];
  float after[kTile + 1][Order];

  explicit ColumnResponse(const AxisPlan& plan) {
    StateMatrix from_before = plan.through_causal;
    StateMatrix from_after = plan.through_future;
    for (std::size_t distance = 0; distance <= kTile; ++distance) {
      for (int k = 0; k < Order; ++k) {
        const auto column = static_cast<std::size_t>(k);
        if (distance < kTile) before[distance][column] = static_cast<float>(from_before.at(Order - 1, k));
        after[distance][column] = static_cast<float>(from_after.at(Order - 1, k));
      }
      from_before = from_before * plan.causal.transition;
      from_after = from_after * plan.anticausal.transition;
    }
  }
};

/// Between completing the columns' carries and the rows': a row's own states were found before its tile's
/// columns were complete. The filters commute, so what is lacking is the columns' carries, run over along x,
/// times the column response.
template <int Order, class Real>
__global__ void __launch_bounds__(kTile)
    correct_row_states(const __grid_constant__ TileArguments<Order, Real> a,
                       const __grid_constant__ ColumnResponse<Order> response) {
  __shared__ float columns[2 * Order][kTile];
  __shared__ float runs[2][2 * Order][Order];  // causal and anticausal, of each line of column carries
  const Tile tile = tile_of(a, blockIdx.x);
  const TileCarries carries = a.carries.at(tile.row, tile.column, tile.channel);
  const int thread = static_cast<int>(threadIdx.x);
  for (int k = 0; k < 2 * Order; ++k)
    columns[k][thread] = thread < tile.columns ? carries.at(k, thread) : 0.0f;
  __syncthreads();
  if (thread < 4 * Order) {
    const int k = thread % (2 * Order);
    SharedPixels line{columns[k], 1};
    Real state[Order] = {};
    if (thread < 2 * Order) {
      run_causal(a.x, line, tile.causal_columns, state);
    } else {
      run_anticausal(a.x, line, tile.anticausal_column, tile.columns, state);
    }
    for (int i = 0; i < Order; ++i) runs[thread / (2 * Order)][k][i] = static_cast<float>(state[i]);
  }
  __syncthreads();
  if (thread >= tile.rows) return;

  float weights[2 * Order];
  for (int k = 0; k < Order; ++k) {
    weights[k] = response.before[thread][k];
    weights[Order + k] = response.after[tile.rows - thread][k];
  }
  const auto add_lacking = [&](const auto& value_of, float& to) {
    Real sum = static_cast<Real>(to);
    for (int k = 0; k < 2 * Order; ++k) sum += static_cast<Real>(weights[k]) * static_cast<Real>(value_of(k));
    to = static_cast<float>(sum);
  };
  for (int direction = 0; direction < 2; ++direction) {
    for (int i = 0; i < Order; ++i) {
      add_lacking([&](int k) { return runs[direction][k][i]; },
                  carries.at((2 + direction) * Order + i, thread));
    }
  }
  const std::int64_t row = (tile.row * kTile + thread) * a.carries.channels + tile.channel;
  if (tile.column == 0) add_lacking([&](int k) { return columns[k][0]; }, a.first_pixels[row]);
  if (tile.column == a.carries.tile_columns - 1) {
    add_lacking([&](int k) { return columns[k][tile.columns - 1]; }, a.last_pixels[row]);
  }
}

}  // namespace cumulus::recursive_filter
