#pragma once

#include <cuda_pipeline.h>

#include <cstdint>

#include "kernels/recursive_filter/gpu/tile_lines.cuh"
#include "kernels/recursive_filter/math/weighted_sums.h"

// The tiled method's step between its two passes over the image, after the columns' carries are complete
// and before the rows' are. The rows' responses are those of the image before it is filtered along y. The
// filters commute: a number of the rows' responses, down the rows of a tile, is a column to be filtered
// along y like any other. Its carries are the cross-axis coupling: the columns' carries, run over along x.
// The border pixels are such columns too.

namespace cumulus::recursive_filter {

/// A tile's carries in shared memory.
template <int Order>
struct SharedCarries {
  static constexpr int kStates = 2 * Order;
  // Line by line; padded, so that neighbouring tiles lie in different banks.
  alignas(16) float columns[kStates * kTile + kVector];
  alignas(16) float rows[kStates][kTilePitch];

  __device__ float* line(int number) {
    return number < kStates ? columns + number * kTile : rows[number - kStates];
  }
};

/// A block's shared memory: as many tiles as its threads have lines of rows' states.
template <int Order>
struct RowStateMemory {
  static constexpr int kStates = 2 * Order;
  static constexpr int kTiles = kRowStateThreads / kStates;
  static constexpr int kLines = kTiles * kStates;

  Tile tiles[kTiles];
  TileCarries carries[kTiles];
  alignas(16) float weights[kStates][kTilePitch];  // of RunWeights: causal, anticausal
  SharedCarries<Order> shared[kTiles];

  __device__ float* line(unsigned int number) { return shared[number / kStates].rows[number % kStates]; }
  __device__ void set_weights(const RunWeights<Order>& of_runs) {
    for (int i = static_cast<int>(threadIdx.x); i < kTile * kStates; i += kRowStateThreads) {
      const int pixel = i / kStates;
      const int k = i % kStates;
      weights[k][pixel] = k < Order ? of_runs.causal[pixel][k] : of_runs.anticausal[pixel][k - Order];
    }
  }
};

__device__ inline bool rows_are_aligned(const TileCarries& carries) {
  return !carries.split && carries.position_stride == 1 && carries.line_stride % kVector == 0 &&
         reinterpret_cast<std::uintptr_t>(carries.first) % sizeof(float4) == 0;
}

/// Starts to copy a tile's carries, by all threads.
template <int Order>
__device__ void begin_loading(const TileCarries& carries, SharedCarries<Order>& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  if (rows_are_aligned(carries)) {
    const int column = thread % kRowThreads * kVector;
    const auto* from = reinterpret_cast<const float*>(carries.first) + column;
#pragma unroll
    for (int line = thread / kRowThreads; line < 4 * Order; line += kRowStateThreads / kRowThreads) {
      __pipeline_memcpy_async(shared.line(line) + column, from + line * carries.line_stride, sizeof(float4));
    }
    return;
  }
  carries.visit([&](const auto& lines) {
    static_assert(kRowStateThreads == kTile);
#pragma unroll
    for (int line = 0; line < 4 * Order; ++line) shared.line(line)[thread] = lines.load(line, thread);
  });
}

/// Writes the rows' states back, by all threads.
template <int Order>
__device__ void store_states(const TileCarries& carries, SharedCarries<Order>& shared) {
  const int thread = static_cast<int>(threadIdx.x);
  carries.visit([&](const auto& lines) {
#pragma unroll
    for (int line = 0; line < 2 * Order; ++line) {
      lines.store(2 * Order + line, thread, shared.rows[line][thread]);
    }
  });
}

/// The cross-axis coupling: responses of the line `number` of states to the columns' carries, over the pixels
/// of a tile that runs see.
template <int Order>
__device__ void run_over_carries(RowStateMemory<Order>& memory, int slot, int number,
                                 float (&runs)[2 * Order]) {
  constexpr int kStates = 2 * Order;
  const Tile& tile = memory.tiles[slot];
  const float* columns = memory.shared[slot].columns;
  const float* weights = memory.weights[number];
  if (tile.causal_columns == kTile && tile.anticausal_column == 0) {
#pragma unroll 4
    for (int i = 0; i < kTile; i += kVector) {
      const float4 weight = *reinterpret_cast<const float4*>(weights + i);
#pragma unroll
      for (int k = 0; k < kStates; ++k) {
        const float4 carry = *reinterpret_cast<const float4*>(columns + k * kTile + i);
        runs[k] += weight.x * carry.x + weight.y * carry.y + weight.z * carry.z + weight.w * carry.w;
      }
    }
    return;
  }
  const bool is_causal = number < Order;
  const int first = is_causal ? 0 : tile.anticausal_column;
  const int end = is_causal ? tile.causal_columns : tile.columns;
  const int shift = is_causal ? kTile - end : -first;
#pragma unroll 1
  for (int i = first; i < end; ++i) {
    for (int k = 0; k < kStates; ++k) runs[k] += weights[i + shift] * columns[k * kTile + i];
  }
}

/// Filters a line of states along y, given its carries.
template <int Order, class Real>
__device__ void filter_states(const TileAxis<Order, Real>& y, const float (&carries)[2 * Order], int rows,
                              float* states) {
  Real before[Order];
  Real after[Order];
#pragma unroll
  for (int k = 0; k < Order; ++k) {
    before[k] = static_cast<Real>(carries[k]);
    after[k] = static_cast<Real>(carries[Order + k]);
  }
  TileRow line{{states}};
  filter_line_in_tile(y, line, rows, before, after);
}

/// A thread for each line of states of a few tiles.
template <int Order, class Real>
__device__ void filter_states_of_tiles(const TileImages& a, const TileAxis<Order, Real>& y,
                                       const RunWeights<Order>& x, std::uint32_t first, int count,
                                       RowStateMemory<Order>& memory) {
  using Memory = RowStateMemory<Order>;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < count) {
    memory.tiles[thread] = tile_of(a, first + threadIdx.x);
    memory.carries[thread] = a.carries.at(memory.tiles[thread].at);
  }
  __syncthreads();
#pragma unroll 1
  for (int slot = 0; slot < count; ++slot) begin_loading<Order>(memory.carries[slot], memory.shared[slot]);
  __pipeline_commit();
  memory.set_weights(x);
  finish_loading();
  const int slot = thread / Memory::kStates;
  const int number = thread % Memory::kStates;
  if (slot < count) {
    float carries[Memory::kStates] = {};
    run_over_carries(memory, slot, number, carries);
    filter_states(y, carries, memory.tiles[slot].rows, memory.shared[slot].rows[number]);
  }
  __syncthreads();
#pragma unroll 1
  for (int done = 0; done < count; ++done) store_states<Order>(memory.carries[done], memory.shared[done]);
}

