#pragma once

#include <cstdint>

#include "kernels/run_length/encode_heads.cuh"
#include "kernels/run_length/look_back.cuh"

// The encoder's kernel: a block takes one tile of the array, marks the heads of its runs in words of 32
// bits, publishes how many there are, and, once one warp has looked back, writes symbols and lengths side by
// side. Where heads are many, each warp goes through its words, a lane per element, and finds a head's rank
// by counting bits; where they are few, they are listed first, so that every thread has one. A length is the
// distance to the next head; the last run of a tile is finished by the next tile that has a head.

namespace cumulus::run_length {

/// By one warp: publishes the tile's stretch, looks back, publishes the stretch through the tile.
template <class T>
__device__ void connect(const EncodeArguments<T>& a, EncodeTile<T>& tile, int lane) {
  const int heads = heads_of_tile(tile);
  int last_head = -1;
  for (int w = 0; w < kTileWarps; ++w) last_head = max(last_head, tile.warp_last_head[w]);
  const auto runs = static_cast<std::uint64_t>(heads);
  const auto open = static_cast<std::uint64_t>(EncodeTile<T>::kElements - max(last_head, 0));
  Word* word = a.words + tile.index;
  if (lane == 0) publish(word, tile.index == 0 ? State::kInclusive : State::kOwn, {runs, open});
  Stretch before{0, 0};
  if (tile.index > 0) {
    before = look_back(a.words, tile.index);
    if (lane == 0)
      publish(word, State::kInclusive, {before.runs + runs, runs > 0 ? open : before.open + open});
  }
  if (lane == 0) tile.before = before;
}

/// Stores the length of a run, of `count` elements, that ends before element `end` of the array.
template <class T>
__device__ void store_length(const EncodeArguments<T>& a, std::int64_t run, std::int64_t count,
                             std::int64_t end) {
  const std::int64_t length = a.ends ? end : count;
  if (!a.wide_lengths && length >> 32 != 0) {
    atomicMin(reinterpret_cast<unsigned long long*>(&a.shared->report.unfitting_run),
              static_cast<unsigned long long>(run));
  }
  if (run >= a.max_runs) return;
  if (a.wide_lengths) {
    static_cast<std::uint64_t*>(a.lengths)[run] = static_cast<std::uint64_t>(length);
  } else {
    static_cast<std::uint32_t*>(a.lengths)[run] = static_cast<std::uint32_t>(length);
  }
}

/// Of each listed head, the first of which has rank `first_rank` of the tile's `heads`, symbol and length,
/// except for the last head's length; a thread per head.
template <class T>
__device__ void write_listed_runs(const EncodeArguments<T>& a, const EncodeTile<T>& tile, int first_rank,
                                  int heads) {
  using Tile = EncodeTile<T>;
  const std::int64_t first = tile.index * Tile::kElements;
  const std::int64_t run = static_cast<std::int64_t>(tile.before.runs) + first_rank;
  const int listed = min(heads - first_rank, Tile::kListedHeads);
  const int with_length = min(heads - first_rank - 1, Tile::kListedHeads);
  const bool plain =
      !a.wide_lengths && !a.ends && run + listed <= a.max_runs;  // a tile's counts fit into 32 bits
  // Each warp stores whole lines of memory: parts of them cost the L2 cache reads.
  const auto skew = static_cast<int>(run % 32);
  for (int r = static_cast<int>(threadIdx.x) - skew; r < listed; r += Tile::kThreads) {
    if (r < 0) continue;
    const int head = tile.heads[r];
    const int count = r < with_length ? tile.heads[r + 1] - head : 0;
    if (plain) {
      a.symbols[run + r] = tile.elements[head];
      if (count > 0) static_cast<std::uint32_t*>(a.lengths)[run + r] = static_cast<std::uint32_t>(count);
    } else {
      if (run + r < a.max_runs) a.symbols[run + r] = tile.elements[head];
      if (count > 0) store_length(a, run + r, count, first + head + count);
    }
  }
}

/// The first run of each piece that begins in the tile, whose words are ranked.
template <class T>
__device__ void write_first_runs(const EncodeArguments<T>& a, const EncodeTile<T>& tile) {
  using Tile = EncodeTile<T>;
  const std::int64_t first = tile.index * Tile::kElements;
  const std::int64_t end = min(first + Tile::kElements, a.count);
  const auto run = static_cast<std::int64_t>(tile.before.runs);
  for (std::int64_t piece = (first + a.piece - 1) / a.piece + threadIdx.x; piece * a.piece < end;
       piece += Tile::kThreads) {
    const int head = static_cast<int>(piece * a.piece - first);
    const HeadWord word = tile.words[head / 32];
    a.first_runs[piece] = run + word.rank + __popc(word.flags & ((1u << head % 32) - 1));
  }
}

/// By one thread: the length of the run that the tile ends, and at the array's end that of the last.
template <class T>
__device__ void finish_runs(const EncodeArguments<T>& a, const EncodeTile<T>& tile, int heads) {
  using Tile = EncodeTile<T>;
  const std::int64_t first = tile.index * Tile::kElements;
  const auto run = static_cast<std::int64_t>(tile.before.runs);
  const auto open = static_cast<std::int64_t>(tile.before.open);
  int first_head = Tile::kElements;
  int last_head = -1;
  for (int w = 0; w < kTileWarps; ++w) {
    first_head = min(first_head, tile.warp_first_head[w]);
    last_head = max(last_head, tile.warp_last_head[w]);
  }
  if (heads > 0 && run > 0) store_length(a, run - 1, open + first_head, first + first_head);
  if (first + Tile::kElements < a.count) return;
  const std::int64_t left = a.count - first;
  store_length(a, run + heads - 1, heads > 0 ? left - last_head : open + left, a.count);
  a.shared->report.runs = run + heads;
  if (a.first_runs != nullptr) a.first_runs[(a.count - 1) / a.piece + 1] = run + heads;
}

template <class T>
__global__ void __launch_bounds__(EncodeTile<T>::kThreads) encode_tiles(const EncodeArguments<T> a) {
  using Tile = EncodeTile<T>;
  extern __shared__ uint4 tile_memory[];
  Tile& tile = *reinterpret_cast<Tile*>(tile_memory);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  // Tiles are taken in the order of tickets: whoever holds a lower one is running, so that waiting for it
  // ends, however few blocks are resident.
  if (threadIdx.x == 0) tile.index = atomicAdd(&a.shared->last_ticket, 1u) + 1u;
  __syncthreads();
  const bool whole = (tile.index + 1) * Tile::kElements <= a.count;
  if (kIsWord<T> && whole) {
    if constexpr (kIsWord<T>) {
      if (warp < kTileWarps) load_words(a, tile, warp, lane);
    }
    __syncwarp();
  } else {
    if (warp < kTileWarps) load_elements(a, tile, whole, warp, lane);
    __syncthreads();
    if (warp < kTileWarps) flag_elements(a, tile, warp, lane);
    __syncwarp();
  }
  LaneFlags<T> own;
  if (warp < kTileWarps) own = count_heads(a, tile, warp, lane);
  __syncthreads();
  const int heads = heads_of_tile(tile);
  const bool few = heads <= Tile::kElements / kFewHeadsShare;
  if (warp == kTileWarps) {
    connect(a, tile, lane);
  } else {
    if (few) list_few_heads(tile, own, warp);
    if (!few || a.first_runs != nullptr) rank_words(tile, own, warp, lane);
    __syncwarp();
    if (!few) list_many_heads(tile, 0, warp, lane);
  }
  __syncthreads();
  if (a.first_runs != nullptr) write_first_runs(a, tile);
  if (threadIdx.x == Tile::kThreads - 1) finish_runs(a, tile, heads);
  write_listed_runs(a, tile, 0, heads);
  for (int listed = Tile::kListedHeads; listed < heads; listed += Tile::kListedHeads) {
    __syncthreads();
    if (warp < kTileWarps) list_many_heads(tile, listed, warp, lane);
    __syncthreads();
    write_listed_runs(a, tile, listed, heads);
  }
}

}  // namespace cumulus::run_length
