#pragma once

#include <cuda_pipeline.h>

#include <cstdint>

#include "kernels/primitives/warp_scan.cuh"
#include "kernels/run_length/decode_scan.cuh"
#include "kernels/run_length/run_length.h"
#include "kernels/run_length/run_length_element.h"
#include "kernels/run_length/run_length_tuning.h"

// The decoder's first kernel, and for short runs the only one that reads and writes: a block takes a tile of
// runs, adds up their lengths, learns from the tiles before where they begin, and writes their elements. In
// words of 32 bits it marks where runs begin in the tile's elements: of how many marks an element has up to
// itself follows its run. Tiles of many elements are left to the tiles of the output (decode_tile.cuh).

namespace cumulus::run_length {

/// 32 elements of a tile. Read whole.
struct alignas(8) MarkedWord {
  std::uint32_t heads;
  std::uint32_t rank;  // of the heads before it
};

template <class T>
struct RunTile {
  static constexpr int kRuns = kTileWarps * kGranuleRuns;
  static constexpr int kThreads = 32 * (kTileWarps + 1);  // one warp looks back
  static constexpr int kWords = kShortTileElements / 32;
  static constexpr int kWordsPerLane = kWords / (32 * kTileWarps);
  static constexpr int kVectors = static_cast<int>(kRuns * sizeof(T) / 16);
  static_assert(kWordsPerLane * 32 * kTileWarps == kWords && kRuns <= 65536);

