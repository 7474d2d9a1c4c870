#pragma once

#include <cuda_pipeline.h>

#include <cstdint>

#include "kernels/primitives/async_copy.cuh"
#include "kernels/primitives/mbarrier.cuh"
#include "kernels/recursive_filter/gpu/tile_images.cuh"
#include "kernels/recursive_filter/math/weighted_sums.h"

// What lies below each tile of an image, as the columns' anticausal filter sees it: the tile's future. A
// block walks up a strip, one tile wide. Its warps take tiles in turn and sum what an anticausal run over
// each column leaves; one more adds that to what the tiles below left.

namespace cumulus::recursive_filter {

/// Rows that a warp sums at a time: a part of a tile.
constexpr int kFutureRows = 16;
constexpr int kFutureParts = kTile / kFutureRows;
/// Warps that sum, and parts that each has on their way: together 48 KB, for the memory to be busy. Several
/// blocks fit on a multiprocessor, so that more strips than multiprocessors are there at once, too.
constexpr int kFutureWarps = 6;
constexpr int kFutureStages = 2;
constexpr int kFutureThreads = (kFutureWarps + 1) * 32;
/// Tiles whose sums wait to be added: a warp may be so far ahead of the others.
constexpr int kFutureSums = 2 * kFutureWarps;

/// The anticausal direction of a plan without_gains.
template <int Order>
struct FutureAxis {
  AnticausalSums<Order, kFutureRows> sums;
  SmallMatrix<Order, float> over_rows, over_tile;
  float from_last_pixel[Order];

  explicit FutureAxis(const AxisPlan& plan) : FutureAxis(without_gains(plan)) {}

 private:
  explicit FutureAxis(const GainlessAxis& axis)
      : sums(axis.plan.anticausal, StateMatrix::identity(axis.plan.order)),
        over_rows(over(axis.plan, kFutureRows)),
        over_tile(over(axis.plan, kTile)) {
    for (std::size_t k = 0; k < Order; ++k) {
      from_last_pixel[k] = static_cast<float>(axis.plan.end_from_last_pixel[k]);
    }
  }
  static SmallMatrix<Order, float> over(const AxisPlan& plan, std::int64_t pixels) {
    return small_matrix<Order, float>(power(plan.anticausal.transition, pixels));
  }
};

/// One launch over an image whose rows begin at multiples of 16 bytes.
template <int Order>
struct FutureImage {
  FutureAxis<Order> y;
  const float* image;
  std::int64_t row_stride;
  int height, width;
  int tile_rows;
  bool clamps;  // below the image its last row goes on; otherwise there is nothing
  /// Of tile t, but for the last, and column x, number k of the state that the anticausal filter has, coming
  /// from below, behind the tile: futures[(t * kTile + k) * width + x].
  float* futures;
};

struct alignas(128) FutureRows {
  float rows[kFutureRows][kTile];
};

/// A block's shared memory.
template <int Order>
struct FutureMemory {
  FutureRows rows[kFutureWarps][kFutureStages];
  float sums[kFutureSums][Order][kTile];
  Mbarrier told[kFutureSums];
  Mbarrier added[kFutureSums];

  __device__ void init() {
    const int barrier = static_cast<int>(threadIdx.x);
    if (barrier >= kFutureSums) return;
    told[barrier].init(32);
    added[barrier].init(32);
  }
};

template <int Order>
class StripFutures {
 public:
  __device__ StripFutures(const FutureImage<Order>& f, FutureMemory<Order>& memory)
      : f_(f),
        memory_(memory),
        warp_(static_cast<int>(threadIdx.x) / 32),
        lane_(static_cast<int>(threadIdx.x) % 32),
        strip_(static_cast<int>(blockIdx.x) * kTile) {}

  __device__ void run() {
    memory_.init();
    __syncthreads();
    if (warp_ < kFutureWarps) {
      sum_tiles();
    } else {
      add_tiles();
    }
  }

 private:
  /// Of the lane's two columns.
  struct States {
    float of[2][Order];
  };

  /// Tiles are counted from below; nobody asks for the one at the top.
  __device__ int tiles_to_sum() const { return f_.tile_rows - 1; }
  __device__ int tile_row(int tile) const { return f_.tile_rows - 1 - tile; }

  __device__ void sum_tiles() const {
    int begun_tile = warp_;
    int begun_part = 0;
    const auto begin_next = [&](int stage) {
      if (begun_tile < tiles_to_sum()) begin(begun_tile, begun_part, memory_.rows[warp_][stage]);
      __pipeline_commit();
      if (++begun_part < kFutureParts) return;
      begun_part = 0;
      begun_tile += kFutureWarps;
    };
#pragma unroll 1
    for (int stage = 0; stage < kFutureStages; ++stage) begin_next(stage);
    int stage = 0;
#pragma unroll 1
    for (int tile = warp_; tile < tiles_to_sum(); tile += kFutureWarps) {
      States left{};
#pragma unroll 1
      for (int part = 0; part < kFutureParts; ++part) {
        __pipeline_wait_prior(kFutureStages - 1);
        __syncwarp();
        sum_rows(memory_.rows[warp_][stage], left);
        __syncwarp();
        begin_next(stage);
        stage = stage + 1 < kFutureStages ? stage + 1 : 0;
      }
      tell(tile, left);
    }
  }

