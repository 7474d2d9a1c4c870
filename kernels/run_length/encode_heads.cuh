#pragma once

#include <cuda_pipeline.h>

#include <cstddef>
#include <cstdint>

#include "kernels/run_length/look_back.cuh"
#include "kernels/run_length/run_length.h"
#include "kernels/run_length/run_length_element.h"
#include "kernels/run_length/run_length_tuning.h"

// The heads of the runs of one tile: elements are loaded and compared, heads marked in words of 32 bits,
// counted, ranked and listed.

namespace cumulus::run_length {

template <class T>
__device__ bool differ(const T& a, const T& b) {
  if constexpr (kIsWord<T>) {
    return a != b;
  } else {
    bool different = false;
#pragma unroll
    for (int i = 0; i < T::kUnits; ++i) different |= a.units[i] != b.units[i];
    return different;
  }
}

/// The encoder's scratch memory before the tiles' words. All bits one before the kernel runs.
struct EncodeShared {
  unsigned int last_ticket;
  unsigned int unused;
  EncodeRunLengthsReport report;
};

template <class T>
struct EncodeArguments {
  const T* elements;
  std::int64_t count;
  std::int64_t cut;  // 0: none
  T* symbols;
  void* lengths;
  bool wide_lengths;  // of 8 bytes rather than 4
  bool ends;          // rather than counts
  std::int64_t max_runs;
  std::int64_t* first_runs;  // null: nobody wants them
  std::int64_t piece;        // elements between cuts
  EncodeShared* shared;
  Word* words;
};

/// 32 elements of a tile. Read whole.
struct alignas(8) HeadWord {
  std::uint32_t flags;
  std::uint16_t rank;  // heads of the tile before it
  std::uint16_t next;  // the first head of the tile behind it; kElements: none
};

template <class T>
struct EncodeTile {
  static constexpr int kElements = encode_tile_elements(sizeof(T));
  static constexpr int kThreads = 32 * (kTileWarps + 1);
  static constexpr bool kThroughRegisters = load_through_registers(sizeof(T));
  static constexpr int kWarpElements = kElements / kTileWarps;
  static constexpr int kWarpWords = kWarpElements / 32;
  static constexpr int kWordsPerLane = (kWarpWords + 31) / 32;
  static constexpr int kVectors = static_cast<int>(kElements * sizeof(T) / 16);
  static constexpr int kVectorsPerLane = kVectors / kTileWarps / 32;
  static constexpr int kListedHeads = kElements / kListedShare;
  static_assert(kFewHeadsShare >= kListedShare);
  static_assert(kElements <= 65535);
  static_assert(kWarpWords * 32 * kTileWarps == kElements && kVectorsPerLane * 32 * kTileWarps == kVectors);

  alignas(16) T elements[kElements];
  HeadWord words[kElements / 32];
  std::uint16_t heads[kListedHeads + 1];
  // They may be read 16 bytes at a time; among those must be no head, which is written meanwhile.
  alignas(16) std::int32_t warp_heads[kTileWarps];
  std::int32_t warp_first_head[kTileWarps];  // kElements: none
  std::int32_t warp_last_head[kTileWarps];   // -1: none
  std::int64_t index;
  Stretch before;
};

/// 16 bytes of the array as elements that are words.
template <class T>
struct Vector {
  static constexpr int kElements = 16 / sizeof(T);
  uint4 words;

