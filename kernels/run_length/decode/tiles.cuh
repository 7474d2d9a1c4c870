#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/primitives/launch.cuh"
#include "kernels/primitives/multiprocessor.cuh"
#include "kernels/primitives/warp_scan.cuh"
#include "kernels/run_length/decode/granule_sums.cuh"
#include "kernels/run_length/element.h"
#include "kernels/run_length/run_length.h"
#include "kernels/run_length/tuning.h"

// The decoder's last kernel writes tiles of the output. A block marks, a bit for each element, where runs
// begin in its tile, and ranks the words of bits. An element's run is the tile's first run plus the element's
// rank among the heads; its symbol is gathered from global memory.

namespace cumulus::run_length {

/// What a block has to write.
struct TileTask {
  std::int64_t elements;  // to be written; 0: none
  std::int64_t first_granule;
  std::int64_t last_granule;
  const std::uint64_t* block_begins;
};

/// A tile in the shared memory of its block.
template <class T>
struct DecodeTile {
  static constexpr int kElements = decode_tile_elements(sizeof(T));
  static constexpr int kThreads = 32 * kTileWarps;
  static constexpr int kBlocks = 5;  // resident on a multiprocessor
  static constexpr int kWords = kElements / 32;
  static constexpr int kWarpWords = kWords / kTileWarps;
  static constexpr int kVectors = static_cast<int>(kElements * sizeof(T) / 16);
  static_assert(kWarpWords % 32 == 0 && kVectors % kThreads == 0);

  alignas(16) RankedFlags words[kWords];
  std::int32_t warp_heads[kTileWarps];
  std::int64_t first_run;  // that has elements in the tile
  TileTask task;
  std::uint64_t block_begins[kFewBlocks];  // where there are few blocks
};

/// Marks where the lane's runs begin in the tile; a run that is open before the tile is marked at its first
/// element. `begin` is where the lane's first run begins, relative to the tile. True where a run of no
/// elements lies between others of the tile: ranks are then not the distances between runs.
template <class T>
__device__ bool mark_runs(const DecodeArguments& a, const LaneCounts& own, std::int64_t begin,
                          DecodeTile<T>& tile) {
  std::uint32_t flags = 0;
  int word = 0;
  bool any_empty = false;
#pragma unroll
  for (int k = 0; k < kLaneRuns; ++k) {
    const std::int64_t end = begin + static_cast<std::int64_t>(own.counts[k]);
    if (end > 0 && begin < DecodeTile<T>::kElements) {
      any_empty |= end == begin && own.first_run + k < a.runs;
      if (begin <= 0) tile.first_run = own.first_run + k;
      const int head = static_cast<int>(max(begin, std::int64_t{0}));
      if (head / 32 != word) {
        if (flags != 0) atomicOr(&tile.words[word].flags, flags);
        word = head / 32;
        flags = 0;
      }
      if (end > begin) flags |= 1u << head % 32;
    }
    begin = end;
  }
  if (flags != 0) atomicOr(&tile.words[word].flags, flags);
  return any_empty;
}

/// Fills in the ranks of the words.
template <class T>
__device__ void rank_words(DecodeTile<T>& tile, int warp, int lane) {
  using Tile = DecodeTile<T>;
  RankedFlags* words = tile.words + warp * Tile::kWarpWords + lane;
  int ranks[Tile::kWarpWords / 32];
  int before = 0;
#pragma unroll
  for (int k = 0; k < Tile::kWarpWords / 32; ++k) {
    const int heads = __popc(words[32 * k].flags);
    ranks[k] = before;
    if (!__any_sync(kFullWarp, heads != 0)) continue;
    const int through = warp_inclusive_sum(heads);
    ranks[k] += through - heads;
    before += __shfl_sync(kFullWarp, through, 31);
  }
  if (lane == 0) tile.warp_heads[warp] = before;
  __syncthreads();
  int rank = -1;
  for (int w = 0; w < warp; ++w) rank += tile.warp_heads[w];
#pragma unroll
  for (int k = 0; k < Tile::kWarpWords / 32; ++k) words[32 * k].rank = rank + ranks[k];
  __syncthreads();
}

/// Eight bytes of copies of one element.
template <class T>
__device__ std::uint64_t splat(T value) {
  if constexpr (sizeof(T) == 8) {
    return value;
  } else {
    const std::uint32_t word = value * (~std::uint32_t{0} / static_cast<T>(~T{0}));
    return std::uint64_t{word} << 32 | word;
  }
}

/// Sixteen bytes of elements.
struct ElementVector {
  std::uint64_t low;
  std::uint64_t high;
};

/// The elements of a vector whose first is of the run of `symbol`; `heads` marks where the next runs begin:
/// each overwrites the vector from there on.
template <class T>
__device__ ElementVector overlay_runs(const T* symbol, std::uint32_t heads) {
  constexpr int kElementBits = 8 * sizeof(T);
  const std::uint64_t first = splat(__ldg(symbol));
  ElementVector vector{first, first};
  for (; heads != 0; heads &= heads - 1) {
    const auto bit = static_cast<unsigned int>(__ffs(static_cast<int>(heads)) - 1) * kElementBits;
    const std::uint64_t next = splat(__ldg(++symbol));
    const std::uint64_t behind = ~std::uint64_t{0} << bit % 64;
    if (bit < 64) vector.low = (vector.low & ~behind) | (next & behind);
    vector.high = bit < 64 ? next : (vector.high & ~behind) | (next & behind);
  }
  return vector;
}

/// Four elements of a byte, the first of the run of `symbol`; bits 1 to 3 of `heads` mark where the next runs
/// begin. Reads only words of memory that hold one of their symbols.
__device__ inline std::uint32_t gather_four(const std::uint8_t* symbol, std::uint32_t heads) {
  const auto word_of = [](const std::uint8_t* at) {
    return __ldg(reinterpret_cast<const std::uint32_t*>(reinterpret_cast<std::uintptr_t>(at) / 4 * 4));
  };
  heads &= 0xE;
  const auto shift = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(symbol) % 4 * 8);
  const std::uint32_t window = __funnelshift_r(word_of(symbol), word_of(symbol + __popc(heads)), shift);
  const std::uint32_t nibbles = heads * 0x248 & 0x1110;  // a head to every four bits
  return __byte_perm(window, 0, nibbles * 0x1111);       // and their prefix sums
}

