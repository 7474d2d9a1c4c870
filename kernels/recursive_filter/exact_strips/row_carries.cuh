#pragma once

#include "kernels/recursive_filter/exact_strips/arguments.h"
#include "kernels/recursive_filter/gpu/carries.cuh"
#include "kernels/recursive_filter/gpu/tagged_states.cuh"

// The states of rows where strips leave nothing out: each strip tells what its tile of a row leaves, a warp
// somewhere adds up those of all strips of the row, and tells each strip what lies before its tile. All in
// words that carry a tag for each row of tiles.
//
// Nobody overwrites what is still read. A block loads a tile only when it has stored the one `state_rows`
// rows of tiles above it, and so has heard of that row's lines in both directions. Who completed a line for
// the block had read what the block had told of it. And what was completed for the block is overwritten only
// by who has read what it told of a line in the same words again, which it does once it has heard.

namespace cumulus::recursive_filter {

template <int Order>
class ExactStripStates {
 public:
  static_assert(TaggedState<Order>::kWords == 1);

  __device__ explicit ExactStripStates(const ExactStripFilter<Order>& f) : f_(f) {}

  /// What a row of the strip's tile leaves, from nothing.
  __device__ void tell(int tile_row, int strip, int line, const float (&forward)[Order],
                       const float (&backward)[Order]) const {
    uint4* to = told(tile_row, false) + strip * kTile + line;
    tell_tagged(to, 0, tag_of(tile_row), forward);
    tell_tagged(to + direction_words(), 0, tag_of(tile_row), backward);
  }

  /// What lies before and after the strip's tile, as soon as it is known.
  __device__ void hear(int tile_row, int strip, int line, float (&before)[Order],
                       float (&after)[Order]) const {
    const uint4* from = completed(tile_row, false) + strip * kTile + line;
    const std::uint32_t tag = tag_of(tile_row);
    State left;
    State right;
    // Words that many ask for reach them later: where rows take longer, one side is asked for alone first.
    if (f_.strips_of_block > 1) await(from, tag, left);
    do {
      left.load(from, 0);
      right.load(from + direction_words(), 0);
    } while (!left.has(tag) || !right.has(tag));
    left.get(before);
    right.get(after);
  }

  /// Pieces of work in a row of tiles.
  static constexpr int kPieces = 2 * kTile / StripScan<Order>::kRows;
  /// By a warp: a few lines in one direction. A lane's strips follow each other in the direction of the run.
  __device__ void complete(int tile_row, int piece) const {
    const bool backwards = piece % 2 != 0;
    const Scan& scan = backwards ? f_.axes.backward : f_.axes.forward;
    const int line = piece / 2 * Scan::kRows + thread() % Scan::kRows;
    const uint4* from = told(tile_row, backwards) + line;
    uint4* to = completed(tile_row, backwards) + line;
    const std::uint32_t tag = tag_of(tile_row);
    const int strips = f_.strips;
    float carry[Order] = {};
#pragma unroll 1
    for (int first = 0; first < strips; first += Scan::kStrips) {
      const int place = first + lane() * Scan::kOfLane;
      // Behind the last strip lies the last one again: nobody is told of it.
      const auto words_to = [&](int i) {
        const int strip = min(place + i, strips - 1);
        return (backwards ? strips - 1 - strip : strip) * kTile;
      };
      State left[Scan::kOfLane];
      // One word first, so that not all are asked for again and again.
      await(from + words_to(Scan::kOfLane - 1), tag, left[0]);
      bool all = false;
      do {
#pragma unroll
        for (int i = 0; i < Scan::kOfLane; ++i) left[i].load(from + words_to(i), 0);
        all = true;
#pragma unroll
        for (int i = 0; i < Scan::kOfLane; ++i) all = all && left[i].has(tag);
      } while (!all);
      __syncwarp();
      float state[Order];
      sum_before(scan, left, carry, state);
#pragma unroll
      for (int i = 0; i < Scan::kOfLane; ++i) {
        if (place + i < strips) tell_tagged(to + words_to(i), 0, tag, state);
        add(scan, left[i], state);
      }
    }
  }

 private:
  using Scan = StripScan<Order>;
  using State = TaggedState<Order>;

  static __device__ void await(const uint4* word, std::uint32_t tag, State& state) {
    do {
      state.load(word, 0);
    } while (!state.has(tag));
  }

  static __device__ int thread() { return static_cast<int>(threadIdx.x) % 32; }
  /// Of those that have the thread's line.
  static __device__ int lane() { return thread() / Scan::kRows; }

  static __device__ void add(const Scan& scan, const State& left, float (&state)[Order]) {
    float own[Order];
    left.get(own);
    move_over(scan.over_strip, own, state);
  }
  /// The state before the lane's strips, of which `carry` lies before the first lane's; afterwards what lies
  /// behind the last lane's.
  static __device__ void sum_before(const Scan& scan, const State (&left)[Scan::kOfLane],
                                    float (&carry)[Order], float (&before)[Order]) {
    constexpr unsigned int kAll = 0xffffffffU;
    float total[Order];
#pragma unroll
    for (int k = 0; k < Order; ++k) total[k] = lane() == 0 ? carry[k] : 0;
#pragma unroll
    for (int i = 0; i < Scan::kOfLane; ++i) add(scan, left[i], total);
#pragma unroll 1
    for (int step = 0; step < Scan::kSteps; ++step) {
      float earlier[Order];
#pragma unroll
      for (int k = 0; k < Order; ++k) {
        const float other = __shfl_up_sync(kAll, total[k], Scan::kRows << step);
        earlier[k] = lane() >= 1 << step ? other : 0;
      }
      scan.over_lanes[step].add_product(earlier, total);
    }
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      const float other = __shfl_up_sync(kAll, total[k], Scan::kRows);
      before[k] = lane() == 0 ? carry[k] : other;
      carry[k] = __shfl_sync(kAll, total[k], 32 - Scan::kRows + thread() % Scan::kRows);
    }
  }

  __device__ std::uint32_t tag_of(int tile_row) const {
    return f_.first_tag + static_cast<std::uint32_t>(tile_row);
  }
  __device__ int direction_words() const { return kTile * f_.strips; }
  /// Of the first line of the first strip.
  __device__ uint4* told(int tile_row, bool backwards) const {
    return f_.states + ((tile_row & (f_.state_rows - 1)) * 2 + (backwards ? 1 : 0)) * direction_words();
  }
  __device__ uint4* completed(int tile_row, bool backwards) const {
    return told(tile_row, backwards) + f_.state_rows * 2 * direction_words();
  }

  const ExactStripFilter<Order>& f_;
};

}  // namespace cumulus::recursive_filter
