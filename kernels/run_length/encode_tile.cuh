#pragma once

#include <cstdint>

#include "kernels/run_length/encode_heads.cuh"
#include "kernels/run_length/look_back.cuh"

// The encoder's kernel: a block takes one tile of the array, marks the heads of its runs in words of 32
// bits, publishes how many there are, and, once one warp has looked back, writes symbols and lengths side by
// side. Each warp lists the heads in its own words, so that every lane has one to write: where they are few
// each lane those in its words, all at once; where they are many a lane for each element, eight words at a
// time. A length is the distance to the next head; the last run of a tile is finished by the next tile that
// has a head.

namespace cumulus::run_length {

/// By one thread: the tile's stretch, joined to `before`.
template <class T>
__device__ void publish_tile(const EncodeArguments<T>& a, const EncodeTile<T>& tile, State state,
                             Stretch before) {
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

/// Writes a warp's runs as they are: counts of 32 bits, with room for all.
template <class T>
struct PlainRuns {
  T* symbols;
  std::uint32_t* lengths;

  __device__ void write(int rank, const T& symbol, int head, int next) const {
    symbols[rank] = symbol;
    if (next < EncodeTile<T>::kElements) lengths[rank] = static_cast<std::uint32_t>(next - head);
  }
};

/// Writes runs in any form.
template <class T>
struct AnyRuns {
  const EncodeArguments<T>& a;
  std::int64_t first_run;
  std::int64_t first_element;  // of the tile

  __device__ void write(int rank, const T& symbol, int head, int next) const {
    const std::int64_t run = first_run + rank;
    if (run < a.max_runs) a.symbols[run] = symbol;
    if (next < EncodeTile<T>::kElements) store_length(a, run, next - head, first_element + next);
  }
};

/// Of each of the `heads` that the warp has listed, the symbol and, unless no head follows in the tile, the
/// length.
template <class T, class Runs>
__device__ void write_listed(const EncodeTile<T>& tile, const Runs& runs, int first_rank, int heads, int warp,
                             int lane) {
  for (int r = lane; r < heads; r += 32) {
    const int head = tile.heads[warp][r];
    runs.write(first_rank + r, tile.elements[head], head, tile.heads[warp][r + 1]);
  }
}

/// Lists the heads in some of the warp's words, which are ranked, a lane for each element, and behind them
/// the next one; returns how many there are.
template <class T>
__device__ int list_many_heads(EncodeTile<T>& tile, int first_word, int warp, int lane) {
  constexpr int kWords = EncodeTile<T>::kListedWords;
  const std::uint32_t before_lane = (1u << lane) - 1;
  std::uint16_t* list = tile.heads[warp] - tile.words[first_word].rank;
#pragma unroll
  for (int w = first_word; w < first_word + kWords; ++w) {
    const HeadWord word = tile.words[w];
    if ((word.flags >> lane & 1) != 0)
      list[word.rank + __popc(word.flags & before_lane)] = static_cast<std::uint16_t>(32 * w + lane);
  }
  const HeadWord last = tile.words[first_word + kWords - 1];
  const int end = last.rank + __popc(last.flags);
  if (lane == 0) list[end] = last.next;
  return end - tile.words[first_word].rank;
}

/// The runs whose heads lie in the warp's words: listed already where they are few, else ranked.
template <class T, class Runs>
__device__ void write_runs(EncodeTile<T>& tile, const Runs& runs, int warp, int lane) {
  using Tile = EncodeTile<T>;
  const int heads = tile.warp_heads[warp];
  if (heads <= Tile::kFewHeads) return write_listed(tile, runs, heads_before(tile, warp), heads, warp, lane);
  const int first_word = warp * Tile::kWarpWords;
  for (int word = first_word; word < first_word + Tile::kWarpWords; word += Tile::kListedWords) {
    const int listed = list_many_heads(tile, word, warp, lane);
    __syncwarp();
    write_listed(tile, runs, tile.words[word].rank, listed, warp, lane);
    __syncwarp();
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

/// By one warp: what there is before the tile, which has been published; publishes the stretch through the
/// tile.
template <class T>
__device__ void connect(const EncodeArguments<T>& a, EncodeTile<T>& tile, int lane) {
  Stretch before{0, 0};
  if (tile.index > 0) {
    before = look_back(a.words, tile.index);
    if (lane == 0) publish_tile(a, tile, State::kInclusive, before);
  }
  if (lane == 0) tile.before = before;
}

template <class T>
__global__ void __launch_bounds__(EncodeTile<T>::kThreads, encode_blocks(sizeof(T)))
    encode_tiles(const EncodeArguments<T> a) {
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
    if constexpr (kIsWord<T>) load_words(a, tile, warp, lane);
  } else {
    load_elements(a, tile, whole, warp, lane);
    __syncthreads();
    flag_elements(a, tile, warp, lane);
  }
  __syncwarp();
  const LaneFlags<T> own = count_heads(a, tile, warp, lane);
  __syncthreads();
  if (threadIdx.x == 0) publish_tile(a, tile, tile.index == 0 ? State::kInclusive : State::kOwn, {0, 0});
  const bool few = tile.warp_heads[warp] <= Tile::kFewHeads;
  if (few) list_few_heads(tile, own, warp, lane);
  if (!few || a.first_runs != nullptr) rank_words(tile, own, warp, lane);
  __syncwarp();
  if (warp == 0) connect(a, tile, lane);
  __syncthreads();
  const auto run = static_cast<std::int64_t>(tile.before.runs);
  if (!a.wide_lengths && !a.ends && run + heads_of_tile(tile) <= a.max_runs) {
    write_runs(tile, PlainRuns<T>{a.symbols + run, static_cast<std::uint32_t*>(a.lengths) + run}, warp, lane);
  } else {
    write_runs(tile, AnyRuns<T>{a, run, tile.index * Tile::kElements}, warp, lane);
  }
  if (a.first_runs != nullptr) write_first_runs(a, tile);
  if (threadIdx.x == Tile::kThreads - 1) finish_runs(a, tile, heads_of_tile(tile));
}

}  // namespace cumulus::run_length
