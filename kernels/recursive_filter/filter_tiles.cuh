#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/recursive_filter/line_stretches.cuh"

// The tiled method's passes over the image. A block has a tile and kTile threads: each filters one column,
// held in registers, then, turned around through shared memory, one row. Tiles that the image's border cuts,
// or that leave pixels out of their runs, work in shared memory instead. (Where many tiles are under way on a
// multiprocessor this is faster than line_stretches.cuh in float, and slower where there are few, and in
// double.)

namespace cumulus::recursive_filter {

/// What each pixel of a tile's column or row adds to the states that runs over it from nothing leave: after
/// the last pixel the causal one, at the first pixel the anticausal one. Sums over pixels, unlike recursions,
/// need not wait for one another, and float is precise enough for them however long the filter's memory.
template <int Order>
struct RunWeights {
  float causal[kTile][Order], anticausal[kTile][Order];

  explicit RunWeights(const AxisPlan& plan) {
    StateVector of_causal = plan.causal.input;
    StateVector of_anticausal = plan.anticausal.input;
    for (std::size_t distance = 0; distance < kTile; ++distance) {
      for (std::size_t k = 0; k < Order; ++k) {
        causal[kTile - 1 - distance][k] = static_cast<float>(of_causal[k]);
        anticausal[distance][k] = static_cast<float>(of_anticausal[k]);
      }
      of_causal = plan.causal.transition * of_causal;
      of_anticausal = plan.anticausal.transition * of_anticausal;
    }
  }
};

/// A whole column or row in registers; every loop over it has constant bounds and is unrolled.
struct HeldPixels {
  float v[kTile];
  __device__ float& operator[](int i) { return v[i]; }
  /// From and to shared memory, at a multiple of 16 bytes.
  __device__ void load(const float* pixels) {
#pragma unroll
    for (int i = 0; i < kTile; i += kVector) {
      const float4 four = *reinterpret_cast<const float4*>(pixels + i);
      v[i] = four.x;
      v[i + 1] = four.y;
      v[i + 2] = four.z;
      v[i + 3] = four.w;
    }
  }
  __device__ void store(float* pixels) const {
#pragma unroll
    for (int i = 0; i < kTile; i += kVector) {
      *reinterpret_cast<float4*>(pixels + i) = make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]);
    }
  }
  template <class F>
  __device__ void ascending(int /*length*/, const F& f) {
#pragma unroll
    for (int i = 0; i < kTile; ++i) f(v[i]);
  }
  template <class F>
  __device__ void descending(int /*length*/, const F& f) {
#pragma unroll
    for (int i = kTile - 1; i >= 0; --i) f(v[i]);
  }
};

/// A column or row of a tile in shared memory.
struct SharedPixels {
  float* pixels;
  int step;
  template <class F>
  __device__ void ascending(int length, const F& f) {
#pragma unroll 1
    for (int i = 0; i < length; ++i) f(pixels[i * step]);
  }
  template <class F>
  __device__ void descending(int length, const F& f) {
#pragma unroll 1
    for (int i = length - 1; i >= 0; --i) f(pixels[i * step]);
  }
};

/// The states that runs over a line from nothing leave: over its pixels before `causal_end`, and over those
/// from `anticausal_first` to before `end`.
template <int Order>
__device__ void run_over(const RunWeights<Order>& weights, const HeldPixels& line, int /*causal_end*/,
                         int /*anticausal_first*/, int /*end*/, float (&causal)[Order],
                         float (&anticausal)[Order]) {
  constexpr int kStretch = 16;  // added up by themselves first: fewer roundings a sum
#pragma unroll
  for (int first = 0; first < kTile; first += kStretch) {
    float of_causal[Order] = {};
    float of_anticausal[Order] = {};
#pragma unroll
    for (int i = first; i < first + kStretch; ++i) {
#pragma unroll
      for (int k = 0; k < Order; ++k) {
        of_causal[k] += weights.causal[i][k] * line.v[i];
        of_anticausal[k] += weights.anticausal[i][k] * line.v[i];
      }
    }
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      causal[k] += of_causal[k];
      anticausal[k] += of_anticausal[k];
    }
  }
}