  __device__ T last() const {
    if constexpr (sizeof(T) == 8) {
      return static_cast<T>(std::uint64_t{words.w} << 32 | words.z);
    } else {
      return static_cast<T>(words.w >> (32 - 8 * sizeof(T)));
    }
  }
};

/// For each byte of `word` that is not zero a bit, the lowest for the lowest byte.
__device__ inline unsigned int nonzero_bytes(std::uint32_t word) {
  const std::uint32_t high_bits = (((word & 0x7F7F7F7Fu) + 0x7F7F7F7Fu) | word) & 0x80808080u;
  return (high_bits >> 7) * 0x10204080u >> 28;
}

/// For each element of a 32-bit word that differs from the one before it a bit; `before` is the word before.
template <class T>
__device__ unsigned int heads_of_word(std::uint32_t word, std::uint32_t before) {
  if constexpr (sizeof(T) == 1) {
    return nonzero_bytes(word ^ __funnelshift_l(before, word, 8));
  } else if constexpr (sizeof(T) == 2) {
    const std::uint32_t difference = word ^ __funnelshift_l(before, word, 16);
    return ((difference & 0xFFFF) != 0 ? 1 : 0) | (difference >> 16 != 0 ? 2 : 0);
  } else {
    return word != before ? 1 : 0;
  }
}

/// For each element of a vector that differs from the one before it a bit. `before`, the element before the
/// first, in the highest bits of a word (of two, for 8 bytes).
template <class T>
__device__ unsigned int heads_of_vector(const uint4& v, T before) {
  if constexpr (sizeof(T) == 8) {
    const std::uint64_t first = std::uint64_t{v.y} << 32 | v.x;
    const std::uint64_t second = std::uint64_t{v.w} << 32 | v.z;
    return (first != before ? 1 : 0) | (second != first ? 2 : 0);
  } else {
    constexpr int kPerWord = 4 / sizeof(T);
    const std::uint32_t word_before = std::uint32_t{before} << (32 - 8 * sizeof(T));
    return heads_of_word<T>(v.x, word_before) | heads_of_word<T>(v.y, v.x) << kPerWord |
           heads_of_word<T>(v.z, v.y) << 2 * kPerWord | heads_of_word<T>(v.w, v.z) << 3 * kPerWord;
  }
}

/// Puts each lane's bits, one for each element of its vector, behind one another in the words' flags.
template <class T>
__device__ void store_flags(HeadWord* words, int vector, unsigned int bits) {
  constexpr int kBits = Vector<T>::kElements;
  const int begin = vector * kBits;
  auto* flags = reinterpret_cast<std::uint8_t*>(&words[begin / 32].flags) + begin % 32 / 8;
  if constexpr (kBits == 16) {
    *reinterpret_cast<std::uint16_t*>(flags) = static_cast<std::uint16_t>(bits);
  } else {
#pragma unroll
    for (int have = kBits; have < 8; have *= 2) bits |= __shfl_down_sync(~0u, bits, have / kBits) << have;
    if (begin % 8 == 0) *flags = static_cast<std::uint8_t>(bits);
  }
}

/// Copies 16 bytes to shared memory; they are there for this thread once wait_for_copies has returned.
__device__ inline void copy_later(uint4* to, const uint4* from) {
  __pipeline_memcpy_async(to, from, sizeof(uint4));
}
__device__ inline void wait_for_copies() {
  __pipeline_commit();
  __pipeline_wait_prior(0);
}

/// A whole tile of words. Cuts and the array's first element are not marked yet. No thread holds elements in
/// registers while they are on their way, so that more blocks fit on a multiprocessor.
template <class T>
__device__ void load_words(const EncodeArguments<T>& a, EncodeTile<T>& tile, int warp, int lane) {
  using Tile = EncodeTile<T>;
  const int first_vector = warp * Tile::kVectorsPerLane * 32;
  const std::int64_t first = tile.index * Tile::kElements;
  const auto* from = reinterpret_cast<const uint4*>(a.elements + first) + first_vector;
  auto* to = reinterpret_cast<uint4*>(tile.elements) + first_vector;
  constexpr bool kThroughRegisters = Tile::kThroughRegisters;
  uint4 vectors[kThroughRegisters ? Tile::kVectorsPerLane : 1];
#pragma unroll
  for (int k = 0; k < Tile::kVectorsPerLane; ++k) {
    if constexpr (kThroughRegisters) {
      vectors[k] = __ldcs(from + k * 32 + lane);
    } else {
      copy_later(to + k * 32 + lane, from + k * 32 + lane);
    }
  }
  const std::int64_t warp_first = first + warp * Tile::kWarpElements;
  T before_warp = 0;
  if (lane == 0 && warp_first > 0) before_warp = a.elements[warp_first - 1];
  if constexpr (!kThroughRegisters) wait_for_copies();
#pragma unroll
  for (int k = 0; k < Tile::kVectorsPerLane; ++k) {
    if constexpr (kThroughRegisters) to[k * 32 + lane] = vectors[k];
    const uint4 vector = kThroughRegisters ? vectors[k] : to[k * 32 + lane];
    const T last = Vector<T>{vector}.last();
    T before = __shfl_up_sync(~0u, last, 1);
    if (lane == 0) before = before_warp;
    before_warp = __shfl_sync(~0u, last, 31);
    store_flags<T>(tile.words, first_vector + k * 32 + lane, heads_of_vector<T>(vector, before));
  }
}

/// Any tile: the elements first; the block then has to synchronise before flag_elements.
template <class T>
__device__ void load_elements(const EncodeArguments<T>& a, EncodeTile<T>& tile, bool whole, int warp,
                              int lane) {
  using Tile = EncodeTile<T>;
  const std::int64_t first = tile.index * Tile::kElements;
  if (whole) {
    const auto* from = reinterpret_cast<const uint4*>(a.elements + first);
    auto* to = reinterpret_cast<uint4*>(tile.elements);
    for (int i = warp * 32 + lane; i < Tile::kVectors; i += 32 * kTileWarps) copy_later(to + i, from + i);
    wait_for_copies();
  } else {
    for (int i = warp * 32 + lane; i < a.count - first; i += 32 * kTileWarps)
      tile.elements[i] = a.elements[first + i];
  }
}

template <class T>
__device__ void flag_elements(const EncodeArguments<T>& a, EncodeTile<T>& tile, int warp, int lane) {
  using Tile = EncodeTile<T>;
  const std::int64_t first = tile.index * Tile::kElements;
  for (int word = warp * Tile::kWarpWords; word < (warp + 1) * Tile::kWarpWords; ++word) {
    const int i = word * 32 + lane;
    bool head = false;
    if (first + i < a.count && first + i > 0) {
      head = differ(tile.elements[i], i > 0 ? tile.elements[i - 1] : a.elements[first - 1]);
    }
    const unsigned int flags = __ballot_sync(~0u, head);
    if (lane == 0) tile.words[word].flags = flags;
  }
}

/// The bits of a word of flags, whose first element has index `position`, at which runs are cut.
template <class T>
__device__ unsigned int cut_flags(const EncodeArguments<T>& a, std::int64_t position) {
  if (a.cut == 0) return position == 0 ? 1 : 0;
  unsigned int flags = 0;
  const std::int64_t past = position % a.cut;
  for (std::int64_t i = past == 0 ? 0 : a.cut - past; i < 32; i += a.cut) flags |= 1u << i;
  const std::int64_t left = a.count - position;
  return left >= 32 ? flags : left <= 0 ? 0 : flags & ((1u << left) - 1);
}

/// What a lane knows of its words of flags.
template <class T>
struct LaneFlags {
  std::uint32_t words[EncodeTile<T>::kWordsPerLane];
  int first_word;
  int rank;  // heads of the warp before these words
  int next;  // the first head of the warp behind them; kElements: none
};

/// Reads and completes the flags of the warp's words, which it has written itself; leaves the warp's count.
template <class T>
__device__ LaneFlags<T> count_heads(const EncodeArguments<T>& a, EncodeTile<T>& tile, int warp, int lane) {
  using Tile = EncodeTile<T>;
  LaneFlags<T> own;
  const int word_in_warp = lane * Tile::kWordsPerLane;
  own.first_word = warp * Tile::kWarpWords + word_in_warp;
  int heads = 0;
  int first_head = Tile::kElements;
  int last_head = -1;
#pragma unroll
  for (int k = 0; k < Tile::kWordsPerLane; ++k) {
    own.words[k] = 0;
    if (word_in_warp + k >= Tile::kWarpWords) continue;
    const int begin = (own.first_word + k) * 32;
    own.words[k] = tile.words[own.first_word + k].flags | cut_flags(a, tile.index * Tile::kElements + begin);
    if (own.words[k] == 0) continue;
    heads += __popc(own.words[k]);
    first_head = min(first_head, begin + __ffs(static_cast<int>(own.words[k])) - 1);
    last_head = begin + 31 - __clz(static_cast<int>(own.words[k]));
  }
  int through = heads;
  int next = first_head;  // here or in a lane behind
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const int left = __shfl_up_sync(~0u, through, distance);
    if (lane >= distance) through += left;
    const int right = __shfl_down_sync(~0u, next, distance);
    if (lane + distance < 32) next = min(next, right);
    last_head = max(last_head, __shfl_xor_sync(~0u, last_head, distance));
  }
  own.rank = through - heads;
  own.next = __shfl_down_sync(~0u, next, 1);
  if (lane == 31) own.next = Tile::kElements;
  const int total = __shfl_sync(~0u, through, 31);
  if (lane == 0) {
    tile.warp_heads[warp] = total;
    tile.warp_first_head[warp] = next;
    tile.warp_last_head[warp] = last_head;
  }
  return own;
}

