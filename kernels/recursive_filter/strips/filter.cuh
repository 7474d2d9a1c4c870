#pragma once

#include "kernels/recursive_filter/strips/load_store.cuh"
#include "kernels/recursive_filter/strips/ring.cuh"
#include "kernels/recursive_filter/strips/runs.cuh"
#include "kernels/recursive_filter/strips/states.cuh"
#include "kernels/recursive_filter/strips/sums.cuh"

// The decaying method in one pass: a block walks down a strip of the image, one tile wide, and every stage of
// the filter is a pair of warps that takes tile after tile, as soon as those it needs have gone through the
// stage before. Along y a thread has a column; the causal state goes on from tile to tile, and the anticausal
// one comes from as many tiles ahead as the filter remembers. Along x a thread has a row; strips tell each
// other the states that their rows leave. Where a part of a strip begins or ends inside the image, it begins
// some tiles earlier and reads some tiles more; at the image's border too, but where the states there follow
// from the border's pixels.

namespace cumulus::recursive_filter {

template <int Order, bool kByOutputs>
class Strip {
 public:
  __device__ Strip(const StripFilter<Order>& f, StripMemory<Order>& memory)
      : f_(f), memory_(memory), at_(f), states_(f, at_), line_(strip_line()) {}

  __device__ __forceinline__ void run() {
    memory_.init();
    __syncthreads();
    switch (strip_stage()) {
      case StripStage::kLoad:
        return load();
      case StripStage::kCausalColumns:
        return filter_causal_columns();
      case StripStage::kAnticausalColumns:
        return filter_anticausal_columns();
      case StripStage::kRowStates:
        return find_row_states();
      case StripStage::kGather:
        return gather();
      case StripStage::kCausalRows:
        return filter_causal_rows();
      case StripStage::kAnticausalRows:
        return filter_anticausal_rows();
      case StripStage::kStore:
        return store();
    }
  }

 private:
  __device__ StripTile& pixels(const RingPlace& at) const { return memory_.tiles[at.slot]; }
  __device__ float* carries(const RingPlace& at) const { return memory_.carries[at.tile % 2]; }

  /// Each tile, or every `step`-th from `first` on, when it has gone through the stage `before`.
  template <class Body>
  __device__ __forceinline__ void each_tile(StripStage before, StripStage stage, const Body& body,
                                            int first = 0, int step = 1) const {
#pragma unroll 1
    for (RingPlace at(first); at.tile < at_.all_tiles(); at.advance(step)) {
      memory_.await(before, at);
      body(at);
      memory_.tell_over(stage, at);
    }
  }

  __device__ __forceinline__ void load() const {
#pragma unroll 1
    for (RingPlace at(0); at.tile < at_.all_tiles(); at.advance(1)) {
      if (at.tile >= kStripSlots) memory_.await(StripStage::kStore, RingPlace(at.tile - kStripSlots));
      if (!at_.is_closing(at.tile)) load_strip_tile(f_, at_, at.tile, pixels(at));
      __pipeline_commit();
      // Two tiles are on their way at a time.
      if (at.tile > 0) {
        __pipeline_wait_prior(1);
        memory_.tell_over(StripStage::kLoad, RingPlace(at.tile - 1));
      }
    }
    __pipeline_wait_prior(0);
    memory_.tell_over(StripStage::kLoad, RingPlace(at_.all_tiles() - 1));
  }

  __device__ __forceinline__ void filter_causal_columns() const {
    float causal[Order] = {};
    float through[Order] = {};
    float border = 0;
    each_tile(StripStage::kLoad, StripStage::kCausalColumns, [&](const RingPlace& at) {
      if (!f_.along_columns) return;
      if (at_.is_closing(at.tile)) {
        close_columns(through, border, pixels(at));
        return;
      }
      if (at.tile == 0 && at_.closed_above && f_.boundary_y == FilterBoundary::kClamp) {
        add_weighted(f_.y.from_first_pixel, pixels(at).at(0, line_), causal);
      }
      border = pixels(at).at(kTile - 1, line_);
      filter_columns(pixels(at), at.tile > at_.above, causal, through);
    });
  }

