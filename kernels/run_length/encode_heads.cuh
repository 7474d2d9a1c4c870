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
  EncodeRunLengthsReport* told;  // gets the number of runs
  Word* words;
};

/// What a warp of the encoder has of its block's shared memory: elements on their way, being looked through,
/// and being written, and a list of where the heads are among the latter.
template <class T>
struct WarpMemory {
  static constexpr int kElements = encode_warp_elements(sizeof(T));
  static constexpr int kVectors = static_cast<int>(kElements * sizeof(T) / 16);
  static_assert(kElements % 32 == 0 && kElements * sizeof(T) % 16 == 0);

  struct Share {
    alignas(16) std::byte sixteen_before[16];
    T elements[kElements];

    /// The element before the share's first, which is followed by those of the share.
    __device__ const T* from_before() const {
      return reinterpret_cast<const T*>(sixteen_before + 16 - sizeof(T));
    }
  };

  Share shares[3];
  std::uint16_t heads[kElements];
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

/// How a warp looks through its share: lane l of vector v has kBits elements from 32 * kBits * v + kBits * l
/// on, and a bit for each. A group is kVectors vectors, whose bits a lane has in one word, and whose heads it
/// counts in fields of another.
template <class T>
struct Layout {
  static constexpr bool kByVectors = kIsWord<T>;  // or by rows: a lane has one
  static constexpr int kBits = kByVectors ? static_cast<int>(16 / sizeof(T)) : 32;
  static constexpr int kVectors = !kByVectors ? 1 : sizeof(T) < 4 ? 2 : 4;
  static constexpr int kElements = WarpMemory<T>::kElements;
  static constexpr int kGroupElements = 32 * kBits * kVectors;
  static constexpr int kGroups = kByVectors ? kElements / kGroupElements : 1;
  static constexpr int kRows = kElements / kGroups / 32;  // of a group
  static constexpr int kFieldBits = 32 / kVectors;
  static_assert(!kByVectors || kGroups * kGroupElements == kElements);
  static_assert(kByVectors || kRows <= 32);
  static_assert(32 * kBits < std::int64_t{1} << kFieldBits);

  __device__ static int first_element(int group, int vector, int lane) {
    return (group * kVectors + vector) * 32 * kBits + lane * kBits;
  }
  __device__ static std::uint32_t bits_of_vector(std::uint32_t bits, int vector) {
    return bits >> (vector * kBits) & kVectorMask;
  }
  __device__ static int count_of_vector(std::uint32_t counts, int vector) {
    return static_cast<int>(counts >> (vector * kFieldBits) & kFieldMask);
  }

 private:
  static constexpr std::uint32_t kVectorMask = ~std::uint32_t{0} >> (32 - kBits);
  static constexpr std::uint32_t kFieldMask = ~std::uint32_t{0} >> (32 - kFieldBits);
};

/// What a lane knows of the heads of its warp's share.
template <class T>
struct LaneHeads {
  static constexpr int kGroups = Layout<T>::kGroups;
  std::uint32_t bits[kGroups];    // of the lane's own elements
  std::uint32_t before[kGroups];  // heads in the lanes before it, of each vector
  std::uint32_t all[kGroups];     // heads in all lanes, of each vector

  __device__ static int sum(std::uint32_t counts) {
    int heads = 0;
#pragma unroll
    for (int v = 0; v < Layout<T>::kVectors; ++v) heads += Layout<T>::count_of_vector(counts, v);
    return heads;
  }
  __device__ int count() const {
    int heads = 0;
#pragma unroll
    for (int g = 0; g < kGroups; ++g) heads += sum(all[g]);
    return heads;
  }
};

/// Of a row of 32 elements a bit for each that differs from the one before it; lane r gets those of row r.
template <class T>
__device__ std::uint32_t compare_rows(const typename WarpMemory<T>::Share& share, int lane) {
  const T* before = share.from_before();
  std::uint32_t own = 0;
#pragma unroll
  for (int row = 0; row < Layout<T>::kRows; ++row) {
    const int i = 32 * row + lane;
    const std::uint32_t flags = __ballot_sync(~0u, differ(before[i + 1], before[i]));
    if (lane == row) own = flags;
  }
  return own;
}

/// Of a group's elements that are words a bit for each that differs from the one before it.
template <class T>
__device__ std::uint32_t compare_vectors(const typename WarpMemory<T>::Share& share, int group, int lane) {
  constexpr int kVectors = Layout<T>::kVectors;
  const auto* vectors = reinterpret_cast<const uint4*>(share.elements) + group * kVectors * 32;
  const T* before_group = share.from_before() + group * Layout<T>::kGroupElements;
  std::uint32_t bits = 0;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const uint4 vector = vectors[v * 32 + lane];
    T before = __shfl_up_sync(~0u, Vector<T>{vector}.last(), 1);
    if (lane == 0) before = before_group[v * 32 * Vector<T>::kElements];
    bits |= heads_of_vector<T>(vector, before) << (v * Vector<T>::kElements);
  }
  return bits;
}