/// Sixteen elements of a byte, of which the first is number `bit` of a word of flags.
__device__ inline ElementVector gather_runs(const std::uint8_t* symbols, const RankedFlags& word,
                                            unsigned int bit) {
  std::uint32_t fours[4];
#pragma unroll
  for (unsigned int i = 0; i < 4; ++i) {
    const unsigned int first = bit + 4 * i;
    const int run = word.rank + __popc(word.flags & ((2u << first) - 1));
    fours[i] = gather_four(symbols + run, word.flags >> first);
  }
  return {std::uint64_t{fours[1]} << 32 | fours[0], std::uint64_t{fours[3]} << 32 | fours[2]};
}

/// Whether so many runs begin in a tile that gathering is faster than overlaying, in which a warp takes as
/// long as its lane with the most runs.
template <class T>
__device__ bool many_heads(const DecodeTile<T>& tile) {
  int heads = 0;
#pragma unroll
  for (const int of_warp : tile.warp_heads) heads += of_warp;
  return heads * kManyHeadsRatio >= DecodeTile<T>::kElements;
}

/// A whole tile of elements that are words, 16 bytes at a time. A thread's vectors all lie at the same place
/// in their words of flags.
template <bool kGather, class T>
__device__ void store_vectors(const DecodeTile<T>& tile, const T* symbols, T* elements) {
  using Tile = DecodeTile<T>;
  constexpr int kPerVector = 16 / sizeof(T);
  constexpr int kStep = Tile::kThreads * kPerVector / 32;  // words from one vector to the next
  static_assert(Tile::kThreads * kPerVector % 32 == 0);
  const unsigned int thread = threadIdx.x;
  const unsigned int first_word = thread * kPerVector / 32;
  const unsigned int bit = thread * kPerVector % 32;
  const std::uint32_t through_first = (2u << bit) - 1;
  const std::uint32_t behind_first = ((1u << (kPerVector - 1)) - 1) << 1;
  auto* to = reinterpret_cast<ulonglong2*>(elements) + thread;
#pragma unroll(kGather ? 1 : 4)
  for (int k = 0; k < Tile::kVectors / Tile::kThreads; ++k) {
    const RankedFlags word = tile.words[first_word + k * kStep];
    ElementVector vector;
    if constexpr (kGather) {
      vector = gather_runs(symbols, word, bit);
    } else {
      const T* symbol = symbols + (word.rank + __popc(word.flags & through_first));
      vector = overlay_runs(symbol, word.flags >> bit & behind_first);
    }
    __stcs(to + k * Tile::kThreads, ulonglong2{vector.low, vector.high});
  }
}

