#pragma once

#include <cstdint>

#include "kernels/primitives/warp_scan.cuh"

// Decoupled look-back over the encoder's tiles (D. Merrill and M. Garland, "Single-pass parallel prefix scan
// with decoupled look-back", 2016). The monoid is (runs, length of the last run so far) with the product (r1
// + r2, r2 > 0 ? l2 : l1 + l2); it does not commute.

namespace cumulus::run_length {

/// What a status word holds: the tile's aggregate or its inclusive prefix; all bits one: nothing yet.
enum class State : std::uint64_t { kAggregate = 0, kInclusive = 1, kEmpty = 3 };

/// An element of the monoid, of consecutive elements of the array: the runs that begin in them, and the
/// elements from the last head to their end (from their begin, where there is no head).
struct RunSum {
  std::uint64_t runs;
  std::uint64_t open;
};

__device__ inline RunSum combine(const RunSum& left, const RunSum& right) {
  return {left.runs + right.runs, right.runs > 0 ? right.open : left.open + right.open};
}

/// Of at most a tile, which has fewer than 65536 elements.
struct SmallRunSum {
  std::uint32_t runs_and_open;  // 16 bits each

  __device__ static SmallRunSum of(std::uint32_t runs, std::uint32_t open) { return {runs << 16 | open}; }
  __device__ std::uint32_t runs() const { return runs_and_open >> 16; }
  __device__ std::uint32_t open() const { return runs_and_open & 0xFFFF; }
  __device__ RunSum sum() const { return {runs(), open()}; }
};

/// 128 bits, read and written whole: who reads the state has read the sum with it, so that relaxed order is
/// enough.
struct alignas(16) StatusWord {
  std::uint64_t runs_and_state;
  std::uint64_t open;

  __device__ State state() const { return static_cast<State>(runs_and_state & 3); }
  __device__ RunSum sum() const { return {runs_and_state >> 2, open}; }
};

__device__ inline void publish(StatusWord* word, State state, RunSum sum) {
  const std::uint64_t runs_and_state = sum.runs << 2 | static_cast<std::uint64_t>(state);
  asm volatile(
      "{ .reg .b128 whole; mov.b128 whole, {%1, %2}; st.relaxed.gpu.global.b128 [%0], whole; }" ::"l"(word),
      "l"(runs_and_state), "l"(sum.open)
      : "memory");
}

__device__ inline StatusWord load_word(const StatusWord* word) {
  StatusWord read;
  asm volatile("{ .reg .b128 whole; ld.relaxed.gpu.global.b128 whole, [%2]; mov.b128 {%0, %1}, whole; }"
               : "=l"(read.runs_and_state), "=l"(read.open)
               : "l"(word)
               : "memory");
  return read;
}

/// Before the first tile: an inclusive prefix of nothing.
__device__ inline StatusWord word_or_origin(const StatusWord* words, std::int64_t tile) {
  if (tile >= 0) return load_word(words + tile);
  return {static_cast<std::uint64_t>(State::kInclusive), 0};
}

/// The lanes up to and including the lowest one in `lanes`; all where there is none.
__device__ inline unsigned int through_lowest(unsigned int lanes) { return lanes ^ (lanes - 1); }

/// By a whole warp: the exclusive prefix of `tile`. Polls the words of a window of 32 tiles until all up to
/// the nearest inclusive prefix are published. It ends: the block of the lowest unpublished tile is resident
/// and publishes its aggregate without waiting for another block (encode/tiles.cuh).
__device__ inline RunSum look_back(const StatusWord* words, std::int64_t tile) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  RunSum prefix{0, 0};
  bool head_found = false;
  for (std::int64_t nearest = tile - 1;; nearest -= 32) {
    StatusWord word = word_or_origin(words, nearest - lane);
    unsigned int inclusive;
    unsigned int wanted;
    for (;;) {
      inclusive = __ballot_sync(~0u, word.state() == State::kInclusive);
      wanted = through_lowest(inclusive);
      if ((__ballot_sync(~0u, word.state() == State::kEmpty) & wanted) == 0) break;
      if (word.state() == State::kEmpty) word = word_or_origin(words, nearest - lane);
    }
    const unsigned int aggregates = wanted & ~inclusive;  // each fits into 32 bits
    const RunSum sum = word.sum();
    const unsigned int heads = __ballot_sync(~0u, (wanted >> lane & 1) != 0 && sum.runs > 0);
    const unsigned int reached = head_found ? 0 : through_lowest(heads) & wanted;
    const auto small = [&](unsigned int lanes, std::uint64_t value) {
      return warp_sum((lanes >> lane & 1) != 0 ? static_cast<std::uint32_t>(value) : 0u);
    };
    prefix.runs += small(aggregates, sum.runs);
    prefix.open += small(reached & aggregates, sum.open);
    head_found |= heads != 0;
    if (inclusive == 0) continue;
    const int last = __ffs(static_cast<int>(inclusive)) - 1;
    const std::uint64_t open = __shfl_sync(~0u, sum.open, last);
    prefix.runs += __shfl_sync(~0u, sum.runs, last);
    if ((reached >> last & 1) != 0) prefix.open += open;
    return prefix;
  }
}

}  // namespace cumulus::run_length