  /// Begins to bring rows in, of a part of a tile: they, too, are counted from below.
  __device__ __forceinline__ void begin(int tile, int part, FutureRows& rows) const {
    const int first = tile_row(tile) * kTile + kTile - (part + 1) * kFutureRows;
    // In the last strip a row's end may lie in the next row, and behind the last one lies somebody else's.
    const bool ends = strip_ + kTile > f_.width;
    if (first + kFutureRows > f_.height - (ends ? 1 : 0)) return bring_last(f_, strip_, first, rows);
    const std::uint64_t policy = evict_first();
    constexpr int kLanes = kTile / kVector;  // of a row
    constexpr int kAtOnce = 32 / kLanes;
    const int row = lane_ / kLanes;
    const int column = lane_ % kLanes * kVector;
    const float* from = f_.image + (first + row) * f_.row_stride + strip_ + column;
#pragma unroll
    for (int i = 0; i < kFutureRows; i += kAtOnce) {
      copy_async(&rows.rows[row + i][column], from, policy);
      from += kAtOnce * f_.row_stride;
    }
  }
  /// Brings in rows of which some may lie below the image. Out of line: rarely needed.
  static __device__ __noinline__ void bring_last(const FutureImage<Order>& f, int strip, int first,
                                                 FutureRows& rows) {
#pragma unroll
    for (int i = 0; i < kFutureRows; ++i) {
      const float* row = f.image + min(first + i, f.height - 1) * f.row_stride;
      const bool none = first + i >= f.height && !f.clamps;
#pragma unroll
      for (int at = static_cast<int>(threadIdx.x) % 32; at < kTile; at += 32) {
        rows.rows[i][at] = none ? 0 : row[min(strip + at, f.width - 1)];
      }
    }
  }

  __device__ __forceinline__ void sum_rows(const FutureRows& rows, States& state) const {
    States left{};
    const auto add = [&](int i, int c, float pixel) {
#pragma unroll
      for (int k = 0; k < Order; ++k) left.of[c][k] += f_.y.sums.of[i][k] * pixel;
    };
#pragma unroll
    for (int i = 0; i < kFutureRows; ++i) {
      const float2 pair = *reinterpret_cast<const float2*>(&rows.rows[i][2 * lane_]);
      add(i, 0, pair.x);
      add(i, 1, pair.y);
    }
#pragma unroll
    for (int c = 0; c < 2; ++c) move_over(f_.y.over_rows, left.of[c], state.of[c]);
  }

  static __device__ std::uint32_t use(int tile) { return static_cast<std::uint32_t>(tile / kFutureSums); }

  __device__ void tell(int tile, const States& left) const {
    const int slot = tile % kFutureSums;
    if (tile >= kFutureSums) memory_.added[slot].wait(use(tile - kFutureSums));
#pragma unroll
    for (int k = 0; k < Order; ++k) sum_of(slot, k) = make_float2(left.of[0][k], left.of[1][k]);
    memory_.told[slot].arrive();
  }
  __device__ void add_tiles() const {
    const int column = strip_ + 2 * lane_;
    States future{};
    if (f_.clamps) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const float pixel = f_.image[(f_.height - 1) * f_.row_stride + min(column + c, f_.width - 1)];
#pragma unroll
        for (int k = 0; k < Order; ++k) future.of[c][k] = f_.y.from_last_pixel[k] * pixel;
      }
    }
    const std::int64_t tile_floats = std::int64_t{kTile} * f_.width;
    float* to = f_.futures + tile_row(0) * tile_floats + column;
#pragma unroll 1
    for (int tile = 0; tile < tiles_to_sum(); ++tile) {
      const int slot = tile % kFutureSums;
      memory_.told[slot].wait(use(tile));
      States left;
#pragma unroll
      for (int k = 0; k < Order; ++k) {
        const float2 sum = sum_of(slot, k);
        left.of[0][k] = sum.x;
        left.of[1][k] = sum.y;
      }
      memory_.added[slot].arrive();
#pragma unroll
      for (int c = 0; c < 2; ++c) move_over(f_.y.over_tile, left.of[c], future.of[c]);
      to -= tile_floats;
      if (column >= f_.width) continue;
        // They leave the L2 cache first, as the image's pixels do: kept there, they slow the reading down.
#pragma unroll
      for (int k = 0; k < Order; ++k) {
        __stcs(reinterpret_cast<float2*>(to + std::int64_t{k} * f_.width),
               make_float2(future.of[0][k], future.of[1][k]));
      }
    }
  }

  /// Of the lane's columns.
  __device__ float2& sum_of(int slot, int k) const {
    return *reinterpret_cast<float2*>(&memory_.sums[slot][k][2 * lane_]);
  }

  const FutureImage<Order>& f_;
  FutureMemory<Order>& memory_;
  const int warp_, lane_;
  const int strip_;  // its first column
};

extern __shared__ __align__(128) float4 future_memory[];

template <int Order>
__global__ void __launch_bounds__(kFutureThreads, 2)
    find_strip_futures(const __grid_constant__ FutureImage<Order> f) {
#if __CUDA_ARCH__ >= 900
  StripFutures<Order>(f, *reinterpret_cast<FutureMemory<Order>*>(future_memory)).run();
#endif
}

}  // namespace cumulus::recursive_filter
