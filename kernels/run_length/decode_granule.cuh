#pragma once

#include <cstdint>

#include "kernels/run_length/decode_scan.cuh"
#include "kernels/run_length/run_length.h"
#include "kernels/run_length/run_length_element.h"
#include "kernels/run_length/run_length_tuning.h"

// The decoder's way with short runs: a warp takes a granule of runs, 32 at a time, a lane each, and writes
// their elements 32 at a time; each lane finds the run of its element by bisection across the warp. The tiles
// of the output (decode_tile.cuh) are for granules with longer runs.

namespace cumulus::run_length {

/// Where a granule begins in the output; behind the last one, where that ends.
__device__ inline std::uint64_t granule_begin(const DecodeArguments& a, std::int64_t granule) {
  if (granule >= a.granules) return static_cast<std::uint64_t>(a.report->elements);
  return a.block_offsets[granule / kBlockGranules] + a.granule_offsets[granule];
}
template <class T>
inline constexpr std::uint64_t kShortGranuleElements = short_granule_elements(sizeof(T));

template <class T>
__device__ bool is_short(std::uint64_t granule_elements) {
  return granule_elements <= kShortGranuleElements<T>;
}

/// The symbol that lane `lane` has.
template <class T>
__device__ T symbol_of_lane(T symbol, int lane) {
  if constexpr (sizeof(T) <= 4) {
    return static_cast<T>(__shfl_sync(~0u, static_cast<unsigned int>(symbol), lane));
  } else {
    return __shfl_sync(~0u, symbol, lane);
  }
}

template <class T>
__global__ void __launch_bounds__(32 * kTileWarps)
    expand_short_granules(const DecodeArguments a, const T* symbols, T* elements) {
  if (a.report->outcome != DecodeRunLengthsReport::Outcome::kDecoded) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t granule = std::int64_t{blockIdx.x} * kTileWarps + threadIdx.x / 32;
  if (granule >= a.granules) return;
  std::uint64_t begin = granule_begin(a, granule);
  const std::uint64_t granule_elements = granule_begin(a, granule + 1) - begin;
  if (granule_elements == 0 || !is_short<T>(granule_elements)) return;

  std::uint32_t counts[kLaneRuns];
  T own_symbols[kIsWord<T> ? kLaneRuns : 1];
#pragma unroll
  for (int k = 0; k < kLaneRuns; ++k) {
    const std::int64_t run = granule * kGranuleRuns + 32 * k + lane;
    counts[k] = 0;
    if (run >= a.runs) continue;
    std::uint64_t length = length_of(a, run);
    if (a.ends && run > 0) length -= length_of(a, run - 1);
    counts[k] = static_cast<std::uint32_t>(length);
    if constexpr (kIsWord<T>) own_symbols[k] = symbols[run];
  }
#pragma unroll
  for (int k = 0; k < kLaneRuns; ++k) {
    std::uint32_t through = counts[k];
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const std::uint32_t left = __shfl_up_sync(~0u, through, distance);
      if (lane >= distance) through += left;
    }
    const std::uint32_t total = __shfl_sync(~0u, through, 31);
    for (std::uint32_t first = 0; first < total; first += 32) {
      const std::uint32_t element = first + static_cast<std::uint32_t>(lane);
      int run = 0;  // how many of the 32 end at or before the element
#pragma unroll
      for (int step = 16; step > 0; step /= 2) {
        if (__shfl_sync(~0u, through, run + step - 1) <= element) run += step;
      }
      if constexpr (kIsWord<T>) {
        const T symbol = symbol_of_lane(own_symbols[k], run);
        if (element < total) elements[begin + element] = symbol;
      } else if (element < total) {
        elements[begin + element] = symbols[granule * kGranuleRuns + 32 * k + run];
      }
    }
    begin += total;
  }
}

}  // namespace cumulus::run_length
