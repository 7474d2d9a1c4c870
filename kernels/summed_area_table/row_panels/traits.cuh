#pragma once

#include <cstdint>

#include "kernels/primitives/warp_scan.cuh"
#include "kernels/summed_area_table/look_back/traits.cuh"
#include "kernels/summed_area_table/tuning.h"

// What the kernel of row panels (row_panels/build.cuh) knows at compile time, its arguments, and its shared
// memory.

namespace cumulus::summed_area_table {

/// A block has a row panel, at most kPanelRows whole rows of an image of bytes. A lane has four neighbouring
/// pixels of each of its warp's segments of a row.
template <PanelShape kShape>
struct PanelTraits {
  using Input = std::uint8_t;
  using Sum = std::uint32_t;
  static constexpr Layout kLayout = Layout::kOne;
  static constexpr int kChannels = 1;

  static constexpr int kWarps = kShape.warps;
  static constexpr int kThreads = kShape.threads();
  static constexpr int kSegments = kShape.segments;
  static constexpr int kAllSegments = kShape.all_segments();
  static constexpr int kColumns = kShape.columns();
  static constexpr int kPart = kShape.part_columns();  // that a block adds up over all row panels at once
  static_assert(kPanelRows <= 32 && kAllSegments <= 32, "lanes look after rows and segments");
  static_assert(kSegmentColumns * 255 < 1 << 16 && kPanelRows * 255 < 1 << 16, "halves of words hold sums");
};

/// A thread's part of a row.
template <class P>
using PanelRow = Quad<typename P::Sum>[P::kSegments];

template <class P>
struct PanelArguments {
  Planes<const typename P::Input, P::kLayout> image;
  Planes<typename P::Sum, P::kLayout> table;
  std::int64_t height;
  std::int32_t width;
  std::int32_t panel_rows;  // the last row panel may have fewer
  /// Tagged words (primitives/status_word.cuh), one for each column of each row panel: with `tag` the sum of
  /// the row panel's own pixels, with the next tag that of all above the row panel.
  std::uint64_t* words;
  std::uint32_t tag;

  __device__ std::uint64_t* word(std::int64_t panel, int column) const {
    return words + panel * width + column;
  }
};

/// A block's shared memory. Padded against bank conflicts.
template <class P>
struct PanelMemory {
  using Sum = typename P::Sum;
  /// Sums over the lanes of a segment up to each, of two rows in a word.
  alignas(16) std::uint32_t through[kPanelRows / 2][P::kColumns / 4];
  Sum totals[kPanelRows][P::kAllSegments + 1];  // of a row's segments
  Sum groups[kPanelGroups][P::kPart + 1];       // of a part's columns over the row panels of a group
  Sum above[P::kAllSegments];                   // of the segments of the table's row above
};

/// The first of the thread's columns in its warp's segment number s.
template <class P>
__device__ int panel_segment(int s) {
  return warp_index() * P::kSegments + s;
}
template <class P>
__device__ int panel_column(int s) {
  return panel_segment<P>(s) * kSegmentColumns + lane_index() * 4;
}

}  // namespace cumulus::summed_area_table