/// Where runs are cut in a share.
struct Cuts {
  std::uint32_t distance;  // from its begin to the first
  std::uint32_t every;     // from one to the next, at least as far as the first; beyond any share: any number
};

template <class T>
__device__ Cuts cuts_of_share(const EncodeArguments<T>& a, std::int64_t first) {
  constexpr std::int64_t kFar = std::int64_t{1} << 20;
  const std::int64_t every = a.cut == 0 ? a.count : a.cut;
  const std::int64_t past = first % every;
  return {static_cast<std::uint32_t>(past == 0 ? 0 : min(every - past, kFar)),
          static_cast<std::uint32_t>(min(every, 2 * kFar))};
}

/// A lane's bits with those at cuts set, and those behind the array's end not.
template <class T>
__device__ std::uint32_t complete(std::uint32_t bits, const Cuts& cuts, int valid, int group, int lane) {
  using L = Layout<T>;
  std::uint32_t completed = 0;
#pragma unroll
  for (int v = 0; v < L::kVectors; ++v) {
    const int element = L::first_element(group, v, lane);
    std::uint32_t here = L::bits_of_vector(bits, v);
    const std::uint32_t past =
        (static_cast<std::uint32_t>(element) + cuts.every - cuts.distance) % cuts.every;
    for (std::uint32_t i = past == 0 ? 0 : cuts.every - past; i < static_cast<std::uint32_t>(L::kBits);
         i += cuts.every)
      here |= 1u << i;
    const int left = valid - element;
    if (left < L::kBits) here &= left <= 0 ? 0 : (1u << left) - 1;
    completed |= here << (v * L::kBits);
  }
  return completed;
}

/// By a warp: finds the heads in a share whose first element has index `first`, of which `valid` are of the
/// array.
template <class T>
__device__ LaneHeads<T> find_heads(const EncodeArguments<T>& a, const typename WarpMemory<T>::Share& share,
                                   std::int64_t first, int valid, int lane) {
  using L = Layout<T>;
  LaneHeads<T> heads;
#pragma unroll
  for (int g = 0; g < L::kGroups; ++g) {
    if constexpr (L::kByVectors) {
      heads.bits[g] = compare_vectors<T>(share, g, lane);
    } else {
      heads.bits[g] = compare_rows<T>(share, lane);
    }
  }
  if (a.cut != 0 || first == 0 || valid < L::kElements) {
    const Cuts cuts = cuts_of_share(a, first);
#pragma unroll
    for (int g = 0; g < L::kGroups; ++g) heads.bits[g] = complete<T>(heads.bits[g], cuts, valid, g, lane);
  }
#pragma unroll
  for (int g = 0; g < L::kGroups; ++g) {
    std::uint32_t own = 0;
#pragma unroll
    for (int v = 0; v < L::kVectors; ++v) {
      own |= static_cast<std::uint32_t>(__popc(L::bits_of_vector(heads.bits[g], v))) << (v * L::kFieldBits);
    }
    const std::uint32_t through = warp_prefix_sum(own);
    heads.before[g] = through - own;
    heads.all[g] = __shfl_sync(~0u, through, 31);
  }
  return heads;
}

