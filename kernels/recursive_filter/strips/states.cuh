#pragma once

#include "kernels/recursive_filter/gpu/tagged_states.cuh"
#include "kernels/recursive_filter/strips/load_store.cuh"
#include "kernels/recursive_filter/strips/ring.cuh"

// The states that strips tell each other: those that the rows of a tile leave, in words that
// carry a tag for each tile.

namespace cumulus::recursive_filter {

template <int Order>
class StripStates {
 public:
  __device__ StripStates(const StripFilter<Order>& f, const StripPlace& at)
      : f_(f), column_(at.column), stored_(at.own), line_(strip_line()) {}

  /// What the thread's row leaves, from nothing.
  __device__ void tell(int tile, const float (&forward)[Order], const float (&backward)[Order]) const {
    uint4* told = f_.states + first_word(static_cast<int>(blockIdx.x), false) + slot_words(tile);
    tell_tagged(told, kTile, tag_of(tile), forward);
    tell_tagged(told + kWords * kTile, kTile, tag_of(tile), backward);
  }

  /// Of the strips on both sides, the next ones first: the first word, in their slot 0, of what they tell
  /// this side of the thread's row; -1: there is none.
  struct Neighbours {
    int left[kMostStripWindow];
    int right[kMostStripWindow];
  };
  __device__ Neighbours neighbours() const {
    Neighbours all;
#pragma unroll
    for (int i = 0; i < kMostStripWindow; ++i) {
      all.left[i] = neighbour(-1 - i);
      all.right[i] = neighbour(1 + i);
    }
    return all;
  }

  /// Adds what lies before and after the tile's row to the states there, once the neighbours have told it.
  __device__ void gather(const Neighbours& neighbours, int tile, float (&before)[Order],
                         float (&after)[Order]) const {
    // States of two words one side after the other: both at once take too many registers.
    constexpr bool kOneByOne = kWords > 1;
    const uint4* slot = f_.states + slot_words(tile);
    const std::uint32_t tag = tag_of(tile);
    Told left;
    Told right;
    do {
      load(slot, neighbours.left, left);
      if (!kOneByOne) load(slot, neighbours.right, right);
    } while (!all_told(neighbours.left, left, tag) ||
             (!kOneByOne && !all_told(neighbours.right, right, tag)));
    add(neighbours.left, left, f_.x.forward, before);
    if constexpr (kOneByOne) {
      do {
        load(slot, neighbours.right, right);
      } while (!all_told(neighbours.right, right, tag));
    }
    add(neighbours.right, right, f_.x.backward, after);
  }

 private:
  static constexpr int kWords = TaggedState<Order>::kWords;
  static constexpr int kTileWords = 2 * kWords * kTile;

  __device__ std::uint32_t tag_of(int tile) const { return f_.first_tag + static_cast<std::uint32_t>(tile); }
  __device__ int slot_words(int tile) const { return (tile & (f_.state_slots - 1)) * kTileWords; }
  /// Of what a block tells, in its slot 0: what the thread's row leaves backwards, or forwards.
  __device__ int first_word(int block, bool backwards) const {
    return block * f_.state_slots * kTileWords + (backwards ? kWords * kTile : 0) + line_;
  }

  __device__ bool is_here(int column) const {
    return column >= f_.first_strip && column < f_.first_strip + f_.strips;
  }
  /// The strip `distance` to the right; in a mirror it leaves backwards what it leaves forwards.
  __device__ int neighbour(int distance) const {
    int column = column_ + distance;
    bool backwards = distance > 0;
    if (abs(distance) > f_.window_x) return -1;
    if (!is_here(column)) {
      if (!stored_) return -1;
      if (f_.boundary_x == FilterBoundary::kRepeat) {
        column += column < 0 ? f_.tile_columns : -f_.tile_columns;
      } else if (f_.boundary_x == FilterBoundary::kReflect) {
        column = column < 0 ? -1 - column : 2 * f_.tile_columns - 1 - column;
        backwards = !backwards;
      } else {
        return -1;
      }
    }
    return first_word(static_cast<int>(blockIdx.x) + (column - column_) * f_.channels, backwards);
  }

  using Told = TaggedState<Order>[kMostStripWindow];
  using Words = int[kMostStripWindow];

  /// visit(i) for the neighbours that a side has.
  template <class Visit>
  __device__ __forceinline__ void each(const Words& words, const Visit& visit) const {
#pragma unroll
    for (int i = 0; i < kMostStripWindow; ++i) {
      if (i >= f_.window_x) break;
      if (words[i] >= 0) visit(i);
    }
  }
  __device__ void load(const uint4* slot, const Words& words, Told& told) const {
    each(words, [&](int i) { told[i].load(slot + words[i], kTile); });
  }
  __device__ bool all_told(const Words& words, const Told& told, std::uint32_t tag) const {
    bool all = true;
    each(words, [&](int i) { all = all && told[i].has(tag); });
    return all;
  }
  __device__ void add(const Words& words, const Told& told, const SmallMatrix<Order, float>& over_tile,
                      float (&state)[Order]) const {
#pragma unroll
    for (int i = kMostStripWindow - 1; i >= 0; --i) {
      if (words[i] < 0) continue;
      float own[Order];
      told[i].get(own);
      move_over(over_tile, own, state);
    }
  }

  const StripFilter<Order>& f_;
  const int column_;
  const bool stored_;
  const int line_;
};

}  // namespace cumulus::recursive_filter
