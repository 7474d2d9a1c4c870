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
  static constexpr int kBlocks = sizeof(T) <= 4 ? 5 : 2;  // at once on a multiprocessor
  static constexpr int kWords = kShortTileElements / 32;
  static constexpr int kWordsPerLane = kWords / (32 * kTileWarps);
  static constexpr int kVectors = static_cast<int>(kRuns * sizeof(T) / 16);
  static_assert(kWordsPerLane * 32 * kTileWarps == kWords && kRuns <= 65536);

  alignas(16) T symbols[kRuns];
  MarkedWord words[kWords + 1];  // runs of no elements may mark the one behind the last
  std::uint16_t runs[kRuns];     // where there are runs of no elements: those of some, by rank
  alignas(16) std::uint32_t warp_elements[kTileWarps];
  std::uint32_t warp_heads[kTileWarps];
  std::uint64_t long_warp_elements[kTileWarps];
  std::int64_t index;
  std::uint64_t before;  // elements of the tiles before
};

/// The counts of a lane's runs of a granule, as far as a tile of short runs may have them: anything larger is
/// one more than such a tile has elements.
struct ShortCounts {
  std::uint32_t counts[kLaneRuns];

  __device__ ShortCounts(const DecodeArguments& a, std::int64_t granule, int lane) {
    constexpr std::uint32_t kMost = kShortTileElements + 1;
    const std::int64_t first_run = granule * kGranuleRuns + lane * kLaneRuns;
    if (!a.wide_lengths && !a.ends && first_run + kLaneRuns <= a.runs) {
      const auto* from =
          reinterpret_cast<const uint4*>(static_cast<const std::uint32_t*>(a.lengths) + first_run);
#pragma unroll
      for (int k = 0; k < kLaneRuns / 4; ++k) {
        const uint4 four = __ldg(from + k);
        counts[4 * k] = min(four.x, kMost);
        counts[4 * k + 1] = min(four.y, kMost);
        counts[4 * k + 2] = min(four.z, kMost);
        counts[4 * k + 3] = min(four.w, kMost);
      }
      return;
    }
    const LaneCounts all = load_counts(a, granule, lane);
    if (all.descending_run >= 0) {
      atomicMin(reinterpret_cast<unsigned long long*>(&a.shared->report.run),
                static_cast<unsigned long long>(all.descending_run));
    }
#pragma unroll
    for (int k = 0; k < kLaneRuns; ++k)
      counts[k] = static_cast<std::uint32_t>(min(all.counts[k], std::uint64_t{kMost}));
  }

