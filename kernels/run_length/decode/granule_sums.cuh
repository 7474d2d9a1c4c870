#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/primitives/block_scan.cuh"
#include "kernels/primitives/launch.cuh"
#include "kernels/primitives/warp.cuh"
#include "kernels/primitives/warp_scan.cuh"
#include "kernels/run_length/run_length.h"
#include "kernels/run_length/tuning.h"

// The decoder's first kernels add up and check the lengths: by granules of 256 runs, and by blocks of 32
// granules. Of short granules they keep, as bits, where runs begin, so that the lengths are read once.

namespace cumulus::run_length {

/// Sums saturate here.
inline constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 62;

/// Both at most kMaxElements.
__device__ inline std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) {
  return min(a + b, kMaxElements);
}

/// For scans.
struct SaturatingSum {
  __device__ std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const { return saturating_sum(a, b); }
};

/// Sum over the lanes up to this one, at most kMaxElements.
__device__ inline std::uint64_t warp_scan(std::uint64_t value) {
  return warp_inclusive_scan(value, SaturatingSum{});
}

/// The value of the lane before; 0 in the first lane.
__device__ inline std::uint64_t before_lane(std::uint64_t value, int lane) {
  const std::uint64_t left = warp_shuffle_up(value, 1);
  return lane == 0 ? 0 : left;
}

/// Of all kernels of a call.
struct DecodeArguments {
  const void* lengths;
  bool wide_lengths;  // of 8 bytes rather than 4
  bool ends;          // rather than counts
  bool plain;         // counts of 4 bytes
  std::int64_t runs;
  std::int64_t granules;
  std::int64_t blocks;  // of granules
  bool few_blocks;  // kFewBlocks at most, and something to write to: there is nothing but sum_granules before
                    // tiles
  bool mostly_short;  // granules
  std::int64_t max_elements;
  std::int64_t tile_elements;
  std::int64_t tiles;
  DecodeRunLengthsReport* report;
  DecodeRunLengthsReport* caller_report;  // pinned host memory; where it is not, `report` itself
  std::uint32_t* flags;  // kFlagWords of each granule; of short ones a bit for each element, heads set
  std::uint64_t* granule_offsets;  // where each granule begins, from its block's begin; kShort in short ones
  std::uint64_t*
      block_offsets;  // where each block begins; until scanned its elements, kShort if all are short
  bool* all_short;    // whether all granules are
  std::int64_t* first_granules;  // of each tile: the granule that its first element is in
};

/// Marks granules whose flags are kept.
inline constexpr std::uint64_t kShort = std::uint64_t{1} << 63;
/// Marks blocks in which ends descend: the rest is the first such run. More than any number of elements.
inline constexpr std::uint64_t kDescends = kMaxElements | kMaxElements / 2;

/// Where a granule begins in the output; behind the last one, where that ends.
__device__ inline std::uint64_t granule_begin(const DecodeArguments& a, std::int64_t granule) {
  if (granule >= a.granules) return static_cast<std::uint64_t>(a.report->elements);
  return a.block_offsets[granule / kBlockGranules] + (a.granule_offsets[granule] & ~kShort);
}

/// A run's length as it is stored.
__device__ inline std::uint64_t length_of(const DecodeArguments& a, std::int64_t run) {
  if (a.wide_lengths) return static_cast<const std::uint64_t*>(a.lengths)[run];
  return static_cast<const std::uint32_t*>(a.lengths)[run];
}

/// A word of flags, and how many heads there are before it, less one: the rank of the run that is open before
/// the word.
struct alignas(8) RankedFlags {
  std::uint32_t flags;
  std::int32_t rank;
};

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
};

/// Counts of 32 bits of a whole granule, 16 bytes at a time.
__device__ inline LaneCounts load_plain_counts(const DecodeArguments& a, std::int64_t granule, int lane) {
  static_assert(kLaneRuns % 4 == 0);
  LaneCounts own;
  own.first_run = granule * kGranuleRuns + lane * kLaneRuns;
  own.descending_run = -1;
  const auto* from =
      reinterpret_cast<const uint4*>(static_cast<const std::uint32_t*>(a.lengths) + own.first_run);
#pragma unroll
  for (int k = 0; k < kLaneRuns / 4; ++k) {
    const uint4 four = __ldg(from + k);
    own.counts[4 * k] = four.x;
    own.counts[4 * k + 1] = four.y;
    own.counts[4 * k + 2] = four.z;
    own.counts[4 * k + 3] = four.w;
  }
  return own;
}

