#pragma once

#include <cooperative_groups.h>

#include "kernels/recursive_filter/filter_windows.cuh"

// The on-chip method of images of few tiles: kStretches threads share each column and each row, a stretch of
// kStretch pixels each. The threads run over their stretches from nothing, tell each other what they leave,
// and each then knows what lies before and after its own pixels.

namespace cumulus::recursive_filter {

constexpr int kWideThreads = kTile * kStretches;

/// What the runs over the stretches of a tile's lines leave, unscaled, line by line.
template <int Order>
struct StretchStates {
  float of[kStretches][2 * Order][kTile];
};

/// One stretch of a line of a whole tile. `part` is its number; a warp's threads have the same.
template <int Order, class Access>
class StretchFilter {
 public:
  __device__ StretchFilter(const WindowAxis<Order, float>& axis, StretchedLine<Access> line, int part,
                           int number, StretchStates<Order>& states)
      : axis_(axis), line_(line), part_(part), number_(number), states_(states) {}

  /// From nothing, both ways. The block has to synchronize afterwards.
  __device__ void run() {
    line_.load(part_ * kStretch, pixels_);
    float forward[Order] = {};
    float backward[Order] = {};
#pragma unroll
    for (int k = 0; k < kStretch; ++k) {
      axis_.line.causal.advance_unscaled(forward, pixels_[k]);
      axis_.line.anticausal.advance_unscaled(backward, pixels_[kStretch - 1 - k]);
    }
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      states_.of[part_][k][number_] = forward[k];
      states_.of[part_][Order + k][number_] = backward[k];
    }
  }

  /// What the whole line leaves.
  __device__ void leave(float (&causal)[Order], float (&anticausal)[Order]) const {
    add_before(kStretches, causal);
    add_after(-1, anticausal);
  }

  /// Filters the stretch, given what lies before and after the tile's line.
  __device__ void filter(const float (&before)[Order], const float (&after)[Order]) {
    float causal[Order] = {};
    float future[Order] = {};
    add_before(part_, causal);
    add_after(part_, future);
    axis_.causal_stretches.of[part_].add_product(before, causal);
    axis_.anticausal_stretches.of[kStretches - 1 - part_].add_product(after, future);
#pragma unroll
    for (int k = 0; k < kStretch; ++k) axis_.line.causal.filter(causal, pixels_[k]);
    float anticausal[Order] = {};
    axis_.line.through_causal.add_product(causal, anticausal);
    axis_.line.through_future.add_product(future, anticausal);
#pragma unroll
    for (int k = kStretch - 1; k >= 0; --k) axis_.line.anticausal.filter(anticausal, pixels_[k]);
    line_.store(part_ * kStretch, pixels_);
  }

  __device__ float pixel(int k) const { return pixels_[k]; }

 private:
  /// The causal state before stretch `part`, of nothing before the tile.
  __device__ void add_before(int part, float (&state)[Order]) const {
#pragma unroll
    for (int other = 0; other < kStretches; ++other) {
      if (other >= part) continue;
      float own[Order];
#pragma unroll
      for (int k = 0; k < Order; ++k) own[k] = states_.of[other][k][number_];
      axis_.causal_stretches.of[part - 1 - other].add_product(own, state);
    }
    scale(axis_.line.causal.gain, state);
  }
  /// The anticausal state after it, of nothing after the tile.
  __device__ void add_after(int part, float (&state)[Order]) const {
#pragma unroll
    for (int other = 0; other < kStretches; ++other) {
      if (other <= part) continue;
      float own[Order];
#pragma unroll
      for (int k = 0; k < Order; ++k) own[k] = states_.of[other][Order + k][number_];
      axis_.anticausal_stretches.of[other - part - 1].add_product(own, state);
    }
    scale(axis_.line.anticausal.gain, state);
  }

  const WindowAxis<Order, float>& axis_;
  StretchedLine<Access> line_;
  const int part_;
  const int number_;
  StretchStates<Order>& states_;
  float pixels_[kStretch];
};

/// A block's shared memory behind the tile.
template <int Order>
struct WideMemory {
  static std::size_t bytes(const WindowMoves<Order>& x) {
    return WindowMemory<Order>::bytes(x, true) + sizeof(StretchStates<Order>);
  }
};

