#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/primitives/early_launch.cuh"
#include "kernels/primitives/multiprocessor.cuh"
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
  static constexpr int kBlocks = sizeof(T) < 3 ? 5 : 6;  // that a multiprocessor's shared memory holds
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

/// Which bytes of a 32-bit word and of the one before it, for __byte_perm, make the word with every element
/// filled forward. `heads` has a bit for each of its elements.
template <class T>
__device__ unsigned int fill_selector(unsigned int heads) {
  if constexpr (sizeof(T) == 1) {
    unsigned int from = 7;
    unsigned int selector = 0;
#pragma unroll
    for (unsigned int i = 0; i < 4; ++i) {
      if ((heads >> i & 1) != 0) from = i;
      selector |= from << 4 * i;
    }
    return selector;
  } else {
    const unsigned int first = (heads & 1) != 0 ? 0x10 : 0x76;
    return first | ((heads & 2) != 0 ? 0x32 : first) << 8;
  }
}

/// The elements of a vector of words, of less than 4 bytes by a whole warp: those at heads as they are, the
/// others as the one before them, the first as `value`. `heads` has a bit for each; lane i has the selector
/// of heads i.
template <class T>
__device__ uint4 filled(const uint4& raw, std::uint32_t heads, T value, unsigned int selector) {
  if constexpr (sizeof(T) == 8) {
    std::uint64_t first = value;
    if ((heads & 1) != 0) first = std::uint64_t{raw.y} << 32 | raw.x;
    const std::uint64_t second = (heads & 2) != 0 ? std::uint64_t{raw.w} << 32 | raw.z : first;
    return {static_cast<unsigned int>(first), static_cast<unsigned int>(first >> 32),
            static_cast<unsigned int>(second), static_cast<unsigned int>(second >> 32)};
  } else if constexpr (sizeof(T) == 4) {
    uint4 result;
    result.x = (heads & 1) != 0 ? raw.x : value;
    result.y = (heads & 2) != 0 ? raw.y : result.x;
    result.z = (heads & 4) != 0 ? raw.z : result.y;
    result.w = (heads & 8) != 0 ? raw.w : result.z;
    return result;
  } else {
    constexpr int kPerWord = 4 / sizeof(T);
    const auto word = [&](unsigned int own, unsigned int before, int w) {
      const auto lane = static_cast<int>(heads >> w * kPerWord & ((1u << kPerWord) - 1));
      return __byte_perm(own, before, __shfl_sync(~0u, selector, lane));
    };
    uint4 result;
    result.x = word(raw.x, splat(value).x, 0);
    result.y = word(raw.y, result.x, 1);
    result.z = word(raw.z, result.y, 2);
    result.w = word(raw.w, result.z, 3);
    return result;
  }
}

/// A whole tile of words: filled in registers, 16 bytes at a time. A thread's vectors all lie at the same
/// place in their words.
template <class T>
__device__ void store_words(const DecodeTile<T>& tile, T* elements) {
  using Tile = DecodeTile<T>;
  constexpr int kPerVector = 16 / sizeof(T);
  constexpr int kStep = Tile::kThreads * kPerVector / 32;  // words from one vector to the next
  static_assert(Tile::kThreads * kPerVector % 32 == 0);
  const auto thread = static_cast<int>(threadIdx.x);
  const int first_word = thread * kPerVector / 32;
  const int bit = thread * kPerVector % 32;
  const unsigned int selector = sizeof(T) < 4 ? fill_selector<T>(threadIdx.x % 16) : 0;
  const auto* raw = reinterpret_cast<const uint4*>(tile.elements) + thread;
  auto* to = reinterpret_cast<uint4*>(elements) + thread;
#pragma unroll 4
  for (int k = 0; k < Tile::kVectors / Tile::kThreads; ++k) {
    const int word = first_word + k * kStep;
    const std::uint32_t word_heads = tile.heads[word];
    const T first = tile.elements[head_of(tile, word, word_heads, bit)];
    const std::uint32_t heads = word_heads >> bit & ((1u << kPerVector) - 1);
    const bool inside = (heads & ~1u) != 0;
    // Smaller elements are filled by whole warps.
    const bool any = sizeof(T) < 4 ? __any_sync(~0u, inside) : inside;
    __stcs(to + k * Tile::kThreads,
           any ? filled(raw[k * Tile::kThreads], heads, first, selector) : splat(first));
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

/// A block for each tile that has other than short granules.
template <class T>
__global__ void __launch_bounds__(DecodeTile<T>::kThreads,
                                  blocks_that_fit(DecodeTile<T>::kBlocks, DecodeTile<T>::kThreads))
    expand_tiles(const DecodeArguments a, const T* symbols, T* elements) {
  using Tile = DecodeTile<T>;
  extern __shared__ uint4 tile_memory[];
  Tile& tile = *reinterpret_cast<Tile*>(tile_memory);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t index = blockIdx.x;
  const std::int64_t begin = index * Tile::kElements;
  wait_for_kernel_before();
  if (*a.all_short) return;
  // All loads at once: each would wait for the one before otherwise.
  const std::int64_t total = a.report->elements;
  const auto outcome = a.report->outcome;
  const std::int64_t first_granule = a.first_granules[index];
  const std::int64_t next_granule = a.first_granules[min(index + 1, a.tiles - 1)];
  if (outcome != DecodeRunLengthsReport::Outcome::kDecoded || begin >= total) return;
  const bool last = begin + Tile::kElements >= total;
  const std::int64_t last_granule = last ? a.granules - 1 : next_granule;
  bool any_long = false;
  for (std::int64_t granule = first_granule + threadIdx.x; granule <= last_granule; granule += Tile::kThreads)
    any_long |= (a.granule_offsets[granule] & kShort) == 0;
  for (int word = static_cast<int>(threadIdx.x); word < Tile::kWords; word += Tile::kThreads)
    tile.heads[word] = 0;
  if (__syncthreads_or(any_long ? 1 : 0) == 0) return;
  for (std::int64_t granule = first_granule + warp; granule <= last_granule; granule += kTileWarps) {
    const LaneCounts own = load_counts(a, granule, lane);
    const std::uint64_t before = before_lane(warp_scan(own.sum(), lane), lane);
    place_runs(own, symbols, static_cast<std::int64_t>(granule_begin(a, granule) + before) - begin, tile);
  }
  __syncthreads();
  find_heads_before(tile, warp, lane);
  if constexpr (kIsWord<T>) {
    if (begin + Tile::kElements <= total) return store_words(tile, elements + begin);
  }
  fill_and_store(tile, min(std::int64_t{Tile::kElements}, total - begin), elements + begin, warp, lane);
}

}  // namespace cumulus::run_length