  __device__ __forceinline__ void filter_anticausal_columns() const {
    each_tile(StripStage::kCausalColumns, StripStage::kAnticausalColumns, [&](const RingPlace& at) {
      // As many tiles ahead as the filter remembers, or the last.
      const RingPlace ahead(min(at.tile + f_.window_y, at_.all_tiles() - 1));
      const bool filters = f_.along_columns && at_.has(at.tile);
      const ColumnAccess column = pixels(at).column(line_);
      float last[kHalf];
      if (filters) column.load(kTile - kHalf, last);
      memory_.await(StripStage::kCausalColumns, ahead);
      if (!filters) return;
      float state[Order] = {};
      int slot = ahead.slot;
      float left[Order];
      memory_.tiles[slot].hear(line_, left);
#pragma unroll 1
      for (int tile = ahead.tile; tile > at.tile; --tile) {
        slot = slot == 0 ? kStripSlots - 1 : slot - 1;
        float next[Order];
        memory_.tiles[slot].hear(line_, next);
        move_over(f_.y.backward, left, state);
#pragma unroll
        for (int k = 0; k < Order; ++k) left[k] = next[k];
      }
      descend_anticausally<kByOutputs>(f_.y, column, last, state);
    });
  }

  __device__ __forceinline__ void find_row_states() const {
    each_tile(StripStage::kAnticausalColumns, StripStage::kRowStates, [&](const RingPlace& at) {
      if (at.tile >= kStripLead) memory_.await(StripStage::kGather, RingPlace(at.tile - kStripLead));
      if (f_.along_rows && at_.has(at.tile)) tell_rows(at.tile - at_.above, pixels(at));
    });
  }

  /// Strips that are not stored gather all the same: no block runs away from its neighbours, which ask for
  /// its last few tiles alone.
  __device__ __forceinline__ void gather() const {
    const auto neighbours = states_.neighbours();
    const auto gather_one = [&](const RingPlace& at) {
      if (at.tile >= 2) memory_.await(StripStage::kCausalRows, RingPlace(at.tile - 2));
      if (f_.along_rows && at_.has(at.tile))
        gather_rows(neighbours, at.tile - at_.above, pixels(at), carries(at));
    };
    each_tile(StripStage::kRowStates, StripStage::kGather, gather_one,
              strip_pair() - static_cast<int>(StripStage::kGather), kGatheringPairs);
  }

  __device__ __forceinline__ void filter_causal_rows() const {
    each_tile(StripStage::kGather, StripStage::kCausalRows, [&](const RingPlace& at) {
      if (f_.along_rows && at_.own && at_.has(at.tile)) filter_rows(pixels(at), carries(at));
    });
  }
  __device__ __forceinline__ void filter_anticausal_rows() const {
    each_tile(StripStage::kCausalRows, StripStage::kAnticausalRows, [&](const RingPlace& at) {
      if (f_.along_rows && at_.own && at_.has(at.tile)) finish_rows(pixels(at));
    });
  }
  __device__ __forceinline__ void store() const {
    each_tile(StripStage::kAnticausalRows, StripStage::kStore, [&](const RingPlace& at) {
      if (at_.own && at_.has(at.tile)) store_strip_tile(f_, at_, at.tile, pixels(at));
    });
  }

  static constexpr int kStretch = kStripStretch<Order>;
  static constexpr int kHalf = kStretch / 2;
  using Run = StripRun<Order, kByOutputs>;
  using Neighbours = typename StripStates<Order>::Neighbours;

  /// What an anticausal run over all below the image leaves, of which `left` is what it makes of the causal
  /// state of the last pixel.
  __device__ void close_columns(float (&left)[Order], float border, StripTile& below) const {
    float future[Order] = {};
    if (f_.boundary_y == FilterBoundary::kClamp) add_weighted(f_.y.from_last_pixel, border, future);
    f_.y.through_future.add_product(future, left);
    below.tell(line_, left);
  }

