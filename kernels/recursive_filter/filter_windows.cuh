#pragma once

#include <cooperative_groups.h>

#include <cstdint>

#include "kernels/recursive_filter/line_stretches.cuh"
#include "kernels/recursive_filter/recursive_filter_window.h"

// The methods that complete no carries. Each tile publishes the states that it leaves by itself; a tile that
// needs to know what lies before and after it adds up those of its neighbours, as many of them as the filter
// remembers: its window. A window that holds the whole axis is exact.
//
// The rows' states are to be those of the image filtered along y. A tile publishes them of its pixels
// filtered along y as if nothing lay above and below. What does lie there adds to every column the filter's
// response to the column's carries, and so to the rows' states: the carries' own states along x (the tile's
// cross states, a few numbers) are summed over the window along y first, then over the window along x.

namespace cumulus::recursive_filter {

/// What windows need of one axis' plan.
template <int Order, class Real>
struct WindowAxis {
  TileAxis<Order, Real> line;
  StretchMoves<Order, Real> causal_stretches, anticausal_stretches;
  TileMoves<Order, float> moves;
  int tiles;
  int window;  // tiles on either side

  WindowAxis(const AxisPlan& plan, std::int64_t tiles_seen)
      : line(plan),
        causal_stretches(plan.causal),
        anticausal_stretches(plan.anticausal),
        moves(plan),
        tiles(static_cast<int>(moves.tiles)),
        window(static_cast<int>(tiles_seen)) {}
  __device__ bool sees_all() const { return window >= tiles - 1; }
};

/// Where tiles publish their states: StateLayout's blocks of floats.
struct StateMap {
  float* first;
  StateSlots slots;
  std::int64_t tile_columns;
  std::int64_t channels;
  std::int64_t tile_floats;

  __device__ float* at(std::int64_t image, std::int64_t row, std::int64_t column,
                       std::int64_t channel) const {
    const std::int64_t slot = image * slots.count() + slots.of(row);
    return first + ((slot * tile_columns + column) * channels + channel) * tile_floats;
  }
  __device__ float* at(const TileIndex& tile) const {
    return at(tile.image, tile.row, tile.column, tile.channel);
  }
};

template <int Order, class Real>
struct WindowFilter {
  TileImages a;
  StateMap states;
  float* responses;  // of a whole tile, then of one in the last row
  WindowAxis<Order, Real> y, x;
  TileResponses<Order> whole_responses, last_responses;

