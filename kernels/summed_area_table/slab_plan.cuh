#pragma once

#include <cstdint>

#include "kernels/summed_area_table/summed_area_table_tuning.h"
#include "kernels/summed_area_table/tile_plan.cuh"
#include "kernels/summed_area_table/warp_sums.cuh"

// What the kernel of slabs (slab_build.cuh) knows at compile time, what it is told, and what a block keeps in
// shared memory.

namespace cumulus::summed_area_table {

/// A block has a slab, at most kSlabRows whole rows of the image. Each of its warps has kSegments stretches
/// of each row, of 128 pixels; a lane has four neighbouring ones of each.
template <int kSegmentCount>
struct SlabPlan {
  static constexpr Layout kLayout = Layout::kOne;
  static constexpr int kChannels = 1;
  static constexpr int kThreads = 32 * kSlabWarps;
  static constexpr int kSegments = kSegmentCount;
  static constexpr int kAllSegments = kSlabWarps * kSegments;
  static constexpr int kColumns = kAllSegments * kSegmentColumns;
  static_assert(kSlabRows <= 32 && kAllSegments <= 32, "lanes look after rows and segments");
  static_assert(kSegmentColumns * 255 < 1 << 16 && kSlabRows * 255 < 1 << 16, "halves of words hold sums");
};

/// A thread's part of a row.
template <class P>
using SlabRow = Quad<std::uint32_t>[P::kSegments];

template <class P>
struct SlabArguments {
  Planes<const std::uint8_t, P::kLayout> image;
  Planes<std::uint32_t, P::kLayout> table;
  std::int64_t height;
  std::int32_t width;
  std::int32_t slab_rows;  // the last slab may have fewer
  /// Tagged words (tagged_words.cuh), one for each column of each slab: with `tag` the sum of the slab's own
  /// pixels, with the next tag that of all above the slab.
  std::uint64_t* words;
  std::uint32_t tag;

  __device__ std::uint64_t* word(std::int64_t slab, int column) const {
    return words + slab * width + column;
  }
};

/// A block's shared memory. Padded against bank conflicts.
template <class P>
struct SlabMemory {
  /// Sums over the lanes of a segment up to each, of two rows in a word.
  std::uint32_t through[kSlabRows / 2][P::kColumns / 4];
  std::uint32_t totals[kSlabRows][P::kAllSegments + 1];  // of a row's segments
  std::uint32_t groups[kSlabGroups][kSlabPart + 1];      // of a part's columns over the slabs of a group
  std::uint32_t above[P::kAllSegments];                  // of the segments of the table's row above
};

/// The first of the thread's columns in its warp's segment number s.
template <class P>
__device__ int slab_segment(int s) {
  return warp_index() * P::kSegments + s;
}
template <class P>
__device__ int slab_column(int s) {
  return slab_segment<P>(s) * kSegmentColumns + lane_index() * 4;
}

}  // namespace cumulus::summed_area_table
