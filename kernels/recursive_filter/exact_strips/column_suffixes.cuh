#pragma once

#include <cuda_pipeline.h>

#include <cstdint>

#include "kernels/primitives/async_copy.cuh"
#include "kernels/primitives/mbarrier.cuh"
#include "kernels/recursive_filter/gpu/tile_images.cuh"
#include "kernels/recursive_filter/math/weighted_sums.h"

// The column suffix state of each tile: the anticausal carry of its columns, that is the state of the
// anticausal filter after it has run over all pixels below the tile. A block goes up a strip, one tile
// wide. kSuffixWarps warps sum the zero-state responses of tiles, one more scans them.

namespace cumulus::recursive_filter {

/// Rows that a warp sums at a time, a part of a tile.
constexpr int kSuffixRows = 16;
constexpr int kSuffixParts = kTile / kSuffixRows;
/// Warps that sum, and stages of each: together 48 KB in flight. Several blocks fit on a multiprocessor, so
/// that more strips than multiprocessors may be resident.
constexpr int kSuffixWarps = 6;
constexpr int kSuffixStages = 2;
constexpr int kSuffixThreads = (kSuffixWarps + 1) * 32;
/// Tiles whose responses may wait for the scan: the maximum warp skew.
constexpr int kSuffixSums = 2 * kSuffixWarps;

/// The anticausal direction of a plan with_unit_gains.
template <int Order>
struct SuffixAxis {
  AnticausalSums<Order, kSuffixRows> sums;
  SmallMatrix<Order, float> rows_transition, tile_transition;
  float from_last_pixel[Order];

  explicit SuffixAxis(const AxisPlan& plan) : SuffixAxis(with_unit_gains(plan)) {}

 private:
  explicit SuffixAxis(const UnitGainAxis& axis)
      : sums(axis.plan.anticausal, StateMatrix::identity(axis.plan.order)),
        rows_transition(transition_over(axis.plan, kSuffixRows)),
        tile_transition(transition_over(axis.plan, kTile)) {
    for (std::size_t k = 0; k < Order; ++k) {
      from_last_pixel[k] = static_cast<float>(axis.plan.end_from_last_pixel[k]);
    }
  }
  static SmallMatrix<Order, float> transition_over(const AxisPlan& plan, std::int64_t pixels) {
    return small_matrix<Order, float>(power(plan.anticausal.transition, pixels));
  }
};

/// One launch over an image whose rows begin at multiples of 16 bytes.
template <int Order>
struct SuffixImage {
  SuffixAxis<Order> y;
  const float* image;
  std::int64_t row_stride;
  int height, width;
  int tile_rows;
  bool clamps;  // the boundary is kClamp, otherwise kZero
  /// Number k of the suffix state of tile t, but for the last, and column x:
  /// suffixes[(t * kTile + k) * width + x].
  float* suffixes;
};

struct alignas(128) SuffixRows {
  float rows[kSuffixRows][kTile];
};

/// A block's shared memory.
template <int Order>
struct SuffixMemory {
  SuffixRows rows[kSuffixWarps][kSuffixStages];
  float sums[kSuffixSums][Order][kTile];
  Mbarrier summed[kSuffixSums];
  Mbarrier added[kSuffixSums];

  __device__ void init() {
    const int barrier = static_cast<int>(threadIdx.x);
    if (barrier >= kSuffixSums) return;
    summed[barrier].init(32);
    added[barrier].init(32);
  }
};

template <int Order>
class ColumnSuffixes {
 public:
  __device__ ColumnSuffixes(const SuffixImage<Order>& f, SuffixMemory<Order>& memory)
      : f_(f),
        memory_(memory),
        warp_(static_cast<int>(threadIdx.x) / 32),
        lane_(static_cast<int>(threadIdx.x) % 32),
        strip_(static_cast<int>(blockIdx.x) * kTile) {}

  __device__ void run() {
    memory_.init();
    __syncthreads();
    if (warp_ < kSuffixWarps) {
      sum_tiles();
    } else {
      scan_tiles();
    }
  }

 private:
  /// Of the lane's two columns.
  struct States {
    float of[2][Order];
  };

  /// Tiles are counted from below; the one at the top needs no response.
  __device__ int tiles_to_sum() const { return f_.tile_rows - 1; }
  __device__ int tile_row(int tile) const { return f_.tile_rows - 1 - tile; }

  __device__ void sum_tiles() const {
    int begun_tile = warp_;
    int begun_part = 0;
    const auto begin_next = [&](int stage) {
      if (begun_tile < tiles_to_sum()) begin(begun_tile, begun_part, memory_.rows[warp_][stage]);
      __pipeline_commit();
      if (++begun_part < kSuffixParts) return;
      begun_part = 0;
      begun_tile += kSuffixWarps;
    };
#pragma unroll 1
    for (int stage = 0; stage < kSuffixStages; ++stage) begin_next(stage);
    int stage = 0;
#pragma unroll 1
    for (int tile = warp_; tile < tiles_to_sum(); tile += kSuffixWarps) {
      States response{};
#pragma unroll 1
      for (int part = 0; part < kSuffixParts; ++part) {
        __pipeline_wait_prior(kSuffixStages - 1);
        __syncwarp();
        sum_rows(memory_.rows[warp_][stage], response);
        __syncwarp();
        begin_next(stage);
        stage = stage + 1 < kSuffixStages ? stage + 1 : 0;
      }
      store_sums(tile, response);
    }
  }

