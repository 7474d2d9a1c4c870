#pragma once

#include "kernels/recursive_filter/strip_ring.cuh"
#include "kernels/recursive_filter/strip_tiles.cuh"
#include "kernels/recursive_filter/tagged_states.cuh"

// The states that strips tell each other: those that the rows of a tile leave, in words that
// carry a tag for each tile.

namespace cumulus::recursive_filter {

template <int Order>
class StripStates {
 public:
  /// `neighbours`: in shared memory, for all threads of the block.
  __device__ StripStates(const StripFilter<Order>& f, const StripPlace& at, int* neighbours)
      : f_(f),
        column_(at.column),
        stored_(at.own),
        near_(neighbours + kMostStripWindow),
        line_(strip_line()) {}

  /// By all threads of the block, before any of them gathers.
  __device__ void begin() const {
    const int distance = static_cast<int>(threadIdx.x) - kMostStripWindow;
    if (distance <= kMostStripWindow) near_[distance] = neighbour(distance);
  }

  /// What the thread's row leaves, from nothing.
  __device__ void tell(int tile, const float (&forward)[Order], const float (&backward)[Order]) const {
    uint4* told = f_.states + (first_word(static_cast<int>(blockIdx.x)) + word_of(tile) + line_);
    tell_tagged(told, kTile, tag_of(tile), forward);
    tell_tagged(told + kWords * kTile, kTile, tag_of(tile), backward);
  }

  /// Adds what lies before and after the tile's row to the states there, once the neighbours have told it.
  __device__ __forceinline__ void gather(int tile, float (&before)[Order], float (&after)[Order]) const {
    // Mostly few, and then fewer instructions for the caches. States of two words take too many registers for
    // both forms in one kernel.
    if (kWords == 1 && f_.window_x <= kFewNeighbours) {
      gather_near<kFewNeighbours>(tile, before, after);
    } else {
      gather_near<kMostStripWindow>(tile, before, after);
    }
  }

 private:
  static constexpr int kWords = TaggedState<Order>::kWords;

  __device__ std::uint32_t tag_of(int tile) const { return f_.first_tag + static_cast<std::uint32_t>(tile); }
  __device__ int first_word(int block) const { return block * f_.state_slots * (f_.state_lines * kTile); }
  __device__ int word_of(int tile) const { return (tile & (f_.state_slots - 1)) * (f_.state_lines * kTile); }

  __device__ bool is_here(int column) const {
    return column >= f_.first_strip && column < f_.first_strip + f_.strips;
  }
  /// The first of the words of the strip `distance` to the right that tell what it leaves on this side; -1:
  /// none.
  __device__ int neighbour(int distance) const {
    int column = column_ + distance;
    bool from_left = distance < 0;
    if (abs(distance) > f_.window_x) return -1;
    if (!is_here(column)) {
      if (!stored_) return -1;
      if (f_.boundary_x == FilterBoundary::kRepeat) {
        column += column < 0 ? f_.tile_columns : -f_.tile_columns;
      } else if (f_.boundary_x == FilterBoundary::kReflect) {
        column = column < 0 ? -1 - column : 2 * f_.tile_columns - 1 - column;
        from_left = !from_left;
      } else {
        return -1;
      }
    }
    return first_word(static_cast<int>(blockIdx.x) + (column - column_) * f_.channels) +
           (from_left ? 0 : kWords * kTile);
  }

  static constexpr int kFewNeighbours = 2;

  /// The neighbours on one side, the next one first, and what they tell.
  template <int kCount>
  struct Side {
    int first_words[kCount];
    TaggedState<Order> told[kCount];
  };
  template <int kCount>
  __device__ __forceinline__ void gather_near(int tile, float (&before)[Order], float (&after)[Order]) const {
    // States of two words one side after the other: both at once take too many registers.
    constexpr bool kOneByOne = kWords > 1;
    Side<kCount> left;
    Side<kCount> right;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      left.first_words[i] = near_[-1 - i];
      right.first_words[i] = near_[1 + i];
    }
    const uint4* from = f_.states + (word_of(tile) + line_);
    const std::uint32_t tag = tag_of(tile);
    do {
      load(left, from);
      if (!kOneByOne) load(right, from);
    } while (!all_told(left, tag) || (!kOneByOne && !all_told(right, tag)));
    add(left, f_.x.forward, before);
    if constexpr (kOneByOne) {
      do {
        load(right, from);
      } while (!all_told(right, tag));
    }
    add(right, f_.x.backward, after);
  }
  template <int kCount>
  static __device__ void load(Side<kCount>& side, const uint4* from) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (side.first_words[i] >= 0) side.told[i].load(from + side.first_words[i], kTile);
    }
  }
  template <int kCount>
  static __device__ bool all_told(const Side<kCount>& side, std::uint32_t tag) {
    bool all = true;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (side.first_words[i] >= 0) all = all && side.told[i].has(tag);
    }
    return all;
  }
  template <int kCount>
  static __device__ void add(const Side<kCount>& side, const SmallMatrix<Order, float>& over_tile,
                             float (&state)[Order]) {
#pragma unroll
    for (int i = kCount - 1; i >= 0; --i) {
      if (side.first_words[i] < 0) continue;
      float own[Order];
      side.told[i].get(own);
      move_over(over_tile, own, state);
    }
  }

  const StripFilter<Order>& f_;
  const int column_;
  const bool stored_;
  int* const near_;
  const int line_;
};

}  // namespace cumulus::recursive_filter
