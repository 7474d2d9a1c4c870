#pragma once

#include <cuda.h>

#include "kernels/recursive_filter/strips/arguments.h"

// What exact_strips/filter.cuh is told.

namespace cumulus::recursive_filter {

/// How a warp adds up what the strips of a few rows leave. Each row has kLanes of its threads, each of these
/// kOfLane neighbouring strips.
template <int Order>
struct StripScan {
  static constexpr int kRows = 2;
  static constexpr int kLanes = 32 / kRows;
  static constexpr int kSteps = 4;
  static constexpr int kOfLane = 8;
  static constexpr int kStrips = kLanes * kOfLane;
  static_assert(1 << kSteps == kLanes);

  SmallMatrix<Order, float> over_strip;
  SmallMatrix<Order, float> over_lanes[kSteps];  // 1, 2, 4, 8 of them

  explicit StripScan(const DirectionPlan& direction) : over_strip(over(direction, 1)) {
    for (int step = 0; step < kSteps; ++step) over_lanes[step] = over(direction, kOfLane << step);
  }

 private:
  static SmallMatrix<Order, float> over(const DirectionPlan& direction, std::int64_t strips) {
    return small_matrix<Order, float>(power(direction.transition, strips * kTile));
  }
};

/// What follows from the plan alone.
template <int Order>
struct ExactStripAxes : StripAxes<Order> {
  StripScan<Order> forward, backward;  // of rows

  explicit ExactStripAxes(const RecursiveFilterPlan& plan)
      : StripAxes<Order>(plan), forward(plan.x.causal), backward(plan.x.anticausal) {}
};

/// One launch over one image of one channel.
template <int Order>
struct ExactStripFilter {
  CUtensorMap image, filtered;  // in the boxes of a BoxedTile
  /// The output as it is before: the first Order rows of a tile are the states that the anticausal filter
  /// over the columns has, coming from below, behind the tile. Not of the last row of tiles.
  CUtensorMap futures;
  ExactStripAxes<Order> axes;
  int height, width;
  int tile_rows, strips;
  int strips_of_block;  // beside each other
  FilterBoundary boundary_y, boundary_x;
  bool along_columns, along_rows;
  float scale;  // of filtered pixels
  /// Of `state_rows` rows of tiles, a power of two: see ExactStripStates.
  uint4* states;
  int state_rows;
  std::uint32_t first_tag;  // of the first row of tiles; the others' follow
};

}  // namespace cumulus::recursive_filter
