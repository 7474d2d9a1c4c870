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
__device__ void publish_tile(const EncodeArguments<T>& a, const EncodeTile<T>& tile, State state, Stretch before) {
  const auto runs = static_cast<std::uint64_t>(heads_of_tile(tile));
  int last_head = 0;
  for (int w = 0; w < kTileWarps; ++w) last_head = max(last_head, tile.warp_last_head[w]);
  const auto open = static_cast<std::uint64_t>(EncodeTile<T>::kElements - last_head);
  publish(a.words + tile.index, state, {before.runs + runs, runs > 0 ? open : before.open + open});
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

/// Where the warp's runs go, and whether they are stored as they are: counts of 32 bits, with room for all.
struct WarpRuns {
  std::int64_t first_run;
  std::int64_t first_element;  // of the tile
  bool plain;
};

/// The symbol of a run whose head is element `head` of the tile, and its length, unless `next` is no head.
template <class T>
__device__ void write_run(const EncodeArguments<T>& a, const WarpRuns& runs, int rank, const T& symbol, int head,
                          int next) {
  const std::int64_t run = runs.first_run + rank;
  const bool with_length = next < EncodeTile<T>::kElements;
  if (runs.plain) {
    a.symbols[run] = symbol;
    if (with_length) static_cast<std::uint32_t*>(a.lengths)[run] = static_cast<std::uint32_t>(next - head);
  } else {
    if (run < a.max_runs) a.symbols[run] = symbol;
    if (with_length) store_length(a, run, next - head, runs.first_element + next);
  }
}

inline constexpr int kLaneHeads = kFewHeads / 32;

/// The symbols of the heads that the warp has listed.
template <class T>
struct ListedSymbols {
  T symbols[kLaneHeads];
};

template <class T>
__device__ ListedSymbols<T> load_listed(const EncodeArguments<T>& a, const EncodeTile<T>& tile, int warp,
                                        int lane) {
  ListedSymbols<T> listed;
  const T* elements = a.elements + tile.index * EncodeTile<T>::kElements;
#pragma unroll
  for (int k = 0; k < kLaneHeads; ++k) {
    const int r = 32 * k + lane;
    if (r < tile.warp_heads[warp]) listed.symbols[k] = elements[tile.heads[warp][r]];
  }
  return listed;
}

template <class T>
__device__ void write_listed(const EncodeArguments<T>& a, const EncodeTile<T>& tile, const WarpRuns& runs,
                             const ListedSymbols<T>& listed, int warp, int lane) {
#pragma unroll
  for (int k = 0; k < kLaneHeads; ++k) {
    const int r = 32 * k + lane;
    if (r < tile.warp_heads[warp])
      write_run(a, runs, r, listed.symbols[k], tile.heads[warp][r], tile.heads[warp][r + 1]);
  }
}

/// The runs of the warp's words, which are ranked, a lane for each element.
template <class T>
__device__ void write_ranked(const EncodeArguments<T>& a, const EncodeTile<T>& tile, const WarpRuns& runs,
                             const LaneFlags<T>& own, int warp, int lane) {
  using Tile = EncodeTile<T>;
  const T* elements = a.elements + runs.first_element;
#pragma unroll (Tile::kKept ? Tile::kWarpWords : 8)
  for (int k = 0; k < Tile::kWarpWords; ++k) {
    const int begin = 32 * (warp * Tile::kWarpWords + k);
    const HeadWord word = tile.words[begin / 32];
    const std::uint32_t from_lane = word.flags >> lane;
    if ((from_lane & 1) == 0) continue;
    const int rank = word.rank + __popc(word.flags & ((1u << lane) - 1));
    const int head = begin + lane;
    const std::uint32_t behind = from_lane >> 1;
    const int next = behind == 0 ? word.next : head + __ffs(static_cast<int>(behind));
    if constexpr (Tile::kKept) {
      write_run(a, runs, rank, own.elements[k], head, next);
    } else {
      write_run(a, runs, rank, elements[head], head, next);
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
__global__ void __launch_bounds__(EncodeTile<T>::kThreads, ENCODE_BLOCKS) encode_tiles(const EncodeArguments<T> a) {
  using Tile = EncodeTile<T>;
  __shared__ Tile tile;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  // Tiles are taken in the order of tickets: whoever holds a lower one is running, so that waiting for it
  // ends, however few blocks are resident.
#if ENCODE_TICKET
  if (threadIdx.x == 0) tile.index = atomicAdd(&a.shared->last_ticket, 1u) + 1u;
#else
  if (threadIdx.x == 0) tile.index = blockIdx.x;
#endif
  __syncthreads();
  LaneFlags<T> own;
  flag_heads(a, tile, own, warp, lane);
  count_heads(a, tile, own, warp, lane);
  __syncthreads();
  if (threadIdx.x == 0) publish_tile(a, tile, tile.index == 0 ? State::kInclusive : State::kOwn, {0, 0});
  const int heads = tile.warp_heads[warp];
  const bool few = heads <= kFewHeads;
  ListedSymbols<T> listed;
  if (few) {
    list_few_heads(tile, own, warp, lane);
    __syncwarp();
    listed = load_listed(a, tile, warp, lane);
  }
  if (!few || a.first_runs != nullptr) rank_words(tile, own, warp, lane);
  if (warp == 0) {
    Stretch before{0, 0};
    if (tile.index > 0) {
      before = look_back(a.words, tile.index);
      if (lane == 0) publish_tile(a, tile, State::kInclusive, before);
    }
    if (lane == 0) tile.before = before;
  }
  __syncthreads();
  WarpRuns runs{static_cast<std::int64_t>(tile.before.runs), tile.index * Tile::kElements, false};
  runs.plain = !a.wide_lengths && !a.ends && runs.first_run + heads_of_tile(tile) <= a.max_runs;
  if (few) {
    runs.first_run += heads_before(tile, warp);
    write_listed(a, tile, runs, listed, warp, lane);
  } else {
    write_ranked(a, tile, runs, own, warp, lane);
  }
  if (a.first_runs != nullptr) write_first_runs(a, tile);
  if (threadIdx.x == Tile::kThreads - 1) finish_runs(a, tile, heads_of_tile(tile));
}

}  // namespace cumulus::run_length
