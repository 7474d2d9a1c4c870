#pragma once

#include <vector_types.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/recursive_filter/gpu/tile_lines.cuh"
#include "kernels/recursive_filter/math/weighted_sums.h"
#include "kernels/recursive_filter/planned_filter.h"
#include "kernels/recursive_filter/strips/strips.h"

// The arguments of the kernel in strips/filter.cuh.

namespace cumulus::recursive_filter {

/// Pixels that a thread works on at a time: of filters of many poles, and of several channels, fewer, so that
/// the stages' loops stay in the instruction caches.
template <int Order, int kSide>
inline constexpr int kStripChunk = Order > 3 || kSide == kColourTile ? 8 : 16;

/// One axis' plan, with unit gains, for tiles of `kSide` pixels.
template <int Order, int kSide>
struct StripAxis {
  using Matrix = SmallMatrix<Order, float>;

  Sections<Order, float> causal, anticausal;
  Matrix chunk_transitions[kSide / kStripChunk<Order, kSide>];  // anticausal
  Matrix forward, backward;                                     // over a tile
  AnticausalSums<Order, kStripChunk<Order, kSide>> anticausal_sums;
  LineSums<Order, kStripChunk<Order, kSide>> sums;
  bool run_alike;
  Matrix through_causal, through_anticausal;
  float from_first_pixel[Order], from_last_pixel[Order];
  float scale;

  explicit StripAxis(const AxisPlan& plan) : StripAxis(with_unit_gains(plan)) {}

 private:
  explicit StripAxis(const UnitGainAxis& axis)
      : causal(sections_of<Order, float>(axis.plan.causal)),
        anticausal(sections_of<Order, float>(axis.plan.anticausal)),
        forward(transition_over(axis.plan.causal, kSide)),
        backward(transition_over(axis.plan.anticausal, kSide)),
        anticausal_sums(axis.plan.anticausal, axis.plan.through_anticausal),
        sums(axis.plan),
        run_alike(recursive_filter::run_alike(axis.plan)),
        through_causal(small_matrix<Order, float>(axis.plan.through_causal)),
        through_anticausal(small_matrix<Order, float>(axis.plan.through_anticausal)),
        scale(static_cast<float>(axis.scale)) {
    for (int j = 0; j < kSide / kStripChunk<Order, kSide>; ++j) {
      chunk_transitions[j] = transition_over(axis.plan.anticausal, j * kStripChunk<Order, kSide>);
    }
    for (std::size_t k = 0; k < Order; ++k) {
      from_first_pixel[k] = static_cast<float>(axis.plan.start_from_first_pixel[k]);
      from_last_pixel[k] = static_cast<float>(axis.plan.end_from_last_pixel[k]);
    }
  }

  static Matrix transition_over(const DirectionPlan& direction, std::int64_t pixels) {
    return small_matrix<Order, float>(power(direction.transition, pixels));
  }
};

template <int Order, int kSide>
struct StripAxes {
  StripAxis<Order, kSide> y, x;

  explicit StripAxes(const FilterAxes& plan) : y(plan.y), x(plan.x) {}
};

/// One launch over images: `strips` columns of tiles from `first_strip` on, of which those from
/// `stored_first` to before `stored_end` are stored; each in `segments` parts.
struct StripImages {
  SourceElements images;
  TargetElements filtered;
  std::int64_t image_stride, filtered_stride, row_stride;
  std::int64_t height, width;
  int channels;
  int tile_rows, tile_columns;
  int strips, first_strip, stored_first, stored_end;
  int segments, segment_tiles;
  int window_y, window_x;
  FilterBoundary boundary_y, boundary_x;
  bool along_columns, along_rows;
  bool vector_loads, vector_stores;
  float scale;  // of filtered pixels
  /// Of each block: of `state_slots` tiles, a power of two, the tagged words of both directions' states of
  /// each row.
  uint4* states;
  int state_slots;
  std::uint32_t first_tag;  // of tile 0; the others' follow
};

template <int Order, int Channels>
struct StripFilter : StripImages {
  using Axis = StripAxis<Order, strip_tile_side(Channels)>;

  Axis y, x;
};

}  // namespace cumulus::recursive_filter
