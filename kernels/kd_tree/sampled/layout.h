#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/host_device.h"

// What choosers and kernels of builds from samples agree on: what a point takes on its way, and a block's
// shared memory.
namespace cumulus::kd_tree {

/// A point on its way through a build from samples. In two dimensions z is 0.
struct alignas(16) PointRecord {
  float x;
  float y;
  float z;
  std::uint32_t index;  // among the input's points
};

/// A plane's point in the order of (coordinate, index).
struct PivotPoint {
  std::uint32_t key;
  std::uint32_t index;
};

inline constexpr int kPartAxes = 3;
/// Of shared memory: what blocks of an H100 and an H200 can have. On GPUs with less, samples' parts would
/// have to be smaller, and nothing was measured.
inline constexpr std::size_t kSampledBlockBytes = 227 * 1024;
/// Counters that a thread of a part's block sums.
inline constexpr int kThreadBins = 4;
/// Bins of a counting sort with so many points or fewer are sorted by one thread.
inline constexpr unsigned kThreadSortPoints = 8;

/// The shared memory of a block of `threads` threads that splits a part of `points`, an even number, into
/// `groups`.
CUMULUS_HOST_DEVICE constexpr std::size_t part_bytes(int threads, std::size_t points, std::size_t groups) {
  const std::size_t bins = static_cast<std::size_t>(threads) * kThreadBins;
  const auto words = static_cast<std::size_t>(1 + threads / 32) * 32;
  return 4 * (bins + 4 + words + 5 * points + 17 * groups + 2);
}

/// Likewise, of a block that splits a bucket of at most `points` between bins, into `leaves`.
CUMULUS_HOST_DEVICE constexpr std::size_t binned_bytes(int threads, std::size_t points, std::size_t leaves) {
  const std::size_t bins = static_cast<std::size_t>(threads) * kThreadBins;
  return 92 * leaves + 4 * bins + 4 * 32 + 18 * points;
}

/// Counters that all blocks add to are in different sectors of L2.
inline constexpr unsigned kCounterStride = 8;

/// Counters of a build: of buckets; of the first step's parts, of points and of samples; of blocks that have
/// arrived.
CUMULUS_HOST_DEVICE constexpr std::size_t counter_words(int first_levels, int second_levels) {
  return (std::size_t{1} << (first_levels + second_levels)) +
         (std::size_t{2} * kCounterStride << first_levels) + 1;
}

}  // namespace cumulus::kd_tree