/// The first `count` elements of a tile, one to a lane.
template <class T>
__device__ void store_elements(const DecodeTile<T>& tile, const T* symbols, int count, T* elements, int warp,
                               int lane) {
  const std::uint32_t through_lane = ~0u >> (31 - lane);
#pragma unroll 4
  for (int w = warp; w * 32 < count; w += kTileWarps) {
    const int element = w * 32 + lane;
    const RankedFlags word = tile.words[w];
    if (element < count) elements[element] = symbols[word.rank + __popc(word.flags & through_lane)];
  }
}

/// By a whole warp: writes the lanes' runs one by one, as far as they lie in the first `count` elements of a
/// tile. `begin` is where the lane's first run begins, relative to the tile.
template <class T>
__device__ void store_runs(const LaneCounts& own, std::int64_t begin, const T* symbols, int count,
                           T* elements, int lane) {
  const auto clipped = [&](std::int64_t at) {
    return static_cast<int>(min(max(at, std::int64_t{0}), std::int64_t{count}));
  };
#pragma unroll
  for (int k = 0; k < kLaneRuns; ++k) {
    const std::int64_t end = begin + static_cast<std::int64_t>(own.counts[k]);
    const int from = clipped(begin);
    const int to = clipped(end);
    for (std::uint32_t lanes = __ballot_sync(kFullWarp, from < to); lanes != 0; lanes &= lanes - 1) {
      const int owner = __ffs(static_cast<int>(lanes)) - 1;
      const T symbol = symbols[__shfl_sync(kFullWarp, own.first_run, owner) + k];
      const int stop = __shfl_sync(kFullWarp, to, owner);
      for (int i = __shfl_sync(kFullWarp, from, owner) + lane; i < stop; i += 32) elements[i] = symbol;
    }
    begin = end;
  }
}

/// Calls each(counts of the lane's runs, where the first of them begins relative to `tile_begin`) for the
/// granules, one to a warp.
template <class Each>
__device__ void for_granules(const DecodeArguments& a, const TileTask& task, std::int64_t tile_begin,
                             int warp, int lane, const Each& each) {
  for (std::int64_t granule = task.first_granule + warp; granule <= task.last_granule;
       granule += kTileWarps) {
    const std::uint64_t block_begin = task.block_begins[granule / kBlockGranules];
    const std::uint64_t granule_begin = block_begin + (a.granule_offsets[granule] & ~kShort);
    const LaneCounts own = load_counts(a, granule, lane);
    const std::uint64_t before = before_lane(warp_scan(own.sum()), lane);
    each(own, static_cast<std::int64_t>(granule_begin + before) - tile_begin);
  }
}

/// By a whole block: whether any granule is not short.
__device__ inline bool any_long_granule(const DecodeArguments& a, const TileTask& task) {
  bool any_long = false;
  for (std::int64_t granule = task.first_granule + threadIdx.x; granule <= task.last_granule;
       granule += 32 * kTileWarps)
    any_long |= (a.granule_offsets[granule] & kShort) == 0;
  return __syncthreads_or(any_long ? 1 : 0) != 0;
}

/// Where there are few blocks: by one warp, which scans them.
__device__ inline TileTask find_task(const DecodeArguments& a, std::int64_t begin, std::int64_t max_elements,
                                     std::uint64_t* block_begins, int lane) {
  const FewBlocks few = scan_few_blocks(a, lane);
  block_begins[lane] = few.begin;
  if (begin == 0 && lane == 0) *a.caller_report = few.report;
  const std::int64_t total = few.report.elements;
  if (few.report.outcome != DecodeRunLengthsReport::Outcome::kDecoded || begin >= total) return {};
  const std::int64_t end = min(begin + max_elements, total);
  return {end - begin, find_granule(a, few.begin, static_cast<std::uint64_t>(begin), lane),
          find_granule(a, few.begin, static_cast<std::uint64_t>(end - 1), lane), block_begins};
}