  __device__ const float* responses_of(const TileIndex& tile) const {
    return responses + (tile.row == y.tiles - 1 ? 2 * Order * kTile : 0);
  }
};

/// A block's shared memory: the tile, and behind it what the block has to say or to know of carries.
struct WindowMemory {
  TilePixels pixels;
  float more[1];
};
extern __shared__ float4 window_memory[];
__device__ inline WindowMemory& shared_window() { return *reinterpret_cast<WindowMemory*>(window_memory); }

/// Sums the states of `count` tiles from `first` on, towards the tile that wants them, into `state`. The
/// states of kWindowBatch tiles are on their way at once.
template <int Order, class Load, class MatrixOver>
__device__ void sum_states(int first, int count, int step, const Load& load, const MatrixOver& over,
                           float (&state)[Order]) {
#pragma unroll 1
  for (int i = 0; i < count; i += kWindowBatch) {
    float own[kWindowBatch][Order];
#pragma unroll
    for (int k = 0; k < kWindowBatch; ++k) load(first + step * min(i + k, count - 1), own[k]);
#pragma unroll
    for (int k = 0; k < kWindowBatch; ++k) {
      if (i + k < count) move_over(over(first + step * (i + k)), own[k], state);
    }
  }
}

/// The states before and after a tile. A Source knows what tiles have published:
///   causal(tile, state), anticausal(tile, state)   what their runs from nothing left
///   first_pixel(), last_pixel()                     of the whole line
template <int Order, class Real, class Source>
__device__ void find_carries(const WindowAxis<Order, Real>& axis, std::int64_t tile_index,
                             const Source& source, float (&before)[Order], float (&after)[Order]) {
  const TileMoves<Order, float>& moves = axis.moves;
  const int tile = static_cast<int>(tile_index);
  const int last_tile = axis.tiles - 1;
  const int first = max(tile - axis.window, 0);
  const int last = min(tile + axis.window, last_tile);
  const auto causal = [&](int other, float(&state)[Order]) { source.causal(other, state); };
  const auto anticausal = [&](int other, float(&state)[Order]) { source.anticausal(other, state); };
#pragma unroll
  for (int k = 0; k < Order; ++k) before[k] = after[k] = 0;
  if (first == 0 || last == last_tile) {
    float forward[Order] = {};
    float backward[Order] = {};
    if (moves.needs_runs) {
      const int seen = min(axis.window + 1, axis.tiles);
      sum_states<Order>(
          axis.tiles - seen, seen, 1, causal,
          [&](int other) -> const auto& { return other == last_tile ? moves.forward_last : moves.forward; },
          forward);
      sum_states<Order>(
          seen - 1, seen, -1, anticausal,
          [&](int other) -> const auto& { return other == 0 ? moves.backward_first : moves.backward; },
          backward);
    }
    if (first == 0) {
      const float pixel = source.first_pixel();
#pragma unroll
      for (int k = 0; k < Order; ++k) before[k] = moves.start_from_first_pixel[k] * pixel;
      moves.start_from_forward.add_product(forward, before);
      moves.start_from_backward.add_product(backward, before);
    }
    if (last == last_tile) {
      const float pixel = source.last_pixel();
#pragma unroll
      for (int k = 0; k < Order; ++k) after[k] = moves.end_from_last_pixel[k] * pixel;
      moves.end_from_forward.add_product(forward, after);
      moves.end_from_backward.add_product(backward, after);
    }
  }
  sum_states<Order>(
      first, tile - first, 1, causal, [&](int) -> const auto& { return moves.forward; }, before);
  sum_states<Order>(
      last, last - tile, -1, anticausal,
      [&](int other) -> const auto& { return other == last_tile ? moves.backward_last : moves.backward; },
      after);
}

template <int Order>
__device__ void load_lines(const float* lines, std::int64_t stride, float (&state)[Order]) {
#pragma unroll
  for (int k = 0; k < Order; ++k) state[k] = lines[k * stride];
}

/// A column of pixels.
template <int Order>
struct ColumnSource {
  const TileImages& a;
  const StateMap& states;
  const TileIndex& tile;
  int position;

  __device__ const float* of(int row) const {
    return states.at(tile.image, row, tile.column, tile.channel) + position;
  }
  __device__ void causal(int row, float (&state)[Order]) const { load_lines(of(row), kTile, state); }
  __device__ void anticausal(int row, float (&state)[Order]) const {
    load_lines(of(row) + Order * kTile, kTile, state);
  }
  __device__ float first_pixel() const { return pixel(0); }
  __device__ float last_pixel() const { return pixel(a.height - 1); }

 private:
  __device__ float pixel(std::int64_t row) const {
    return a.images.load<float>(tile.image * a.image_stride + row * a.row_stride +
                                (tile.column * kTile + position) * a.carries.channels + tile.channel);
  }
};

/// A row of pixels, filtered along y as if nothing lay above and below its tiles.
template <int Order>
struct RowSource {
  const StateMap& states;
  const TileIndex& tile;
  int position;

  __device__ const float* of(std::int64_t column, int line) const {
    return states.at(tile.image, tile.row, column, tile.channel) + line * kTile + position;
  }
  __device__ void causal(int column, float (&state)[Order]) const {
    load_lines(of(column, StateLayout<Order>::kRows), kTile, state);
  }
  __device__ void anticausal(int column, float (&state)[Order]) const {
    load_lines(of(column, StateLayout<Order>::kRows + Order), kTile, state);
  }
  __device__ float first_pixel() const { return *of(0, StateLayout<Order>::kBorder); }
  __device__ float last_pixel() const {
    return *of(states.tile_columns - 1, StateLayout<Order>::kBorder + 1);
  }
};

/// The states along x of a column of tiles' own carries along y; `functional` says which.
template <int Order>
struct CrossSource {
  static constexpr int kFunctionals = StateLayout<Order>::kFunctionals;
  const StateMap& states;
  const TileIndex& tile;
  int last_row;
  int column;
  int functional;

