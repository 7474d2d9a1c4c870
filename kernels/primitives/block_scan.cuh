#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/primitives/warp.cuh"

// Scans over a warp and a block, of any monoid: join(left, right) need not commute. No block waits for
// another.

namespace cumulus {

/// A value whose words, of 64 bits where it is aligned to them, are what move(word) makes of those of
/// `value`.
template <class T, class Move>
__device__ T with_words(T value, const Move& move) {
  using Word = std::conditional_t<alignof(T) % 8 == 0, std::uint64_t, std::uint32_t>;
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(Word) == 0);
  Word words[sizeof(T) / sizeof(Word)];
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (Word& word : words) word = move(word);
  memcpy(&value, words, sizeof(T));
  return value;
}

/// From lane lane_of; any type of whole words.
template <class T>
__device__ T warp_shuffle(T value, int lane_of) {
  return with_words(value, [=](auto word) { return __shfl_sync(kFullWarp, word, lane_of); });
}

/// From the lane so many before; a lane without one gets its own.
template <class T>
__device__ T warp_shuffle_up(T value, int lanes) {
  return with_words(value, [=](auto word) { return __shfl_up_sync(kFullWarp, word, lanes); });
}

/// Each lane gets all lanes up to itself. By a whole warp.
template <class T, class Join>
__device__ T warp_inclusive_scan(T value, const Join& join) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const T before = warp_shuffle_up(value, distance);
    if (lane_index() >= distance) value = join(before, value);
  }
  return value;
}

template <class T>
struct BlockScan {
  T before;  // all threads before this one
  T total;   // of all threads
};

/// By a whole block. `warps` is shared memory, one element a warp; it may be written again after the next
/// __syncthreads.
template <int kThreads, class T, class Join>
__device__ BlockScan<T> block_exclusive_scan(const T& value, const T& identity, const Join& join, T* warps) {
  constexpr int kWarps = kThreads / 32;
  static_assert(kThreads % 32 == 0 && kWarps <= 32);
  const T through = warp_inclusive_scan(value, join);
  if (lane_index() == 31) warps[warp_index()] = through;
  __syncthreads();
  const T scanned = warp_inclusive_scan(lane_index() < kWarps ? warps[lane_index()] : identity, join);
  const T total = warp_shuffle(scanned, kWarps - 1);
  T warps_before = warp_shuffle(scanned, max(warp_index() - 1, 0));
  if (warp_index() == 0) warps_before = identity;
  T lanes_before = warp_shuffle_up(through, 1);
  if (lane_index() == 0) lanes_before = identity;
  return {join(warps_before, lanes_before), total};
}

}  // namespace cumulus
