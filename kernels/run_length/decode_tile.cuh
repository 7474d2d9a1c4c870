#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/run_length/decode_granule.cuh"
#include "kernels/run_length/decode_scan.cuh"
#include "kernels/run_length/run_length.h"
#include "kernels/run_length/run_length_element.h"
#include "kernels/run_length/run_length_tuning.h"

// The decoder's last kernel: a block per tile of the output puts each run's symbol where the run begins in
// the tile, marks that place in words of 32 bits, and fills forward.

namespace cumulus::run_length {

template <class T>
struct DecodeTile {
  static constexpr int kElements = decode_tile_elements(sizeof(T));
  static constexpr int kThreads = 32 * kTileWarps;
  static constexpr int kWords = kElements / 32;
  static constexpr int kWordsPerLane = (kWords + kThreads - 1) / kThreads;
  static constexpr int kVectors = static_cast<int>(kElements * sizeof(T) / 16);
  static_assert(kVectors % kThreads == 0);

  alignas(16) T elements[kElements];
  std::uint32_t heads[kWords];
  std::int32_t head_before[kWords];  // the last head before each word; of the first word -1
  std::int32_t warp_last_head[kTileWarps];
};

/// Puts the symbols of the lane's runs that lie in the tile to where they begin there. `begin` is where the
/// first of them begins, from the tile's begin; it may be negative.
template <class T>
__device__ void place_runs(const LaneCounts& own, const T* symbols, std::int64_t begin, DecodeTile<T>& tile) {
  using Tile = DecodeTile<T>;
  std::uint32_t flags = 0;
  int word = -1;
#pragma unroll
  for (int k = 0; k < kLaneRuns; ++k) {
    const std::int64_t end = begin + static_cast<std::int64_t>(own.counts[k]);
    if (own.counts[k] > 0 && end > 0 && begin < Tile::kElements) {
      const int head = static_cast<int>(max(begin, std::int64_t{0}));
      tile.elements[head] = symbols[own.first_run + k];
      if (head / 32 != word) {
        if (flags != 0) atomicOr(&tile.heads[word], flags);
        word = head / 32;
        flags = 0;
      }
      flags |= 1u << head % 32;
    }
    begin = end;
  }
  if (flags != 0) atomicOr(&tile.heads[word], flags);
}

/// Fills head_before from the words of heads.
template <class T>
__device__ void find_heads_before(DecodeTile<T>& tile, int warp, int lane) {
  using Tile = DecodeTile<T>;
  const int first_word = static_cast<int>(threadIdx.x) * Tile::kWordsPerLane;
  int last_head = -1;
#pragma unroll
  for (int k = 0; k < Tile::kWordsPerLane; ++k) {
    const int word = first_word + k;
    if (word < Tile::kWords && tile.heads[word] != 0) {
      last_head = word * 32 + 31 - __clz(static_cast<int>(tile.heads[word]));
    }
  }
  int through = last_head;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const int left = __shfl_up_sync(~0u, through, distance);
    if (lane >= distance) through = max(through, left);
  }
  int before = __shfl_up_sync(~0u, through, 1);
  if (lane == 0) before = -1;
  if (lane == 31) tile.warp_last_head[warp] = through;
  __syncthreads();
  for (int w = 0; w < warp; ++w) before = max(before, tile.warp_last_head[w]);
#pragma unroll
  for (int k = 0; k < Tile::kWordsPerLane; ++k) {
    const int word = first_word + k;
    if (word >= Tile::kWords) break;
    tile.head_before[word] = before;
    if (tile.heads[word] != 0) before = word * 32 + 31 - __clz(static_cast<int>(tile.heads[word]));
  }
  __syncthreads();
}

/// Where the run begins that element `bit` of a word is in.
template <class T>
__device__ int head_of(const DecodeTile<T>& tile, int word, std::uint32_t heads, int bit) {
  const std::uint32_t through = heads & (2u << bit) - 1;
  return through == 0 ? tile.head_before[word] : word * 32 + 31 - __clz(static_cast<int>(through));
}

/// The elements of a vector of words: those at heads as they are, the others as the one before them, the
/// first as `value`. `heads` has a bit for each.
template <class T>
__device__ uint4 filled(const uint4& raw, std::uint32_t heads, T value) {
  if constexpr (sizeof(T) == 8) {
    std::uint64_t first = value;
    if ((heads & 1) != 0) first = std::uint64_t{raw.y} << 32 | raw.x;
    const std::uint64_t second = (heads & 2) != 0 ? std::uint64_t{raw.w} << 32 | raw.z : first;
    return {static_cast<unsigned int>(first), static_cast<unsigned int>(first >> 32),
            static_cast<unsigned int>(second), static_cast<unsigned int>(second >> 32)};
  } else {
    constexpr int kPerWord = 4 / sizeof(T);
    const unsigned int words[4] = {raw.x, raw.y, raw.z, raw.w};
    unsigned int result[4];
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      unsigned int packed = 0;
#pragma unroll
      for (int i = 0; i < kPerWord; ++i) {
        if ((heads >> (w * kPerWord + i) & 1) != 0) value = static_cast<T>(words[w] >> (8 * sizeof(T) * i));
        packed |= static_cast<unsigned int>(value) << (8 * sizeof(T) * i);
      }
      result[w] = packed;
    }
    return {result[0], result[1], result[2], result[3]};
  }
}