template <class T>
__device__ int heads_of_tile(const EncodeTile<T>& tile) {
  int heads = 0;
#pragma unroll
  for (int w = 0; w < kTileWarps; ++w) heads += tile.warp_heads[w];
  return heads;
}

/// Heads of the warps before this one.
template <class T>
__device__ int heads_before(const EncodeTile<T>& tile, int warp) {
  int heads = 0;
#pragma unroll
  for (int w = 0; w < kTileWarps; ++w) heads += w < warp ? tile.warp_heads[w] : 0;
  return heads;
}

/// Completes the warp's words.
template <class T>
__device__ void rank_words(EncodeTile<T>& tile, const LaneFlags<T>& own, int warp, int lane) {
  using Tile = EncodeTile<T>;
  int next_warps = Tile::kElements;
#pragma unroll
  for (int w = 0; w < kTileWarps; ++w)
    next_warps = w > warp ? min(next_warps, tile.warp_first_head[w]) : next_warps;
  int next = min(own.next, next_warps);
  int rank = heads_before(tile, warp) + own.rank;
#pragma unroll
  for (int k = 0; k < Tile::kWordsPerLane; ++k) rank += __popc(own.words[k]);
#pragma unroll
  for (int k = Tile::kWordsPerLane - 1; k >= 0; --k) {
    rank -= __popc(own.words[k]);
    if (lane * Tile::kWordsPerLane + k >= Tile::kWarpWords) continue;
    tile.words[own.first_word + k] = {own.words[k], static_cast<std::uint16_t>(rank),
                                      static_cast<std::uint16_t>(next)};
    if (own.words[k] != 0) next = (own.first_word + k) * 32 + __ffs(static_cast<int>(own.words[k])) - 1;
  }
}

