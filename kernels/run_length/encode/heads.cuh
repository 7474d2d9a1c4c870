#pragma once

#include <cuda_pipeline.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/primitives/warp_scan.cuh"
#include "kernels/run_length/element.h"
#include "kernels/run_length/encode/look_back.cuh"
#include "kernels/run_length/run_length.h"
#include "kernels/run_length/tuning.h"

// The heads of the runs in a warp's chunk of a tile: elements are copied to shared memory, compared, and
// heads listed.

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

/// The encoder's scratch memory before the status words. All bits one before the kernel runs.
struct EncodeScratch {
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
  std::int64_t* first_runs;  // null: not requested
  std::int64_t piece;        // elements between cuts
  std::int64_t tiles;
  EncodeScratch* scratch;
  EncodeRunLengthsReport* caller_report;  // gets the number of runs
  RunWord::Bits* status_words;
};

/// The runs of a chunk that has few, until its carry-in is known.
template <class T>
struct QueuedRuns {
  static constexpr int kBytes = encode_warp_elements(sizeof(T)) * 2 / kQueuedChunks / 8 * 8;
  static constexpr int kFittingRuns = (kBytes - 16) / static_cast<int>(sizeof(T) + 2);
  static constexpr int kMaxRuns = kFittingRuns < kMaxQueuedRuns ? kFittingRuns : kMaxQueuedRuns;
  int count;
  std::uint16_t heads[kMaxRuns];
  T symbols[kMaxRuns];
};

/// A warp's own part of shared memory: chunks that are copied, compared and written, and the list of the
/// heads of the one that is written, or else the runs of queued chunks.
template <class T>
struct WarpMemory {
  static constexpr int kElements = encode_warp_elements(sizeof(T));
  static constexpr int kVectors = static_cast<int>(kElements * sizeof(T) / 16);
  static_assert(kElements % 32 == 0 && kElements * sizeof(T) % 16 == 0);

  struct Chunk {
    alignas(16) std::byte sixteen_bytes_before[16];
    T elements[kElements];

    /// The element before the chunk's first; where elements are not words, those of the chunk follow it.
    __device__ T* before_first() { return reinterpret_cast<T*>(sixteen_bytes_before + 16 - sizeof(T)); }
    __device__ const T* before_first() const {
      return reinterpret_cast<const T*>(sixteen_bytes_before + 16 - sizeof(T));
    }
  };

  static constexpr int kMaxHeld = max_held_chunks(sizeof(T));
  static_assert(kMaxHeld < kQueuedChunks);  // there are enough stages
  static constexpr int kChunks = kMaxHeld + 2;
  Chunk chunks[kChunks];
  union {
    std::uint16_t heads[kElements];
    QueuedRuns<T> queued[kQueuedChunks];
  };
  static_assert(sizeof(queued) <= sizeof(heads));
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

/// How a warp compares its chunk: each lane has kLaneElements consecutive elements, and a bit for each of
/// them. Where elements are words, a lane reads its kLaneVectors times 16 bytes; where they are not, the
/// lanes compare 32 elements together, and one lane gets the bits.
template <class T>
struct Layout {
  static constexpr bool kByVectors = kIsWord<T>;
  static constexpr int kElements = WarpMemory<T>::kElements;
  static constexpr int kLaneElements = kByVectors ? kElements / 32 : 32;
  static constexpr int kRows = kElements / 32;
  static constexpr int kLaneVectors = kByVectors ? WarpMemory<T>::kVectors / 32 : 1;
  static constexpr int kVectorElements = kLaneElements / kLaneVectors;
  using Bits = std::conditional_t<(kLaneElements > 32), std::uint64_t, std::uint32_t>;
  static_assert(!kByVectors || kLaneVectors == 4 || kLaneVectors == 8);
  static_assert(kByVectors || kRows <= 32);
  static_assert(kLaneElements <= 64);

  // Swizzle: vector i of a chunk (16 bytes) lies at i ^ (i / 8 % kLaneVectors), so that the vectors that
  // eight lanes read at once are in different banks.

