#pragma once

#include <cooperative_groups.h>

#include "kernels/recursive_filter/line_stretches.cuh"
#include "kernels/recursive_filter/strip_ring.cuh"
#include "kernels/recursive_filter/strip_states.cuh"
#include "kernels/recursive_filter/strip_tiles.cuh"

// The decaying method in one pass: a block walks down a strip of the image, one tile wide, and every stage of
// the filter is a pair of warps that takes tile after tile, as soon as those it needs have gone through the
// stage before. Along y a thread has a column; the causal state goes on from tile to tile, and the anticausal
// one comes from as many tiles ahead as the filter remembers. Along x a thread has a row; strips tell each
// other the states that their rows leave. Where a part of a strip begins or ends inside the image, it begins
// some tiles earlier and reads some tiles more; at the image's border too, but where the states there follow
// from the border's pixels.

namespace cumulus::recursive_filter {

template <int Order>
__device__ void tell(TilePixels& pixels, int line, const float (&state)[Order]) {
  float four[kVector] = {};
#pragma unroll
  for (int k = 0; k < Order; ++k) four[k] = state[k];
  vector_at(pixels, line, kTile) = make_float4(four[0], four[1], four[2], four[3]);
}
template <int Order>
__device__ void hear(TilePixels& pixels, int line, float (&state)[Order]) {
  const float4 told = vector_at(pixels, line, kTile);
  const float four[kVector] = {told.x, told.y, told.z, told.w};
#pragma unroll
  for (int k = 0; k < Order; ++k) state[k] = four[k];
}

template <int Order>
class Strip {
 public:
  __device__ Strip(const StripFilter<Order>& f, StripMemory<Order>& memory)
      : f_(f), memory_(memory), at_(f), states_(f, at_, memory.neighbours), line_(strip_line()) {}

  __device__ __forceinline__ void run() {
    memory_.init();
    states_.begin();
    cooperative_groups::this_grid().sync();
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
  __device__ TilePixels& pixels(const RingPlace& at) const { return memory_.tiles[at.slot]; }
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
    float border = 0;
    each_tile(StripStage::kLoad, StripStage::kCausalColumns, [&](const RingPlace& at) {
      if (!f_.along_columns) return;
      if (at_.is_closing(at.tile)) {
        close_columns(causal, border, pixels(at));
        return;
      }
      if (at.tile == 0 && at_.closed_above && f_.boundary_y == FilterBoundary::kClamp) {
        add_weighted(f_.y.from_first_pixel, pixels(at)[0][line_], causal);
      }
      border = pixels(at)[kTile - 1][line_];
      filter_columns(pixels(at), at.tile > at_.above, causal);
    });
  }

