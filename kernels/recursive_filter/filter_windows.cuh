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

/// A walk over `count` tiles from `first` on, towards the tile that wants their states summed.
template <int Order>
struct StateWalk {
  int first;
  int count;
  int step;
  float own[kWindowBatch][Order];  // on their way at once

  template <class Load>
  __device__ void load(int begin, const Load& load_state) {
    if (count == 0) return;
#pragma unroll
    for (int k = 0; k < kWindowBatch; ++k) load_state(first + step * min(begin + k, count - 1), own[k]);
  }
  /// Once the first batch is loaded.
  template <class Load, class MatrixOver>
  __device__ void sum(const Load& load_state, const MatrixOver& over, float (&state)[Order]) {
#pragma unroll 1
    for (int i = 0; i < count; i += kWindowBatch) {
      if (i > 0) load(i, load_state);
#pragma unroll
      for (int k = 0; k < kWindowBatch; ++k) {
        if (i + k < count) move_over(over(first + step * (i + k)), own[k], state);
      }
    }
  }
};

/// The states before and after a tile, from those that other tiles have published. A Source knows these:
///   causal(tile, state), anticausal(tile, state)   what their runs from nothing left
///   first_pixel(), last_pixel()                     of the whole line
/// They begin to be loaded at once; `finish` waits for them.
template <int Order, class Real, class Source>
class WindowCarries {
 public:
  __device__ WindowCarries(const WindowAxis<Order, Real>& axis, std::int64_t tile, const Source& source)
      : axis_(axis), source_(source), last_tile_(axis.tiles - 1) {
    const int here = static_cast<int>(tile);
    const int first = max(here - axis.window, 0);
    const int last = min(here + axis.window, last_tile_);
    before_ = {first, here - first, 1, {}};
    after_ = {last, last - here, -1, {}};
    before_.load(0, causal());
    after_.load(0, anticausal());
  }

  __device__ void finish(float (&before)[Order], float (&after)[Order]) {
    const TileMoves<Order, float>& moves = axis_.moves;
#pragma unroll
    for (int k = 0; k < Order; ++k) before[k] = after[k] = 0;
    if (before_.first == 0 || after_.first == last_tile_) begin_at_borders(before, after);
    before_.sum(
        causal(), [&](int) -> const auto& { return moves.forward; }, before);
    after_.sum(
        anticausal(),
        [&](int other) -> const auto& { return other == last_tile_ ? moves.backward_last : moves.backward; },
        after);
  }

 private:
  __device__ auto causal() const {
    return [this](int other, float(&state)[Order]) { source_.causal(other, state); };
  }
  __device__ auto anticausal() const {
    return [this](int other, float(&state)[Order]) { source_.anticausal(other, state); };
  }
  __device__ void begin_at_borders(float (&before)[Order], float (&after)[Order]) const {
    const TileMoves<Order, float>& moves = axis_.moves;
    float forward[Order] = {};
    float backward[Order] = {};
    if (moves.needs_runs) {
      const int seen = min(axis_.window + 1, axis_.tiles);
      StateWalk<Order> run{axis_.tiles - seen, seen, 1, {}};
      run.load(0, causal());
      run.sum(
          causal(),
          [&](int other) -> const auto& { return other == last_tile_ ? moves.forward_last : moves.forward; },
          forward);
      run = {seen - 1, seen, -1, {}};
      run.load(0, anticausal());
      run.sum(
          anticausal(),
          [&](int other) -> const auto& { return other == 0 ? moves.backward_first : moves.backward; },
          backward);
    }
    if (before_.first == 0) {
      const float pixel = source_.first_pixel();
#pragma unroll
      for (int k = 0; k < Order; ++k) before[k] = moves.start_from_first_pixel[k] * pixel;
      moves.start_from_forward.add_product(forward, before);
      moves.start_from_backward.add_product(backward, before);
    }
    if (after_.first == last_tile_) {
      const float pixel = source_.last_pixel();
#pragma unroll
      for (int k = 0; k < Order; ++k) after[k] = moves.end_from_last_pixel[k] * pixel;
      moves.end_from_forward.add_product(forward, after);
      moves.end_from_backward.add_product(backward, after);
    }
  }