__device__ inline LaneCounts load_counts(const DecodeArguments& a, std::int64_t granule, int lane) {
  if (a.plain && (granule + 1) * kGranuleRuns <= a.runs) return load_plain_counts(a, granule, lane);
  LaneCounts own;
  own.first_run = granule * kGranuleRuns + lane * kLaneRuns;
  own.descending_run = -1;
#pragma unroll
  for (int k = 0; k < kLaneRuns; ++k) {
    const std::int64_t run = own.first_run + k;
    own.counts[k] = run < a.runs ? length_of(a, run) : 0;
  }
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
  for (int k = 0; k < kLaneRuns; ++k) own.counts[k] = min(own.counts[k], kMaxElements);
  return own;
}

/// Sets, in a granule's words, which are 0, the bits of the elements at which the lane's runs begin. None is
/// empty, the first begins at element `at`.
__device__ inline void flag_runs(const std::uint32_t (&counts)[kLaneRuns], int runs, std::uint32_t at,
                                 std::uint32_t* words) {
  if (runs == 0) return;
  std::uint32_t heads = 1;
  std::uint32_t begin = 0;
#pragma unroll
  for (int k = 1; k < kLaneRuns; ++k) {
    begin += counts[k - 1];
    if (k < runs) heads |= 1u << begin % 32;
  }
  if (begin < 32) {
    const std::uint32_t behind = __funnelshift_l(heads, 0, at % 32);
    atomicOr(&words[at / 32], heads << at % 32);
    if (behind != 0) atomicOr(&words[at / 32 + 1], behind);
  } else {
#pragma unroll
    for (int k = 0; k < kLaneRuns; ++k) {
      if (k < runs) atomicOr(&words[at / 32], 1u << at % 32);
      at += counts[k];
    }
  }
}

/// The elements of a granule, whose counts the warp has: `runs` of them in this lane. Of a short one the
/// flags are kept, by way of `words` in shared memory, and the sum is marked kShort.
__device__ inline std::uint64_t sum_granule(const DecodeArguments& a, std::int64_t granule,
                                            const LaneCounts& own, int runs, std::uint32_t* words, int lane) {
  std::uint64_t any = 0;
#pragma unroll
  for (int k = 0; k < kLaneRuns; ++k) any |= own.counts[k];
  if (!__all_sync(kFullWarp, any < 1u << 20)) return __shfl_sync(kFullWarp, warp_scan(own.sum()), 31);
  std::uint32_t counts[kLaneRuns];
  std::uint32_t sum = 0;
  bool none_empty = true;
#pragma unroll
  for (int k = 0; k < kLaneRuns; ++k) {
    counts[k] = static_cast<std::uint32_t>(own.counts[k]);
    sum += counts[k];
    none_empty &= k >= runs || counts[k] != 0;
  }
  const std::uint32_t through = warp_inclusive_sum(sum);
  const std::uint32_t total = __shfl_sync(kFullWarp, through, 31);
  if (!__all_sync(kFullWarp, none_empty && total - 1 < kShortGranuleElements)) return total;
  words[lane] = 0;
  __syncwarp();
  flag_runs(counts, runs, through - sum, words);
  __syncwarp();
  if (static_cast<std::uint32_t>(lane) * 32 < total) a.flags[granule * kFlagWords + lane] = words[lane];
  return total | kShort;
}

