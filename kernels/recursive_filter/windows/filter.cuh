#pragma once

#include "kernels/recursive_filter/windows/sums.cuh"

// The two kernels of truncated windows: see windows/sums.cuh.

namespace cumulus::recursive_filter {

template <int Order, class Real>
__device__ void store_states(float* states, int stride, const Real (&causal)[Order],
                             const Real (&anticausal)[Order]) {
#pragma unroll
  for (int k = 0; k < Order; ++k) {
    states[k * stride] = static_cast<float>(causal[k]);
    states[(Order + k) * stride] = static_cast<float>(anticausal[k]);
  }
}

/// Writes the cross-axis coupling of a tile: the states along x of `rows`, which are its columns' states and
/// its first and last row of pixels. kChunks threads share a row, and sum.
template <int Order, class Real>
__device__ void publish_couplings(const WindowAxis<Order, Real>& x, const Tile& tile, float* rows,
                                  float* coupling) {
  constexpr int kFunctionals = StateLayout<Order>::kFunctionals;
  const int line = static_cast<int>(threadIdx.x) / kChunks;
  const int part = static_cast<int>(threadIdx.x) % kChunks;
  if (static_cast<int>(threadIdx.x) / 32 * 32 >= kFunctionals * kChunks) return;  // a whole warp
  TileRow row{{rows + min(line, kFunctionals - 1) * kTilePitch}};
  Real causal[Order] = {};
  Real anticausal[Order] = {};
  if (tile.causal_columns < kTile || tile.anticausal_column > 0) {
    if (part == 0) {
      run_both_ways(x.line, row, tile.causal_columns, tile.anticausal_column, tile.columns, causal,
                    anticausal);
    }
  } else {
    float pixels[kChunk];
    row.load(part * kChunk, pixels);
    Real forward[Order] = {};
    Real backward[Order] = {};
#pragma unroll
    for (int k = 0; k < kChunk; ++k) {
      x.line.causal.advance_unit_gain(forward, static_cast<Real>(pixels[k]));
      x.line.anticausal.advance_unit_gain(backward, static_cast<Real>(pixels[kChunk - 1 - k]));
    }
    x.causal_chunks.of[kChunks - 1 - part].add_product(forward, causal);
    x.anticausal_chunks.of[part].add_product(backward, anticausal);
    scale(x.line.causal.gain, causal);
    scale(x.line.anticausal.gain, anticausal);
#pragma unroll
    for (int distance = 1; distance < kChunks; distance *= 2) {
#pragma unroll
      for (int k = 0; k < Order; ++k) {
        causal[k] += __shfl_xor_sync(~0u, causal[k], distance);
        anticausal[k] += __shfl_xor_sync(~0u, anticausal[k], distance);
      }
    }
  }
  if (part > 0 || line >= kFunctionals) return;
  coupling += line * kFunctionals;
  store_states(coupling, 1, causal, anticausal);
  coupling[2 * Order] = row.at(0);
  coupling[2 * Order + 1] = row.at(tile.columns - 1);
}

/// Writes the zero-state responses of a tile that is in shared memory. Leaves it filtered along y from zero
/// initial conditions.
template <int Order, class Real>
__device__ void publish_loaded(const WindowFilter<Order, Real>& f, const Tile& tile, TilePixels& pixels,
                               float* more) {
  using Layout = StateLayout<Order>;
  const TileImages& a = f.a;
  const int thread = static_cast<int>(threadIdx.x);
  float* states = f.states.at(tile.at);
  if (a.along_columns && thread < tile.columns) {
    TileColumn column{{&pixels[0][thread]}};
    // As rows of pixels: the columns' states, then the first and the last row as they were.
    more[2 * Order * kTilePitch + thread] = column.at(0);
    more[(2 * Order + 1) * kTilePitch + thread] = column.at(tile.rows - 1);
    Real causal[Order] = {};
    Real anticausal[Order] = {};
    if (tile.causal_rows == kTile && tile.anticausal_row == 0) {
      filter_alone(f.y.line, f.y.anticausal_chunks, column, causal, anticausal);
    } else {
      run_both_ways(f.y.line, column, tile.causal_rows, tile.anticausal_row, tile.rows, causal, anticausal);
      const float zero[Order] = {};
      filter_between(f.y.line, column, tile.rows, zero, zero);
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
    if (tile.at.column == f.transitions[kAlongX].tiles - 1) {
      states[(Layout::kBorder + 1) * kTile + thread] = row.at(tile.columns - 1);
    }
  }
  if (a.along_columns) publish_couplings(f.x, tile, more, states + Layout::kCoupling);
}

/// First pass.
template <int Order, class Real>
__device__ void publish_states(const WindowFilter<Order, Real>& f, const Tile& tile, TilePixels& pixels,
                               float* more) {
  begin_loading(f.a, tile, pixels);
  finish_loading();
  publish_loaded(f, tile, pixels, more);
}

/// Filters the tile's rows in shared memory. `responses` are the thread's row's to the columns' carries.
template <int Order, class Real>
__device__ void filter_rows(const WindowFilter<Order, Real>& f, const Tile& tile, TilePixels& pixels,
                            const WindowSums<Order, Real>& sums, const float* responses) {
  const int position = static_cast<int>(threadIdx.x);
  if (!f.a.along_rows || position >= tile.rows) return;
  float before[Order];
  float after[Order];
  sums.row_carries(position, responses, before, after);
  TileRow row{{&pixels[position][0]}};
  filter_between(f.x.line, row, tile.columns, before, after);
}

/// Second pass.
template <int Order, class Real>
__device__ void filter_tile(const WindowFilter<Order, Real>& f, const Tile& tile) {
  const int position = static_cast<int>(threadIdx.x);
  TilePixels& pixels = shared_pixels();
  begin_loading(f.a, tile, pixels);
  const WindowSums<Order, Real> sums(f, tile, behind_pixels());
  sums.template find<kTile>();
  finish_loading();
  if (f.a.along_columns && position < tile.columns) {
    float before[Order];
    float after[Order];
    sums.column_carries(position, before, after);
    TileColumn column{{&pixels[0][position]}};
    filter_between(f.y.line, column, tile.rows, before, after);
  }
  __syncthreads();
  filter_rows(f, tile, pixels, sums, f.responses_of(tile.at).of[position]);
  __syncthreads();
  store_tile(f.a, tile, pixels);
}

/// Owns: a block one tile of one channel, in shared memory.
/// Reads: its pixels. Writes: its zero-state responses and its cross-axis coupling, where StateMap has them.
/// Waits for: nothing of other blocks, so that it cannot deadlock.
/// Source: the two passes and the cross-axis coupling of Nehab et al. (2011), algorithm 5.
template <int Order, class Real>
__global__ void __launch_bounds__(kTile, window_blocks<Real>(Order))
    publish_tiles(const __grid_constant__ WindowFilter<Order, Real> f) {
  publish_states(f, tile_of(f.a, blockIdx.x), shared_pixels(), behind_pixels());
}

/// Owns: a block one tile of one channel, in shared memory, of those from `first` on.
/// Reads: its pixels, and the responses of the tiles in its windows. Writes: its filtered pixels.
/// Waits for: nothing of other blocks, so that it cannot deadlock: publish_tiles has ended.
/// Source: as publish_tiles.
template <int Order, class Real>
__global__ void __launch_bounds__(kTile, window_blocks<Real>(Order))
    filter_windows(const __grid_constant__ WindowFilter<Order, Real> f, std::int64_t first) {
  filter_tile(f, tile_of(f.a, static_cast<std::uint32_t>(first) + blockIdx.x));
}

}  // namespace cumulus::recursive_filter