  __device__ const float* of(int row, int line) const {
    return states.at(tile.image, row, column, tile.channel) + StateLayout<Order>::kCross +
           line * kFunctionals + functional;
  }
  __device__ void causal(int row, float (&state)[Order]) const {
    load_lines(of(row, 0), kFunctionals, state);
  }
  __device__ void anticausal(int row, float (&state)[Order]) const {
    load_lines(of(row, Order), kFunctionals, state);
  }
  __device__ float first_pixel() const { return *of(0, 2 * Order); }
  __device__ float last_pixel() const { return *of(last_row, 2 * Order + 1); }
};

/// The columns of tiles whose cross states a block sums along y: those of its window and, where the boundary
/// asks for runs over the image, the first and the last that such a run sees.
struct CrossSlots {
  int tiles, window, column;
  bool sees_all, needs_runs;

  __host__ __device__ int count() const {
    return sees_all ? tiles : 2 * window + 1 + (needs_runs ? 2 * (window + 1) : 0);
  }
  /// Not always a tile of the image.
  __device__ int column_of(int slot) const {
    if (sees_all) return slot;
    if (slot <= 2 * window) return column - window + slot;
    const int beyond = slot - (2 * window + 1);
    return beyond <= window ? beyond : tiles - 2 * (window + 1) + beyond;
  }
  __device__ int slot_of(int other) const {
    if (sees_all) return other;
    if (other >= column - window && other <= column + window) return other - column + window;
    return 2 * window + 1 + (other <= window ? other : other - tiles + 2 * (window + 1));
  }
};

/// The k-th carry along y of a row of tiles, which is a row of pixels like any other.
template <int Order>
struct CarrySource {
  static constexpr int kFunctionals = StateLayout<Order>::kFunctionals;
  const CrossSlots& slots;
  const float* sums;  // [slot][2 * Order][kFunctionals]
  int k;

