#pragma once

#include <cuda_pipeline.h>

#include <cstddef>
#include <cstdint>

#include "kernels/primitives/warp_scan.cuh"
#include "kernels/run_length/look_back.cuh"
#include "kernels/run_length/run_length.h"
#include "kernels/run_length/run_length_element.h"
#include "kernels/run_length/run_length_tuning.h"

// The heads of the runs in a warp's share of a tile: elements are sent for, compared, and heads listed.

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
  std::int64_t tiles;
  EncodeShared* shared;
  Word* words;
};

/// What a warp of the encoder has of its block's shared memory: elements on their way, being looked through,
/// and being written, and where the heads are among the latter two.
template <class T>
struct WarpMemory {
  static constexpr int kElements = encode_warp_elements(sizeof(T));
  static constexpr int kRows = kElements / 32;
  static constexpr int kVectors = static_cast<int>(kElements * sizeof(T) / 16);
  static_assert(kElements % 32 == 0 && kRows <= 32 && kElements * sizeof(T) % 16 == 0);

  struct Share {
    alignas(16) std::byte sixteen_before[16];
    T elements[kElements];

    /// The element before the share's first, which is followed by those of the share.
    __device__ const T* from_before() const {
      return reinterpret_cast<const T*>(sixteen_before + 16 - sizeof(T));
    }
  };

  Share shares[3];
  std::uint16_t heads[2][kElements];
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

/// Copies 16 bytes to shared memory; they are there for this thread once its group of copies has arrived.
__device__ inline void copy_later(void* to, const void* from) { __pipeline_memcpy_async(to, from, 16); }

/// By a warp: the `valid` elements from `first` on are sent for, one group of copies; none is one, too.
template <class T>
__device__ void send_for(const EncodeArguments<T>& a, typename WarpMemory<T>::Share& share,
                         std::int64_t first, int valid, int lane) {
  using Memory = WarpMemory<T>;
  if (valid == Memory::kElements) {
    const auto* from = reinterpret_cast<const uint4*>(a.elements + first);
    auto* to = reinterpret_cast<uint4*>(share.elements);
    if (lane == 0 && first > 0) copy_later(to - 1, from - 1);
#pragma unroll
    for (int i = 0; i < Memory::kVectors; i += 32) {
      if (Memory::kVectors % 32 == 0 || i + lane < Memory::kVectors)
        copy_later(to + i + lane, from + i + lane);
    }
  } else if (valid > 0) {
    auto* to = const_cast<T*>(share.from_before());
    for (int i = first > 0 ? lane : lane + 1; i <= valid; i += 32) to[i] = a.elements[first - 1 + i];
  }
  __pipeline_commit();
}

/// For each element of a row of 32 that differs from the one before it a bit; lane r gets those of row r.
template <class T>
__device__ std::uint32_t heads_by_rows(const typename WarpMemory<T>::Share& share, int lane) {
  const T* before = share.from_before();
  std::uint32_t own = 0;
#pragma unroll
  for (int row = 0; row < WarpMemory<T>::kRows; ++row) {
    const int i = 32 * row + lane;
    const std::uint32_t flags = __ballot_sync(~0u, differ(before[i + 1], before[i]));
    if (lane == row) own = flags;
  }
  return own;
}

/// The same of elements that are smaller than 32 bits, 16 bytes of them at once.
template <class T>
__device__ std::uint32_t heads_by_vectors(const typename WarpMemory<T>::Share& share, int lane) {
  constexpr int kBits = Vector<T>::kElements;
  const auto* vectors = reinterpret_cast<const uint4*>(share.elements);
  std::uint32_t own = 0;
#pragma unroll
  for (int first = 0; first < WarpMemory<T>::kVectors; first += 32) {
    const uint4 vector = vectors[first + lane];
    T before = __shfl_up_sync(~0u, Vector<T>{vector}.last(), 1);
    if (lane == 0) before = share.from_before()[first * kBits];
    std::uint32_t flags = heads_of_vector<T>(vector, before);
#pragma unroll
    for (int have = kBits; have < 32; have *= 2) flags |= __shfl_down_sync(~0u, flags, have / kBits) << have;
    // Every (32 / kBits)-th lane has a row.
    flags = __shfl_sync(~0u, flags, lane % kBits * (32 / kBits));
    if (lane / kBits == first / 32) own = flags;
  }
  return own;
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

/// The heads that a warp has listed.
struct ListedHeads {
  int heads;
  int last;  // where the last one is, if any
};

/// By a warp: lists where the heads are in a share whose first element has index `first`, of which `valid`
/// are of the array.
template <class T>
__device__ ListedHeads list_heads(const EncodeArguments<T>& a, const typename WarpMemory<T>::Share& share,
                                  std::int64_t first, int valid, std::uint16_t* list, int lane) {
  using Memory = WarpMemory<T>;
  std::uint32_t flags = 0;
  if constexpr (kIsWord<T> && sizeof(T) < 4) {
    flags = heads_by_vectors<T>(share, lane);
  } else {
    flags = heads_by_rows<T>(share, lane);
  }
  if (lane < Memory::kRows) {
    if (a.cut != 0 || first == 0) flags |= cut_flags(a, first + 32 * lane);
    if (valid < Memory::kElements) {
      const int left = valid - 32 * lane;
      flags &= left >= 32 ? ~0u : left <= 0 ? 0 : (1u << left) - 1;
    }
  }
  const int own = __popc(flags);
  const int through = warp_prefix_sum(own);
  const int heads = __shfl_sync(~0u, through, 31);
  int rank = through - own;
  if (heads * kFewHeadsShare <= Memory::kElements) {
    for (std::uint32_t left = flags; left != 0; left &= left - 1) {
      list[rank++] = static_cast<std::uint16_t>(32 * lane + __ffs(static_cast<int>(left)) - 1);
    }
  } else {
    const std::uint32_t before_lane = (1u << lane) - 1;
#pragma unroll
    for (int row = 0; row < Memory::kRows; ++row) {
      const std::uint32_t of_row = __shfl_sync(~0u, flags, row);
      const int place = __shfl_sync(~0u, rank, row) + __popc(of_row & before_lane);
      if ((of_row >> lane & 1) != 0) list[place] = static_cast<std::uint16_t>(32 * row + lane);
    }
  }
  __syncwarp();
  return {heads, heads > 0 ? list[heads - 1] : 0};
}

}  // namespace cumulus::run_length