/// By a warp: where the last head of a share is, if there is one.
template <class T>
__device__ int last_head(const LaneHeads<T>& heads, int lane) {
  using L = Layout<T>;
  int last = 0;
#pragma unroll
  for (int g = 0; g < L::kGroups; ++g) {
    if (heads.bits[g] == 0) continue;
    const int bit = 31 - __clz(static_cast<int>(heads.bits[g]));
    last = L::first_element(g, bit / L::kBits, lane) + bit % L::kBits;
  }
  return static_cast<int>(warp_max(static_cast<std::uint32_t>(last)));
}

/// By a warp, of a group with many heads whose elements are smaller than 32 bits, or by rows: lists them by a
/// lane per element, so that lanes store side by side. `place`: heads before the group.
template <class T>
__device__ void list_rows(const LaneHeads<T>& heads, int group, int place, std::uint16_t* list, int lane) {
  using L = Layout<T>;
  constexpr int kLanes = 32 / L::kBits;  // have a row
  constexpr int kRows = L::kRows / L::kVectors;
  const std::uint32_t before_lane = (1u << lane) - 1;
#pragma unroll
  for (int v = 0; v < L::kVectors; ++v) {
    std::uint32_t rows = L::bits_of_vector(heads.bits[group], v);
#pragma unroll
    for (int lanes = 1; lanes < kLanes; lanes *= 2)
      rows |= __shfl_down_sync(~0u, rows, lanes) << (lanes * L::kBits);
    const int rank = place + L::count_of_vector(heads.before[group], v);
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      const std::uint32_t flags = __shfl_sync(~0u, rows, row * kLanes);
      const int at = __shfl_sync(~0u, rank, row * kLanes) + __popc(flags & before_lane);
      if ((flags >> lane & 1) != 0)
        list[at] = static_cast<std::uint16_t>(L::first_element(group, v, 0) + 32 * row + lane);
    }
    place += L::count_of_vector(heads.all[group], v);
  }
}

/// By a warp, of a group with few heads: each lane lists those among its own elements.
template <class T>
__device__ void list_few(const LaneHeads<T>& heads, int group, int place, std::uint16_t* list, int lane) {
  using L = Layout<T>;
  static_assert(L::kGroupElements / kFewHeadsShare < std::int64_t{1} << L::kFieldBits);
  std::uint32_t ranks = heads.before[group];
#pragma unroll
  for (int v = 1; v < L::kVectors; ++v) ranks += heads.all[group] << (v * L::kFieldBits);
  for (std::uint32_t left = heads.bits[group]; left != 0; left &= left - 1) {
    const int bit = __ffs(static_cast<int>(left)) - 1;
    const int vector = bit / L::kBits;
    list[place + L::count_of_vector(ranks, vector)] =
        static_cast<std::uint16_t>(L::first_element(group, vector, lane) + bit % L::kBits);
    ranks += 1u << (vector * L::kFieldBits);
  }
}

/// By a warp, of a group with many heads: each lane lists those among its own elements.
template <class T>
__device__ void list_many(const LaneHeads<T>& heads, int group, int place, std::uint16_t* list, int lane) {
  using L = Layout<T>;
#pragma unroll
  for (int v = 0; v < L::kVectors; ++v) {
    std::uint16_t* to = list + place + L::count_of_vector(heads.before[group], v);
    const std::uint32_t bits = L::bits_of_vector(heads.bits[group], v);
#pragma unroll
    for (int i = 0; i < L::kBits; ++i) {
      if ((bits >> i & 1) != 0) *to++ = static_cast<std::uint16_t>(L::first_element(group, v, lane) + i);
    }
    place += L::count_of_vector(heads.all[group], v);
  }
}

/// By a warp: lists where the heads of a share are.
template <class T>
__device__ void list_heads(const LaneHeads<T>& heads, std::uint16_t* list, int lane) {
  using L = Layout<T>;
  int place = 0;
#pragma unroll
  for (int g = 0; g < L::kGroups; ++g) {
    const int of_group = LaneHeads<T>::sum(heads.all[g]);
    if (of_group * kFewHeadsShare <= L::kElements / L::kGroups) {
      list_few(heads, g, place, list, lane);
    } else if constexpr (L::kByVectors && sizeof(T) >= 4) {
      list_many(heads, g, place, list, lane);
    } else {
      list_rows(heads, g, place, list, lane);
    }
    place += of_group;
  }
}

}  // namespace cumulus::run_length