/// Otherwise, from what the kernels before have left.
__device__ inline TileTask known_task(const DecodeArguments& a, std::int64_t begin,
                                      std::int64_t max_elements) {
  // All loads at once: each would wait for the one before otherwise.
  const bool all_short = *a.all_short;
  const std::int64_t total = a.report->elements;
  const auto outcome = a.report->outcome;
  const std::int64_t first = a.first_granules[blockIdx.x];
  const std::int64_t next = a.first_granules[min(std::int64_t{blockIdx.x} + 1, a.tiles - 1)];
  if (all_short || outcome != DecodeRunLengthsReport::Outcome::kDecoded || begin >= total) return {};
  const std::int64_t elements = min(max_elements, total - begin);
  return {elements, first, begin + elements == total ? a.granules - 1 : next, a.block_offsets};
}

/// Of a tile with runs of no elements.
template <class T>
__device__ __noinline__ void store_run_by_run(const DecodeArguments& a, const TileTask& task,
                                              const T* symbols, std::int64_t tile_begin, T* elements,
                                              int lane) {
  for_granules(a, task, tile_begin, warp_index(), lane, [&](const LaneCounts& own, std::int64_t begin) {
    store_runs(own, begin, symbols, static_cast<int>(task.elements), elements, lane);
  });
}

/// owns: block b has tile b of the output, decode_tile_elements(sizeof(T)) elements.
/// reads: lengths of the granules that reach into the tile, symbols, granule_offsets, block_offsets,
///   first_granules, the report; where there are few blocks, block_offsets are still sums, and one warp scans
///   them.
/// writes: the tile, where one of its granules is not short, or there are few blocks; tile 0 of few blocks
///   the report.
/// waits for: the end of the kernel before (programmatic dependent launch), whose blocks wait for none of
///   these, so that it cannot deadlock.
/// source: ranks of bits, as in decode/short_granules.cuh.
template <class T>
__global__ void __launch_bounds__(DecodeTile<T>::kThreads,
                                  blocks_per_multiprocessor(DecodeTile<T>::kBlocks, DecodeTile<T>::kThreads))
    expand_tiles(const __grid_constant__ DecodeArguments a, const T* symbols, T* elements) {
  using Tile = DecodeTile<T>;
  __shared__ Tile tile;
  const int warp = warp_index();
  const int lane = lane_index();
  const std::int64_t begin = std::int64_t{blockIdx.x} * Tile::kElements;
  for (int word = static_cast<int>(threadIdx.x); word < Tile::kWords; word += Tile::kThreads)
    tile.words[word].flags = 0;
  wait_for_primary_kernel();
  if (warp == 0) {
    const TileTask task = a.few_blocks ? find_task(a, begin, Tile::kElements, tile.block_begins, lane)
                                       : known_task(a, begin, Tile::kElements);
    if (lane == 0) tile.task = task;
  }
  __syncthreads();
  const TileTask& task = tile.task;
  if (task.elements == 0) return;
  // Of no more granules than warps, the check takes as long as the work.
  const bool many = !a.few_blocks && task.last_granule - task.first_granule >= kTileWarps;
  if (many && !any_long_granule(a, task)) return;
  bool any_empty = false;
  for_granules(a, task, begin, warp, lane,
               [&](const LaneCounts& own, std::int64_t at) { any_empty |= mark_runs(a, own, at, tile); });
  T* to = elements + begin;
  if (__syncthreads_or(any_empty ? 1 : 0) != 0) return store_run_by_run(a, task, symbols, begin, to, lane);
  rank_words(tile, warp, lane);
  const T* tile_symbols = symbols + tile.first_run;
  if constexpr (kIsWord<T>) {
    if (task.elements == Tile::kElements) {
      if constexpr (sizeof(T) == 1) {
        if (many_heads(tile)) return store_vectors<true>(tile, tile_symbols, to);
      }
      return store_vectors<false>(tile, tile_symbols, to);
    }
  }
  store_elements(tile, tile_symbols, static_cast<int>(task.elements), to, warp, lane);
}

}  // namespace cumulus::run_length