/// owns: block b has granules 32 b to 32 b + 31; a warp takes every eighth of them, its lanes 8 runs each.
/// reads: lengths.
/// writes: granule_offsets (from the block's begin, kShort marked), flags of short granules, block_offsets
///   (the block's sum, or kDescends with the first run whose end descends).
/// waits for: nothing of other blocks, so that it cannot deadlock; allows the next kernel to launch at once.
/// source: a two-level reduce-then-scan; bits of heads as in the pairs of PARLE (A. Balevic, 2009).
__global__ void __launch_bounds__(32 * kTileWarps) sum_granules(const DecodeArguments a) {
  __shared__ std::uint64_t sums[kBlockGranules];
  __shared__ std::uint32_t words[kTileWarps][kFlagWords];
  __shared__ unsigned long long descending_run;
  constexpr int kWarpGranules = kBlockGranules / kTileWarps;
  const int warp = warp_index();
  const int lane = lane_index();
  const std::int64_t first = std::int64_t{blockIdx.x} * kBlockGranules;
  allow_secondary_kernel();
  if (threadIdx.x == 0) descending_run = kMaxElements;
  __syncthreads();
  if (a.plain && (first + kBlockGranules) * kGranuleRuns <= a.runs) {
    LaneCounts own[kWarpGranules];
#pragma unroll
    for (int g = 0; g < kWarpGranules; ++g)
      own[g] = load_plain_counts(a, first + g * kTileWarps + warp, lane);
#pragma unroll
    for (int g = 0; g < kWarpGranules; ++g) {
      const int granule = g * kTileWarps + warp;
      const std::uint64_t sum = sum_granule(a, first + granule, own[g], kLaneRuns, words[warp], lane);
      if (lane == 0) sums[granule] = sum;
    }
  } else {
    for (int granule = warp; granule < kBlockGranules; granule += kTileWarps) {
      const LaneCounts own = load_counts(a, first + granule, lane);
      if (own.descending_run >= 0)
        atomicMin(&descending_run, static_cast<unsigned long long>(own.descending_run));
      const std::int64_t left = max(std::int64_t{0}, a.runs - own.first_run);
      const int runs = static_cast<int>(min(left, std::int64_t{kLaneRuns}));
      const std::uint64_t sum = sum_granule(a, first + granule, own, runs, words[warp], lane);
      if (lane == 0) sums[granule] = sum;
    }
  }
  __syncthreads();
  if (warp != 0) return;
  const std::uint64_t through = warp_scan(sums[lane] & ~kShort);
  const std::uint64_t before = before_lane(through, lane);
  if (first + lane < a.granules) a.granule_offsets[first + lane] = before | (sums[lane] & kShort);
  const bool all_short = __all_sync(kFullWarp, sums[lane] == 0 || (sums[lane] & kShort) != 0);
  if (lane != 31) return;
  a.block_offsets[blockIdx.x] = descending_run < kMaxElements ? kDescends | descending_run
                                : all_short                   ? kShort | through
                                                              : through;
}

/// `descending_run` is the first whose end descends; kMaxElements: none does.
__device__ inline DecodeRunLengthsReport report_of(const DecodeArguments& a, std::uint64_t elements,
                                                   std::uint64_t descending_run) {
  using Outcome = DecodeRunLengthsReport::Outcome;
  DecodeRunLengthsReport report;
  report.elements = static_cast<std::int64_t>(elements);
  if (descending_run < kMaxElements) {
    report.outcome = Outcome::kDescendingEnds;
    report.run = static_cast<std::int64_t>(descending_run);
  } else if (report.elements > a.max_elements) {
    report.outcome = Outcome::kTooLong;
  }
  return report;
}

inline constexpr int kScanThreads = 1024;
/// Sums that a thread scans by itself.
inline constexpr int kScanItems = 8;

