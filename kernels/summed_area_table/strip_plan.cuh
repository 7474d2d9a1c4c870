#pragma once

#include <cstdint>

#include "kernels/summed_area_table/summed_area_table_tuning.h"
#include "kernels/summed_area_table/tile_plan.cuh"

// What the kernel of strips (strip_build.cuh) knows at compile time, what it is told, and what a block keeps in
// shared memory.

namespace cumulus::summed_area_table {

/// A block goes down a strip of the image, kColumns elements wide, band by band of kRows rows.
template <class InputType, class SumType, int ChannelCount, StripShape kShape>
struct StripPlan {
  using Input = InputType;
  using Sum = SumType;
  static constexpr Layout kLayout = Layout::kPlanes;
  static constexpr int kChannels = ChannelCount;
  static constexpr int kElements = kShape.lane_elements;
  static constexpr int kRowLanes = kShape.row_lanes;
  static constexpr int kColumns = kShape.columns();
  static constexpr int kWarps = kShape.warps;  // that sum; kMessengers more talk to other blocks
  static constexpr int kSummingThreads = 32 * kWarps;
  static constexpr int kMessengers = 3;
  static constexpr int kThreads = 32 * (kWarps + kMessengers);
  /// Lanes are in groups of kRowLanes, which go through kGroupRows rows together.
  static constexpr int kGroups = kShape.groups();
  static constexpr int kGroupRows = kShape.group_rows;
  static constexpr int kRows = kShape.rows();
  static constexpr int kRowWords = kRows * kChannels;      // totals of a band
  static constexpr int kLaneWords = kRowWords / 32;        // that a messenger's lane looks after
  static constexpr int kStages = kShape.stages;            // bands that shared memory holds
  /// Bands between a band's totals and its table: they are told, summed over the group of strips, and over the
  /// groups before, each a step after the other.
  static constexpr int kLag = 4;
  static constexpr int kAhead = kStages - kLag;  // bands being copied
  static_assert(kElements % kChannels == 0 && kElements % 4 == 0, "a lane holds whole pixels and whole quads");
  static_assert(kGroups <= 32 && kRows % 32 == 0 && kAhead >= 1);
};

/// Counters that blocks share: zero before the kernel and after it.
struct StripCounters {
  std::uint32_t* next_ticket;
  std::uint32_t* done;         // blocks
  std::uint32_t* strips_told;  // bands whose totals each strip, and each group of strips, has told
  std::uint32_t* groups_told;
  std::uint32_t* all;
  std::uint32_t count;
};

template <class P>
struct StripArguments {
  Planes<const typename P::Input, P::kLayout> image;
  Planes<typename P::Sum, P::kLayout> table;
  std::int64_t height;
  std::int64_t row_elements;
  std::uint32_t planes;
  std::uint32_t strips;  // of a plane
  std::uint32_t bands;
  StripCounters counters;
  typename P::Sum* totals;        // of each row of each strip, from the left edge of its group
  typename P::Sum* group_totals;  // likewise of whole groups

  __device__ std::int64_t words_of_strip() const { return std::int64_t{bands} * P::kRowWords; }
};

/// A block's shared memory.
template <class P>
struct StripMemory {
  using Sum = typename P::Sum;
  alignas(16) typename P::Input pixels[P::kStages][P::kRows][P::kColumns];
  /// The groups' sums by column of a band; then of all above each group. Padded against bank conflicts.
  alignas(16) Sum groups[2][P::kGroups][P::kColumns + 16 / sizeof(Sum)];
  alignas(16) Sum totals[4][P::kRowWords];    // of the strip's rows
  alignas(16) Sum in_group[4][P::kRowWords];  // of what lies left of the strip in its group
  alignas(16) Sum left[4][P::kRowWords];      // of all that lies left of the strip, and above that
  std::uint32_t ticket;
};

}  // namespace cumulus::summed_area_table
