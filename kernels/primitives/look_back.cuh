#pragma once

#include <cstdint>

#include "kernels/primitives/status_word.cuh"
#include "kernels/primitives/warp.cuh"

// Decoupled look-back: the exclusive prefix of a tile from what the tiles before it have published, an
// aggregate each or an inclusive prefix (D. Merrill and M. Garland, "Single-pass parallel prefix scan with
// decoupled look-back", 2016). In two dimensions a tile looks back along its column and along its row, and
// blocks take tiles by diagonals (diagonal_tiles.h), so that both ways lead to lower tickets.
//
// Why it makes progress: a block takes its tiles by ticket, one after the other, publishes a tile's aggregate
// before it waits, and waits for lower tickets only. The block with the lowest ticket that is not published
// never waits, however few blocks are resident.
// Why nothing is overwritten while it is read: a word goes from empty to aggregate to inclusive and stays;
// both are right, whichever a reader sees. All words are empty before the kernel.

namespace cumulus {

enum class LookBackState : std::uint32_t { kEmpty = 0, kAggregate = 1, kInclusive = 2 };

template <class Value>
__device__ void publish(typename StatusWord<Value>::Bits* to, LookBackState state, const Value& value) {
  StatusWord<Value>(static_cast<std::uint32_t>(state), value).store(to);
}

/// By a thread: the sum of all `available` tiles before this one, whose words lie `stride`, 2 * stride, ...
/// before `word`. Waits until the nearest kWindow of them suffice; asks for the nearest kFirst at first,
/// which mostly are there.
///
/// Sums are added in the tiles' order, to the inclusive sum that they follow, and an inclusive sum is itself
/// made so: the result has the same bits whichever tiles were ready.
template <class Value, int kWindow, int kFirst>
__device__ Value look_back(const typename StatusWord<Value>::Bits* word, std::int64_t stride, int available) {
  struct Seen {
    LookBackState state;
    Value value;
  };
  Seen window[kWindow];
#pragma unroll
  for (int k = 0; k < kWindow; ++k) {
    window[k] = {k < available ? LookBackState::kEmpty : LookBackState::kInclusive, Value{0}};  // of nothing
  }
  for (bool whole_window = false;; whole_window = true) {
#pragma unroll
    for (int k = 0; k < kWindow; ++k) {
      // Of aggregates only the farthest can end the wait.
      const bool farthest = k == kWindow - 1;
      const bool wanted = whole_window || k < kFirst;
      if (wanted && (window[k].state == LookBackState::kEmpty ||
                     (farthest && window[k].state == LookBackState::kAggregate))) {
        StatusWord<Value> read;
        read.load(word - (k + 1) * stride);
        window[k] = {static_cast<LookBackState>(read.status()), read.value()};
      }
    }
    Value sum{0};
    bool reached = false;
#pragma unroll
    for (int k = kWindow - 1; k >= 0; --k) {
      const Seen& seen = window[k];
      sum = seen.state == LookBackState::kInclusive ? seen.value : sum + seen.value;
      reached =
          seen.state == LookBackState::kInclusive || (reached && seen.state == LookBackState::kAggregate);
    }
    if (reached) return sum;
  }
}

/// By a whole warp, for any monoid: a lane each for the 32 tiles before `tile`, then for the 32 before these,
/// up to the first inclusive prefix. load(t) gives the word of tile t, t < 0 an inclusive one of the
/// identity; its state() is a LookBackState. Each window, the nearest first, goes to fold(word, wanted,
/// inclusive): the lane's word, the lanes that count, and the one among them whose word is inclusive, or
/// none.
template <class Load, class Fold>
__device__ void warp_look_back(std::int64_t tile, const Load& load, const Fold& fold) {
  const int lane = lane_index();
  for (std::int64_t nearest = tile - 1;; nearest -= 32) {
    auto word = load(nearest - lane);
    unsigned int inclusive = 0;
    unsigned int wanted = 0;
    for (;;) {
      inclusive = __ballot_sync(kFullWarp, word.state() == LookBackState::kInclusive);
      wanted = inclusive ^ (inclusive - 1);  // up to the nearest inclusive one; all where there is none
      const bool empty = word.state() == LookBackState::kEmpty;
      if ((__ballot_sync(kFullWarp, empty) & wanted) == 0) break;
      if (empty) word = load(nearest - lane);
    }
    fold(word, wanted, inclusive & wanted);
    if (inclusive != 0) return;
  }
}

}  // namespace cumulus
