#pragma once

#include "kernels/recursive_filter/exact_strips/arguments.h"
#include "kernels/recursive_filter/gpu/carries.cuh"
#include "kernels/recursive_filter/gpu/tagged_states.cuh"

// Carries of rows across strips: each strip publishes the zero-state responses of its rows, a carry
// scanner (a warp of some block) scans those of all strips and publishes the carries of each strip, in
// words with a tag for each row of tiles.
//
// No word is overwritten before it is read. A block loads a tile only when it has stored the one
// `state_rows` rows of tiles above it, and so has got the carries of that row, in both directions. The
// scanner that published them had read the block's responses. And carries are overwritten only by a
// scanner that has read what the block published later in the same words, which it does once it has got
// the carries.

namespace cumulus::recursive_filter {

template <int Order>
class ExactStripStates {
 public:
  static_assert(TaggedState<Order>::kWords == 1);

  __device__ explicit ExactStripStates(const ExactStripFilter<Order>& f) : f_(f) {}

  /// The zero-state responses of a row of the strip's tile.
  __device__ void publish(int tile_row, int strip, int line, const float (&forward)[Order],
                          const float (&backward)[Order]) const {
    uint4* to = responses_at(tile_row, false) + strip * kTile + line;
    publish_tagged(to, 0, tag_of(tile_row), forward);
    publish_tagged(to + direction_words(), 0, tag_of(tile_row), backward);
  }

  /// The row's carries: the causal state before the strip's tile, the anticausal one after it.
  __device__ void await_carries(int tile_row, int strip, int line, float (&before)[Order],
                                float (&after)[Order]) const {
    const uint4* from = carries_at(tile_row, false) + strip * kTile + line;
    const std::uint32_t tag = tag_of(tile_row);
    State left;
    State right;
    // Words that many poll arrive later: where rows take longer, one side is polled alone first.
    if (f_.strips_of_block > 1) await(from, tag, left);
    do {
      left.load(from, 0);
      right.load(from + direction_words(), 0);
    } while (!left.has(tag) || !right.has(tag));
    left.get(before);
    right.get(after);
  }

  /// Pieces of work that a row of tiles is for scanners.
  static constexpr int kPieces = 2 * kTile / StripScan<Order>::kRows;
  /// By a warp: scans a few lines in one direction. A lane's strips follow each other in that direction.
  __device__ void scan(int tile_row, int piece) const {
    const bool backwards = piece % 2 != 0;
    const Scan& scan = backwards ? f_.axes.backward : f_.axes.forward;
    const int line = piece / 2 * Scan::kRows + thread() % Scan::kRows;
    const uint4* from = responses_at(tile_row, backwards) + line;
    uint4* to = carries_at(tile_row, backwards) + line;
    const std::uint32_t tag = tag_of(tile_row);
    const int strips = f_.strips;
    float carry[Order] = {};
#pragma unroll 1
    for (int first = 0; first < strips; first += Scan::kStrips) {
      const int place = first + lane() * Scan::kOfLane;
      // After the last strip the last one stands again; it gets no second carry.
      const auto words_to = [&](int i) {
        const int strip = min(place + i, strips - 1);
        return (backwards ? strips - 1 - strip : strip) * kTile;
      };
      State responses[Scan::kOfLane];
      // One word first, so that not all are polled again and again.
      await(from + words_to(Scan::kOfLane - 1), tag, responses[0]);
      bool all = false;
      do {
#pragma unroll
        for (int i = 0; i < Scan::kOfLane; ++i) responses[i].load(from + words_to(i), 0);
        all = true;
#pragma unroll
        for (int i = 0; i < Scan::kOfLane; ++i) all = all && responses[i].has(tag);
      } while (!all);
      __syncwarp();
      float state[Order];
      sum_before(scan, responses, carry, state);
#pragma unroll
      for (int i = 0; i < Scan::kOfLane; ++i) {
        if (place + i < strips) publish_tagged(to + words_to(i), 0, tag, state);
        add(scan, responses[i], state);
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
  /// Among the lanes of the thread's line.
  static __device__ int lane() { return thread() / Scan::kRows; }

  static __device__ void add(const Scan& scan, const State& response, float (&state)[Order]) {
    float aggregate[Order];
    response.get(aggregate);
    apply_transition(scan.strip_transition, aggregate, state);
  }
  /// The exclusive prefix of the lane's strips; `carry` is the first lane's, afterwards the inclusive prefix
  /// of the last lane's.
  static __device__ void sum_before(const Scan& scan, const State (&responses)[Scan::kOfLane],
                                    float (&carry)[Order], float (&before)[Order]) {
    constexpr unsigned int kAll = 0xffffffffU;
    float total[Order];
#pragma unroll
    for (int k = 0; k < Order; ++k) total[k] = lane() == 0 ? carry[k] : 0;
#pragma unroll
    for (int i = 0; i < Scan::kOfLane; ++i) add(scan, responses[i], total);
#pragma unroll 1
    for (int step = 0; step < Scan::kSteps; ++step) {
      float earlier[Order];
#pragma unroll
      for (int k = 0; k < Order; ++k) {
        const float other = __shfl_up_sync(kAll, total[k], Scan::kRows << step);
        earlier[k] = lane() >= 1 << step ? other : 0;
      }
      scan.lane_transitions[step].add_product(earlier, total);
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
  __device__ uint4* responses_at(int tile_row, bool backwards) const {
    return f_.states + ((tile_row & (f_.state_rows - 1)) * 2 + (backwards ? 1 : 0)) * direction_words();
  }
  __device__ uint4* carries_at(int tile_row, bool backwards) const {
    return responses_at(tile_row, backwards) + f_.state_rows * 2 * direction_words();
  }

  const ExactStripFilter<Order>& f_;
};

}  // namespace cumulus::recursive_filter
