#pragma once

#include <cstdint>

#include "kernels/core/div.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/primitives/warp_scan.cuh"
#include "kernels/run_length/decode/granule_sums.cuh"
#include "kernels/run_length/element.h"
#include "kernels/run_length/run_length.h"
#include "kernels/run_length/tuning.h"

// Decoding short granules: a warp takes one and writes its elements 32 at a time, one to a lane, which finds
// its run by the rank of its element among the heads. Other granules are written by tiles of the output
// (decode/tiles.cuh).

namespace cumulus::run_length {

/// A granule in the shared memory of its warp.
template <class T>
struct GranuleStage {
  T symbols[kGranuleRuns];
  RankedFlags words[kFlagWords];
};

/// By a whole warp: writes the granule if it is short. Where few are, `kCheckFirst`, that is checked before
/// anything is loaded.
template <bool kCheckFirst, class T>
__device__ void expand_short_granule(const DecodeArguments& a, std::int64_t granule, const T* symbols,
                                     T* elements, GranuleStage<T>& stage) {
  const int lane = lane_index();
  if (granule >= a.granules) return;
  if (kCheckFirst && (a.granule_offsets[granule] & kShort) == 0) return;
  // All loads at once: each would wait for the one before otherwise.
  const std::int64_t first_run = granule * kGranuleRuns;
  const auto runs = static_cast<int>(min(std::int64_t{kGranuleRuns}, a.runs - first_run));
  const T* from = symbols + first_run + lane;
  T own[kLaneRuns];
#pragma unroll
  for (int k = 0; k < kLaneRuns; ++k) {
    if (32 * k + lane < runs) own[k] = from[32 * k];
  }
  std::uint32_t flags = a.flags[granule * kFlagWords + lane];
  const bool is_short = (a.granule_offsets[granule] & kShort) != 0;
  const std::uint64_t begin = granule_begin(a, granule);
  const auto count = static_cast<int>(granule_begin(a, granule + 1) - begin);
  if (!is_short || a.report->outcome != DecodeRunLengthsReport::Outcome::kDecoded) return;
#pragma unroll
  for (int k = 0; k < kLaneRuns; ++k) stage.symbols[32 * k + lane] = own[k];
  if (lane * 32 >= count) flags = 0;
  // Words are shifted so that a warp's stores begin at multiples of 32 elements.
  const auto skew = static_cast<int>(begin % 32);
  const std::uint32_t flags_before = __shfl_up_sync(kFullWarp, flags, 1);
  flags = __funnelshift_l(lane == 0 ? 0 : flags_before, flags, skew);
  const int heads = __popc(flags);
  stage.words[lane] = {flags, warp_inclusive_sum(heads) - heads - 1};
  __syncwarp();
  const std::uint32_t through_lane = ~0u >> (31 - lane);
  T* to = elements + (begin - static_cast<std::uint64_t>(skew)) + lane;
  int element = lane - skew;
#pragma unroll 4
  for (int w = 0; w < divide_up(count + skew, 32); ++w) {
    const RankedFlags word = stage.words[w];
    const int run = word.rank + __popc(word.flags & through_lane);
    if (static_cast<unsigned int>(element) < static_cast<unsigned int>(count)) *to = stage.symbols[run];
    element += 32;
    to += 32;
  }
}

/// owns: the first divide_up(granules, 8) blocks: a granule for each warp. The blocks behind: a tile for each
///   thread, for which it finds the first granule; that is for expand_tiles.
/// reads: symbols, flags, granule_offsets, block_offsets, the report.
/// writes: the elements of short granules; first_granules.
/// waits for: the end of scan_blocks (programmatic dependent launch), which waits for none of these blocks,
///   so that it cannot deadlock.
/// source: ranks of bits (G. Jacobson, "Space-efficient static trees and graphs", 1989), in 32-bit words.
template <class T, bool kCheckFirst>
__global__ void __launch_bounds__(32 * kTileWarps)
    expand_short_granules(const DecodeArguments a, const T* symbols, T* elements) {
  __shared__ GranuleStage<T> stages[kTileWarps];
  wait_for_primary_kernel();
  const std::int64_t granule_blocks = divide_up(a.granules, kTileWarps);
  const std::int64_t find_block = blockIdx.x - granule_blocks;
  if (find_block >= 0) return find_first_granule(a, find_block * 32 * kTileWarps + threadIdx.x);
  const int warp = warp_index();
  expand_short_granule<kCheckFirst>(a, std::int64_t{blockIdx.x} * kTileWarps + warp, symbols, elements,
                                    stages[warp]);
}

}  // namespace cumulus::run_length
