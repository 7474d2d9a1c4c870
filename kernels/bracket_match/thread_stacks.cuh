#pragma once

#include <cstdint>

#include "kernels/bracket_match/bracket_match_tuning.h"
#include "kernels/bracket_match/shared_words.cuh"

// How the threads of a block match elements each for itself: every thread has a stack in shared memory, and
// goes through its elements with a branch only where it pops.

namespace cumulus::bracket_match {

/// What a stack holds of an element: its kind above kKindShift, its number among the thread's below.
using Entry = std::uint32_t;
inline constexpr int kKindShift = 8;
inline constexpr Entry kKindBits = 0x7F00;
inline constexpr Entry kItemBits = kThreadItems - 1;

inline __device__ int item_of(Entry entry) { return static_cast<int>(entry & kItemBits); }

/// For each thread the opens that it has pushed, from one end of a column, and the closes that found its
/// stack empty, from the other: both together are no more than its elements. Columns of 16 bits are laid out
/// so that the lanes of a warp, wherever each is in its own, touch every bank once.
class ThreadStacks {
 public:
  /// The `level`-th open from the lowest.
  __device__ Entry open(int level, int thread) const { return at(column(thread) + level * kRow); }
  /// The `rank`-th close.
  __device__ Entry close(int rank, int thread) const { return at(column(thread) + kLast - rank * kRow); }

  /// One thread's column while it goes through its elements.
  class Column {
   public:
    __device__ Column(const ThreadStacks& stacks, int thread)
        : begin_(shared_address(&stacks) + static_cast<SharedAddress>(column(thread))),
          top_(begin_),
          close_(begin_ + kLast) {}

    __device__ bool empty() const { return top_ == begin_; }
    __device__ int opens() const { return static_cast<int>(top_ - begin_) / kRow; }
    __device__ int closes() const { return static_cast<int>(begin_ + kLast - close_) / kRow; }
    __device__ void clear() { top_ = begin_; }
    /// The highest open, which is dropped; there must be one.
    __device__ Entry pop() {
      top_ -= kRow;
      return load_shared_16(top_);
    }
    /// Keeps an open, or a close that found the stack empty. Anything else is put where the next close goes,
    /// so that no element takes a branch: there is a place left as long as there are elements.
    __device__ void keep(Entry entry, bool opens, bool found_nothing) {
      store_shared_16(opens ? top_ : close_, entry);
      add_if(opens, top_, kRow);
      add_if(found_nothing, close_, -kRow);
    }

   private:
    const SharedAddress begin_;
    SharedAddress top_;    // the next open's place
    SharedAddress close_;  // the next close's
  };

 private:
  static constexpr int kHalf = kTileThreads / 2;
  static constexpr int kRow = 4 * kHalf;  // bytes
  static constexpr int kLast = (kThreadItems - 1) * kRow;

  __device__ static int column(int thread) { return thread % kHalf * 4 + thread / kHalf * 2; }
  __device__ Entry at(int offset) const {
    return *reinterpret_cast<const std::uint16_t*>(reinterpret_cast<const char*>(entries_) + offset);
  }

  std::uint16_t entries_[kThreadItems * kTileThreads];
};

/// Where the partners of a tile's elements are gathered, by their numbers in the tile. A thread's elements
/// are a row.
struct TilePartners {
  static constexpr std::uint16_t kNone = 0xFFFF;    // in the tile
  static constexpr int kStride = kThreadItems + 2;  // so that rows begin in different banks
  alignas(4) std::uint16_t numbers[kTileThreads * kStride];

  __device__ std::uint16_t* row(int thread) { return numbers + thread * kStride; }
};

}  // namespace cumulus::bracket_match