  alignas(16) T symbols[kRuns];
  MarkedWord words[kWords];
  std::uint16_t runs[kRuns];  // where there are runs of no elements: those of some, by rank
  std::uint64_t warp_elements[kTileWarps];
  std::uint32_t warp_heads[kTileWarps];
  std::int64_t index;
  std::uint64_t before;  // elements of the tiles before
};

template <class T>
__device__ void copy_symbols(const DecodeArguments& a, const T* symbols, RunTile<T>& tile) {
  using Tile = RunTile<T>;
  const std::int64_t first = tile.index * Tile::kRuns;
  const auto thread = static_cast<int>(threadIdx.x);
  if (first + Tile::kRuns <= a.runs) {
    for (int v = thread; v < Tile::kVectors; v += 32 * kTileWarps) {
      __pipeline_memcpy_async(reinterpret_cast<uint4*>(tile.symbols) + v,
                              reinterpret_cast<const uint4*>(symbols + first) + v, sizeof(uint4));
    }
    __pipeline_commit();
  } else {
    for (int i = thread; i < a.runs - first; i += 32 * kTileWarps) tile.symbols[i] = symbols[first + i];
  }
}

/// By one warp: publishes what the tile adds up to, learns where it begins, publishes where it ends.
template <class T>
__device__ void connect(const DecodeArguments& a, RunTile<T>& tile, std::uint64_t elements, int lane) {
  Word* word = a.words + tile.index;
  std::uint64_t before = 0;
  if (lane == 0) publish(word, tile.index == 0 ? State::kInclusive : State::kOwn, {0, elements});
  if (tile.index > 0) before = elements_before(a.words, tile.index, lane);
  const std::uint64_t through = saturating_sum(before, elements);
  if (lane != 0) return;
  if (tile.index > 0) publish(word, State::kInclusive, {0, through});
  tile.before = before;
  if ((tile.index + 1) * RunTile<T>::kRuns >= a.runs) {
    a.shared->report.elements = static_cast<std::int64_t>(through);
  }
}

/// Marks where the lane's runs begin; the first of them at element `begin` of the tile.
template <class T>
__device__ void mark_heads(const LaneCounts& own, std::uint32_t begin, RunTile<T>& tile) {
  std::uint32_t heads = 0;
  std::uint32_t word = begin / 32;
#pragma unroll
  for (int k = 0; k < kLaneRuns; ++k) {
    if (begin / 32 != word) {
      if (heads != 0) atomicOr(&tile.words[word].heads, heads);
      word = begin / 32;
      heads = 0;
    }
    if (own.counts[k] > 0) heads |= 1u << begin % 32;
    begin += static_cast<std::uint32_t>(own.counts[k]);
  }
  if (heads != 0) atomicOr(&tile.words[word].heads, heads);
}

/// Heads among the elements of a word up to its `bit`-th.
__device__ inline std::uint32_t heads_through(const MarkedWord& word, std::uint32_t bit) {
  return word.rank + static_cast<std::uint32_t>(__popc(word.heads & ((2u << bit) - 1)));
}

/// For each lane's runs that have elements: which they are, by rank.
template <class T>
__device__ void list_runs(const LaneCounts& own, std::uint32_t begin, int first_run, RunTile<T>& tile) {
#pragma unroll
  for (int k = 0; k < kLaneRuns; ++k) {
    if (own.counts[k] == 0) continue;
    tile.runs[heads_through(tile.words[begin / 32], begin % 32) - 1] =
        static_cast<std::uint16_t>(first_run + k);
    begin += static_cast<std::uint32_t>(own.counts[k]);
  }
}

/// By the warps that handle elements: counts the words' heads, first each for itself.
template <class T>
__device__ std::uint32_t count_heads(RunTile<T>& tile, int warp, int lane) {
  using Tile = RunTile<T>;
  std::uint32_t own = 0;
#pragma unroll
  for (int k = 0; k < Tile::kWordsPerLane; ++k) {
    own += static_cast<std::uint32_t>(__popc(tile.words[threadIdx.x * Tile::kWordsPerLane + k].heads));
  }
  const std::uint32_t through = warp_prefix_sum(own);
  if (lane == 31) tile.warp_heads[warp] = through;
  return through - own;
}
template <class T>
__device__ void rank_words(RunTile<T>& tile, std::uint32_t rank, int warp) {
  using Tile = RunTile<T>;
#pragma unroll
  for (int w = 0; w < kTileWarps; ++w) rank += w < warp ? tile.warp_heads[w] : 0;
#pragma unroll
  for (int k = 0; k < Tile::kWordsPerLane; ++k) {
    MarkedWord& word = tile.words[threadIdx.x * Tile::kWordsPerLane + k];
    word.rank = rank;
    rank += static_cast<std::uint32_t>(__popc(word.heads));
  }
}

/// Writes the tile's `count` elements, 32 whole ones of the output by each warp at a time.
template <bool kListed, class T>
__device__ void write_elements(const RunTile<T>& tile, std::int64_t count, T* elements, int warp, int lane) {
  const auto begin = static_cast<std::int64_t>(tile.before);
  const int past = static_cast<int>(begin % 32);
  const int end = static_cast<int>(count) + past;
  T* to = elements + (begin - past);
#pragma unroll 4
  for (int i = warp * 32 + lane; i < end; i += RunTile<T>::kThreads) {
    const int element = i - past;
    if (element < 0) continue;
    const auto at = static_cast<std::uint32_t>(element);
    std::uint32_t run = heads_through(tile.words[at / 32], at % 32) - 1;
    if constexpr (kListed) run = tile.runs[run];
    to[i] = tile.symbols[run];
  }
}

/// Which tile the block takes. While others may wait for it they are dealt out in the order of tickets.
template <class T>
__device__ void take_tile(const DecodeArguments& a, DecodePass pass, RunTile<T>& tile) {
  if (threadIdx.x == 0) tile.index = pass.sums ? atomicAdd(&a.shared->last_ticket, 1u) + 1u : blockIdx.x;
  __syncthreads();
}

template <class T>
__global__ void __launch_bounds__(RunTile<T>::kThreads)
    decode_runs(const DecodeArguments a, DecodePass pass, const T* symbols, T* elements) {
  using Tile = RunTile<T>;
  extern __shared__ uint4 tile_memory[];
  Tile& tile = *reinterpret_cast<Tile*>(tile_memory);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const bool connects = warp == kTileWarps;
  if (!pass.sums && a.shared->report.outcome != DecodeRunLengthsReport::Outcome::kDecoded) return;
  take_tile(a, pass, tile);
  const std::int64_t granule = tile.index * kTileWarps + warp;
  LaneCounts own;
  std::uint64_t begin = 0;
  bool zero = false;
  if (!connects) {
    if (pass.writes) copy_symbols(a, symbols, tile);
    own = load_counts(a, granule, lane);
    zero = own.any_zero();
    if (own.descending_run >= 0) {
      atomicMin(reinterpret_cast<unsigned long long*>(&a.shared->report.run),
                static_cast<unsigned long long>(own.descending_run));
    }
    for (int word = static_cast<int>(threadIdx.x); word < Tile::kWords; word += 32 * kTileWarps)
      tile.words[word].heads = 0;
    const std::uint64_t through = warp_scan(own.sum(), lane);
    begin = before_lane(through, lane);
    if (lane == 31) tile.warp_elements[warp] = through;
  }
  const bool any_zero = __syncthreads_or(zero ? 1 : 0) != 0;
  std::uint64_t count = 0;
  std::uint64_t before_warp = 0;
#pragma unroll
  for (int w = 0; w < kTileWarps; ++w) {
    if (w == warp) before_warp = count;
    count = saturating_sum(count, tile.warp_elements[w]);
  }
  begin += before_warp;
  const bool is_short = count <= kShortTileElements;
  if (connects) {
    if (pass.sums) {
      connect(a, tile, count, lane);
    } else if (lane == 0) {
      tile.before = a.granule_offsets[granule - kTileWarps];
    }
  } else if (is_short && pass.writes) {
    mark_heads(own, static_cast<std::uint32_t>(begin), tile);
  }
  __syncthreads();
  if (pass.sums) {
    if (!connects && lane == 0 && granule < a.granules)
      a.granule_offsets[granule] = saturating_sum(tile.before, before_warp);
    if (!is_short && threadIdx.x == 0) a.shared->no_long_tile = 0;
  }
  // Whatever else is wrong, nothing is written beyond the room that there is.
  const bool fits = saturating_sum(tile.before, count) <= static_cast<std::uint64_t>(a.max_elements);
  if (!pass.writes || !is_short || !fits) return;
  std::uint32_t rank = 0;
  if (!connects) rank = count_heads(tile, warp, lane);
  __syncthreads();
  if (!connects) rank_words(tile, rank, warp);
  __pipeline_wait_prior(0);
  __syncthreads();
  const auto written = static_cast<std::int64_t>(count);
  if (!any_zero) return write_elements<false>(tile, written, elements, warp, lane);
  if (!connects) {
    list_runs(own, static_cast<std::uint32_t>(begin), static_cast<int>(threadIdx.x) * kLaneRuns, tile);
  }
  __syncthreads();
  write_elements<true>(tile, written, elements, warp, lane);
}

}  // namespace cumulus::run_length
