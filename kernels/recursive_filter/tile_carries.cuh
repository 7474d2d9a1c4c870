#pragma once

#include <cstdint>

#include "kernels/recursive_filter/recursive_filter_line.h"
#include "kernels/recursive_filter/recursive_filter_scratch.h"
#include "kernels/recursive_filter/recursive_filter_tuning.h"

// Between the two passes of the tiled method: what each tile has found out by itself becomes what lies before
// and after it.

namespace cumulus::recursive_filter {

/// The carries of one tile: line by line, a number for each of its columns or rows.
struct TileCarries {
  float* first;
  std::int64_t line_stride;
  std::int64_t position_stride;

  __device__ float& at(int line, int position) const {
    return first[line * line_stride + position * position_stride];
  }
};

/// Where carries lie: see FilterTiles.
struct CarryMap {
  float* filtered;
  float* border;
  std::int64_t width;
  std::int64_t channels;
  std::int64_t tile_rows;
  std::int64_t tile_columns;
  int lines;  // 4 * order

  __device__ TileCarries at(std::int64_t row, std::int64_t column, std::int64_t channel) const {
    if (row < tile_rows - 1 && column < tile_columns - 1) {
      return {filtered + (row * kTile * width + column * kTile) * channels + channel, width * channels,
              channels};
    }
    const std::int64_t tile = row == tile_rows - 1 ? column : tile_columns + row;
    return {border + (tile * channels + channel) * lines * kTile, kTile, 1};
  }
};

/// The lines of carries of one axis.
template <int Order>
struct CarryLines {
  int causal;  // before: the causal states of the tile's run from nothing; after: the state before the tile
  int anticausal;  // the same for the anticausal run over the image, and the state after the tile

  __device__ static void read(const TileCarries& carries, int line, int position, double (&state)[Order]) {
#pragma unroll
    for (int k = 0; k < Order; ++k) state[k] = static_cast<double>(carries.at(line + k, position));
  }
  __device__ static void write(const TileCarries& carries, int line, int position,
                               const double (&state)[Order]) {
#pragma unroll
    for (int k = 0; k < Order; ++k) carries.at(line + k, position) = static_cast<float>(state[k]);
  }
};

/// How states move over tiles and over segments (stretches of `segment_tiles` tiles, the last one shorter).
/// Runs leave out a pixel at their end where the boundary is kMirror.
template <int Order>
struct CarryPlan {
  using Matrix = SmallMatrix<Order, double>;

  std::int64_t length;
  std::int64_t tiles;
  std::int64_t segment_tiles;
  int segments;
  Matrix forward, forward_last;
  Matrix backward, backward_first, backward_last;
  Matrix segment_forward, segment_forward_last;
  Matrix segment_backward, segment_backward_first, segment_backward_last;
  Matrix start_from_forward, start_from_backward, end_from_forward, end_from_backward;
  double start_from_first_pixel[Order];
  double end_from_last_pixel[Order];

