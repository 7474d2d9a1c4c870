#pragma once

#include <cstdint>

#include "kernels/primitives/look_back.cuh"
#include "kernels/primitives/status_word.cuh"
#include "kernels/primitives/warp.cuh"
#include "kernels/primitives/warp_scan.cuh"

// The monoid of the encoder's decoupled look-back (kernels/primitives/look_back.cuh), and its status words.
// It is (runs, length of the last run so far) with the product (r1 + r2, r2 > 0 ? l2 : l1 + l2); it does not
// commute.

namespace cumulus::run_length {

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

/// Of an array of fewer than 2^48 elements, which is more than a device can address.
struct PackedRunSum {
  std::uint32_t runs_low, open_low, high;  // `high` has 16 bits of each

  __device__ static PackedRunSum of(const RunSum& sum) {
    return {static_cast<std::uint32_t>(sum.runs), static_cast<std::uint32_t>(sum.open),
            static_cast<std::uint32_t>(sum.runs >> 32 | sum.open >> 32 << 16)};
  }
  __device__ RunSum sum() const {
    return {std::uint64_t{high & 0xFFFF} << 32 | runs_low, std::uint64_t{high >> 16} << 32 | open_low};
  }
};

/// The status word of a tile. Its status is the complement of the state, so that all bits one is empty: one
/// memset clears the report, whose -1 is "none", and the words.
class RunWord {
 public:
  using Bits = StatusWord<PackedRunSum>::Bits;

  RunWord() = default;
  __device__ RunWord(LookBackState state, const RunSum& sum)
      : word_(~static_cast<std::uint32_t>(state), PackedRunSum::of(sum)) {}
  /// Before the first tile: an inclusive prefix of nothing.
  __device__ static RunWord load(const Bits* words, std::int64_t tile) {
    RunWord read(LookBackState::kInclusive, {0, 0});
    if (tile >= 0) read.word_.load(words + tile);
    return read;
  }

  __device__ void store(Bits* to) const { word_.store(to); }
  __device__ LookBackState state() const { return static_cast<LookBackState>(~word_.status()); }
  __device__ RunSum sum() const { return word_.value().sum(); }

 private:
  StatusWord<PackedRunSum> word_;
};

/// Of the lanes of a window, the nearest tile first: those up to and including the lowest one in `lanes`; all
/// where there is none.
__device__ inline unsigned int through_lowest(unsigned int lanes) { return lanes ^ (lanes - 1); }

/// By a whole warp: the exclusive prefix of `tile`. The block of the lowest unpublished tile is resident and
/// publishes its aggregate without waiting for another block (encode/tiles.cuh).
__device__ inline RunSum look_back(const RunWord::Bits* words, std::int64_t tile) {
  RunSum prefix{0, 0};
  bool head_found = false;
  const auto load = [&](std::int64_t of) { return RunWord::load(words, of); };
  warp_look_back(tile, load, [&](const RunWord& word, unsigned int wanted, unsigned int inclusive) {
    const int lane = lane_index();
    const unsigned int aggregates = wanted & ~inclusive;  // each fits into 32 bits
    const RunSum sum = word.sum();
    const unsigned int heads = __ballot_sync(kFullWarp, (wanted >> lane & 1) != 0 && sum.runs > 0);
    const unsigned int reached = head_found ? 0 : through_lowest(heads) & wanted;
    const auto small = [&](unsigned int lanes, std::uint64_t value) {
      return warp_sum((lanes >> lane & 1) != 0 ? static_cast<std::uint32_t>(value) : 0u);
    };
    prefix.runs += small(aggregates, sum.runs);
    prefix.open += small(reached & aggregates, sum.open);
    head_found |= heads != 0;
    if (inclusive == 0) return;
    const int last = __ffs(static_cast<int>(inclusive)) - 1;
    const std::uint64_t open = __shfl_sync(kFullWarp, sum.open, last);
    prefix.runs += __shfl_sync(kFullWarp, sum.runs, last);
    if ((reached >> last & 1) != 0) prefix.open += open;
  });
  return prefix;
}

}  // namespace cumulus::run_length
