#pragma once

#include <cstdint>

#include "kernels/run_length/decode_scan.cuh"
#include "kernels/run_length/run_length.h"
#include "kernels/run_length/run_length_element.h"
#include "kernels/run_length/run_length_tuning.h"

// The decoder's way with short runs: a warp takes a granule of runs, 32 at a time, a lane each, which puts its
// symbol into shared memory as often as it counts; from there the granule is stored 16 bytes at a time. The
// tiles of the output (decode_tile.cuh) are for granules with longer runs.

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

/// The elements of a granule on their way to the output, as far behind a multiple of 16 bytes as there.
template <class T>
struct alignas(16) GranuleStage {
  std::uint8_t bytes[(short_granule_elements(sizeof(T)) * sizeof(T) + 31) / 16 * 16];
};

/// The sum of 32 counts up to this lane's, of two rows of counts at once: each below 2^16, in one word.
__device__ inline std::uint32_t scan_two_rows(std::uint32_t value, int lane) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const std::uint32_t left = __shfl_up_sync(~0u, value, distance);
    if (lane >= distance) value += left;
  }
  return value;
}

/// Puts a symbol `count` times one after another, each lane its own.
template <class T>
__device__ void repeat_symbol(T* to, const T& symbol, std::uint32_t count) {
  for (std::uint32_t i = 0; __any_sync(~0u, i < count); ++i) {
    if (i < count) to[i] = symbol;
  }
}

/// Stores what the warp has staged, `bytes` of them, to where `to` points, `skew` bytes behind a multiple of 16.
__device__ inline void store_staged(const std::uint8_t* stage, std::uint8_t* to, int skew, int bytes, int lane) {
  const int head = min((16 - skew) % 16, bytes);
  const int tail = (bytes - head) % 16;
  if (lane < head) to[lane] = stage[skew + lane];
  if (lane >= 16 && lane - 16 < tail) to[bytes - tail + lane - 16] = stage[skew + bytes - tail + lane - 16];
  const auto* from = reinterpret_cast<const uint4*>(stage + skew + head);
  auto* vectors = reinterpret_cast<uint4*>(to + head);
  const int count = (bytes - head) / 16;
  for (int v = lane; v < count; v += 32) __stcs(vectors + v, from[v]);
}

template <class T>
__global__ void __launch_bounds__(32 * kTileWarps)
    expand_short_granules(const DecodeArguments a, const T* symbols, T* elements) {
  __shared__ GranuleStage<T> stages[kTileWarps];
  if (a.report->outcome != DecodeRunLengthsReport::Outcome::kDecoded) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t granule = std::int64_t{blockIdx.x} * kTileWarps + warp;
  if (granule >= a.granules) return;
  const std::uint64_t begin = granule_begin(a, granule);
  const auto granule_elements = granule_begin(a, granule + 1) - begin;

  std::uint32_t counts[kLaneRuns];
  T own[kLaneRuns];
#pragma unroll
  for (int k = 0; k < kLaneRuns; ++k) {
    const std::int64_t run = granule * kGranuleRuns + 32 * k + lane;
    counts[k] = 0;
    if (run >= a.runs) continue;
    std::uint64_t length = length_of(a, run);
    if (a.ends && run > 0) length -= length_of(a, run - 1);
    counts[k] = static_cast<std::uint32_t>(length);
    own[k] = symbols[run];
  }
  if (granule_elements == 0 || !is_short<T>(granule_elements)) return;
  auto* to = reinterpret_cast<std::uint8_t*>(elements + begin);
  const auto skew = static_cast<int>(begin * sizeof(T) % 16);
  T* stage = reinterpret_cast<T*>(stages[warp].bytes + skew);
#pragma unroll
  for (int k = 0; k < kLaneRuns; k += 2) {
    const std::uint32_t through = scan_two_rows(counts[k] | counts[k + 1] << 16, lane);
    const std::uint32_t total = __shfl_sync(~0u, through, 31);
    repeat_symbol(stage + ((through & 0xFFFF) - counts[k]), own[k], counts[k]);
    stage += total & 0xFFFF;
    repeat_symbol(stage + ((through >> 16) - counts[k + 1]), own[k + 1], counts[k + 1]);
    stage += total >> 16;
  }
  __syncwarp();
  store_staged(stages[warp].bytes, to, skew, static_cast<int>(granule_elements * sizeof(T)), lane);
}

}  // namespace cumulus::run_length