  explicit CarryPlan(const AxisPlan& plan)
      : length(plan.length),
        tiles((plan.length + kTile - 1) / kTile),
        segment_tiles((tiles + kCarrySegments - 1) / kCarrySegments),
        segments(static_cast<int>((tiles + segment_tiles - 1) / segment_tiles)) {
    const std::int64_t left_out = plan.pixels_left_out();
    const std::int64_t last_tile = length - (tiles - 1) * kTile;
    const std::int64_t segment = segment_tiles * kTile;
    const std::int64_t last_segment = length - (segments - 1) * segment;
    const auto over = [](const DirectionPlan& direction, std::int64_t pixels) {
      return small_matrix<Order, double>(power(direction.transition, pixels));
    };
    forward = over(plan.causal, kTile);
    forward_last = over(plan.causal, last_tile - left_out);
    backward = over(plan.anticausal, kTile);
    backward_first = over(plan.anticausal, kTile - left_out);
    backward_last = over(plan.anticausal, last_tile);
    segment_forward = over(plan.causal, segment);
    segment_forward_last = over(plan.causal, last_segment - left_out);
    segment_backward = over(plan.anticausal, segment);
    segment_backward_first = over(plan.anticausal, (segments == 1 ? length : segment) - left_out);
    segment_backward_last = over(plan.anticausal, last_segment);

    // Tiles hold the causal filter's forward run and the anticausal filter's backward run. Where the boundary
    // asks for the other two, both filters have the same poles, and the runs differ by their gains alone.
    const long double causal_gain = plan.causal.sections.gain;
    const long double anticausal_gain = plan.anticausal.sections.gain;
    const auto scaled = [](StateMatrix matrix, long double factor) {
      for (auto& row : matrix.rows) {
        for (long double& value : row) value *= factor;
      }
      return small_matrix<Order, double>(matrix);
    };
    start_from_forward = small_matrix<Order, double>(plan.start_from_causal_run);
    start_from_backward = scaled(plan.start_from_reversed_run, causal_gain / anticausal_gain);
    end_from_backward = small_matrix<Order, double>(plan.end_from_anticausal_run);
    end_from_forward = scaled(plan.end_from_reversed_run, anticausal_gain / causal_gain);
    for (std::size_t k = 0; k < Order; ++k) {
      start_from_first_pixel[k] = static_cast<double>(plan.start_from_first_pixel[k]);
      end_from_last_pixel[k] = static_cast<double>(plan.end_from_last_pixel[k]);
    }
  }

  __device__ const Matrix& over_segment_forward(int segment) const {
    return segment == segments - 1 ? segment_forward_last : segment_forward;
  }
  __device__ const Matrix& over_segment_backward(int segment) const {
    return segment == 0              ? segment_backward_first
           : segment == segments - 1 ? segment_backward_last
                                     : segment_backward;
  }
};

/// The first and the last pixel of every line of an axis, channels interleaved.
struct BorderPixels {
  const float* first;
  const float* last;
};

template <int Order>
struct CompleteArguments {
  CarryMap carries;
  CarryLines<Order> lines;
  BorderPixels border;
  std::int64_t cross_length;  // lines of the axis, in pixels
  bool along_y;
};

/// sum = matrix sum + addend.
template <int Order>
__device__ void move_over(const SmallMatrix<Order, double>& matrix, const double (&addend)[Order],
                          double (&state)[Order]) {
  double moved[Order];
#pragma unroll
  for (int k = 0; k < Order; ++k) moved[k] = addend[k];
  matrix.add_product(state, moved);
#pragma unroll
  for (int k = 0; k < Order; ++k) state[k] = moved[k];
}

/// One thread: the tiles of one segment of one line.
template <int Order>
class SegmentOfLine {
 public:
  using Lines = CarryLines<Order>;

  __device__ SegmentOfLine(const CompleteArguments<Order>& arguments, const CarryPlan<Order>& plan,
                           std::int64_t cross_tile, int position, std::int64_t channel, int segment)
      : a_(arguments),
        plan_(plan),
        cross_tile_(cross_tile),
        channel_(channel),
        position_(position),
        first_(segment * plan.segment_tiles),
        end_(min(first_ + plan.segment_tiles, plan.tiles)) {}

  /// What the segment makes of nothing, in both directions.
  __device__ void run(double (&forward)[Order], double (&backward)[Order]) const {
    double own[Order];
    for (std::int64_t tile = first_; tile < end_; ++tile) {
      Lines::read(carries_of(tile), a_.lines.causal, position_, own);
      move_over(tile == plan_.tiles - 1 ? plan_.forward_last : plan_.forward, own, forward);
    }
    for (std::int64_t tile = end_ - 1; tile >= first_; --tile) {
      Lines::read(carries_of(tile), a_.lines.anticausal, position_, own);
      move_over(tile == 0 ? plan_.backward_first : plan_.backward, own, backward);
    }
  }

