#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/core/div.h"
#include "kernels/recursive_filter/gpu/elements.cuh"
#include "kernels/recursive_filter/math/line.h"
#include "kernels/recursive_filter/tuning.h"

// Between the passes of the tiled method: zero-state responses of tiles, where they lie, and the matrices
// that make carries of them.

namespace cumulus::recursive_filter {

/// Lines of floats.
struct FloatLines {
  float* first;
  std::int64_t line_stride;
  std::int64_t position_stride;

  __device__ float load(int line, int position) const {
    return first[line * line_stride + position * position_stride];
  }
  __device__ void store(int line, int position, float value) const {
    first[line * line_stride + position * position_stride] = value;
  }
};

/// Lines of floats whose halves lie in two lines of 16-bit elements, the lower one first.
struct SplitLines {
  std::uint16_t* first;
  std::int64_t line_stride;
  std::int64_t position_stride;

  __device__ float load(int line, int position) const {
    const std::uint16_t* low = first + 2 * line * line_stride + position * position_stride;
    return __uint_as_float(std::uint32_t{low[0]} | (std::uint32_t{low[line_stride]} << 16));
  }
  __device__ void store(int line, int position, float value) const {
    std::uint16_t* low = first + 2 * line * line_stride + position * position_stride;
    const std::uint32_t bits = __float_as_uint(value);
    low[0] = static_cast<std::uint16_t>(bits);
    low[line_stride] = static_cast<std::uint16_t>(bits >> 16);
  }
};

/// The carries of one tile: line by line, a number for each of its columns or rows.
struct TileCarries {
  std::byte* first;
  std::int64_t line_stride;  // in elements, floats or 16-bit halves
  std::int64_t position_stride;
  bool split;

  /// f(the lines as they lie): a branch around many loads, which can be in flight together then.
  template <class F>
  __device__ void visit(const F& f) const {
    if (split) {
      f(SplitLines{reinterpret_cast<std::uint16_t*>(first), line_stride, position_stride});
    } else {
      f(FloatLines{reinterpret_cast<float*>(first), line_stride, position_stride});
    }
  }
};

/// Which tile.
struct TileIndex {
  std::int64_t image, row, column, channel;
};

/// Where carries lie: see FilterTiles.
struct CarryMap {
  TargetElements filtered;
  float* border;
  std::int64_t image_stride;
  std::int64_t width;
  std::int64_t channels;
  std::int64_t tile_rows;
  std::int64_t tile_columns;
  int lines;  // 4 * order

  __device__ TileCarries at(const TileIndex& tile) const {
    if (tile.row < tile_rows - 1 && tile.column < tile_columns - 1) {
      const bool half = filtered.kind == ElementKind::kHalf;
      const std::int64_t element = tile.image * image_stride +
                                   (tile.row * kTile * width + tile.column * kTile) * channels + tile.channel;
      return {filtered.first + element * (half ? 2 : 4), width * channels, channels, half};
    }
    const std::int64_t border_tiles = tile_rows + tile_columns - 1;
    const std::int64_t border_tile = tile.row == tile_rows - 1 ? tile.column : tile_columns + tile.row;
    float* carries =
        border + ((tile.image * border_tiles + border_tile) * channels + tile.channel) * lines * kTile;
    return {reinterpret_cast<std::byte*>(carries), kTile, 1, false};
  }

  /// From the carries of a tile to those of the next one in its column (along_y) or row, `cross_tile`, where
  /// neither is the last.
  __device__ std::int64_t tile_bytes(std::int64_t cross_tile, bool along_y) const {
    if (cross_tile == (along_y ? tile_columns : tile_rows) - 1) {
      return channels * lines * kTile * static_cast<std::int64_t>(sizeof(float));
    }
    const std::int64_t pixels = along_y ? kTile * width : kTile;
    return pixels * channels * (filtered.kind == ElementKind::kHalf ? 2 : 4);
  }
};

/// The lines of carries of one axis.
struct CarryLines {
  int causal;      // first the zero-state response of the tile, then its carry-in
  int anticausal;  // the same of the anticausal filter over the image
};

/// Transition matrices over tiles, and the matrices from runs over the image to initial conditions. Runs
/// leave out a pixel at their end where the boundary is kMirror.
template <int Order, class Real>
struct TileTransitions {
  using Matrix = SmallMatrix<Order, Real>;

  std::int64_t tiles;
  bool needs_runs;  // over the whole image, for its borders
  Matrix forward, forward_last;
  Matrix backward, backward_first, backward_last;
  Matrix start_from_forward, start_from_backward, end_from_forward, end_from_backward;
  Real start_from_first_pixel[Order];
  Real end_from_last_pixel[Order];