template <int Order>
__device__ void run_over(const RunWeights<Order>& weights, const SharedPixels& line, int causal_end,
                         int anticausal_first, int end, float (&causal)[Order], float (&anticausal)[Order]) {
#pragma unroll 1
  for (int i = 0; i < causal_end; ++i) {
    for (int k = 0; k < Order; ++k) {
      causal[k] += weights.causal[i + kTile - causal_end][k] * line.pixels[i * line.step];
    }
  }
#pragma unroll 1
  for (int i = anticausal_first; i < end; ++i) {
    for (int k = 0; k < Order; ++k) {
      anticausal[k] += weights.anticausal[i - anticausal_first][k] * line.pixels[i * line.step];
    }
  }
}

template <int Order, class Real>
__device__ void store_state(const TileCarries& carries, int line, int position, const Real (&state)[Order]) {
  carries.visit([&](const auto& lines) {
#pragma unroll
    for (int k = 0; k < Order; ++k) lines.store(line + k, position, static_cast<float>(state[k]));
  });
}

template <int Order, class Real>
__device__ void load_state(const TileCarries& carries, int line, int position, Real (&state)[Order]) {
  carries.visit([&](const auto& lines) {
#pragma unroll
    for (int k = 0; k < Order; ++k) state[k] = static_cast<Real>(lines.load(line + k, position));
  });
}

/// Runs over a column or row from nothing, both ways: the causal state goes to `line` of the carries, the
/// anticausal one behind it.
template <int Order, class Pixels>
__device__ void gather_line(const RunWeights<Order>& weights, const Pixels& pixels, int causal_end,
                            int anticausal_first, int end, const TileCarries& carries, int line,
                            int position) {
  float causal[Order] = {};
  float anticausal[Order] = {};
  run_over(weights, pixels, causal_end, anticausal_first, end, causal, anticausal);
  store_state(carries, line, position, causal);
  store_state(carries, line + Order, position, anticausal);
}

/// Filters a column or row for good; its carries begin at `line`.
template <int Order, class Real, class Pixels>
__device__ void finish_line(const TileAxis<Order, Real>& axis, Pixels& pixels, int length,
                            const TileCarries& carries, int line, int position) {
  Real before[Order];
  Real after[Order];
  load_state(carries, line, position, before);
  load_state(carries, line + Order, position, after);
  filter_held_line(axis, pixels, length, before, after);
}

/// Brings the tile in, calls on_column(column, x) for the thread's column and on_row(row, y) for its row.
/// What they make of the tile is then in `pixels` where KeepColumns and KeepRows say so; otherwise they leave
/// it as it is.
template <bool KeepColumns, bool KeepRows, class OnColumn, class OnRow>
__device__ void pass_over_tile(const TileImages& a, const Tile& tile, TilePixels& pixels,
                               const OnColumn& on_column, const OnRow& on_row) {
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t corner = tile.at.image * a.image_stride + tile.at.row * kTile * a.row_stride +
                              tile.at.column * kTile * a.carries.channels + tile.at.channel;
  const std::int64_t column = corner + thread * a.carries.channels;
  const bool half = a.images.kind == ElementKind::kHalf;
  const float* floats = a.images.as<float>() + column;
  const __half* halves = a.images.as<__half>() + column;
  if (tile.plain()) {
    HeldPixels line;
    if (a.vector_loads) {
      if (half) {
        load_vectors(a.images.as<__half>() + corner, a.row_stride, pixels);
      } else {
        load_vectors(a.images.as<float>() + corner, a.row_stride, pixels);
      }
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kTile; ++i) line[i] = pixels[i][thread];
    } else if (half) {
#pragma unroll
      for (int i = 0; i < kTile; ++i) line[i] = __half2float(__ldg(halves + i * a.row_stride));
    } else {
#pragma unroll
      for (int i = 0; i < kTile; ++i) line[i] = __ldg(floats + i * a.row_stride);
    }
    on_column(line, thread);
    if (KeepColumns || !a.vector_loads) {
#pragma unroll
      for (int i = 0; i < kTile; ++i) pixels[i][thread] = line[i];
      __syncthreads();
    }
    line.load(pixels[thread]);
    on_row(line, thread);
    if constexpr (KeepRows) line.store(pixels[thread]);
    return;
  }
  if (thread < tile.columns) {
    for (int i = 0; i < tile.rows; ++i) {
      pixels[i][thread] =
          half ? __half2float(__ldg(halves + i * a.row_stride)) : __ldg(floats + i * a.row_stride);
    }
    SharedPixels held{&pixels[0][thread], kTilePitch};
    on_column(held, thread);
  }
  __syncthreads();
  if (thread < tile.rows) {
    SharedPixels row{&pixels[thread][0], 1};
    on_row(row, thread);
  }
}