/// As publish_states does, of a whole tile whose pixels have arrived.
template <int Order>
__device__ void publish_states_wide(const WindowFilter<Order, float>& f, const Tile& tile, TilePixels& pixels,
                                    StretchStates<Order>& exchange, float* more) {
  using Layout = StateLayout<Order>;
  const float nothing[Order] = {};
  const int line = static_cast<int>(threadIdx.x) % kTile;
  const int part = static_cast<int>(threadIdx.x) / kTile;
  const bool last_part = part == kStretches - 1;
  float* states = f.states.at(tile.at);
  if (f.a.along_columns) {
    StretchFilter<Order, ColumnAccess> column(f.y, {{&pixels[0][line]}}, part, line, exchange);
    column.run();
    // As rows of pixels: the columns' states, then the first and the last row as they were.
    if (part == 0) more[2 * Order * kTilePitch + line] = column.pixel(0);
    if (last_part) more[(2 * Order + 1) * kTilePitch + line] = column.pixel(kStretch - 1);
    __syncthreads();
    if (part == 0) {
      float causal[Order] = {};
      float anticausal[Order] = {};
      column.leave(causal, anticausal);
      store_states(states + line, kTile, causal, anticausal);
      store_states(more + line, kTilePitch, causal, anticausal);
    }
    column.filter(nothing, nothing);
    __syncthreads();
  }
  if (!f.a.along_rows) return;
  StretchFilter<Order, RowAccess> row(f.x, {{&pixels[line][0]}}, part, line, exchange);
  row.run();
  if (part == 0 && tile.at.column == 0) states[Layout::kBorder * kTile + line] = row.pixel(0);
  if (last_part && tile.at.column == f.moves[kAlongX].tiles - 1) {
    states[(Layout::kBorder + 1) * kTile + line] = row.pixel(kStretch - 1);
  }
  __syncthreads();
  if (last_part) {
    float causal[Order] = {};
    float anticausal[Order] = {};
    row.leave(causal, anticausal);
    store_states(states + Layout::kRows * kTile + line, kTile, causal, anticausal);
  }
  if (f.a.along_columns) publish_cross_states(f.x, tile, more, states + Layout::kCross);
}

/// Filters a whole tile's rows in shared memory.
template <int Order>
__device__ void filter_rows_wide(const WindowFilter<Order, float>& f, TilePixels& pixels,
                                 const WindowSums<Order, float>& sums, const float* responses,
                                 StretchStates<Order>& exchange) {
  const int line = static_cast<int>(threadIdx.x) % kTile;
  const int part = static_cast<int>(threadIdx.x) / kTile;
  StretchFilter<Order, RowAccess> row(f.x, {{&pixels[line][0]}}, part, line, exchange);
  row.run();
  __syncthreads();
  float before[Order];
  float after[Order];
  sums.row_carries(line, responses + line * WindowMemory<Order>::kResponsePitch, before, after);
  row.filter(before, after);
}

/// As filter_on_chip. Tiles that reach beyond the image, or have pixels that take no part in runs, go the way
/// of that one, by the block's first threads.
template <int Order>
__global__ void __launch_bounds__(kWideThreads, 2)
    filter_on_chip_wide(const __grid_constant__ WindowFilter<Order, float> f) {
  using Memory = WindowMemory<Order>;
  const int thread = static_cast<int>(threadIdx.x);
  const int line = thread % kTile;
  const Tile tile = tile_of(f.a, blockIdx.x);
  const bool whole = tile.plain() && tile.rows == kTile && tile.columns == kTile;
  TilePixels& pixels = shared_pixels();
  auto& exchange = *reinterpret_cast<StretchStates<Order>*>(behind_pixels());
  float* responses = reinterpret_cast<float*>(&exchange + 1);
  float* memory = responses + Memory::kResponses;
  begin_loading<kWideThreads>(f.a, tile, pixels);
  for (int k = thread / kTile; k < 2 * Order; k += kStretches) {
    responses[line * Memory::kResponsePitch + k] = f.responses_of(tile.at).of[line][k];
  }
  finish_loading();
  if (whole) {
    publish_states_wide(f, tile, pixels, exchange, memory);
  } else {
    publish_loaded(f, tile, pixels, memory);
  }
  cooperative_groups::this_grid().sync();
  const WindowSums<Order, float> sums(f, tile, memory);
  sums.template find<kWideThreads>();
  if (f.a.along_columns && line < tile.columns) {
    float before[Order];
    float after[Order];
    sums.column_carries(line, before, after);
    TileColumn column{{&pixels[0][line]}};
    const int first = thread / kTile * kStretch;
    respond_to_carries(responses, before, after, column, first, first + kStretch);
  }
  __syncthreads();
  if (f.a.along_rows && whole) {
    filter_rows_wide(f, pixels, sums, responses, exchange);
  } else if (thread < kTile) {
    filter_rows(f, tile, pixels, sums, responses + line * Memory::kResponsePitch);
  }
  __syncthreads();
  store_tile<kWideThreads>(f.a, tile, pixels);
}

}  // namespace cumulus::recursive_filter
