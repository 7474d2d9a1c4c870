#pragma once

#include "kernels/recursive_filter/tile_carries.cuh"

namespace cumulus::recursive_filter {

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