  explicit TileTransitions(const AxisPlan& plan, std::int64_t side = kTile)
      : tiles(divide_up(plan.length, side)), needs_runs(plan.needs_runs()) {
    const std::int64_t left_out = plan.pixels_left_out();
    const std::int64_t last_tile = plan.length - (tiles - 1) * side;
    forward = transition_over(plan.causal, side);
    forward_last = transition_over(plan.causal, last_tile - left_out);
    backward = transition_over(plan.anticausal, side);
    backward_first = transition_over(plan.anticausal, side - left_out);
    backward_last = transition_over(plan.anticausal, last_tile);

    // Tiles hold the causal filter's forward run and the anticausal filter's backward run. Where the boundary
    // needs the other two, both filters have the same poles, and the runs differ by their gains alone.
    const long double causal_gain = plan.causal.sections.gain;
    const long double anticausal_gain = plan.anticausal.sections.gain;
    const auto scaled = [](StateMatrix matrix, long double factor) {
      for (auto& row : matrix.rows) {
        for (long double& value : row) value *= factor;
      }
      return small_matrix<Order, Real>(matrix);
    };
    start_from_forward = small_matrix<Order, Real>(plan.start_from_causal_run);
    start_from_backward = scaled(plan.start_from_reversed_run, causal_gain / anticausal_gain);
    end_from_backward = small_matrix<Order, Real>(plan.end_from_anticausal_run);
    end_from_forward = scaled(plan.end_from_reversed_run, anticausal_gain / causal_gain);
    for (std::size_t k = 0; k < Order; ++k) {
      start_from_first_pixel[k] = static_cast<Real>(plan.start_from_first_pixel[k]);
      end_from_last_pixel[k] = static_cast<Real>(plan.end_from_last_pixel[k]);
    }
  }

 protected:
  static Matrix transition_over(const DirectionPlan& direction, std::int64_t pixels) {
    return small_matrix<Order, Real>(power(direction.transition, pixels));
  }
};

/// Transition matrices along a line in one direction: tiles, and segments of those between the first and the
/// last tile, count in that direction.
template <int Order>
struct CarryTransitions {
  using Matrix = SmallMatrix<Order, double>;

  Matrix first_tile, tile;
  Matrix last_of_whole;          // the last tile, without the pixels that runs over the image leave out
  Matrix segment, last_segment;  // the last one may be shorter
};

/// The first tile's carry-in in one direction, from the zero-state responses of whole lines.
template <int Order>
struct BoundaryTransitions {
  SmallMatrix<Order, double> from_forward, from_backward;
  double from_pixel[Order];  // the line's first in that direction
};

/// How the carries of an axis are completed.
template <int Order>
struct CarryPlan {
  std::int64_t tiles;
  int segment_tiles;
  int segments;
  bool needs_runs;
  CarryTransitions<Order> forward, backward;
  BoundaryTransitions<Order> start, end;

  explicit CarryPlan(const AxisPlan& plan) {
    const TileTransitions<Order, double> transitions(plan);
    tiles = transitions.tiles;
    needs_runs = transitions.needs_runs;
    const int inner_tiles = static_cast<int>(std::max<std::int64_t>(tiles - 2, 0));
    segment_tiles = std::max(divide_up(inner_tiles, carry_segments(Order)), kMinCarryTiles);
    segments = divide_up(inner_tiles, segment_tiles);
    const int last_segment = inner_tiles - (segments - 1) * segment_tiles;
    const auto transition_over = [](const DirectionPlan& direction, std::int64_t of_tiles) {
      return small_matrix<Order, double>(power(direction.transition, of_tiles * kTile));
    };
    forward = {transitions.forward, transitions.forward, transitions.forward_last,
               transition_over(plan.causal, segment_tiles), transition_over(plan.causal, last_segment)};
    backward = {transitions.backward_last, transitions.backward, transitions.backward_first,
                transition_over(plan.anticausal, segment_tiles),
                transition_over(plan.anticausal, last_segment)};
    start = {transitions.start_from_forward, transitions.start_from_backward, {}};
    end = {transitions.end_from_forward, transitions.end_from_backward, {}};
    std::copy_n(transitions.start_from_first_pixel, Order, start.from_pixel);
    std::copy_n(transitions.end_from_last_pixel, Order, end.from_pixel);
  }
};

/// The first and the last pixel of every line of an axis, channels interleaved.
struct BorderPixels {
  SourceElements first;
  SourceElements last;
  std::int64_t image_stride;
};

/// state = matrix state + addend: the state after a tile with the zero-state response `addend`.
template <int Order, class Real>
__device__ void apply_transition(const SmallMatrix<Order, Real>& matrix, const Real (&addend)[Order],
                                 Real (&state)[Order]) {
  Real next[Order];
#pragma unroll
  for (int k = 0; k < Order; ++k) next[k] = addend[k];
  matrix.add_product(state, next);
#pragma unroll
  for (int k = 0; k < Order; ++k) state[k] = next[k];
}

}  // namespace cumulus::recursive_filter