  const WindowAxis<Order, Real>& axis_;
  Source source_;
  int last_tile_;
  StateWalk<Order> before_, after_;
};

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
    WindowCarries(f.y, tile.at.row,
                  CrossSource<Order>{f.states, tile.at, f.y.tiles - 1, column, task % kFunctionals})
        .finish(before, after);
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
    WindowCarries(f.x, tile.at.column, CarrySource<Order>{slots, sums, thread}).finish(before, after);
    for (int k = 0; k < Order; ++k) {
      cross[thread * 2 * Order + k] = before[k];
      cross[thread * 2 * Order + Order + k] = after[k];
    }
  }
  __syncthreads();
  return cross;
}

/// The states before and after the thread's row of a tile, once `neighbours` are there.
template <int Order, class Real>
__device__ void finish_row_carries(const WindowFilter<Order, Real>& f, const Tile& tile, const float* cross,
                                   WindowCarries<Order, Real, RowSource<Order>>& neighbours,
                                   float (&before)[Order], float (&after)[Order]) {
  neighbours.finish(before, after);
  if (!f.a.along_columns) return;
  const float* responses = f.responses_of(tile.at) + threadIdx.x;
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

template <int Order, class Real>
__device__ auto column_carries(const WindowFilter<Order, Real>& f, const Tile& tile) {
  const int position = min(static_cast<int>(threadIdx.x), tile.columns - 1);
  return WindowCarries(f.y, tile.at.row, ColumnSource<Order>{f.a, f.states, tile.at, position});
}
template <int Order, class Real>
__device__ auto row_carries(const WindowFilter<Order, Real>& f, const Tile& tile) {
  const int position = min(static_cast<int>(threadIdx.x), tile.rows - 1);
  return WindowCarries(f.x, tile.at.column, RowSource<Order>{f.states, tile.at, position});
}

/// Filters the tile's rows in shared memory.
template <int Order, class Real>
__device__ void filter_rows(const WindowFilter<Order, Real>& f, const Tile& tile, TilePixels& pixels,
                            const float* cross, WindowCarries<Order, Real, RowSource<Order>>& neighbours) {
  const int position = static_cast<int>(threadIdx.x);
  if (position >= tile.rows) return;
  float before[Order];
  float after[Order];
  finish_row_carries(f, tile, cross, neighbours, before, after);
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
  if (a.along_columns) {
    auto carries = column_carries(f, tile);
    float before[Order];
    float after[Order];
    carries.finish(before, after);
    finish_loading();
    TileColumn column{{&pixels[0][position]}};
    if (position < tile.columns) filter_between(f.y.line, column, tile.rows, before, after);
  } else {
    finish_loading();
  }
  __syncthreads();
  if (a.along_rows) {
    auto carries = row_carries(f, tile);
    filter_rows(f, tile, pixels, cross, carries);
  }
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
__device__ void respond_to_carries(const WindowFilter<Order, Real>& f, const Tile& tile, TilePixels& pixels,
                                   const float (&before)[Order], const float (&after)[Order]) {
  const int position = static_cast<int>(threadIdx.x);
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
__global__ void __launch_bounds__(kTile, on_chip_blocks<Real>(Order))
    filter_on_chip(const __grid_constant__ WindowFilter<Order, Real> f) {
  WindowMemory& memory = shared_window();
  const TileImages& a = f.a;
  const int thread = static_cast<int>(threadIdx.x);
  const Tile tile = tile_of(a, blockIdx.x);
  publish_states(f, tile, memory.pixels, memory.more);
  cooperative_groups::this_grid().sync();
  const float* cross = nullptr;
  auto of_column = column_carries(f, tile);
  auto of_row = row_carries(f, tile);
  if (a.along_columns && a.along_rows) cross = find_cross_carries(f, tile, memory.more);
  if (a.along_columns) {
    float before[Order];
    float after[Order];
    of_column.finish(before, after);
    if (thread < tile.columns) respond_to_carries(f, tile, memory.pixels, before, after);
  }
  __syncthreads();
  if (a.along_rows) filter_rows(f, tile, memory.pixels, cross, of_row);
  __syncthreads();
  store_tile(a, tile, memory.pixels);
}

}  // namespace cumulus::recursive_filter
