#pragma once

#include <cuda.h>

#include "kernels/recursive_filter/strips/arguments.h"

// The arguments of the kernel in exact_strips/filter.cuh.

namespace cumulus::recursive_filter {

/// How a warp scans the zero-state responses of all strips of a few rows: kLanes of its threads have a
/// row, each of them kOfLane neighbouring strips.
template <int Order>
struct StripScan {
  static constexpr int kRows = 2;
  static constexpr int kLanes = 32 / kRows;
  static constexpr int kSteps = 4;
  static constexpr int kOfLane = 8;
  static constexpr int kStrips = kLanes * kOfLane;
  static_assert(1 << kSteps == kLanes);

  SmallMatrix<Order, float> strip_transition;
  SmallMatrix<Order, float> lane_transitions[kSteps];  // 1, 2, 4, 8 of them

  explicit StripScan(const DirectionPlan& direction) : strip_transition(transition_over(direction, 1)) {
    for (int step = 0; step < kSteps; ++step)
      lane_transitions[step] = transition_over(direction, kOfLane << step);
  }

 private:
  static SmallMatrix<Order, float> transition_over(const DirectionPlan& direction, std::int64_t strips) {
    return small_matrix<Order, float>(power(direction.transition, strips * kTile));
  }
};

/// Made once for each plan.
template <int Order>
struct ExactStripAxes : StripAxes<Order> {
  StripScan<Order> forward, backward;  // of rows

  explicit ExactStripAxes(const FilterAxes& plan)
      : StripAxes<Order>(plan), forward(plan.x.causal), backward(plan.x.anticausal) {}
};

/// One launch over one image of one channel.
template <int Order>
struct ExactStripFilter {
  CUtensorMap image, filtered;  // TMA tiles of a SwizzledTile
  /// The output before this kernel writes it: the first Order rows of a tile hold the column suffix
  /// states: the anticausal carries of its columns. Not of the last row of tiles.
  CUtensorMap suffixes;
  ExactStripAxes<Order> axes;
  int height, width;
  int tile_rows, strips;
  int strips_of_block;  // neighbouring
  FilterBoundary boundary_y, boundary_x;
  bool along_columns, along_rows;
  float scale;  // of filtered pixels
  /// Of `state_rows` rows of tiles, a power of two: see ExactStripStates.
  uint4* states;
  int state_rows;
  std::uint32_t first_tag;  // of the first row of tiles; the others' follow
};

}  // namespace cumulus::recursive_filter