  /// Where vector `vector` of a lane is.
  __device__ static unsigned int place_of_own(unsigned int lane, unsigned int vector) {
    return (lane * kLaneVectors | (lane * kLaneVectors / 8 % kLaneVectors)) ^ vector;
  }
  /// Where vector `lane` of row `row`, of 32 vectors each, is.
  __device__ static unsigned int place_in_row(unsigned int row, unsigned int lane) {
    return 32 * row + (lane ^ (lane / 8 % kLaneVectors) ^ (4 * row % kLaneVectors));
  }
  /// Where an element is.
  __device__ static int place(int element) {
    if constexpr (kByVectors) {
      return element ^ (element / (8 * kVectorElements) % kLaneVectors * kVectorElements);
    } else {
      return element;
    }
  }
};

/// What a lane knows of the heads of its warp's chunk.
template <class T>
struct LaneHeads {
  typename Layout<T>::Bits bits;  // of the lane's own elements
  int before;                     // of the lanes before: the exclusive prefix
  int all;                        // of all lanes
};

/// Copies 16 bytes to shared memory; this thread sees them once its group of copies is complete.
__device__ inline void copy_async(void* to, const void* from) { __pipeline_memcpy_async(to, from, 16); }

/// By a warp: copies the `valid` elements from `first` on as one group; none make a group, too.
template <class T>
__device__ void load_chunk(const EncodeArguments<T>& a, typename WarpMemory<T>::Chunk& chunk,
                           std::int64_t first, int valid, int lane) {
  using Memory = WarpMemory<T>;
  using L = Layout<T>;
  if (valid == Memory::kElements) {
    const auto* from = reinterpret_cast<const uint4*>(a.elements + first);
    auto* to = reinterpret_cast<uint4*>(chunk.elements);
    if (lane == 0 && first > 0) copy_async(to - 1, from - 1);
#pragma unroll
    for (int i = 0; i < Memory::kVectors; i += 32) {
      if (Memory::kVectors % 32 == 0 || i + lane < Memory::kVectors)
        copy_async(to + L::place_in_row(i / 32, lane), from + i + lane);
    }
  } else if (valid > 0) {
    if (lane == 0 && first > 0) *chunk.before_first() = a.elements[first - 1];
    for (int i = lane; i < valid; i += 32) chunk.elements[L::place(i)] = a.elements[first + i];
  }
  __pipeline_commit();
}

/// Of a row of 32 elements a bit for each that differs from the one before it; lane r gets those of row r.
template <class T>
__device__ std::uint32_t compare_rows(const typename WarpMemory<T>::Chunk& chunk, int lane) {
  const T* before = chunk.before_first();
  std::uint32_t own = 0;
#pragma unroll
  for (int row = 0; row < Layout<T>::kRows; ++row) {
    const int i = 32 * row + lane;
    const std::uint32_t flags = __ballot_sync(kFullWarp, differ(before[i + 1], before[i]));
    if (lane == row) own = flags;
  }
  return own;
}

/// Of a lane's elements, which are words, a bit for each that differs from the one before it.
template <class T>
__device__ typename Layout<T>::Bits compare_vectors(const typename WarpMemory<T>::Chunk& chunk, int lane) {
  using L = Layout<T>;
  const auto* vectors = reinterpret_cast<const uint4*>(chunk.elements);
  uint4 own[L::kLaneVectors];
#pragma unroll
  for (int c = 0; c < L::kLaneVectors; ++c) own[c] = vectors[L::place_of_own(lane, c)];
  T before = __shfl_up_sync(kFullWarp, Vector<T>{own[L::kLaneVectors - 1]}.last(), 1);
  if (lane == 0) before = *chunk.before_first();
  typename L::Bits bits = 0;
#pragma unroll
  for (int c = 0; c < L::kLaneVectors; ++c) {
    bits |= typename L::Bits{heads_of_vector<T>(own[c], before)} << (c * L::kVectorElements);
    before = Vector<T>{own[c]}.last();
  }
  return bits;
}

/// Where runs are cut in a chunk.
struct Cuts {
  std::uint32_t distance;  // from its begin to the first
  std::uint32_t every;     // from one to the next, at least as far as the first; beyond any chunk: any number
};

template <class T>
__device__ Cuts cuts_of_chunk(const EncodeArguments<T>& a, std::int64_t first) {
  constexpr std::int64_t kFar = std::int64_t{1} << 20;
  const std::int64_t every = a.cut == 0 ? a.count : a.cut;
  const std::int64_t past = first % every;
  return {static_cast<std::uint32_t>(past == 0 ? 0 : min(every - past, kFar)),
          static_cast<std::uint32_t>(min(every, 2 * kFar))};
}

/// A lane's bits with those at cuts set, and those behind the array's end not.
template <class T>
__device__ typename Layout<T>::Bits apply_cuts(typename Layout<T>::Bits bits, const Cuts& cuts, int valid,
                                               int lane) {
  using L = Layout<T>;
  constexpr typename L::Bits kOne = 1;
  const int element = lane * L::kLaneElements;
  const std::uint32_t past = (static_cast<std::uint32_t>(element) + cuts.every - cuts.distance) % cuts.every;
  for (std::uint32_t i = past == 0 ? 0 : cuts.every - past; i < static_cast<std::uint32_t>(L::kLaneElements);
       i += cuts.every)
    bits |= kOne << i;
  const int left = valid - element;
  if (left < L::kLaneElements) bits &= left <= 0 ? 0 : (kOne << left) - 1;
  return bits;
}

__device__ inline int count_bits(std::uint32_t bits) { return __popc(bits); }
__device__ inline int count_bits(std::uint64_t bits) { return __popcll(bits); }
/// Of bits that are not all zero.
__device__ inline int lowest_bit(std::uint32_t bits) { return __ffs(static_cast<int>(bits)) - 1; }
__device__ inline int lowest_bit(std::uint64_t bits) { return __ffsll(static_cast<long long>(bits)) - 1; }
__device__ inline int highest_bit(std::uint32_t bits) { return 31 - __clz(static_cast<int>(bits)); }
__device__ inline int highest_bit(std::uint64_t bits) { return 63 - __clzll(static_cast<long long>(bits)); }

/// By a warp: finds the heads in a chunk whose first element has index `first`, of which `valid` are of the
/// array.
template <class T>
__device__ LaneHeads<T> find_heads(const EncodeArguments<T>& a, const typename WarpMemory<T>::Chunk& chunk,
                                   std::int64_t first, int valid, int lane) {
  using L = Layout<T>;
  LaneHeads<T> heads{};
  if constexpr (L::kByVectors) {
    heads.bits = compare_vectors<T>(chunk, lane);
  } else {
    heads.bits = compare_rows<T>(chunk, lane);
  }
  if (a.cut != 0 || first == 0 || valid < L::kElements)
    heads.bits = apply_cuts<T>(heads.bits, cuts_of_chunk(a, first), valid, lane);
  if (!__any_sync(kFullWarp, heads.bits != 0)) return heads;  // as in most chunks of long runs
  const int own = count_bits(heads.bits);
  const auto through = static_cast<int>(warp_inclusive_sum(static_cast<std::uint32_t>(own)));
  heads.before = through - own;
  heads.all = __shfl_sync(kFullWarp, through, 31);
  return heads;
}

/// By a warp: where the last head of a chunk is; 0 where there is none.
template <class T>
__device__ int last_head(const LaneHeads<T>& heads, int lane) {
  if (heads.all == 0) return 0;
  const int last = heads.bits == 0 ? 0 : lane * Layout<T>::kLaneElements + highest_bit(heads.bits);
  return static_cast<int>(warp_max(static_cast<std::uint32_t>(last)));
}

/// By a warp, of many heads whose elements are smaller than 32 bits, or by rows: lists them by a lane per
/// element, so that lanes store side by side.
template <class T>
__device__ void list_rows(const LaneHeads<T>& heads, std::uint16_t* list, int lane) {
  using L = Layout<T>;
  constexpr int kLaneRows = L::kLaneElements / 32;  // rows
  static_assert(kLaneRows * 32 == L::kLaneElements);
  const std::uint32_t before_lane = (1u << lane) - 1;
  int rank = heads.before;
#pragma unroll
  for (int half = 0; half < kLaneRows; ++half) {
    const auto bits = static_cast<std::uint32_t>(heads.bits >> (32 * half));
#pragma unroll
    for (int row = half; row < L::kRows; row += kLaneRows) {
      const std::uint32_t flags = __shfl_sync(kFullWarp, bits, row / kLaneRows);
      const int at = __shfl_sync(kFullWarp, rank, row / kLaneRows) + __popc(flags & before_lane);
      if ((flags >> lane & 1) != 0) list[at] = static_cast<std::uint16_t>(32 * row + lane);
    }
    rank += __popc(bits);
  }
}

/// By a warp, of few heads: each lane lists those among its own elements.
template <class T>
__device__ void list_few(const LaneHeads<T>& heads, std::uint16_t* list, int lane) {
  std::uint16_t* to = list + heads.before;
  for (auto left = heads.bits; left != 0; left &= left - 1)
    *to++ = static_cast<std::uint16_t>(lane * Layout<T>::kLaneElements + lowest_bit(left));
}

/// By a warp, of many heads: lane l lists those in vectors l, l + 32, and so on, so that what lanes store at
/// once lies close together.
template <class T>
__device__ void list_many(const LaneHeads<T>& heads, std::uint16_t* list, int lane) {
  using L = Layout<T>;
#pragma unroll
  for (int c = 0; c < L::kLaneVectors; ++c) {
    const int vector = 32 * c + lane;
    const int owner = vector / L::kLaneVectors;
    const int shift = vector % L::kLaneVectors * L::kVectorElements;
    const auto of_owner = __shfl_sync(kFullWarp, heads.bits, owner);
    const int before = __shfl_sync(kFullWarp, heads.before, owner);
    const auto bits = of_owner >> shift;
    std::uint16_t* to = list + before + count_bits(of_owner ^ (bits << shift));
#pragma unroll
    for (int i = 0; i < L::kVectorElements; ++i) {
      if ((bits >> i & 1) != 0) *to++ = static_cast<std::uint16_t>(vector * L::kVectorElements + i);
    }
  }
}

/// By a warp: lists where the heads of a chunk are.
template <class T>
__device__ void list_heads(const LaneHeads<T>& heads, std::uint16_t* list, int lane) {
  using L = Layout<T>;
  if (heads.all * kFewHeadsRatio <= L::kElements) {
    list_few(heads, list, lane);
  } else if constexpr (L::kByVectors && sizeof(T) >= 4) {
    list_many(heads, list, lane);
  } else {
    list_rows(heads, list, lane);
  }
}

}  // namespace cumulus::run_length
