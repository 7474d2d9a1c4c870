#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/recursive_filter/filter_pixels.cuh"
#include "kernels/recursive_filter/recursive_filter_line.h"
#include "kernels/recursive_filter/recursive_filter_scratch.h"
#include "kernels/recursive_filter/recursive_filter_tuning.h"

// Between the two passes of the tiled method: what each tile has found out by itself becomes what lies before
// and after it.

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

  /// f(the lines as they lie): a branch around many loads, which can be on their way together then.
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
};

/// The lines of carries of one axis.
struct CarryLines {
  int causal;  // before: the causal states of the tile's run from nothing; after: the state before the tile
  int anticausal;  // the same for the anticausal run over the image, and the state after the tile
};

/// How states move over tiles, and what the boundary makes of runs over the image. Runs leave out a pixel at
/// their end where the boundary is kMirror.
template <int Order, class Real>
struct TileMoves {
  using Matrix = SmallMatrix<Order, Real>;

  std::int64_t tiles;
  bool needs_runs;  // over the whole image, for its borders
  Matrix forward, forward_last;
  Matrix backward, backward_first, backward_last;
  Matrix start_from_forward, start_from_backward, end_from_forward, end_from_backward;
  Real start_from_first_pixel[Order];
  Real end_from_last_pixel[Order];

  explicit TileMoves(const AxisPlan& plan)
      : tiles((plan.length + kTile - 1) / kTile), needs_runs(plan.needs_runs()) {
    const std::int64_t left_out = plan.pixels_left_out();
    const std::int64_t last_tile = plan.length - (tiles - 1) * kTile;
    forward = over(plan.causal, kTile);
    forward_last = over(plan.causal, last_tile - left_out);
    backward = over(plan.anticausal, kTile);
    backward_first = over(plan.anticausal, kTile - left_out);
    backward_last = over(plan.anticausal, last_tile);

    // Tiles hold the causal filter's forward run and the anticausal filter's backward run. Where the boundary
    // asks for the other two, both filters have the same poles, and the runs differ by their gains alone.
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
  static Matrix over(const DirectionPlan& direction, std::int64_t pixels) {
    return small_matrix<Order, Real>(power(direction.transition, pixels));
  }
};

/// The same, and over segments: stretches of `segment_tiles` tiles, the last one shorter.
template <int Order>
struct CarryPlan : TileMoves<Order, double> {
  using Base = TileMoves<Order, double>;
  using typename Base::Matrix;

  std::int64_t segment_tiles;
  int segments;
  Matrix segment_forward, segment_forward_last;
  Matrix segment_backward, segment_backward_first, segment_backward_last;