template <class T>
__device__ uint4 splat(T value) {
  if constexpr (sizeof(T) == 8) {
    const auto low = static_cast<unsigned int>(value);
    const auto high = static_cast<unsigned int>(value >> 32);
    return {low, high, low, high};
  } else {
    const unsigned int word = value * (sizeof(T) == 1 ? 0x01010101u : sizeof(T) == 2 ? 0x00010001u : 1u);
    return {word, word, word, word};
  }
}

/// A whole tile of words: filled in registers, 16 bytes at a time.
template <class T>
__device__ void store_words(const DecodeTile<T>& tile, T* elements) {
  using Tile = DecodeTile<T>;
  constexpr int kPerVector = 16 / sizeof(T);
  const auto* raw = reinterpret_cast<const uint4*>(tile.elements);
  auto* to = reinterpret_cast<uint4*>(elements);
#pragma unroll 4
  for (int v = static_cast<int>(threadIdx.x); v < Tile::kVectors; v += Tile::kThreads) {
    const int word = v * kPerVector / 32;
    const int bit = v * kPerVector % 32;
    const std::uint32_t word_heads = tile.heads[word];
    const std::uint32_t heads = word_heads >> bit & ((1u << kPerVector) - 1);
    const T first = tile.elements[head_of(tile, word, word_heads, bit)];
    __stcs(to + v, (heads & ~1u) == 0 ? splat(first) : filled(raw[v], heads, first));
  }
}

/// Any tile: filled where it is, then stored. Places of heads are only read, all others only written.
template <class T>
__device__ void fill_and_store(DecodeTile<T>& tile, std::int64_t count, T* elements, int warp, int lane) {
  using Tile = DecodeTile<T>;
  for (int word = warp; word < Tile::kWords; word += kTileWarps) {
    const std::uint32_t heads = tile.heads[word];
    if ((heads >> lane & 1) == 0)
      tile.elements[word * 32 + lane] = tile.elements[head_of(tile, word, heads, lane)];
  }
  __syncthreads();
  if (count == Tile::kElements) {
    for (int v = static_cast<int>(threadIdx.x); v < Tile::kVectors; v += Tile::kThreads) {
      __stcs(reinterpret_cast<uint4*>(elements) + v, reinterpret_cast<const uint4*>(tile.elements)[v]);
    }
  } else {
    for (int i = static_cast<int>(threadIdx.x); i < count; i += Tile::kThreads)
      elements[i] = tile.elements[i];
  }
}

template <class T>
__global__ void __launch_bounds__(DecodeTile<T>::kThreads)
    expand_tiles(const DecodeArguments a, const T* symbols, T* elements) {
  using Tile = DecodeTile<T>;
  extern __shared__ uint4 tile_memory[];
  Tile& tile = *reinterpret_cast<Tile*>(tile_memory);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (!has_elements(a, blockIdx.x)) return;
  const std::int64_t begin = std::int64_t{blockIdx.x} * Tile::kElements;
  const bool last = !has_elements(a, std::int64_t{blockIdx.x} + 1);
  const std::int64_t first_granule = a.first_granules[blockIdx.x];
  const std::int64_t last_granule = last ? a.granules - 1 : a.first_granules[blockIdx.x + 1];
  bool any_long = false;
  for (std::int64_t granule = first_granule + threadIdx.x; granule <= last_granule;
       granule += Tile::kThreads) {
    any_long |= !is_short<T>(granule_begin(a, granule + 1) - granule_begin(a, granule));
  }
  for (int word = static_cast<int>(threadIdx.x); word < Tile::kWords; word += Tile::kThreads)
    tile.heads[word] = 0;
  if (__syncthreads_or(any_long ? 1 : 0) == 0) return;  // expand_short_granules has written all of it
  for (std::int64_t granule = first_granule + warp; granule <= last_granule; granule += kTileWarps) {
    const LaneCounts own = load_counts(a, granule, lane);
    const std::uint64_t before = before_lane(warp_scan(own.sum(), lane), lane);
    const std::uint64_t granule_begin =
        a.block_offsets[granule / kBlockGranules] + a.granule_offsets[granule];
    place_runs(own, symbols, static_cast<std::int64_t>(granule_begin + before) - begin, tile);
  }
  __syncthreads();
  find_heads_before(tile, warp, lane);
  if constexpr (kIsWord<T>) {
    if (begin + Tile::kElements <= a.report->elements) return store_words(tile, elements + begin);
  }
  const std::int64_t count = min(std::int64_t{Tile::kElements}, a.report->elements - begin);
  fill_and_store(tile, count, elements + begin, warp, lane);
}

}  // namespace cumulus::run_length