  __device__ std::uint32_t sum() const {
    std::uint32_t total = 0;
#pragma unroll
    for (int k = 0; k < kLaneRuns; ++k) total += counts[k];
    return total;
  }
  __device__ bool any_zero() const {
    std::uint32_t least = counts[0];
#pragma unroll
    for (int k = 1; k < kLaneRuns; ++k) least = min(least, counts[k]);
    return least == 0;
  }
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

/// A bit; none where there is no such bit in a word.
__device__ inline std::uint32_t bit_or_none(std::uint32_t bit) {
  std::uint32_t word;
  asm("shl.b32 %0, 1, %1;" : "=r"(word) : "r"(bit));  // amounts beyond 31 leave nothing, unlike those of C++
  return word;
}

/// Marks where the lane's runs begin; the first of them at element `begin` of the tile. A run of no elements
/// marks where the next one begins.
template <class T>
__device__ void mark_heads(const ShortCounts& own, std::uint32_t begin, RunTile<T>& tile) {
  const std::uint32_t word = begin / 32;
  std::uint32_t at = begin % 32;
  std::uint32_t heads = 0;
  std::uint32_t next_heads = 0;
  std::uint32_t last = at;
#pragma unroll
  for (int k = 0; k < kLaneRuns; ++k) {
    last = at;
    heads |= bit_or_none(at);
    next_heads |= bit_or_none(at - 32);
    at += own.counts[k];
  }
  atomicOr(&tile.words[word].heads, heads);
  if (next_heads != 0) atomicOr(&tile.words[word + 1].heads, next_heads);
  if (last < 64) return;
  at = begin % 32;
#pragma unroll
  for (int k = 0; k < kLaneRuns; ++k) {
    if (at >= 64) atomicOr(&tile.words[word + at / 32].heads, 1u << at % 32);
    at += own.counts[k];
  }
}

/// Heads among the elements of a word up to its `bit`-th.
__device__ inline std::uint32_t heads_through(const MarkedWord& word, std::uint32_t bit) {
  return word.rank + static_cast<std::uint32_t>(__popc(word.heads & ((2u << bit) - 1)));
}

/// For each lane's runs that have elements: which they are, by rank.
template <class T>
__device__ void list_runs(const ShortCounts& own, std::uint32_t begin, int first_run, RunTile<T>& tile) {
#pragma unroll
  for (int k = 0; k < kLaneRuns; ++k) {
    if (own.counts[k] == 0) continue;
    tile.runs[heads_through(tile.words[begin / 32], begin % 32) - 1] =
        static_cast<std::uint16_t>(first_run + k);
    begin += own.counts[k];
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

/// Writes the tile's `count` elements, 32 whole ones of the output by each warp at a time: a lane's have the
/// same place in their words.
template <bool kListed, class T>
__device__ void write_elements(const RunTile<T>& tile, int count, T* elements, int warp, int lane) {
  const auto begin = static_cast<std::int64_t>(tile.before);
  const int past = static_cast<int>(begin % 32);
  const int first = lane - past;  // of the tile
  const std::uint32_t through = (2u << (first & 31)) - 1;
  const int first_word = first >> 5;
  T* to = elements + (begin + first);
  const int rows = (count + past + 31) / 32;
#pragma unroll 4
  for (int row = warp; row < rows; row += kTileWarps + 1) {
    const int element = first + row * 32;
    if (element < 0 || element >= count) continue;
    const MarkedWord word = tile.words[first_word + row];
    std::uint32_t run = word.rank + static_cast<std::uint32_t>(__popc(word.heads & through)) - 1;
    if constexpr (kListed) run = tile.runs[run];
    to[row * 32] = tile.symbols[run];
  }
}

/// Where tiles have too many elements for 32 bits: what the warp's runs add up to.
__device__ inline std::uint64_t sum_long_granule(const DecodeArguments& a, std::int64_t granule, int lane) {
  const std::uint64_t through = warp_scan(load_counts(a, granule, lane).sum(), lane);
  return __shfl_sync(~0u, through, 31);
}

/// Which tile the block takes. While others may wait for it they are dealt out in the order of tickets.
template <class T>
__device__ void take_tile(const DecodeArguments& a, DecodePass pass, RunTile<T>& tile) {
  if (threadIdx.x == 0) tile.index = pass.sums ? atomicAdd(&a.shared->last_ticket, 1u) + 1u : blockIdx.x;
  __syncthreads();
}

template <class T>
__global__ void __launch_bounds__(RunTile<T>::kThreads, RunTile<T>::kBlocks)
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
  if (!connects && pass.writes) copy_symbols(a, symbols, tile);
  const ShortCounts own(a, connects ? a.granules : granule, lane);
  for (int word = static_cast<int>(threadIdx.x); word <= Tile::kWords; word += Tile::kThreads)
    tile.words[word].heads = 0;
  const std::uint32_t sum = own.sum();
  const std::uint32_t through = warp_prefix_sum(sum);
  if (lane == 31 && !connects) tile.warp_elements[warp] = through;
  const bool any_zero = __syncthreads_or(!connects && own.any_zero() ? 1 : 0) != 0;
  std::uint32_t short_count = 0;
  std::uint32_t begin = through - sum;
#pragma unroll
  for (int w = 0; w < kTileWarps; ++w) {
    if (w < warp) begin += tile.warp_elements[w];
    short_count += tile.warp_elements[w];
  }
  const bool is_short = short_count <= kShortTileElements;
  std::uint64_t count = short_count;
  std::uint64_t before_warp = __shfl_sync(~0u, begin, 0);
  if (!is_short) {
    if (!connects) {
      const std::uint64_t elements_of_warp = sum_long_granule(a, granule, lane);
      if (lane == 0) tile.long_warp_elements[warp] = elements_of_warp;
    }
    __syncthreads();
    count = 0;
    for (int w = 0; w < kTileWarps; ++w) {
      if (w == warp) before_warp = count;
      count = saturating_sum(count, tile.long_warp_elements[w]);
    }
  }
  if (connects) {
    if (pass.sums) {
      connect(a, tile, count, lane);
    } else if (lane == 0) {
      tile.before = a.granule_offsets[granule - kTileWarps];
    }
  } else if (is_short && pass.writes) {
    mark_heads(own, begin, tile);
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
  const auto written = static_cast<int>(short_count);
  if (!any_zero) return write_elements<false>(tile, written, elements, warp, lane);
  if (!connects) list_runs(own, begin, static_cast<int>(threadIdx.x) * kLaneRuns, tile);
  __syncthreads();
  write_elements<true>(tile, written, elements, warp, lane);
}

}  // namespace cumulus::run_length
