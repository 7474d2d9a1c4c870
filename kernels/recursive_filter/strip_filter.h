#pragma once

#include <vector_types.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/recursive_filter/line_stretches.cuh"
#include "kernels/recursive_filter/recursive_filter_scratch.h"

// What filter_strips.cuh is told.

namespace cumulus::recursive_filter {

/// Pixels that a thread works on at a time: of filters of many poles fewer, so that the stages' loops stay in
/// the instruction caches.
template <int Order>
inline constexpr int kStripStretch = Order > 3 ? 8 : 16;

/// One axis' plan. States are counted without the gain of the direction whose they are, and so are filtered
/// pixels, unless the filter has zeros; `scale` makes up for it.
template <int Order>
struct StripAxis {
  using Matrix = SmallMatrix<Order, float>;

  Sections<Order, float> causal, anticausal;
  Matrix over_stretches[kTile / kStripStretch<Order>];  // anticausal
  Matrix forward, backward;                             // over a tile
  Matrix through_causal, through_future;
  float from_first_pixel[Order], from_last_pixel[Order];
  float scale;

  explicit StripAxis(const AxisPlan& plan)
      : causal(sections_of<Order, float>(plan.causal)),
        anticausal(sections_of<Order, float>(plan.anticausal)) {
    const long double causal_gain = plan.causal.sections.gain;
    const long double anticausal_gain = plan.anticausal.sections.gain;
    constexpr bool kWeighs = Sections<Order, float>::kWeighsState;
    for (int k = 0; k < Order; ++k) {
      causal.weights[k] = static_cast<float>(plan.causal.sections.weights[k] * causal_gain);
      anticausal.weights[k] = static_cast<float>(plan.anticausal.sections.weights[k] * anticausal_gain);
    }
    for (int j = 0; j < kTile / kStripStretch<Order>; ++j) {
      over_stretches[j] = moved(plan.anticausal, j * kStripStretch<Order>, 1);
    }
    forward = moved(plan.causal, kTile, 1);
    backward = moved(plan.anticausal, kTile, 1);
    through_causal = scaled(plan.through_causal, (kWeighs ? causal_gain : 1) / anticausal_gain);
    through_future = scaled(plan.through_future, kWeighs ? 1 : 1 / causal_gain);
    for (std::size_t k = 0; k < Order; ++k) {
      from_first_pixel[k] = static_cast<float>(plan.start_from_first_pixel[k] / causal_gain);
      from_last_pixel[k] = static_cast<float>(plan.end_from_last_pixel[k] / anticausal_gain);
    }
    scale = kWeighs ? 1 : static_cast<float>(causal_gain * anticausal_gain);
  }

 private:
  static Matrix scaled(StateMatrix matrix, long double factor) {
    for (auto& row : matrix.rows) {
      for (long double& value : row) value *= factor;
    }
    return small_matrix<Order, float>(matrix);
  }
  static Matrix moved(const DirectionPlan& direction, std::int64_t pixels, long double factor) {
    return scaled(power(direction.transition, pixels), factor);
  }
};

template <int Order>
struct StripAxes {
  StripAxis<Order> y, x;

  explicit StripAxes(const RecursiveFilterPlan& plan) : y(plan.y), x(plan.x) {}
};

/// One launch over images: `strips` columns of tiles from `first_strip` on, of which those from `own_first`
/// to before `own_end` are stored; each in `segments` parts.
struct StripImages {
  SourceElements images;
  TargetElements filtered;
  std::int64_t image_stride, filtered_stride, row_stride;
  std::int64_t height, width;
  int channels;
  int tile_rows, tile_columns;
  int strips, first_strip, own_first, own_end;
  int segments, segment_tiles;
  int window_y, window_x;
  FilterBoundary boundary_y, boundary_x;
  bool along_columns, along_rows;
  bool vector_loads, vector_stores;
  /// Of each block: of `state_slots` tiles, a power of two, `state_lines` tagged words of each row.
  uint4* states;
  int state_slots, state_lines;
};

template <int Order>
struct StripFilter : StripImages {
  StripAxis<Order> y, x;
};

}  // namespace cumulus::recursive_filter
