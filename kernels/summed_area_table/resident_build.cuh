#pragma once

#include "kernels/summed_area_table/tile_build.cuh"

// The kernel of small images, all of whose tiles are on the GPU at once, one per block. Each block publishes its
// own sums, tagged with the number of the launch, and adds up itself what it needs of the others': one exchange,
// no chain, nothing to clear before.

namespace cumulus::summed_area_table {

template <class P>
struct ResidentArguments {
  Arguments<P> table;
  std::uint32_t launch;
};

/// Publishes the tile's columns, its rows, and the sums of its groups of rows.
template <class P>
__device__ void publish_to_all(TileMemory<P>& memory, Word<typename P::Sum>* words, std::uint32_t launch) {
  using Sum = typename P::Sum;
  const auto tag = static_cast<State>(launch);
  for (int job = warp_index(); job < P::kJobs; job += P::kWarps) {
    if (job < P::kRowJobs) {
      const RowOfLane<P> lane(job);
      const Sum own = lane.exists() ? memory.rows[lane.word()] : Sum{0};
      if (lane.exists()) publish(words + P::kRowWord + lane.word(), tag, own);
      const Sum of_group = warp_sum(own);
      if (lane_index() == 0) publish(words + P::kCornerWord + job, tag, of_group);
    } else {
      const int column = (job - P::kRowJobs) * 32 + lane_index();
      publish(words + column, tag, turn_into_sums_before(memory, column));
    }
  }
}

/// What lies left of the tile in a group of rows, and above that: the sums of the same group of all tiles above
/// and to the left.
template <class P>
__device__ void gather_rows(const ResidentArguments<P>& a, TileMemory<P>& memory, Tile tile,
                            const Word<typename P::Sum>* plane, int job) {
  using Sum = typename P::Sum;
  const Arguments<P>& t = a.table;
  const RowOfLane<P> lane(job);
  const auto* row_of_tiles = plane + std::int64_t{tile.row} * t.tile_columns * t.words_per_tile;
  Sum left = 0;
  if (lane.exists())
    left = sum_own(row_of_tiles + P::kRowWord + lane.word(), t.words_per_tile, tile.column, a.launch);
  Sum corner = 0;
  for (int n = lane_index(); n < tile.row * tile.column; n += 32) {
    const std::int64_t other = std::int64_t{n / tile.column} * t.tile_columns + n % tile.column;
    corner += sum_own(plane + other * t.words_per_tile + P::kCornerWord + job, 0, 1, a.launch);
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
__device__ void gather(const ResidentArguments<P>& a, TileMemory<P>& memory, Tile tile,
                       const Word<typename P::Sum>* plane) {
  const Arguments<P>& t = a.table;
  for (int job = warp_index(); job < P::kJobs; job += P::kWarps) {
    if (job < P::kRowJobs) {
      gather_rows(a, memory, tile, plane, job);
    } else {
      const int column = (job - P::kRowJobs) * 32 + lane_index();
      memory.above[column] = sum_own(plane + tile.column * t.words_per_tile + column,
                                     t.tile_columns * t.words_per_tile, tile.row, a.launch);
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
  publish_to_all(memory, t.words + blockIdx.x * t.words_per_tile, a.launch);
  gather(a, memory, tile, t.words);
  __syncthreads();
  store_strip<P, P::kFirstTerm>(t, t.sums, memory, tile, offsets);
}

}  // namespace cumulus::summed_area_table