  __device__ const float* of(int column) const {
    return sums + (slots.slot_of(column) * 2 * Order + k) * kFunctionals;
  }
  __device__ void causal(int column, float (&state)[Order]) const { load_lines(of(column), 1, state); }
  __device__ void anticausal(int column, float (&state)[Order]) const {
    load_lines(of(column) + Order, 1, state);
  }
  __device__ float first_pixel() const { return of(0)[2 * Order]; }
  __device__ float last_pixel() const { return of(slots.tiles - 1)[2 * Order + 1]; }
};

/// What the tile's carries along y, and its neighbours', add to the rows' states before and after it:
/// [carry along y][causal, anticausal] to be weighed by the row's responses. Threads are together afterwards.
template <int Order, class Real>
__device__ const float* find_cross_carries(const WindowFilter<Order, Real>& f, const Tile& tile,
                                           float* memory) {
  constexpr int kFunctionals = StateLayout<Order>::kFunctionals;
  const int thread = static_cast<int>(threadIdx.x);
  const CrossSlots slots{f.x.tiles, f.x.window, static_cast<int>(tile.at.column), f.x.sees_all(),
                         f.x.moves.needs_runs};
  float* sums = memory;
  float* cross = memory + slots.count() * 2 * Order * kFunctionals;
  for (int task = thread; task < slots.count() * kFunctionals; task += kTile) {
    const int slot = task / kFunctionals;
    const int column = slots.column_of(slot);
    if (column < 0 || column >= f.x.tiles) continue;
    float before[Order];
    float after[Order];
    find_carries(f.y, tile.at.row,
                 CrossSource<Order>{f.states, tile.at, f.y.tiles - 1, column, task % kFunctionals}, before,
                 after);
    float* sum = sums + slot * 2 * Order * kFunctionals + task % kFunctionals;
    for (int k = 0; k < Order; ++k) {
      sum[k * kFunctionals] = before[k];
      sum[(Order + k) * kFunctionals] = after[k];
    }
  }
  __syncthreads();
  if (thread < 2 * Order) {
    float before[Order];
    float after[Order];
    find_carries(f.x, tile.at.column, CarrySource<Order>{slots, sums, thread}, before, after);
    for (int k = 0; k < Order; ++k) {
      cross[thread * 2 * Order + k] = before[k];
      cross[thread * 2 * Order + Order + k] = after[k];
    }
  }
  __syncthreads();
  return cross;
}

/// The states before and after the tile's row `position`.
template <int Order, class Real>
__device__ void find_row_carries(const WindowFilter<Order, Real>& f, const Tile& tile, int position,
                                 const float* cross, float (&before)[Order], float (&after)[Order]) {
  find_carries(f.x, tile.at.column, RowSource<Order>{f.states, tile.at, position}, before, after);
  if (!f.a.along_columns) return;
  const float* responses = f.responses_of(tile.at) + position;
#pragma unroll
  for (int k = 0; k < 2 * Order; ++k) {
    const float response = responses[k * kTile];
#pragma unroll
    for (int m = 0; m < Order; ++m) {
      before[m] += response * cross[k * 2 * Order + m];
      after[m] += response * cross[k * 2 * Order + Order + m];
    }
  }
}

/// Filters the line's first `length` pixels in place, given what lies before and after them. Returns the
/// causal state of the last pixel in `last`.
template <int Order, class Real, class Pixels>
__device__ void filter_between(const TileAxis<Order, Real>& axis, Pixels& line, int length,
                               const float (&before)[Order], const float (&after)[Order],
                               float (&last)[Order]) {
  Real causal[Order];
  Real anticausal[Order];
#pragma unroll
  for (int k = 0; k < Order; ++k) {
    causal[k] = static_cast<Real>(before[k]);
    anticausal[k] = static_cast<Real>(after[k]);
  }
  filter_held_line(axis, line, length, causal, anticausal);
#pragma unroll
  for (int k = 0; k < Order; ++k) last[k] = static_cast<float>(causal[k]);
}
template <int Order, class Real, class Pixels>
__device__ void filter_between(const TileAxis<Order, Real>& axis, Pixels& line, int length,
                               const float (&before)[Order], const float (&after)[Order]) {
  float last[Order];
  filter_between(axis, line, length, before, after, last);
}

template <int Order, class Real>
__device__ void store_states(float* states, int stride, const Real (&causal)[Order],
                             const Real (&anticausal)[Order]) {
#pragma unroll
  for (int k = 0; k < Order; ++k) {
    states[k * stride] = static_cast<float>(causal[k]);
    states[(Order + k) * stride] = static_cast<float>(anticausal[k]);
  }
}

/// Publishes the cross states of a tile: the states along x of `rows`, its columns' states and its first and
/// last row of pixels. A few threads share a row, each with a stretch of it, and add up.
template <int Order, class Real>
__device__ void publish_cross_states(const WindowAxis<Order, Real>& x, const Tile& tile, float* rows,
                                     float* cross) {
  constexpr int kFunctionals = StateLayout<Order>::kFunctionals;
  const int line = static_cast<int>(threadIdx.x) / kStretches;
  const int part = static_cast<int>(threadIdx.x) % kStretches;
  if (static_cast<int>(threadIdx.x) / 32 * 32 >= kFunctionals * kStretches) return;  // a whole warp
  TileRow row{{rows + min(line, kFunctionals - 1) * kTilePitch}};
  Real causal[Order] = {};
  Real anticausal[Order] = {};
  if (tile.causal_columns < kTile || tile.anticausal_column > 0) {
    if (part == 0) {
      run_both_ways(x.line, row, tile.causal_columns, tile.anticausal_column, tile.columns, causal,
                    anticausal);
    }
  } else {
    float pixels[kStretch];
    row.load(part * kStretch, pixels);
    Real forward[Order] = {};
    Real backward[Order] = {};
#pragma unroll
    for (int k = 0; k < kStretch; ++k) {
      x.line.causal.advance(forward, static_cast<Real>(pixels[k]));
      x.line.anticausal.advance(backward, static_cast<Real>(pixels[kStretch - 1 - k]));
    }
    x.causal_stretches.of[kStretches - 1 - part].add_product(forward, causal);
    x.anticausal_stretches.of[part].add_product(backward, anticausal);
#pragma unroll
    for (int distance = 1; distance < kStretches; distance *= 2) {
#pragma unroll
      for (int k = 0; k < Order; ++k) {
        causal[k] += __shfl_xor_sync(~0u, causal[k], distance);
        anticausal[k] += __shfl_xor_sync(~0u, anticausal[k], distance);
      }
    }
  }
  if (part > 0 || line >= kFunctionals) return;
  cross += line * kFunctionals;
  store_states(cross, 1, causal, anticausal);
  cross[2 * Order] = row.at(0);
  cross[2 * Order + 1] = row.at(tile.columns - 1);
}

/// First pass: publishes the tile's states. Leaves the tile filtered along y as if nothing lay around it.
template <int Order, class Real>
__device__ void publish_states(const WindowFilter<Order, Real>& f, const Tile& tile, TilePixels& pixels,
                               float* more) {
  using Layout = StateLayout<Order>;
  const TileImages& a = f.a;
  const int thread = static_cast<int>(threadIdx.x);
  float* states = f.states.at(tile.at);
  begin_loading(a, tile, pixels);
  if (blockIdx.x == 0) {
    for (int i = thread; i < 2 * Order * kTile; i += kTile) {
      f.responses[i] = f.whole_responses.of[i / kTile][i % kTile];
      f.responses[2 * Order * kTile + i] = f.last_responses.of[i / kTile][i % kTile];
    }
  }
  finish_loading();
  if (a.along_columns && thread < tile.columns) {
    TileColumn column{{&pixels[0][thread]}};
    // As rows of pixels: the columns' states, then the first and the last row as they were.
    more[2 * Order * kTilePitch + thread] = column.at(0);
    more[(2 * Order + 1) * kTilePitch + thread] = column.at(tile.rows - 1);
    Real causal[Order] = {};
    Real anticausal[Order] = {};
    if (tile.causal_rows == kTile && tile.anticausal_row == 0) {
      filter_alone(f.y.line, f.y.anticausal_stretches, column, causal, anticausal);
    } else {
      run_both_ways(f.y.line, column, tile.causal_rows, tile.anticausal_row, tile.rows, causal, anticausal);
      const float nothing[Order] = {};
      filter_between(f.y.line, column, tile.rows, nothing, nothing);
    }
    store_states(states + thread, kTile, causal, anticausal);
    store_states(more + thread, kTilePitch, causal, anticausal);
  }
  __syncthreads();
  if (!a.along_rows) return;
  if (thread < tile.rows) {
    const TileRow row{{&pixels[thread][0]}};
    Real causal[Order] = {};
    Real anticausal[Order] = {};
    run_both_ways(f.x.line, row, tile.causal_columns, tile.anticausal_column, tile.columns, causal,
                  anticausal);
    store_states(states + Layout::kRows * kTile + thread, kTile, causal, anticausal);
    if (tile.at.column == 0) states[Layout::kBorder * kTile + thread] = row.at(0);
    if (tile.at.column == f.x.tiles - 1) {
      states[(Layout::kBorder + 1) * kTile + thread] = row.at(tile.columns - 1);
    }
  }
  if (a.along_columns) publish_cross_states(f.x, tile, more, states + Layout::kCross);
}

/// Filters the tile's rows in shared memory.
template <int Order, class Real>
__device__ void filter_rows(const WindowFilter<Order, Real>& f, const Tile& tile, TilePixels& pixels,
                            const float* cross) {
  const int position = static_cast<int>(threadIdx.x);
  if (!f.a.along_rows || position >= tile.rows) return;
  float before[Order];
  float after[Order];
  find_row_carries(f, tile, position, cross, before, after);
  TileRow row{{&pixels[position][0]}};
  filter_between(f.x.line, row, tile.columns, before, after);
}

/// Second pass.
template <int Order, class Real>
__device__ void filter_tile(const WindowFilter<Order, Real>& f, const Tile& tile, TilePixels& pixels,
                            float* more) {
  const TileImages& a = f.a;
  const int position = static_cast<int>(threadIdx.x);
  begin_loading(a, tile, pixels);
  const float* cross = nullptr;
  if (a.along_columns && a.along_rows) cross = find_cross_carries(f, tile, more);
  float before[Order];
  float after[Order];
  const bool filters_column = a.along_columns && position < tile.columns;
  if (filters_column) {
    find_carries(f.y, tile.at.row, ColumnSource<Order>{a, f.states, tile.at, position}, before, after);
  }
  finish_loading();
  if (filters_column) {
    TileColumn column{{&pixels[0][position]}};
    filter_between(f.y.line, column, tile.rows, before, after);
  }
  __syncthreads();
  filter_rows(f, tile, pixels, cross);
  __syncthreads();
  store_tile(a, tile, pixels);
}

/// Neighbouring tiles.
struct TileRange {
  std::int64_t first, count;
};

/// Passes over two ranges of tiles at once, taking turns: the first pass over one, the second over another,
/// for whose windows all has been published before.
template <int Order, class Real>
__global__ void __launch_bounds__(kTile, window_blocks<Real>(Order))
    filter_windows(const __grid_constant__ WindowFilter<Order, Real> f, TileRange to_publish,
                   TileRange to_filter) {
  WindowMemory& memory = shared_window();
  const std::int64_t block = blockIdx.x;
  const std::int64_t both = 2 * min(to_publish.count, to_filter.count);
  const bool publishes = block < both ? block % 2 == 0 : to_publish.count > to_filter.count;
  const std::int64_t index = block < both ? block / 2 : block - both / 2;
  const Tile tile = tile_of(f.a, (publishes ? to_publish.first : to_filter.first) + index);
  if (publishes) {
    publish_states(f, tile, memory.pixels, memory.more);
  } else {
    filter_tile(f, tile, memory.pixels, memory.more);
  }
}

/// Adds the responses to what lies above and below to a tile that was filtered along y alone.
template <int Order, class Real>
__device__ void respond_to_carries(const WindowFilter<Order, Real>& f, const Tile& tile, TilePixels& pixels) {
  const int position = static_cast<int>(threadIdx.x);
  float before[Order];
  float after[Order];
  find_carries(f.y, tile.at.row, ColumnSource<Order>{f.a, f.states, tile.at, position}, before, after);
  const TileResponses<Order>& responses = tile.at.row == f.y.tiles - 1 ? f.last_responses : f.whole_responses;
#pragma unroll 8
  for (int y = 0; y < kTile; ++y) {
    float sum = 0;
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      sum += responses.of[k][y] * before[k] + responses.of[Order + k][y] * after[k];
    }
    pixels[y][position] += sum;
  }
}

/// Both passes, with a block for every tile on the device at the same time: the tile stays in shared memory
/// while the grid waits for all states to be published.
template <int Order, class Real>
__global__ void __launch_bounds__(kTile, window_blocks<Real>(Order))
    filter_on_chip(const __grid_constant__ WindowFilter<Order, Real> f) {
  WindowMemory& memory = shared_window();
  const TileImages& a = f.a;
  const int thread = static_cast<int>(threadIdx.x);
  const Tile tile = tile_of(a, blockIdx.x);
  publish_states(f, tile, memory.pixels, memory.more);
  cooperative_groups::this_grid().sync();
  const float* cross = nullptr;
  if (a.along_columns && a.along_rows) cross = find_cross_carries(f, tile, memory.more);
  if (a.along_columns && thread < tile.columns) respond_to_carries(f, tile, memory.pixels);
  __syncthreads();
  filter_rows(f, tile, memory.pixels, cross);
  __syncthreads();
  store_tile(a, tile, memory.pixels);
}

}  // namespace cumulus::recursive_filter