/// Lists the heads in the lane's own words, one after another: for few heads. Whole words follow one another
/// in the list, so that lanes with many heads each would store to the same bank.
template <class T>
__device__ void list_few_heads(EncodeTile<T>& tile, const LaneFlags<T>& own, int warp) {
  int rank = heads_before(tile, warp) + own.rank;
#pragma unroll
  for (int k = 0; k < EncodeTile<T>::kWordsPerLane; ++k) {
    const int begin = (own.first_word + k) * 32;
    for (std::uint32_t left = own.words[k]; left != 0; left &= left - 1) {
      tile.heads[rank++] = static_cast<std::uint16_t>(begin + __ffs(static_cast<int>(left)) - 1);
    }
  }
}

/// Lists the heads of ranks `first_rank` to first_rank + kListedHeads in the warp's words, which are ranked,
/// a lane per element.
template <class T>
__device__ void list_many_heads(EncodeTile<T>& tile, int first_rank, int warp, int lane) {
  using Tile = EncodeTile<T>;
  const std::uint32_t before_lane = (1u << lane) - 1;
#pragma unroll 8
  for (int w = warp * Tile::kWarpWords; w < (warp + 1) * Tile::kWarpWords; ++w) {
    const HeadWord word = tile.words[w];
    const int place = word.rank + __popc(word.flags & before_lane) - first_rank;
    if ((word.flags >> lane & 1) != 0 && place >= 0 && place <= Tile::kListedHeads) {
      tile.heads[place] = static_cast<std::uint16_t>(32 * w + lane);
    }
  }
}

}  // namespace cumulus::run_length
