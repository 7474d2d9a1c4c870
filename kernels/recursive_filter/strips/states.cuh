#pragma once

#include "kernels/primitives/await_all.cuh"
#include "kernels/recursive_filter/gpu/tagged_states.cuh"
#include "kernels/recursive_filter/strips/load_store.cuh"
#include "kernels/recursive_filter/strips/ring.cuh"

// Zero-state responses of rows that strips publish to their neighbours, in words with a tag for each tile.

namespace cumulus::recursive_filter {

template <int Order, int Channels>
class StripStates {
 public:
  __device__ StripStates(const StripFilter<Order, Channels>& f, const StripPlace& at)
      : f_(f), column_(at.column), stored_(at.stored), line_(StripTeams<Channels>::line()) {}

  /// The zero-state responses of the thread's row.
  __device__ void publish(int tile, const float (&forward)[Order], const float (&backward)[Order]) const {
    uint4* published = f_.states + first_word(static_cast<int>(blockIdx.x), false) + slot_words(tile);
    publish_tagged(published, kLines, tag_of(tile), forward);
    publish_tagged(published + kWords * kLines, kLines, tag_of(tile), backward);
  }

  /// Of the strips on both sides, the nearest first: where the first word of the thread's row lies in their
  /// slot 0; -1: there is none.
  struct Neighbours {
    int left[kMaxStripWindow];
    int right[kMaxStripWindow];

    __device__ const int (&of(int side) const)[kMaxStripWindow] { return side == 0 ? left : right; }
  };
  __device__ Neighbours neighbours() const {
    Neighbours all;
#pragma unroll
    for (int i = 0; i < kMaxStripWindow; ++i) {
      all.left[i] = neighbour(-1 - i);
      all.right[i] = neighbour(1 + i);
    }
    return all;
  }

  /// The same of several channels, in shared memory, for the thread's row but for its number; by all threads
  /// of the block.
  __device__ void find_neighbours(NeighbourTable<Channels>& table) const {
    const int entry = static_cast<int>(threadIdx.x);
    if (entry >= 2 * kMaxWindow) return;
    const int distance = entry % kMaxWindow + 1;
    const int word = neighbour(entry < kMaxWindow ? -distance : distance);
    table.first_words[entry / kMaxWindow][distance - 1] = word < 0 ? -1 : word - line_;
  }

  /// Adds the row's carries, from the neighbours' responses, to the states before and after it.
  __device__ void gather(const Neighbours& neighbours, int tile, float (&before)[Order],
                         float (&after)[Order]) const {
    // States of two words one side after the other: both at once take too many registers.
    constexpr bool kOneByOne = kWords > 1;
    const uint4* slot = f_.states + slot_words(tile);
    const std::uint32_t tag = tag_of(tile);
    NeighbourStates states[2];
    const auto load_side = [&](int side) { load(slot, neighbours.of(side), states[side]); };
    const auto has_side = [&](int side) { return all_published(neighbours.of(side), states[side], tag); };
    await_all<kOneByOne ? 1 : 2>(load_side, has_side);
    add(neighbours.left, states[0], f_.x.forward, before);
    if constexpr (kOneByOne) {
      await_all<1>([&](int) { load_side(1); }, [&](int) { return has_side(1); });
    }
    add(neighbours.right, states[1], f_.x.backward, after);
  }
  /// The same of several channels: a few neighbours of both sides at once, the farthest first.
  __device__ void gather(const NeighbourTable<Channels>& table, int tile, float (&before)[Order],
                         float (&after)[Order]) const {
    constexpr int kBatch = (Channels > 3 ? 2 : 4) / kWords;  // as many as registers hold
    const uint4* slot = f_.states + slot_words(tile) + line_;
    const std::uint32_t tag = tag_of(tile);
#pragma unroll 1
    for (int first = (f_.window_x - 1) / kBatch * kBatch; first >= 0; first -= kBatch) {
      TaggedState<Order> states[2][kBatch];
      int words[2][kBatch];
#pragma unroll
      for (int i = 0; i < 2 * kBatch; ++i)
        words[i / kBatch][i % kBatch] = table.first_words[i / kBatch][first + i % kBatch];
      // By hand: await_missing makes four channels 3 to 5 % slower, await_all spills at three.
      bool all = false;
      while (!all) {
        all = true;
#pragma unroll
        for (int i = 0; i < 2 * kBatch; ++i) {
          const int word = words[i / kBatch][i % kBatch];
          if (word >= 0) states[i / kBatch][i % kBatch].load(slot + word, kLines);
        }
#pragma unroll
        for (int i = 0; i < 2 * kBatch; ++i) {
          all = all && (words[i / kBatch][i % kBatch] < 0 || states[i / kBatch][i % kBatch].has(tag));
        }
      }
      add(words[0], states[0], f_.x.forward, before);
      add(words[1], states[1], f_.x.backward, after);
    }
  }

 private:
  static constexpr int kMaxWindow = kMaxStripWindowTiles<Channels>;

  static constexpr int kWords = TaggedState<Order>::kWords;
  static constexpr int kLines = StripTeams<Channels>::kLines;
  static constexpr int kTileWords = 2 * kWords * kLines;

  __device__ std::uint32_t tag_of(int tile) const { return f_.first_tag + static_cast<std::uint32_t>(tile); }
  __device__ int slot_words(int tile) const { return (tile & (f_.state_slots - 1)) * kTileWords; }
  /// Of a block's slot 0: the anticausal response of the thread's row, or the causal one.
  __device__ int first_word(int block, bool backwards) const {
    return block * f_.state_slots * kTileWords + (backwards ? kWords * kLines : 0) + line_;
  }

  __device__ bool is_here(int column) const {
    return column >= f_.first_strip && column < f_.first_strip + f_.strips;
  }
  /// The strip `distance` to the right; mirrored, its causal response stands for the anticausal one.
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
    const int blocks_apart = Channels == 1 ? f_.channels : 1;
    return first_word(static_cast<int>(blockIdx.x) + (column - column_) * blocks_apart, backwards);
  }

  using NeighbourStates = TaggedState<Order>[kMaxStripWindow];
  using Words = int[kMaxStripWindow];

  /// visit(i) for the neighbours that a side has.
  template <class Visit>
  __device__ __forceinline__ void each(const Words& words, const Visit& visit) const {
#pragma unroll
    for (int i = 0; i < kMaxStripWindow; ++i) {
      if (i >= f_.window_x) break;
      if (words[i] >= 0) visit(i);
    }
  }
  __device__ void load(const uint4* slot, const Words& words, NeighbourStates& published) const {
    each(words, [&](int i) { published[i].load(slot + words[i], kLines); });
  }
  __device__ bool all_published(const Words& words, const NeighbourStates& published,
                                std::uint32_t tag) const {
    bool all = true;
    each(words, [&](int i) { all = all && published[i].has(tag); });
    return all;
  }
  template <int kCount>
  __device__ static void add(const int (&words)[kCount], const TaggedState<Order> (&published)[kCount],
                             const SmallMatrix<Order, float>& tile_transition, float (&state)[Order]) {
#pragma unroll
    for (int i = kCount - 1; i >= 0; --i) {
      if (words[i] < 0) continue;
      float aggregate[Order];
      published[i].get(aggregate);
      apply_transition(tile_transition, aggregate, state);
    }
  }

  const StripFilter<Order, Channels>& f_;
  const int column_;
  const bool stored_;
  const int line_;
};

}  // namespace cumulus::recursive_filter