/// owns: one block, 8 sums a thread and round.
/// reads: block_offsets, as sum_granules left them.
/// writes: block_offsets, now exclusive prefixes; all_short; the report.
/// waits for: the end of sum_granules (programmatic dependent launch), whose blocks wait for none of this, so
///   that it cannot deadlock.
/// source: a block scan with saturating sums.
__global__ void __launch_bounds__(kScanThreads) scan_blocks(const DecodeArguments a) {
  __shared__ std::uint64_t warp_sums[kScanThreads / 32];
  __shared__ unsigned long long descending_run;
  if (threadIdx.x == 0) descending_run = kMaxElements;
  __syncthreads();
  wait_for_primary_kernel();
  std::uint64_t before_round = 0;
  bool any_long = false;
  for (std::int64_t first = 0; first < a.blocks; first += kScanThreads * kScanItems) {
    const std::int64_t own = first + std::int64_t{threadIdx.x} * kScanItems;
    std::uint64_t sums[kScanItems];
#pragma unroll
    for (int k = 0; k < kScanItems; ++k) sums[k] = own + k < a.blocks ? a.block_offsets[own + k] : kShort;
    std::uint64_t sum = 0;
#pragma unroll
    for (int k = 0; k < kScanItems; ++k) {
      any_long |= (sums[k] & kShort) == 0;
      sums[k] &= ~kShort;
      if (sums[k] > kMaxElements) atomicMin(&descending_run, sums[k] & ~kDescends);
      sum = saturating_sum(sum, sums[k]);
    }
    const auto scan = block_exclusive_scan<kScanThreads>(sum, std::uint64_t{0}, SaturatingSum{}, warp_sums);
    std::uint64_t begin = saturating_sum(before_round, scan.before);
#pragma unroll
    for (int k = 0; k < kScanItems; ++k) {
      if (own + k < a.blocks) a.block_offsets[own + k] = begin;
      begin = saturating_sum(begin, sums[k]);
    }
    before_round = saturating_sum(before_round, scan.total);
    __syncthreads();
  }
  any_long = __syncthreads_or(any_long ? 1 : 0) != 0;
  if (threadIdx.x != 0) return;
  *a.all_short = !any_long;
  const DecodeRunLengthsReport report = report_of(a, before_round, descending_run);
  *a.report = report;
  if (a.caller_report != a.report) *a.caller_report = report;
}

/// The last of `count` ascending offsets that is at most `at`; the first is. They may be marked kShort.
__device__ inline std::int64_t last_at_most(const std::uint64_t* offsets, std::int64_t count,
                                            std::uint64_t at) {
  std::int64_t low = 0;
  std::int64_t high = count;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    ((offsets[middle] & ~kShort) <= at ? low : high) = middle;
  }
  return low;
}

/// By a thread for each tile that there is something to write to.
__device__ inline void find_first_granule(const DecodeArguments& a, std::int64_t tile) {
  if (tile >= a.tiles || *a.all_short || tile * a.tile_elements >= a.report->elements) return;
  const auto at = static_cast<std::uint64_t>(tile * a.tile_elements);
  const std::int64_t block = last_at_most(a.block_offsets, a.blocks, at);
  const std::int64_t first = block * kBlockGranules;
  const std::int64_t granules = min(std::int64_t{kBlockGranules}, a.granules - first);
  a.first_granules[tile] =
      first + last_at_most(a.granule_offsets + first, granules, at - a.block_offsets[block]);
}

/// What scan_blocks computes, for few blocks.
struct FewBlocks {
  std::uint64_t begin;  // of the lane's block
  DecodeRunLengthsReport report;
};

/// By whole warps.
__device__ inline FewBlocks scan_few_blocks(const DecodeArguments& a, int lane) {
  const std::uint64_t sum = lane < a.blocks ? a.block_offsets[lane] & ~kShort : 0;
  const std::uint64_t through = warp_scan(min(sum, kMaxElements));
  const std::uint32_t descending = __ballot_sync(kFullWarp, sum > kMaxElements);
  const std::uint64_t first_descending = __shfl_sync(kFullWarp, sum, __ffs(static_cast<int>(descending)) - 1);
  const std::uint64_t elements = __shfl_sync(kFullWarp, through, 31);
  return {before_lane(through, lane),
          report_of(a, elements, descending == 0 ? kMaxElements : first_descending & ~kDescends)};
}

/// By whole warps, of few blocks: the granule that an element is in. `block_begin` is where the lane's block
/// begins.
__device__ inline std::int64_t find_granule(const DecodeArguments& a, std::uint64_t block_begin,
                                            std::uint64_t element, int lane) {
  const std::uint32_t blocks = __ballot_sync(kFullWarp, lane < a.blocks && block_begin <= element);
  const int block = 31 - __clz(static_cast<int>(blocks));
  const std::uint64_t offset = element - __shfl_sync(kFullWarp, block_begin, block);
  const std::int64_t first = block * kBlockGranules;
  const bool before = first + lane < a.granules && (a.granule_offsets[first + lane] & ~kShort) <= offset;
  return first + 31 - __clz(static_cast<int>(__ballot_sync(kFullWarp, before)));
}

}  // namespace cumulus::run_length