  /// Filters a column causally and, where it `leaves` something, tells what an anticausal run over the result
  /// leaves, from nothing. That is known from the pixels as they were and from what the causal states before
  /// and behind them give: `through`.
  __device__ void filter_columns(StripTile& tile, bool leaves, float (&causal)[Order],
                                 float (&through)[Order]) const {
    LeftByStretches<Order> left;
    float sum[Order];
    const Run run(f_.y.causal, f_.y.causal_outputs, causal);
    const auto take_in = [&](int first, float(&v)[kHalf]) {
#pragma unroll
      for (int k = 0; k < kHalf; ++k) {
        add_weighted(f_.y.anticausal_sums.of[first + k], v[k], sum);
        run.filter(v[k]);
      }
    };
    ascend<kHalf>(
        tile.column(line_),
        [&](float(&v)[kHalf]) {
#pragma unroll
          for (int k = 0; k < Order; ++k) sum[k] = 0;
          take_in(0, v);
        },
        [&](float(&v)[kHalf], int first) {
          take_in(kHalf, v);
          left.add(f_.y, first / kStretch, sum, through);
        });
    run.finish();
    left.finish(f_.y, through);
    float now[Order] = {};
    f_.y.through_causal.add_product(causal, now);
    if (leaves) {
      float behind[Order];
#pragma unroll
      for (int k = 0; k < Order; ++k) behind[k] = -now[k];
      f_.y.backward.add_product(behind, through);
      tile.tell(line_, through);
    }
#pragma unroll
    for (int k = 0; k < Order; ++k) through[k] = now[k];
  }

  /// Whether the states there follow from the border's pixels.
  __device__ bool begins_at_border() const {
    return at_.column == 0 && f_.boundary_x == FilterBoundary::kClamp;
  }
  __device__ bool ends_at_border() const {
    return at_.column == f_.tile_columns - 1 && f_.boundary_x == FilterBoundary::kClamp;
  }

  __device__ void tell_rows(int tile, StripTile& pixels) const {
    float forward[Order] = {};
    float backward[Order] = {};
    if (begins_at_border()) add_weighted(f_.x.from_first_pixel, pixels.at(line_, 0), forward);
    if (ends_at_border()) {
      float border[Order] = {};
      add_weighted(f_.x.from_last_pixel, pixels.at(line_, kTile - 1), border);
      f_.x.backward.add_product(border, backward);
    }
    const RowAccess row = pixels.row(line_);
    f_.x.run_alike ? sum_row(f_.x, row, forward, backward) : run_over_row(f_.x, row, forward, backward);
    states_.tell(tile, forward, backward);
  }
  __device__ void gather_rows(const Neighbours& neighbours, int tile, StripTile& pixels, float* into) const {
    float before[Order] = {};
    float after[Order] = {};
    if (begins_at_border()) add_weighted(f_.x.from_first_pixel, pixels.at(line_, 0), before);
    if (ends_at_border()) add_weighted(f_.x.from_last_pixel, pixels.at(line_, kTile - 1), after);
    states_.gather(neighbours, tile, before, after);
    float future[Order] = {};
    f_.x.through_future.add_product(after, future);
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      into[k * kTile + line_] = before[k];
      into[(Order + k) * kTile + line_] = future[k];
    }
  }

  __device__ void filter_rows(StripTile& pixels, const float* from) const {
    float state[Order];
    float future[Order];
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      state[k] = from[k * kTile + line_];
      future[k] = from[(Order + k) * kTile + line_];
    }
    ascend_causally<kByOutputs>(f_.x, pixels.row(line_), state);
    f_.x.through_causal.add_product(state, future);
    pixels.tell(line_, future);
  }

  __device__ void finish_rows(StripTile& pixels) const {
    float state[Order];
    pixels.hear(line_, state);
    const RowAccess row = pixels.row(line_);
    float last[kHalf];
    row.load(kTile - kHalf, last);
    descend_anticausally<kByOutputs>(f_.x, row, last, state);
  }

  const StripFilter<Order>& f_;
  StripMemory<Order>& memory_;
  const StripPlace at_;
  const StripStates<Order> states_;
  const int line_;
};

extern __shared__ float4 strip_memory[];

template <int Order, bool kByOutputs>
__global__ void __launch_bounds__(kStripThreads, 1)
    filter_strips(const __grid_constant__ StripFilter<Order> f) {
#if __CUDA_ARCH__ >= 900
  Strip<Order, kByOutputs>(f, *reinterpret_cast<StripMemory<Order>*>(strip_memory)).run();
#endif
}

}  // namespace cumulus::recursive_filter
