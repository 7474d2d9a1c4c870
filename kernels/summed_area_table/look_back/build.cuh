#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/primitives/diagonal_tiles.h"
#include "kernels/primitives/look_back.cuh"
#include "kernels/summed_area_table/look_back/tile.cuh"
#include "kernels/summed_area_table/look_back/traits.cuh"

// One kernel, one tile per block, in the spirit of the single-pass scan of D. Merrill and M. Garland
// ("Single-pass parallel prefix scan with decoupled look-back", 2016), in two dimensions. Of its pixels a
// block publishes the sum of each column and of each row of the tile (aggregates); by look-back over the
// tiles above and to the left it finds the exclusive prefix of each column (`above`), of each row along x,
// and per channel the sum over everything above and to the left of the tile (the corner). Then the table
// inside the tile needs one more scan and no further communication.
//
// The corner is a column of its own (one for each group of 32 rows): the aggregate of tile (i, j) is the sum
// of the exclusive prefixes of the tile's rows.

namespace cumulus::summed_area_table {

/// The row and channel of a lane in a row job.
template <class P>
struct RowOfLane {
  int row;
  int channel;
  __device__ explicit RowOfLane(int job)
      : row(job / P::kChannels * 32 + lane_index()), channel(job % P::kChannels) {}
  __device__ bool exists() const { return row < P::kRows; }
  __device__ int word() const { return row * P::kChannels + channel; }
};

/// Turns memory.warp_columns into exclusive prefixes over the warps, in one column; returns the tile's
/// aggregate.
template <class P>
__device__ typename P::Sum scan_warp_columns(TileMemory<P>& memory, int column) {
  typename P::Sum sum = 0;
#pragma unroll
  for (int warp = 0; warp < P::kWarps; ++warp) {
    const typename P::Sum own = memory.warp_columns[warp][column];
    memory.warp_columns[warp][column] = sum;
    sum += own;
  }
  return sum;
}

/// Publishes the tile's aggregates, and turns memory.warp_columns into exclusive prefixes over the warps.
template <class P>
__device__ void publish_aggregates(TileMemory<P>& memory, Tile tile, typename P::WordBits* words) {
  for (int job = warp_index(); job < P::kJobs; job += P::kWarps) {
    if (job < P::kRowJobs) {
      const RowOfLane<P> lane(job);
      const LookBackState state = tile.column == 0 ? LookBackState::kInclusive : LookBackState::kAggregate;
      if (lane.exists()) publish(words + P::kRowWord + lane.word(), state, memory.rows[lane.word()]);
    } else {
      const int column = (job - P::kRowJobs) * 32 + lane_index();
      const typename P::Sum sum = scan_warp_columns(memory, column);
      publish(words + column, tile.row == 0 ? LookBackState::kInclusive : LookBackState::kAggregate, sum);
      memory.above[column] = sum;
    }
  }
}

/// Finds one column's exclusive prefix, and publishes its inclusive one.
template <class P>
__device__ void resolve_column(const Arguments<P>& a, TileMemory<P>& memory, Tile tile,
                               typename P::WordBits* words, int column) {
  using Sum = typename P::Sum;
  Sum above = 0;
  if (tile.row > 0) {
    above = look_back<Sum, kLookBackWindow, kFirstLook>(words + column, a.tile_columns * a.words_per_tile,
                                                        tile.row);
    publish(words + column, LookBackState::kInclusive, above + memory.above[column]);
  }
  memory.above[column] = above;
}

/// Finds, for one channel of a group of rows, the exclusive prefix of each along x, and the corner.
template <class P>
__device__ void resolve_rows(const Arguments<P>& a, TileMemory<P>& memory, Tile tile,
                             typename P::WordBits* words, int job) {
  using Sum = typename P::Sum;
  const RowOfLane<P> lane(job);
  Sum left = 0;
  if (tile.column > 0 && lane.exists()) {
    typename P::WordBits* word = words + P::kRowWord + lane.word();
    left = look_back<Sum, kLookBackWindow, kFirstLook>(word, a.words_per_tile, tile.column);
    publish(word, LookBackState::kInclusive, left + memory.rows[lane.word()]);
  }
  __syncwarp();
  const Sum through_row = warp_inclusive_sum(left);
  if (lane.exists()) memory.rows[lane.word()] = through_row;
  if (lane_index() != 31) return;

  memory.group_left[job] = through_row;
  Sum corner = 0;
  if (tile.column > 0) {
    typename P::WordBits* word = words + P::kCornerWord + job;
    publish(word, tile.row == 0 ? LookBackState::kInclusive : LookBackState::kAggregate, through_row);
    if (tile.row > 0) {
      corner = look_back<Sum, kLookBackWindow, kFirstLook>(word, a.tile_columns * a.words_per_tile, tile.row);
      publish(word, LookBackState::kInclusive, corner + through_row);
    }
  }
  memory.group_corner[job] = corner;
}

template <class P>
__device__ void resolve(const Arguments<P>& a, TileMemory<P>& memory, Tile tile,
                        typename P::WordBits* words) {
  for (int job = warp_index(); job < P::kJobs; job += P::kWarps) {
    if (job < P::kRowJobs) {
      resolve_rows<P>(a, memory, tile, words, job);
      __syncwarp();
    } else {
      resolve_column<P>(a, memory, tile, words, (job - P::kRowJobs) * 32 + lane_index());
    }
  }
}

/// Hands out the tiles. One thread of the block takes its tickets.
template <class P>
struct Tickets {
  const Arguments<P>& a;
  TileMemory<P>& memory;