  /// Starts to copy the rows of a part of a tile; parts, too, are counted from below.
  __device__ __forceinline__ void begin(int tile, int part, SuffixRows& rows) const {
    const int first = tile_row(tile) * kTile + kTile - (part + 1) * kSuffixRows;
    // In the last strip a row of the tile may reach into the image's next row, and the last one past its end.
    const bool ends = strip_ + kTile > f_.width;
    if (first + kSuffixRows > f_.height - (ends ? 1 : 0)) return bring_last(f_, strip_, first, rows);
    const std::uint64_t policy = evict_first();
    constexpr int kLanes = kTile / kVector;  // of a row
    constexpr int kAtOnce = 32 / kLanes;
    const int row = lane_ / kLanes;
    const int column = lane_ % kLanes * kVector;
    const float* from = f_.image + (first + row) * f_.row_stride + strip_ + column;
#pragma unroll
    for (int i = 0; i < kSuffixRows; i += kAtOnce) {
      copy_async(&rows.rows[row + i][column], from, policy);
      from += kAtOnce * f_.row_stride;
    }
  }
  /// Copies rows of which some may lie below the image. Out of line: rarely needed.
  static __device__ __noinline__ void bring_last(const SuffixImage<Order>& f, int strip, int first,
                                                 SuffixRows& rows) {
#pragma unroll
    for (int i = 0; i < kSuffixRows; ++i) {
      const float* row = f.image + min(first + i, f.height - 1) * f.row_stride;
      const bool none = first + i >= f.height && !f.clamps;
#pragma unroll
      for (int at = static_cast<int>(threadIdx.x) % 32; at < kTile; at += 32) {
        rows.rows[i][at] = none ? 0 : row[min(strip + at, f.width - 1)];
      }
    }
  }

  __device__ __forceinline__ void sum_rows(const SuffixRows& rows, States& state) const {
    States response{};
    const auto add = [&](int i, int c, float pixel) {
#pragma unroll
      for (int k = 0; k < Order; ++k) response.of[c][k] += f_.y.sums.of[i][k] * pixel;
    };
#pragma unroll
    for (int i = 0; i < kSuffixRows; ++i) {
      const float2 pair = *reinterpret_cast<const float2*>(&rows.rows[i][2 * lane_]);
      add(i, 0, pair.x);
      add(i, 1, pair.y);
    }
#pragma unroll
    for (int c = 0; c < 2; ++c) apply_transition(f_.y.rows_transition, response.of[c], state.of[c]);
  }

  static __device__ std::uint32_t use(int tile) { return static_cast<std::uint32_t>(tile / kSuffixSums); }

  __device__ void store_sums(int tile, const States& response) const {
    const int slot = tile % kSuffixSums;
    if (tile >= kSuffixSums) memory_.added[slot].wait(use(tile - kSuffixSums));
#pragma unroll
    for (int k = 0; k < Order; ++k) sum_of(slot, k) = make_float2(response.of[0][k], response.of[1][k]);
    memory_.summed[slot].arrive();
  }
  __device__ void scan_tiles() const {
    const int column = strip_ + 2 * lane_;
    States suffix{};
    if (f_.clamps) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const float pixel = f_.image[(f_.height - 1) * f_.row_stride + min(column + c, f_.width - 1)];
#pragma unroll
        for (int k = 0; k < Order; ++k) suffix.of[c][k] = f_.y.from_last_pixel[k] * pixel;
      }
    }
    const std::int64_t tile_floats = std::int64_t{kTile} * f_.width;
    float* to = f_.suffixes + tile_row(0) * tile_floats + column;
#pragma unroll 1
    for (int tile = 0; tile < tiles_to_sum(); ++tile) {
      const int slot = tile % kSuffixSums;
      memory_.summed[slot].wait(use(tile));
      States response;
#pragma unroll
      for (int k = 0; k < Order; ++k) {
        const float2 sum = sum_of(slot, k);
        response.of[0][k] = sum.x;
        response.of[1][k] = sum.y;
      }
      memory_.added[slot].arrive();
#pragma unroll
      for (int c = 0; c < 2; ++c) apply_transition(f_.y.tile_transition, response.of[c], suffix.of[c]);
      to -= tile_floats;
      if (column >= f_.width) continue;
        // Streaming stores: in the L2 cache they would displace pixels.
#pragma unroll
      for (int k = 0; k < Order; ++k) {
        __stcs(reinterpret_cast<float2*>(to + std::int64_t{k} * f_.width),
               make_float2(suffix.of[0][k], suffix.of[1][k]));
      }
    }
  }

  /// Of the lane's columns.
  __device__ float2& sum_of(int slot, int k) const {
    return *reinterpret_cast<float2*>(&memory_.sums[slot][k][2 * lane_]);
  }

  const SuffixImage<Order>& f_;
  SuffixMemory<Order>& memory_;
  const int warp_, lane_;
  const int strip_;  // its first column
};

extern __shared__ __align__(128) float4 suffix_memory[];

/// Owns: a block a strip of kTile columns; a warp every kSuffixWarps-th of its tiles, from below; the last
///   warp all suffix states.
/// Reads: each pixel but those of the top row of tiles, once.
/// Writes: the suffix states, to the first Order rows of each tile of the output.
/// Waits for: nothing of other blocks; the scanning warp for `summed`, the others for `added`, both mbarriers
///   of a ring of kSuffixSums slots.
/// No deadlock: tiles are scanned in the order in which they are summed, so that the warp with the lowest
///   tile that is not scanned yet always has a free slot.
/// Source: the column carries of Nehab et al. (2011).
template <int Order>
__global__ void __launch_bounds__(kSuffixThreads, 2)
    find_column_suffixes(const __grid_constant__ SuffixImage<Order> f) {
#if __CUDA_ARCH__ >= 900
  ColumnSuffixes<Order>(f, *reinterpret_cast<SuffixMemory<Order>*>(suffix_memory)).run();
#endif
}

}  // namespace cumulus::recursive_filter