  __device__ __forceinline__ void filter_anticausal_columns() const {
    each_tile(StripStage::kCausalColumns, StripStage::kAnticausalColumns, [&](const RingPlace& at) {
      // As many tiles ahead as the filter remembers, or the last.
      const RingPlace ahead(min(at.tile + f_.window_y, at_.all_tiles() - 1));
      memory_.await(StripStage::kCausalColumns, ahead);
      if (!f_.along_columns || !at_.has(at.tile)) return;
      float state[Order] = {};
      int slot = ahead.slot;
#pragma unroll 1
      for (int tile = ahead.tile; tile > at.tile; --tile) {
        float left[Order];
        hear<Order>(memory_.tiles[slot], line_, left);
        move_over(f_.y.backward, left, state);
        slot = slot == 0 ? kStripSlots - 1 : slot - 1;
      }
      finish_columns(pixels(at), state);
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
    const auto gather_one = [&](const RingPlace& at) {
      if (at.tile >= 2) memory_.await(StripStage::kCausalRows, RingPlace(at.tile - 2));
      if (f_.along_rows && at_.has(at.tile)) gather_rows(at.tile - at_.above, carries(at));
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
      if (at_.own && at_.has(at.tile)) store_strip_tile(f_, at_, at.tile, f_.x.scale, pixels(at));
    });
  }

  static constexpr int kStretch = kStripStretch<Order>;
  static constexpr int kStretches = kTile / kStretch;

  static __device__ void add_weighted(const float (&weights)[Order], float pixel, float (&state)[Order]) {
#pragma unroll
    for (int k = 0; k < Order; ++k) state[k] += weights[k] * pixel;
  }
  /// What an anticausal run over all below the image leaves.
  __device__ void close_columns(const float (&causal)[Order], float border, TilePixels& below) const {
    float future[Order] = {};
    if (f_.boundary_y == FilterBoundary::kClamp) add_weighted(f_.y.from_last_pixel, border, future);
    float left[Order] = {};
    f_.y.through_causal.add_product(causal, left);
    f_.y.through_future.add_product(future, left);
    tell<Order>(below, line_, left);
  }

  __device__ void filter_columns(TilePixels& pixels, bool leaves, float (&causal)[Order]) const {
    const ColumnAccess column{&pixels[0][line_]};
    const Sections<Order, float>& forward = f_.y.causal;
    float last[kStretch];
    column.load(0, last);
#pragma unroll
    for (int k = 0; k < kStretch; ++k) forward.filter_unscaled(causal, last[k]);
    column.store(0, last);
    float total[Order] = {};
#pragma unroll 1
    for (int j = 1; j < kStretches; ++j) {
      float next[kStretch];
      column.load(j * kStretch, next);
      float left[Order] = {};
#pragma unroll
      for (int k = 0; k < kStretch; ++k) {
        forward.filter_unscaled(causal, next[k]);
        f_.y.anticausal.advance_unscaled(left, last[kStretch - 1 - k]);
      }
      column.store(j * kStretch, next);
      f_.y.over_stretches[j - 1].add_product(left, total);
#pragma unroll
      for (int k = 0; k < kStretch; ++k) last[k] = next[k];
    }
    if (!leaves) return;
    float left[Order] = {};
#pragma unroll
    for (int k = 0; k < kStretch; ++k) f_.y.anticausal.advance_unscaled(left, last[kStretch - 1 - k]);
    f_.y.over_stretches[kStretches - 1].add_product(left, total);
    tell<Order>(pixels, line_, total);
  }

  __device__ void finish_columns(TilePixels& pixels, float (&state)[Order]) const {
    const ColumnAccess column{&pixels[0][line_]};
    const float scale = f_.y.scale;
#pragma unroll 1
    for (int j = kStretches - 1; j >= 0; --j) {
      float v[kStretch];
      column.load(j * kStretch, v);
#pragma unroll
      for (int k = kStretch - 1; k >= 0; --k) {
        f_.y.anticausal.filter_unscaled(state, v[k]);
        v[k] *= scale;
      }
      column.store(j * kStretch, v);
    }
  }

  __device__ void tell_rows(int tile, TilePixels& pixels) const {
    const RowAccess row{&pixels[line_][0]};
    if (f_.boundary_x == FilterBoundary::kClamp) states_.tell_border(tile, row.at(0), row.at(kTile - 1));
    float forward[Order] = {};
    float backward[Order] = {};
#pragma unroll 1
    for (int j = 0; j < kStretches; ++j) {
      float v[kStretch];
      row.load(j * kStretch, v);
      float left[Order] = {};
#pragma unroll
      for (int k = 0; k < kStretch; ++k) {
        f_.x.causal.advance_unscaled(forward, v[k]);
        f_.x.anticausal.advance_unscaled(left, v[kStretch - 1 - k]);
      }
      f_.x.over_stretches[j].add_product(left, backward);
    }
    states_.tell(tile, forward, backward);
  }

  __device__ void gather_rows(int tile, float* into) const {
    float before[Order] = {};
    float after[Order] = {};
    states_.gather(tile, before, after);
    float future[Order] = {};
    f_.x.through_future.add_product(after, future);
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      into[k * kTile + line_] = before[k];
      into[(Order + k) * kTile + line_] = future[k];
    }
  }

  __device__ void filter_rows(TilePixels& pixels, const float* from) const {
    const RowAccess row{&pixels[line_][0]};
    float state[Order];
    float future[Order];
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      state[k] = from[k * kTile + line_];
      future[k] = from[(Order + k) * kTile + line_];
    }
#pragma unroll 1
    for (int j = 0; j < kStretches; ++j) {
      float v[kStretch];
      row.load(j * kStretch, v);
#pragma unroll
      for (int k = 0; k < kStretch; ++k) f_.x.causal.filter_unscaled(state, v[k]);
      row.store(j * kStretch, v);
    }
    f_.x.through_causal.add_product(state, future);
    tell<Order>(pixels, line_, future);
  }

  __device__ void finish_rows(TilePixels& pixels) const {
    const RowAccess row{&pixels[line_][0]};
    float state[Order];
    hear<Order>(pixels, line_, state);
#pragma unroll 1
    for (int j = kStretches - 1; j >= 0; --j) {
      float v[kStretch];
      row.load(j * kStretch, v);
#pragma unroll
      for (int k = kStretch - 1; k >= 0; --k) f_.x.anticausal.filter_unscaled(state, v[k]);
      row.store(j * kStretch, v);
    }
  }

  const StripFilter<Order>& f_;
  StripMemory<Order>& memory_;
  const StripPlace at_;
  const StripStates<Order> states_;
  const int line_;
};

extern __shared__ float4 strip_memory[];

template <int Order>
__global__ void __launch_bounds__(kStripThreads, 1)
    filter_strips(const __grid_constant__ StripFilter<Order> f) {
#if __CUDA_ARCH__ >= 900
  Strip<Order>(f, *reinterpret_cast<StripMemory<Order>*>(strip_memory)).run();
#endif
}

}  // namespace cumulus::recursive_filter
