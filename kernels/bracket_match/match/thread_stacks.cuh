#pragma once

#include <cstdint>

#include "kernels/bracket_match/match/stack_change.cuh"
#include "kernels/bracket_match/match/tile_items.cuh"

namespace cumulus::bracket_match {

/// For each thread of a block its surviving brackets, one by one: its opens from one end of a column, its
/// closes from the other; both together are no more than its elements. The lanes of a warp, wherever each is
/// in its column, touch every bank once.
class ThreadStacks {
 public:
  /// An element's number in the thread, and its kind modulo 4 above.
  using Entry = std::uint32_t;

  __device__ static int item_of(Entry entry) { return static_cast<int>(entry % kThreadItems); }
  __device__ static bool same_kind(Entry a, Entry b) { return (a ^ b) / kThreadItems == 0; }

  /// Of this thread.
  __device__ void keep(std::uint32_t opens, std::uint32_t closes, KindBits kinds) {
    const int own = column(threadIdx.x);
    keep(opens, kinds, own, kRow);
    keep(closes, kinds, own + kLast, -kRow);
  }
  /// The `level`-th open from the lowest.
  __device__ Entry open(int level, unsigned int thread) const {
    return entries_[column(thread) + level * kRow];
  }
  /// The `rank`-th close.
  __device__ Entry close(int rank, unsigned int thread) const {
    return entries_[column(thread) + kLast - rank * kRow];
  }

 private:
  static constexpr int kRow = kTileThreads;  // bytes
  static constexpr int kLast = (kThreadItems - 1) * kRow;
  static_assert(kTileThreads == 128, "four threads share a bank");

  __device__ static int column(unsigned int thread) {
    return static_cast<int>(thread % 32 * 4 + thread / 32);
  }
  __device__ void keep(std::uint32_t items, KindBits kinds, int at, int step) {
#pragma unroll 1
    for (; items != 0; items &= items - 1, at += step) {
      const int item = highest_bit(items & (0u - items));
      entries_[at] =
          static_cast<std::uint8_t>(static_cast<std::uint32_t>(item) + kinds.of(item) * kThreadItems);
    }
  }

  std::uint8_t entries_[kThreadItems * kTileThreads];
};

}  // namespace cumulus::bracket_match
