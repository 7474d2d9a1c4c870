#pragma once

#include <cooperative_groups.h>

#include "kernels/summed_area_table/tile_build.cuh"

// The kernel of small images, all of whose tiles are on the GPU at once, one per block. Each block stores its
// own sums by column and by row in scratch memory, and once all have done so adds up itself what it needs of
// the others'. No chain, and nothing to clear before.

namespace cumulus::summed_area_table {

template <class P>
struct ResidentArguments {
  Arguments<P> table;          // but for its tickets and words
  typename P::Sum* tile_sums;  // words_per_tile of each: as the words of tile_plan.cuh
};

/// Stores the tile's columns, its rows, and the sums of its groups of rows.
template <class P>
__device__ void store_own_sums(TileMemory<P>& memory, typename P::Sum* sums) {
  using Sum = typename P::Sum;
  for (int job = warp_index(); job < P::kJobs; job += P::kWarps) {
    if (job < P::kRowJobs) {
      const RowOfLane<P> lane(job);
      const Sum own = lane.exists() ? memory.rows[lane.word()] : Sum{0};
      if (lane.exists()) sums[P::kRowWord + lane.word()] = own;
      const Sum of_group = warp_sum(own);
      if (lane_index() == 0) sums[P::kCornerWord + job] = of_group;
    } else {
      const int column = (job - P::kRowJobs) * 32 + lane_index();
      sums[column] = turn_into_sums_before(memory, column);
    }
  }
}

/// The sum over `count` values, `stride` apart, in their order. Reads several at once: each takes as long as
/// all.
template <class Sum>
__device__ Sum sum_apart(const Sum* values, std::int64_t stride, int count) {
  constexpr int kAtOnce = 8;
  Sum sum = 0;
#pragma unroll 1
  for (int first = 0; first < count; first += kAtOnce) {
    Sum read[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i < count) read[i] = __ldcg(values + (first + i) * stride);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i < count) sum += read[i];
    }
  }
  return sum;
}

/// What lies left of the tile in a group of rows, and above that: the sums of the same group of all tiles
/// above and to the left.
template <class P>
__device__ void gather_rows(const ResidentArguments<P>& a, TileMemory<P>& memory, Tile tile, int job) {
  using Sum = typename P::Sum;
  const Arguments<P>& t = a.table;
  const RowOfLane<P> lane(job);
  Sum left = 0;
  if (lane.exists()) {
    const Sum* first = a.tile_sums + std::int64_t{tile.row} * t.tile_columns * t.words_per_tile;
    left = sum_apart(first + P::kRowWord + lane.word(), t.words_per_tile, tile.column);
  }
  // The lanes share the tiles above and to the left.
  Sum corner = 0;
#pragma unroll 4
  for (int n = lane_index(); n < tile.row * tile.column; n += 32) {
    const std::int64_t other = std::int64_t{n / tile.column} * t.tile_columns + n % tile.column;
    corner += __ldcg(a.tile_sums + other * t.words_per_tile + P::kCornerWord + job);
  }
  __syncwarp();
  corner = warp_sum(corner);
  const Sum through_row = warp_inclusive_scan(left);
  if (lane.exists()) memory.rows[lane.word()] = through_row;
  if (lane_index() != 31) return;
  memory.group_left[job] = through_row;
  memory.group_corner[job] = corner;
}

template <class P>
__device__ void gather(const ResidentArguments<P>& a, TileMemory<P>& memory, Tile tile) {
  const Arguments<P>& t = a.table;
  for (int job = warp_index(); job < P::kJobs; job += P::kWarps) {
    if (job < P::kRowJobs) {
      gather_rows(a, memory, tile, job);
    } else {
      const int column = (job - P::kRowJobs) * 32 + lane_index();
      memory.above[column] = sum_apart(a.tile_sums + tile.column * t.words_per_tile + column,
                                       t.tile_columns * t.words_per_tile, tile.row);
    }
  }
}

template <class P>
__global__ void __launch_bounds__(P::kThreads) build_resident_table(const ResidentArguments<P> a) {
  extern __shared__ uint4 shared_memory[];
  auto& memory = *reinterpret_cast<TileMemory<P>*>(shared_memory);
  const Arguments<P>& t = a.table;
  const Tile tile{static_cast<std::int32_t>(blockIdx.x / t.tile_columns),
                  static_cast<std::int32_t>(blockIdx.x % t.tile_columns), 0};
  const Offsets<P> offsets(t, tile);
  load_strip(t, memory, tile);
  finish_copies();
  sum_strip<P, P::kFirstTerm>(t, memory, tile, offsets);
  __syncthreads();
  store_own_sums(memory, a.tile_sums + blockIdx.x * t.words_per_tile);
  cooperative_groups::this_grid().sync();
  gather(a, memory, tile);
  __syncthreads();
  store_strip<P, P::kFirstTerm>(t, t.sums, memory, tile, offsets);
}

}  // namespace cumulus::summed_area_table
