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
    uint4* told = words(static_cast<int>(blockIdx.x), tile);
    tell_tagged(told, kTile, tag_of(tile), forward);
    tell_tagged(told + kWords * kTile, kTile, tag_of(tile), backward);
  }

  /// Adds what lies before and after the tile's row to the states there, once the neighbours have told it.
  __device__ void gather(int tile, float (&before)[Order], float (&after)[Order]) const {
    // States of two words one side after the other: both at once take too many registers.
    constexpr bool kOneByOne = kWords > 1;
    Side left;
    Side right;
#pragma unroll
    for (int i = 0; i < kMostStripWindow; ++i) {
      left.blocks[i] = near_[-1 - i];
      right.blocks[i] = near_[1 + i];
    }
    do {
      load(left, tile, 0);
      if (!kOneByOne) load(right, tile, kWords);
    } while (!all_told(left, tile) || (!kOneByOne && !all_told(right, tile)));
    add(left, f_.x.forward, before);
    if constexpr (kOneByOne) {
      do {
        load(right, tile, kWords);
      } while (!all_told(right, tile));
    }
    add(right, f_.x.backward, after);
  }

 private:
  static constexpr int kWords = TaggedState<Order>::kWords;

  __device__ std::uint32_t tag_of(int tile) const { return f_.first_tag + static_cast<std::uint32_t>(tile); }
  __device__ uint4* words(int block, int tile) const {
    return f_.states + (block * f_.state_slots + (tile & (f_.state_slots - 1))) * (f_.state_lines * kTile) +
           line_;
  }

  __device__ bool is_here(int column) const {
    return column >= f_.first_strip && column < f_.first_strip + f_.strips;
  }
  /// The block of the strip `distance` to the right, twice, and 1 where it is seen in a mirror; -1: none.
  __device__ int neighbour(int distance) const {
    int column = column_ + distance;
    int mirrored = 0;
    if (abs(distance) > f_.window_x) return -1;
    if (!is_here(column)) {
      if (!stored_) return -1;
      if (f_.boundary_x == FilterBoundary::kRepeat) {
        column += column < 0 ? f_.tile_columns : -f_.tile_columns;
      } else if (f_.boundary_x == FilterBoundary::kReflect) {
        column = column < 0 ? -1 - column : 2 * f_.tile_columns - 1 - column;
        mirrored = 1;
      } else {
        return -1;
      }
    }
    return (static_cast<int>(blockIdx.x) + (column - column_) * f_.channels) * 2 + mirrored;
  }

  /// The neighbours on one side, the next one first, and what they tell.
  struct Side {
    int blocks[kMostStripWindow];
    TaggedState<Order> told[kMostStripWindow];
  };
  __device__ void load(Side& side, int tile, int first_word) const {
#pragma unroll
    for (int i = 0; i < kMostStripWindow; ++i) {
      const int other = side.blocks[i];
      if (other < 0) continue;
      const int word = (other & 1) != 0 ? kWords - first_word : first_word;
      side.told[i].load(words(other / 2, tile) + word * kTile, kTile);
    }
  }
  __device__ bool all_told(const Side& side, int tile) const {
    bool all = true;
#pragma unroll
    for (int i = 0; i < kMostStripWindow; ++i) {
      if (side.blocks[i] >= 0) all = all && side.told[i].has(tag_of(tile));
    }
    return all;
  }
  static __device__ void add(const Side& side, const SmallMatrix<Order, float>& over_tile,
                             float (&state)[Order]) {
#pragma unroll
    for (int i = kMostStripWindow - 1; i >= 0; --i) {
      if (side.blocks[i] < 0) continue;
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
