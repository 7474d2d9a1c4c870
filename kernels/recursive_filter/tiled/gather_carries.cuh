#pragma once

#include <cstdint>

#include "kernels/recursive_filter/gpu/chunk_sums.cuh"
#include "kernels/recursive_filter/tiled/filter_tiles.cuh"

// The tiled method's first pass over the image.

namespace cumulus::recursive_filter {

/// One axis' plan in the first pass.
template <int Order>
struct GatherAxis {
  bool alike;             // both directions' sums at once, with the causal gain
  float anticausal_gain;  // over the causal one
  ChunkSums<Order> sums;
  RunWeights<Order> weights;

  explicit GatherAxis(const AxisPlan& plan)
      : alike(run_alike(plan) && plan.causal.sections.gain != 0),
        anticausal_gain(alike ? static_cast<float>(plan.anticausal.sections.gain / plan.causal.sections.gain)
                              : 0),
        sums(plan),
        weights(plan) {}
};

/// The zero-state responses of a line.
template <int Order, class Line>
__device__ void run_over(const RunWeights<Order>& weights, const Line& line, const LineRuns& runs,
                         float (&causal)[Order], float (&anticausal)[Order]) {
#pragma unroll 4
  for (int i = 0; i < runs.causal_end; ++i) {
#pragma unroll
    for (int k = 0; k < Order; ++k) causal[k] += weights.causal[i + kTile - runs.causal_end][k] * line.at(i);
  }
#pragma unroll 4
  for (int i = runs.anticausal_first; i < runs.end; ++i) {
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      anticausal[k] += weights.anticausal[i - runs.anticausal_first][k] * line.at(i);
    }
  }
}

/// The zero-state responses of a column or row: the causal one goes to `first` of the carries, the anticausal
/// one behind it.
template <int Order, class Line>
__device__ void gather_line(const GatherAxis<Order>& axis, const Line& line, const LineRuns& runs,
                            const TileCarries& carries, int first, int position) {
  float causal[Order] = {};
  float anticausal[Order] = {};
  if (axis.alike && runs.causal_end == kTile && runs.anticausal_first == 0) {
    float pixels[kTile];
    line.load(0, pixels);
    axis.sums.find(pixels, causal, anticausal);
    scale(axis.anticausal_gain, anticausal);
  } else {
    run_over(axis.weights, line, runs, causal, anticausal);
  }
  store_state(carries, first, position, causal);
  store_state(carries, first + Order, position, anticausal);
}

/// Owns: a block one tile of one channel, in shared memory; a thread a column, then a row.
/// Reads: its pixels. Writes: the zero-state responses of its columns and rows, where CarryMap has them.
/// Waits for: nothing of other blocks, so that it cannot deadlock.
/// Source: step (1) of tiled/tiled.cu, with weighted sums in place of recursions.
template <int Order>
__global__ void __launch_bounds__(kTile, gather_blocks(Order))
    gather_carries(const __grid_constant__ TileImages a, const __grid_constant__ GatherAxis<Order> y,
                   const __grid_constant__ GatherAxis<Order> x) {
  __shared__ alignas(16) TilePixels pixels;
  const Tile tile = tile_of(a, blockIdx.x);
  begin_loading(a, tile, pixels, evict_first());
  const TileCarries carries = a.carries.at(tile.at);
  finish_loading();
  const int position = static_cast<int>(threadIdx.x);
  if (a.along_columns && position < tile.columns) {
    gather_line(y, ColumnAccess{&pixels[0][position]}, tile.of_columns(), carries, 0, position);
  }
  if (a.along_rows && position < tile.rows) {
    const RowAccess row{pixels[position]};
    const std::int64_t border = border_index(a, tile.at, position);
    if (tile.at.column == 0) a.first_pixels[border] = row.at(0);
    if (tile.at.column == a.carries.tile_columns - 1) a.last_pixels[border] = row.at(tile.columns - 1);
    gather_line(x, row, tile.of_rows(), carries, 2 * Order, position);
  }
}

}  // namespace cumulus::recursive_filter