/// A thread for each row of tiles and side: its border pixels.
template <int Order, class Real>
__device__ void filter_border_pixels(const TileImages& a, const TileAxis<Order, Real>& y, std::uint32_t index,
                                     float* line) {
  const bool is_last = index % 2 == 1;
  const auto channels = static_cast<std::uint32_t>(a.carries.channels);
  const auto columns = static_cast<std::uint32_t>(a.carries.tile_columns);
  const std::uint32_t row = index / 2 / channels;
  const Tile tile =
      tile_of(a, (row * columns + (is_last ? columns - 1 : 0)) * channels + index / 2 % channels);
  float carries[2 * Order];
  a.carries.at(tile.at).visit([&](const auto& lines) {
#pragma unroll
    for (int k = 0; k < 2 * Order; ++k) carries[k] = lines.load(k, is_last ? tile.columns - 1 : 0);
  });
  float* pixels = (is_last ? a.last_pixels : a.first_pixels) + border_index(a, tile.at, 0);
#pragma unroll 16
  for (int i = 0; i < kTile; ++i) line[i] = pixels[i * a.carries.channels];
  filter_states(y, carries, tile.rows, line);
#pragma unroll 4
  for (int i = 0; i < tile.rows; ++i) pixels[i * a.carries.channels] = line[i];
}

/// Filters the rows' responses along y.
/// Owns: a block a few tiles' carries, a thread a line of them; the first `border_blocks` blocks, which wait
///   for memory longest, border pixels.
/// Reads: the columns' carries and the rows' responses. Writes: the rows' responses, in place.
/// Waits for: nothing of other blocks, so that it cannot deadlock.
/// Source: step (3) of tiled/tiled.cu.
template <int Order, class Real>
__global__ void __launch_bounds__(kRowStateThreads)
    filter_row_states(const __grid_constant__ TileImages a, const __grid_constant__ TileAxis<Order, Real> y,
                      const __grid_constant__ RunWeights<Order> x, std::uint32_t tiles,
                      std::uint32_t border_lines, std::uint32_t border_blocks) {
  using Memory = RowStateMemory<Order>;
  __shared__ Memory memory;
  if (blockIdx.x < border_blocks) {
    const std::uint32_t line = blockIdx.x * Memory::kLines + threadIdx.x;
    if (threadIdx.x < Memory::kLines && line < border_lines) {
      filter_border_pixels(a, y, line, memory.line(threadIdx.x));
    }
    return;
  }
  const std::uint32_t first = (blockIdx.x - border_blocks) * Memory::kTiles;
  const int count = static_cast<int>(min(tiles - first, static_cast<std::uint32_t>(Memory::kTiles)));
  filter_states_of_tiles(a, y, x, first, count, memory);
}

}  // namespace cumulus::recursive_filter