  __device__ bool taker() const { return threadIdx.x == P::kThreads - 32; }
  __device__ std::uint32_t take() const { return taker() ? atomicAdd(a.next_ticket, 1u) : 0; }
  /// Into memory.next_tile; to be read after a barrier.
  __device__ void announce(std::uint32_t ticket) const {
    if (!taker()) return;
    const std::uint32_t tiles = a.tile_rows * a.tile_columns;
    const std::uint32_t plane = P::kLayout == Layout::kOne ? 0 : ticket / tiles;
    const std::uint32_t planes = P::kLayout == Layout::kOne ? 1 : a.planes;
    memory.next_tile = ticket < planes * tiles
                           ? tile_of_ticket(plane, ticket - plane * tiles, a.tile_rows, a.tile_columns)
                           : Tile{-1, -1, 0};
  }
};

/// Everything of one table's tile but its loading: from its pixels in shared memory to its sums in the table.
/// The next tile is announced on the way, while its ticket is awaited anyway, if this is the pixels'
/// `kLastUse`.
template <class P, Term kTerm, bool kLastUse>
__device__ void build_tile(const Arguments<P>& a, const typename Arguments<P>::Table& table,
                           TileMemory<P>& memory, Tile tile, typename P::WordBits* words) {
  const Tickets<P> tickets{a, memory};
  const Offsets<P> offsets(a, tile);
  sum_warp_rows<P, kTerm>(a, memory, tile, offsets);
  __syncthreads();
  publish_aggregates(memory, tile, words);
  const std::uint32_t ticket = kLastUse ? tickets.take() : 0;
  resolve(a, memory, tile, words);
  if (kLastUse) tickets.announce(ticket);
  __syncthreads();
  store_warp_rows<P, kTerm>(a, table, memory, tile, offsets);
  if constexpr (P::kLayout != Layout::kOne) {
    if (a.exclusive) store_zeros<P>(a, table, tile);
  }
}

/// Owns: a block one tile after the other, by tickets in the order of diagonals (tile_of_ticket), plane
///   after plane; a warp kRowsPerWarp whole rows of it.
/// Reads: the tile's pixels once, those of the next tile while this one's table is stored; words of tiles
///   above and to the left.
/// Writes: the tile's sums (and squares); its words, first as aggregates, then as inclusive prefixes.
/// Waits for: the kernel that clears the words (programmatic dependent launch), then words of tiles with
///   lower tickets.
/// Cannot deadlock: tiles above and to the left have lower tickets (see tile_of_ticket); the block with the
///   lowest ticket under way waits for nothing, however few blocks are resident.
/// Source: Merrill and Garland 2016; in two dimensions T. Emoto et al., "An optimal parallel algorithm for
///   computing the summed area table on the GPU", 2018.
template <class P>
__global__ void __launch_bounds__(P::kThreads, P::kResidentBlocks) build_table(const Arguments<P> a) {
  extern __shared__ uint4 shared_memory[];
  auto& memory = *reinterpret_cast<TileMemory<P>*>(shared_memory);
  const Tickets<P> tickets{a, memory};

#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();  // for clear_scratch
#endif
  tickets.announce(tickets.take());
  __syncthreads();
  Tile tile = memory.next_tile;
  if (tile.row >= 0) load_warp_rows(a, memory, tile);
  while (tile.row >= 0) {
    typename P::WordBits* words =
        a.words + (std::int64_t{tile.row} * a.tile_columns + tile.column) * a.words_per_tile;
    if constexpr (P::kLayout != Layout::kOne) words += tile.plane * a.words_of_plane();
    finish_copies();
    if constexpr (P::kTerms == Terms::kValuesAndSquares) {
      build_tile<P, Term::kValue, false>(a, a.sums, memory, tile, words);
      __syncthreads();
      build_tile<P, Term::kSquare, true>(a, a.squares, memory, tile, words + a.planes * a.words_of_plane());
    } else {
      build_tile<P, P::kFirstTerm, true>(a, a.sums, memory, tile, words);
    }
    // From here to the next barrier a warp touches its own rows only.
    tile = memory.next_tile;
    __syncwarp();
    if (tile.row >= 0) load_warp_rows(a, memory, tile);
  }
}

}  // namespace cumulus::summed_area_table