/// First pass: the states that each tile's own pixels leave, as they are, in its columns and in its rows.
template <int Order>
__global__ void __launch_bounds__(kTile, gather_blocks(Order))
    gather_carries(const __grid_constant__ TileImages a, const __grid_constant__ RunWeights<Order> y,
                   const __grid_constant__ RunWeights<Order> x) {
  __shared__ alignas(16) TilePixels pixels;
  const Tile tile = tile_of(a, blockIdx.x);
  const TileCarries carries = a.carries.at(tile.at);
  pass_over_tile<false, false>(
      a, tile, pixels,
      [&](auto& column, int position) {
        if (!a.along_columns) return;
        gather_line(y, column, tile.causal_rows, tile.anticausal_row, tile.rows, carries, 0, position);
      },
      [&](auto& row, int position) {
        if (!a.along_rows) return;
        const std::int64_t border = border_index(a, tile.at, position);
        if (tile.at.column == 0) a.first_pixels[border] = pixels[position][0];
        if (tile.at.column == a.carries.tile_columns - 1) {
          a.last_pixels[border] = pixels[position][tile.columns - 1];
        }
        gather_line(x, row, tile.causal_columns, tile.anticausal_column, tile.columns, carries, 2 * Order,
                    position);
      });
}

/// Second pass, from the last tile to the first: what the first pass read last may still be in the cache.
template <int Order, class Real>
__global__ void __launch_bounds__(kTile, filter_blocks(Order, std::is_same_v<Real, float>))
    filter_tiles(const __grid_constant__ TileImages a, const __grid_constant__ TileAxis<Order, Real> y,
                 const __grid_constant__ TileAxis<Order, Real> x) {
  __shared__ alignas(16) TilePixels pixels;
  const Tile tile = tile_of(a, gridDim.x - 1 - blockIdx.x);
  const TileCarries carries = a.carries.at(tile.at);
  if constexpr (std::is_same_v<Real, float>) {
    pass_over_tile<true, true>(
        a, tile, pixels,
        [&](auto& column, int position) {
          if (a.along_columns) finish_line(y, column, tile.rows, carries, 0, position);
        },
        [&](auto& row, int position) {
          if (a.along_rows) finish_line(x, row, tile.columns, carries, 2 * Order, position);
        });
  } else {
    const int position = static_cast<int>(threadIdx.x);
    begin_loading(a, tile, pixels);
    finish_loading();
    if (a.along_columns && position < tile.columns) {
      TileColumn column{{&pixels[0][position]}};
      finish_line(y, column, tile.rows, carries, 0, position);
    }
    __syncthreads();
    if (a.along_rows && position < tile.rows) {
      TileRow row{{&pixels[position][0]}};
      finish_line(x, row, tile.columns, carries, 2 * Order, position);
    }
  }
  __syncthreads();
  store_tile(a, tile, pixels);
}

}  // namespace cumulus::recursive_filter
