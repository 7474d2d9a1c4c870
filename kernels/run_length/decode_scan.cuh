#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/run_length/look_back.cuh"
#include "kernels/run_length/run_length.h"
#include "kernels/run_length/run_length_scratch.h"
#include "kernels/run_length/run_length_tuning.h"

// What the decoder's kernels know of lengths, which are added up by granules of runs, and the kernel between
// the two that write: each tile of the output finds the granule that its first element is in.

namespace cumulus::run_length {

/// What runs may add up to before nobody counts any further.
inline constexpr std::uint64_t kMostElements = std::uint64_t{1} << 62;

/// Both at most kMostElements.
__device__ inline std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) {
  return min(a + b, kMostElements);
}

/// Sum over the lanes up to this one, at most kMostElements.
__device__ inline std::uint64_t warp_scan(std::uint64_t value, int lane) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const std::uint64_t left = __shfl_up_sync(~0u, value, distance);
    if (lane >= distance) value = saturating_sum(value, left);
  }
  return value;
}

/// The value of the lane before; 0 in the first lane.
__device__ inline std::uint64_t before_lane(std::uint64_t value, int lane) {
  const std::uint64_t left = __shfl_up_sync(~0u, value, 1);
  return lane == 0 ? 0 : left;
}

/// The decoder's scratch memory before the rest. All bits one before the kernels run.
struct DecodeShared {
  unsigned int last_ticket;
  int no_long_tile;  // 0: there are tiles of runs that decode_runs has left to expand_tiles
  DecodeRunLengthsReport report;
};

/// What decode_runs does: both at once, or one after the other.
struct DecodePass {
  bool sums;    // where runs begin, and what is wrong with them
  bool writes;  // elements of short runs; without sums, those have been found, and nothing is wrong
};

/// What the kernels of one call share.
struct DecodeArguments {
  const void* lengths;
  bool wide_lengths;  // of 8 bytes rather than 4
  bool ends;          // rather than counts
  std::int64_t runs;
  std::int64_t granules;
  std::int64_t max_elements;
  std::int64_t tile_elements;
  std::int64_t tiles;
  DecodeShared* shared;
  Word* words;                     // of each tile of runs: what it adds up to
  std::uint64_t* granule_offsets;  // where each granule begins
  std::int64_t* first_granules;    // of each tile: the granule that its first element is in
};

/// A run's length as it is stored.
__device__ inline std::uint64_t length_of(const DecodeArguments& a, std::int64_t run) {
  if (a.wide_lengths) return static_cast<const std::uint64_t*>(a.lengths)[run];
  return static_cast<const std::uint32_t*>(a.lengths)[run];
}

inline constexpr int kLaneRuns = kGranuleRuns / 32;

/// The counts of a lane's runs of a granule; 0 beyond the last run, and where ends descend.
struct LaneCounts {
  std::uint64_t counts[kLaneRuns];
  std::int64_t first_run;
  std::int64_t descending_run;  // -1: none

  __device__ std::uint64_t sum() const {
    std::uint64_t total = 0;
#pragma unroll
    for (int k = 0; k < kLaneRuns; ++k) total = saturating_sum(total, counts[k]);
    return total;
  }
  __device__ bool any_zero() const {
    bool zero = false;
#pragma unroll
    for (int k = 0; k < kLaneRuns; ++k) zero |= counts[k] == 0;
    return zero;
  }
};

/// The stored lengths; 32-bit ones of a whole granule by 16 bytes at once.
__device__ inline void load_lengths(const DecodeArguments& a, LaneCounts& lane_counts) {
  static_assert(kLaneRuns % 4 == 0);
  if (!a.wide_lengths && lane_counts.first_run + kLaneRuns <= a.runs) {
    const auto* from =
        reinterpret_cast<const uint4*>(static_cast<const std::uint32_t*>(a.lengths) + lane_counts.first_run);
#pragma unroll
    for (int k = 0; k < kLaneRuns / 4; ++k) {
      const uint4 four = __ldg(from + k);
      lane_counts.counts[4 * k] = four.x;
      lane_counts.counts[4 * k + 1] = four.y;
      lane_counts.counts[4 * k + 2] = four.z;
      lane_counts.counts[4 * k + 3] = four.w;
    }
    return;
  }
#pragma unroll
  for (int k = 0; k < kLaneRuns; ++k) {
    const std::int64_t run = lane_counts.first_run + k;
    lane_counts.counts[k] = run < a.runs ? length_of(a, run) : 0;
  }
}

__device__ inline LaneCounts load_counts(const DecodeArguments& a, std::int64_t granule, int lane) {
  LaneCounts own;
  own.first_run = granule * kGranuleRuns + lane * kLaneRuns;
  own.descending_run = -1;
  load_lengths(a, own);
  if (a.ends) {
    std::uint64_t begin = own.first_run > 0 && own.first_run < a.runs ? length_of(a, own.first_run - 1) : 0;
#pragma unroll
    for (int k = 0; k < kLaneRuns; ++k) {
      const bool is_run = own.first_run + k < a.runs;
      const std::uint64_t end = own.counts[k];
      if (is_run && end < begin && own.descending_run < 0) own.descending_run = own.first_run + k;
      own.counts[k] = is_run && end > begin ? end - begin : 0;
      begin = end;
    }
  }
#pragma unroll
  for (int k = 0; k < kLaneRuns; ++k) own.counts[k] = min(own.counts[k], kMostElements);
  return own;
}

/// By a whole warp: what the tiles of runs before `tile` add up to. Waits for those that have published
/// nothing yet; they have lower tickets, so their blocks run.
__device__ inline std::uint64_t elements_before(const Word* words, std::int64_t tile, int lane) {
  std::uint64_t before = 0;
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
    std::uint64_t sum = (wanted >> lane & 1) != 0 ? word.open : 0;
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
      sum = saturating_sum(sum, __shfl_xor_sync(~0u, sum, distance));
    before = saturating_sum(before, sum);
    if (inclusive != 0) return before;
  }
}

/// The last of `count` ascending offsets that is at most `at`; the first is.
__device__ inline std::int64_t last_at_most(const std::uint64_t* offsets, std::int64_t count,
                                            std::uint64_t at) {
  std::int64_t low = 0;
  std::int64_t high = count;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (offsets[middle] <= at ? low : high) = middle;
  }
  return low;
}

/// True for tiles of the output that there is something to write to.
__device__ inline bool has_elements(const DecodeArguments& a, std::int64_t tile) {
  return tile * a.tile_elements < a.shared->report.elements;
}

inline constexpr int kFindThreads = 128;

/// Says what is wrong, and if nothing is, finds the first granules of the output's tiles, if anything is left
/// to write to them.
__global__ void __launch_bounds__(kFindThreads) find_first_granules(const DecodeArguments a) {
  using Outcome = DecodeRunLengthsReport::Outcome;
  const std::int64_t tile = std::int64_t{blockIdx.x} * kFindThreads + threadIdx.x;
  const DecodeRunLengthsReport& report = a.shared->report;
  const Outcome outcome = report.run >= 0                    ? Outcome::kDescendingEnds
                          : report.elements > a.max_elements ? Outcome::kTooLong
                                                             : Outcome::kDecoded;
  if (tile == 0) a.shared->report.outcome = outcome;
  if (outcome != Outcome::kDecoded || a.shared->no_long_tile != 0) return;
  if (tile >= a.tiles || !has_elements(a, tile)) return;
  a.first_granules[tile] =
      last_at_most(a.granule_offsets, a.granules, static_cast<std::uint64_t>(tile * a.tile_elements));
}

}  // namespace cumulus::run_length
