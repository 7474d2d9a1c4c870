#pragma once

#include <cstdint>

#include "kernels/primitives/warp_scan.cuh"
#include "kernels/run_length/decode_scan.cuh"
#include "kernels/run_length/run_length.h"
#include "kernels/run_length/run_length_element.h"
#include "kernels/run_length/run_length_tuning.h"

// The decoder's way with short runs: a warp takes a granule and writes its elements 32 at a time, a lane each,
// which finds its run by counting the heads up to its own element. The tiles of the output (decode_tile.cuh)
// are for the other granules.

namespace cumulus::run_length {

/// By a whole warp.
template <class T>
__device__ void expand_short_granule(const DecodeArguments& a, std::int64_t granule, const T* symbols, T* elements) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (granule >= a.granules) return;
  // All loads at once: each would wait for the one before otherwise.
  const bool decoded = a.report->outcome == DecodeRunLengthsReport::Outcome::kDecoded;
  const bool is_short = (a.granule_offsets[granule] & kShort) != 0;
  const std::uint64_t begin = granule_begin(a, granule);
  const auto count = static_cast<int>(granule_begin(a, granule + 1) - begin);
  std::uint32_t flags = a.flags[granule * kFlagWords + lane];
  if (!decoded || !is_short) return;
  if (lane * 32 >= count) flags = 0;
  // Words are turned so that what a warp writes begins at a multiple of 32 elements.
  const auto skew = static_cast<int>(begin % 32);
  const std::uint32_t flags_before = __shfl_up_sync(~0u, flags, 1);
  flags = __funnelshift_l(lane == 0 ? 0 : flags_before, flags, skew);
  const int heads = __popc(flags);
  const int rank = warp_prefix_sum(heads) - heads - 1;  // of the run that enters the word
  const T* symbol = symbols + granule * kGranuleRuns;
  T* to = elements + begin - skew + lane;
  const std::uint32_t through_lane = ~0u >> (31 - lane);
#pragma unroll 4
  for (int w = 0; 32 * w < count + skew; ++w) {
    const int run = __shfl_sync(~0u, rank, w) + __popc(__shfl_sync(~0u, flags, w) & through_lane);
    const int element = 32 * w + lane - skew;
    if (element >= 0 && element < count) to[32 * w] = symbol[run];
  }
}

}  // namespace cumulus::run_length
