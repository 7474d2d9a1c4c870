#pragma once

#include <cstdint>

#include "kernels/primitives/warp_scan.cuh"

// How the tiles of the encoder tell each other how many runs lie before them, and how long the run is that
// enters them, without waiting for the whole grid: the single-pass scan of D. Merrill and M. Garland
// ("Single-pass parallel prefix scan with decoupled look-back", 2016) over the monoid (runs, length of the
// last run so far), whose product is (r1 + r2, r2 > 0 ? l2 : l1 + l2).

namespace cumulus::run_length {

/// What a word says: the tile alone, or the tile and all before it; all bits one: nothing yet.
enum class State : std::uint64_t { kOwn = 0, kInclusive = 1, kEmpty = 3 };

/// Runs that begin in some tiles, and the elements from the last of their heads, or else from the first
/// tile's begin, to their end.
struct Stretch {
  std::uint64_t runs;
  std::uint64_t open;
};

/// What follows from the order of two stretches.
__device__ inline Stretch joined(const Stretch& left, const Stretch& right) {
  return {left.runs + right.runs, right.runs > 0 ? right.open : left.open + right.open};
}

/// The stretch of at most a tile, which has fewer than 65536 elements.
struct SmallStretch {
  std::uint32_t runs_and_open;  // 16 bits each

  __device__ static SmallStretch of(std::uint32_t runs, std::uint32_t open) { return {runs << 16 | open}; }
  __device__ std::uint32_t runs() const { return runs_and_open >> 16; }
  __device__ std::uint32_t open() const { return runs_and_open & 0xFFFF; }
  __device__ Stretch stretch() const { return {runs(), open()}; }
};

/// A state and a stretch, read and written whole: a reader that sees the state sees the rest, and nothing
/// else needs ordering.
struct alignas(16) Word {
  std::uint64_t runs_and_state;
  std::uint64_t open;

  __device__ State state() const { return static_cast<State>(runs_and_state & 3); }
  __device__ Stretch stretch() const { return {runs_and_state >> 2, open}; }
};

__device__ inline void publish(Word* word, State state, Stretch stretch) {
  const std::uint64_t runs_and_state = stretch.runs << 2 | static_cast<std::uint64_t>(state);
  asm volatile(
      "{ .reg .b128 whole; mov.b128 whole, {%1, %2}; st.relaxed.gpu.global.b128 [%0], whole; }" ::"l"(word),
      "l"(runs_and_state), "l"(stretch.open)
      : "memory");
}

__device__ inline Word read_word(const Word* word) {
  Word read;
  asm volatile("{ .reg .b128 whole; ld.relaxed.gpu.global.b128 whole, [%2]; mov.b128 {%0, %1}, whole; }"
               : "=l"(read.runs_and_state), "=l"(read.open)
               : "l"(word)
               : "memory");
  return read;
}

/// Before the first tile there is nothing, and that is known.
__device__ inline Word word_or_origin(const Word* words, std::int64_t tile) {
  if (tile >= 0) return read_word(words + tile);
  return {static_cast<std::uint64_t>(State::kInclusive), 0};
}

/// The lanes up to and including the lowest one in `lanes`; all where there is none.
__device__ inline unsigned int through_lowest(unsigned int lanes) { return lanes ^ (lanes - 1); }

/// Called by a whole warp: the stretch of all tiles before `tile`. Waits for those that have published
/// nothing yet; they have lower tickets, so their blocks run.
__device__ inline Stretch look_back(const Word* words, std::int64_t tile) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  Stretch before{0, 0};
  bool head_found = false;
  for (std::int64_t nearest = tile - 1;; nearest -= 32) {
    Word word = word_or_origin(words, nearest - lane);
    unsigned int inclusive;
    unsigned int wanted;
    for (;;) {
      inclusive = __ballot_sync(~0u, word.state() == State::kInclusive);
      wanted = through_lowest(inclusive);
      if ((__ballot_sync(~0u, word.state() == State::kEmpty) & wanted) == 0) break;
      if (word.state() == State::kEmpty) word = word_or_origin(words, nearest - lane);
    }
    const unsigned int alone = wanted & ~inclusive;  // tiles whose stretches are small
    const Stretch stretch = word.stretch();
    const unsigned int heads = __ballot_sync(~0u, (wanted >> lane & 1) != 0 && stretch.runs > 0);
    const unsigned int reached = head_found ? 0 : through_lowest(heads) & wanted;
    const auto small = [&](unsigned int lanes, std::uint64_t value) {
      return warp_sum((lanes >> lane & 1) != 0 ? static_cast<std::uint32_t>(value) : 0u);
    };
    before.runs += small(alone, stretch.runs);
    before.open += small(reached & alone, stretch.open);
    head_found |= heads != 0;
    if (inclusive == 0) continue;
    const int known = __ffs(static_cast<int>(inclusive)) - 1;
    const std::uint64_t open = __shfl_sync(~0u, stretch.open, known);
    before.runs += __shfl_sync(~0u, stretch.runs, known);
    if ((reached >> known & 1) != 0) before.open += open;
    return before;
  }
}

}  // namespace cumulus::run_length