  /// Replaces each tile's own states by those before and after it.
  __device__ void complete(double (&before)[Order], double (&after)[Order]) const {
    double own[Order];
    for (std::int64_t tile = first_; tile < end_; ++tile) {
      const TileCarries carries = carries_of(tile);
      Lines::read(carries, a_.lines.causal, position_, own);
      Lines::write(carries, a_.lines.causal, position_, before);
      move_over(plan_.forward, own, before);
    }
    for (std::int64_t tile = end_ - 1; tile >= first_; --tile) {
      const TileCarries carries = carries_of(tile);
      Lines::read(carries, a_.lines.anticausal, position_, own);
      Lines::write(carries, a_.lines.anticausal, position_, after);
      move_over(tile == plan_.tiles - 1 ? plan_.backward_last : plan_.backward, own, after);
    }
  }

 private:
  __device__ TileCarries carries_of(std::int64_t tile) const {
    return a_.along_y ? a_.carries.at(tile, cross_tile_, channel_)
                      : a_.carries.at(cross_tile_, tile, channel_);
  }

  const CompleteArguments<Order>& a_;
  const CarryPlan<Order>& plan_;
  std::int64_t cross_tile_;
  std::int64_t channel_;
  int position_;
  std::int64_t first_;
  std::int64_t end_;
};

/// Completes the carries of one axis: a thread for each line and segment. Blocks: kCarryLines lines of one
/// channel.
template <int Order>
__global__ void __launch_bounds__(kCarryLines* kCarrySegments)
    complete_carries(const __grid_constant__ CompleteArguments<Order> a,
                     const __grid_constant__ CarryPlan<Order> plan) {
  __shared__ double forward_runs[kCarrySegments][Order][kCarryLines];
  __shared__ double backward_runs[kCarrySegments][Order][kCarryLines];
  const int lane = static_cast<int>(threadIdx.x);
  const int segment = static_cast<int>(threadIdx.y);
  const std::int64_t channel = blockIdx.x % a.carries.channels;
  const std::int64_t line = blockIdx.x / a.carries.channels * kCarryLines + lane;
  const bool active = line < a.cross_length && segment < plan.segments;
  const SegmentOfLine<Order> tiles(a, plan, line / kTile, static_cast<int>(line % kTile), channel, segment);

  double forward[Order] = {};
  double backward[Order] = {};
  if (active) tiles.run(forward, backward);
#pragma unroll
  for (int k = 0; k < Order; ++k) {
    forward_runs[segment][k][lane] = forward[k];
    backward_runs[segment][k][lane] = backward[k];
  }
  __syncthreads();
  if (!active) return;

  const auto add_forward = [&](int other, double(&state)[Order]) {
    double own[Order];
    for (int k = 0; k < Order; ++k) own[k] = forward_runs[other][k][lane];
    move_over(plan.over_segment_forward(other), own, state);
  };
  const auto add_backward = [&](int other, double(&state)[Order]) {
    double own[Order];
    for (int k = 0; k < Order; ++k) own[k] = backward_runs[other][k][lane];
    move_over(plan.over_segment_backward(other), own, state);
  };
  double whole_forward[Order] = {};
  double whole_backward[Order] = {};
  for (int other = 0; other < plan.segments; ++other) add_forward(other, whole_forward);
  for (int other = plan.segments - 1; other >= 0; --other) add_backward(other, whole_backward);

  const std::int64_t pixel = line * a.carries.channels + channel;
  const auto first_pixel = static_cast<double>(a.border.first[pixel]);
  const auto last_pixel = static_cast<double>(a.border.last[pixel]);
  double before[Order];
  double after[Order];
  for (int k = 0; k < Order; ++k) {
    before[k] = plan.start_from_first_pixel[k] * first_pixel;
    after[k] = plan.end_from_last_pixel[k] * last_pixel;
  }
  plan.start_from_forward.add_product(whole_forward, before);
  plan.start_from_backward.add_product(whole_backward, before);
  plan.end_from_forward.add_product(whole_forward, after);
  plan.end_from_backward.add_product(whole_backward, after);

  for (int other = 0; other < segment; ++other) add_forward(other, before);
  for (int other = plan.segments - 1; other > segment; --other) add_backward(other, after);
  tiles.complete(before, after);
}

}  // namespace cumulus::recursive_filter
