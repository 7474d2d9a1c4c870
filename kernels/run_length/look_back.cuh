#pragma once

#include <cstdint>

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

__device__ inline std::uint64_t warp_sum(std::uint64_t value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
  return value;
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
    const Stretch stretch = word.stretch();
    const bool mine = (wanted >> lane & 1) != 0;
    before.runs += warp_sum(mine ? stretch.runs : 0);
    if (!head_found) {
      const unsigned int heads = __ballot_sync(~0u, mine && stretch.runs > 0);
      const unsigned int reached = through_lowest(heads) & wanted;
      before.open += warp_sum((reached >> lane & 1) != 0 ? stretch.open : 0);
      head_found = heads != 0;
    }
    if (inclusive != 0) return before;
  }
}

}  // namespace cumulus::run_length