  explicit CarryPlan(const AxisPlan& plan)
      : Base(plan),
        segment_tiles((Base::tiles + kCarrySegments - 1) / kCarrySegments),
        segments(static_cast<int>((Base::tiles + segment_tiles - 1) / segment_tiles)) {
    const std::int64_t left_out = plan.pixels_left_out();
    const std::int64_t segment = segment_tiles * kTile;
    const std::int64_t last_segment = plan.length - (segments - 1) * segment;
    segment_forward = Base::over(plan.causal, segment);
    segment_forward_last = Base::over(plan.causal, last_segment - left_out);
    segment_backward = Base::over(plan.anticausal, segment);
    segment_backward_first = Base::over(plan.anticausal, (segments == 1 ? plan.length : segment) - left_out);
    segment_backward_last = Base::over(plan.anticausal, last_segment);
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
  SourceElements first;
  SourceElements last;
  std::int64_t image_stride;
};

template <int Order>
struct CompleteArguments {
  CarryMap carries;
  CarryLines lines;
  BorderPixels border;
  std::int64_t cross_length;  // lines of the axis, in pixels
  std::int64_t blocks_of_image;
  bool along_y;
};

/// The lines of an image that a block has.
struct LineBlock {
  std::int64_t image, channel, first_line;
};

/// sum = matrix sum + addend.
template <int Order, class Real>
__device__ void move_over(const SmallMatrix<Order, Real>& matrix, const Real (&addend)[Order],
                          Real (&state)[Order]) {
  Real moved[Order];
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
  __device__ SegmentOfLine(const CompleteArguments<Order>& arguments, const CarryPlan<Order>& plan,
                           const LineBlock& block, std::int64_t line, int segment)
      : a_(arguments),
        plan_(plan),
        image_(block.image),
        cross_tile_(line / kTile),
        channel_(block.channel),
        position_(static_cast<int>(line % kTile)),
        first_(segment * plan.segment_tiles),
        end_(min(first_ + plan.segment_tiles, plan.tiles)) {}

  /// What the segment makes of nothing, in both directions.
  __device__ void run(double (&forward)[Order], double (&backward)[Order]) const {
    forwards<false>(a_.lines.causal, forward,
                    [&](std::int64_t tile, const double(&own)[Order], double(&state)[Order]) {
                      move_over(tile == plan_.tiles - 1 ? plan_.forward_last : plan_.forward, own, state);
                    });
    backwards<false>(a_.lines.anticausal, backward,
                     [&](std::int64_t tile, const double(&own)[Order], double(&state)[Order]) {
                       move_over(tile == 0 ? plan_.backward_first : plan_.backward, own, state);
                     });
  }

  /// Replaces each tile's own states by those before and after it.
  __device__ void complete(double (&before)[Order], double (&after)[Order]) const {
    forwards<true>(a_.lines.causal, before,
                   [&](std::int64_t /*tile*/, const double(&own)[Order], double(&state)[Order]) {
                     move_over(plan_.forward, own, state);
                   });
    backwards<true>(a_.lines.anticausal, after,
                    [&](std::int64_t tile, const double(&own)[Order], double(&state)[Order]) {
                      move_over(tile == plan_.tiles - 1 ? plan_.backward_last : plan_.backward, own, state);
                    });
  }

 private:
  /// For each tile: f(tile, its own states, before or after), the last of which is then stored instead of the
  /// first if `Replace`. The states of kCarryBatch tiles are on their way at once.
  template <bool Replace, class F>
  __device__ void forwards(int line, double (&state)[Order], const F& f) const {
    for (std::int64_t first = first_; first < end_; first += kCarryBatch) {
      over_batch<Replace>(line, first, 1, end_ - first, state, f);
    }
  }
  template <bool Replace, class F>
  __device__ void backwards(int line, double (&state)[Order], const F& f) const {
    for (std::int64_t last = end_ - 1; last >= first_; last -= kCarryBatch) {
      over_batch<Replace>(line, last, -1, last - first_ + 1, state, f);
    }
  }
  template <bool Replace, class F>
  __device__ void over_batch(int line, std::int64_t tile, int direction, std::int64_t left,
                             double (&state)[Order], const F& f) const {
    float own[kCarryBatch][Order] = {};
    if (a_.carries.filtered.kind == ElementKind::kHalf) {
      read_batch(line, tile, direction, left, own);
    } else {
      read_batch_of_floats(line, tile, direction, left, own);
    }
#pragma unroll
    for (int i = 0; i < kCarryBatch; ++i) {
      if (i >= left) continue;
      if constexpr (Replace) {
        carries_of(tile + i * direction).visit([&](const auto& lines) {
#pragma unroll
          for (int k = 0; k < Order; ++k) lines.store(line + k, position_, static_cast<float>(state[k]));
        });
      }
      double own_state[Order];
#pragma unroll
      for (int k = 0; k < Order; ++k) own_state[k] = static_cast<double>(own[i][k]);
      f(tile + i * direction, own_state, state);
    }
  }
  __device__ void read_batch(int line, std::int64_t tile, int direction, std::int64_t left,
                             float (&own)[kCarryBatch][Order]) const {
#pragma unroll
    for (int i = 0; i < kCarryBatch; ++i) {
      if (i >= left) continue;
      carries_of(tile + i * direction).visit([&](const auto& lines) {
#pragma unroll
        for (int k = 0; k < Order; ++k) own[i][k] = lines.load(line + k, position_);
      });
    }
  }
  /// As read_batch, without a branch between loads; tiles beyond `left` are read as the last one.
  __device__ void read_batch_of_floats(int line, std::int64_t tile, int direction, std::int64_t left,
                                       float (&own)[kCarryBatch][Order]) const {
#pragma unroll
    for (int i = 0; i < kCarryBatch; ++i) {
      const TileCarries carries = carries_of(tile + (i < left ? i : 0) * direction);
      const FloatLines lines{reinterpret_cast<float*>(carries.first), carries.line_stride,
                             carries.position_stride};
#pragma unroll
      for (int k = 0; k < Order; ++k) own[i][k] = lines.load(line + k, position_);
    }
  }

  __device__ TileCarries carries_of(std::int64_t tile) const {
    return a_.carries.at(
        {image_, a_.along_y ? tile : cross_tile_, a_.along_y ? cross_tile_ : tile, channel_});
  }

  const CompleteArguments<Order>& a_;
  const CarryPlan<Order>& plan_;
  std::int64_t image_;
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
  const std::int64_t block_of_image = blockIdx.x % a.blocks_of_image;
  const LineBlock block{blockIdx.x / a.blocks_of_image, block_of_image % a.carries.channels,
                        block_of_image / a.carries.channels * kCarryLines};
  const std::int64_t line = block.first_line + lane;
  const bool active = line < a.cross_length && segment < plan.segments;
  const SegmentOfLine<Order> tiles(a, plan, block, line, segment);

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
  if (plan.needs_runs) {
    for (int other = 0; other < plan.segments; ++other) add_forward(other, whole_forward);
    for (int other = plan.segments - 1; other >= 0; --other) add_backward(other, whole_backward);
  }

  const std::int64_t pixel = block.image * a.border.image_stride + line * a.carries.channels + block.channel;
  const auto first_pixel = a.border.first.template load<double>(pixel);
  const auto last_pixel = a.border.last.template load<double>(pixel);
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
