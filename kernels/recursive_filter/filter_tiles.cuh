#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/recursive_filter/recursive_filter_line.h"
#include "kernels/recursive_filter/tile_carries.cuh"

// The tiled method's passes over the image. A block has a tile and kTile threads: each filters one column,
// held in registers, then, turned around through shared memory, one row. Tiles that the image's border cuts,
// or that leave pixels out of their runs, work in shared memory instead.

namespace cumulus::recursive_filter {

/// What tiles need of one axis' plan.
template <int Order, class Real>
struct TileAxis {
  Sections<Order, Real> causal, anticausal;
  SmallMatrix<Order, Real> through_causal, through_future;

  explicit TileAxis(const AxisPlan& plan)
      : causal(sections_of<Order, Real>(plan.causal)),
        anticausal(sections_of<Order, Real>(plan.anticausal)),
        through_causal(small_matrix<Order, Real>(plan.through_causal)),
        through_future(small_matrix<Order, Real>(plan.through_future)) {}
};

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

/// The images, their tiles, and where the tiles keep what they know.
struct TileImages {
  SourceElements images;
  std::int64_t image_stride;
  std::int64_t row_stride;
  std::int64_t height;
  CarryMap carries;     // and the output
  float* first_pixels;  // of each row; in the end, filtered along y
  float* last_pixels;
  int rows_left_out, columns_left_out;  // pixels at the end of runs over the image
  bool along_columns, along_rows;       // where anything is to be filtered at all
  bool vector_loads, vector_stores;     // rows of one channel, each at a multiple of four elements
};

/// Whether rows are of one channel and each begins at a multiple of four elements.
template <class T>
bool moves_by_vectors(const FilterImages<T, Space::kDevice>& images) {
  return images.first.channels == 1 && images.first.row_stride % 4 == 0 && images.image_stride % 4 == 0 &&
         reinterpret_cast<std::uintptr_t>(images.first.data) % (4 * sizeof(T)) == 0;
}

/// All but what the tiled method alone needs.
template <class T>
TileImages tile_images(const FilterImages<const T, Space::kDevice>& images,
                       const FilterImages<T, Space::kDevice>& filtered, const AxisPlan& y,
                       const AxisPlan& x) {
  const DeviceImage<const T>& image = images.first;
  const FilterTiles tiles(image.height, image.width, image.channels);
  const CarryMap carries{target_elements(filtered.first.data),
                         nullptr,
                         filtered.image_stride,
                         image.width,
                         image.channels,
                         tiles.rows,
                         tiles.columns,
                         0};
  return {source_elements(image.data),
          images.image_stride,
          image.row_stride,
          image.height,
          carries,
          nullptr,
          nullptr,
          static_cast<int>(y.pixels_left_out()),
          static_cast<int>(x.pixels_left_out()),
          !y.identity,
          !x.identity,
          moves_by_vectors(images),
          moves_by_vectors(filtered)};
}

/// One tile, and which of its pixels take part in runs.
struct Tile {
  TileIndex at;
  int rows, columns;                      // inside the image
  int causal_rows, causal_columns;        // runs from the first end before these
  int anticausal_row, anticausal_column;  // runs from the last end with these

  __device__ bool plain() const {
    return causal_rows == kTile && causal_columns == kTile && anticausal_row == 0 && anticausal_column == 0;
  }
};

__device__ inline Tile tile_of(const TileImages& a, std::int64_t index) {
  Tile tile;
  TileIndex& at = tile.at;
  at.channel = index % a.carries.channels;
  index /= a.carries.channels;
  at.column = index % a.carries.tile_columns;
  index /= a.carries.tile_columns;
  at.row = index % a.carries.tile_rows;
  at.image = index / a.carries.tile_rows;
  tile.rows = static_cast<int>(min(a.height - at.row * kTile, std::int64_t{kTile}));
  tile.columns = static_cast<int>(min(a.carries.width - at.column * kTile, std::int64_t{kTile}));
  tile.causal_rows = tile.rows - (at.row == a.carries.tile_rows - 1 ? a.rows_left_out : 0);
  tile.causal_columns = tile.columns - (at.column == a.carries.tile_columns - 1 ? a.columns_left_out : 0);
  tile.anticausal_row = at.row == 0 ? a.rows_left_out : 0;
  tile.anticausal_column = at.column == 0 ? a.columns_left_out : 0;
  return tile;
}

/// Where the border pixels of a tile's row are kept.
__device__ inline std::int64_t border_index(const TileImages& a, const TileIndex& at, int row) {
  return ((at.image * a.carries.tile_rows + at.row) * kTile + row) * a.carries.channels + at.channel;
}

/// Rows begin at multiples of 16 bytes, and as many of them as threads read at once in different banks.
constexpr int kTilePitch = kTile + 4;
using TilePixels = float[kTile][kTilePitch];
/// Pixels that a thread moves at once, and the threads that move a tile's row.
constexpr int kVector = 4;
constexpr int kRowThreads = kTile / kVector;

__device__ inline float4& vector_at(TilePixels& pixels, int row, int column) {
  return *reinterpret_cast<float4*>(&pixels[row][column]);
}

/// A whole column or row in registers; every loop over it has constant bounds and is unrolled.
struct HeldPixels {
  float v[kTile];
  __device__ float& operator[](int i) { return v[i]; }
  __device__ float last(int /*length*/) const { return v[kTile - 1]; }
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
  __device__ void ascending(int /*first*/, int /*end*/, const F& f) {
#pragma unroll
    for (int i = 0; i < kTile; ++i) f(v[i]);
  }
  template <class F>
  __device__ void descending(int /*first*/, int /*end*/, const F& f) {
#pragma unroll
    for (int i = kTile - 1; i >= 0; --i) f(v[i]);
  }
};

/// A column or row of a tile in shared memory.
struct SharedPixels {
  float* pixels;
  int step;
  __device__ float& operator[](int i) { return pixels[i * step]; }
  __device__ float last(int length) const { return pixels[(length - 1) * step]; }
  template <class F>
  __device__ void ascending(int first, int end, const F& f) {
#pragma unroll 1
    for (int i = first; i < end; ++i) f(pixels[i * step]);
  }
  template <class F>
  __device__ void descending(int first, int end, const F& f) {
#pragma unroll 1
    for (int i = end - 1; i >= first; --i) f(pixels[i * step]);
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

/// Filters the line's first `length` pixels in place, given the causal state before them and the anticausal
/// state over the image after them. `causal` becomes the causal state of the last pixel.
template <int Order, class Real, class Pixels>
__device__ void filter_held_line(const TileAxis<Order, Real>& axis, Pixels& line, int length,
                                 Real (&causal)[Order], const Real (&after)[Order]) {
  const auto filter_with = [](const Sections<Order, Real>& sections, Real(&state)[Order], float& pixel) {
    Real value = static_cast<Real>(pixel);
    sections.filter(state, value);
    pixel = static_cast<float>(value);
  };
  line.ascending(0, length, [&](float& pixel) { filter_with(axis.causal, causal, pixel); });
  Real anticausal[Order] = {};
  axis.through_causal.add_product(causal, anticausal);
  axis.through_future.add_product(after, anticausal);
  line.descending(0, length, [&](float& pixel) { filter_with(axis.anticausal, anticausal, pixel); });
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

/// Four neighbouring elements, from an address that is a multiple of their size.
__device__ inline float4 load_four(const float* elements) {
  return __ldg(reinterpret_cast<const float4*>(elements));
}
__device__ inline float4 load_four(const __half* elements) {
  const uint2 halves = __ldg(reinterpret_cast<const uint2*>(elements));
  const float2 low = __half22float2(reinterpret_cast<const __half2&>(halves.x));
  const float2 high = __half22float2(reinterpret_cast<const __half2&>(halves.y));
  return make_float4(low.x, low.y, high.x, high.y);
}

/// Four neighbouring elements of the output, past the caches.
__device__ inline void store_four(const TargetElements& elements, std::int64_t at, const float4& four) {
  if (elements.kind == ElementKind::kFloat) {
    __stcs(reinterpret_cast<float4*>(elements.as<float>() + at), four);
    return;
  }
  const __half2 low = __floats2half2_rn(four.x, four.y);
  const __half2 high = __floats2half2_rn(four.z, four.w);
  __stcs(reinterpret_cast<uint2*>(elements.as<__half>() + at),
         make_uint2(reinterpret_cast<const unsigned int&>(low), reinterpret_cast<const unsigned int&>(high)));
}

/// A whole tile into shared memory, four pixels at a time.
template <class T>
__device__ void load_vectors(const T* tile, std::int64_t row_stride, TilePixels& pixels) {
  const int column = static_cast<int>(threadIdx.x) % kRowThreads * kVector;
  const int first_row = static_cast<int>(threadIdx.x) / kRowThreads;
  constexpr int kRows = kTile / kRowThreads;
  float4 held[kTile / kRows];
#pragma unroll
  for (int i = 0; i < kTile / kRows; ++i) {
    held[i] = load_four(tile + (first_row + i * kRows) * row_stride + column);
  }
#pragma unroll
  for (int i = 0; i < kTile / kRows; ++i) vector_at(pixels, first_row + i * kRows, column) = held[i];
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

/// Writes a tile's pixels to the output, past the caches.
__device__ inline void store_tile(const TileImages& a, const Tile& tile, TilePixels& pixels) {
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t row_elements = a.carries.width * a.carries.channels;
  const std::int64_t corner = tile.at.image * a.carries.image_stride + tile.at.row * kTile * row_elements +
                              tile.at.column * kTile * a.carries.channels + tile.at.channel;
  if (a.vector_stores && tile.columns == kTile) {
    const int first_column = thread % kRowThreads * kVector;
#pragma unroll 4
    for (int row = thread / kRowThreads; row < tile.rows; row += kTile / kRowThreads) {
      store_four(a.carries.filtered, corner + first_column + row * row_elements,
                 vector_at(pixels, row, first_column));
    }
    return;
  }
  if (thread >= tile.columns) return;
  const std::int64_t column = corner + thread * a.carries.channels;
  if (a.carries.filtered.kind == ElementKind::kHalf) {
    __half* halves = a.carries.filtered.as<__half>() + column;
#pragma unroll 8
    for (int i = 0; i < tile.rows; ++i) __stcs(halves + i * row_elements, __float2half_rn(pixels[i][thread]));
  } else {
    float* floats = a.carries.filtered.as<float>() + column;
#pragma unroll 8
    for (int i = 0; i < tile.rows; ++i) __stcs(floats + i * row_elements, pixels[i][thread]);
  }
}

/// Second pass, from the last tile to the first: what the first pass read last may still be in the cache.
template <int Order, class Real>
__global__ void __launch_bounds__(kTile, filter_blocks(Order, std::is_same_v<Real, float>))
    filter_tiles(const __grid_constant__ TileImages a, const __grid_constant__ TileAxis<Order, Real> y,
                 const __grid_constant__ TileAxis<Order, Real> x) {
  __shared__ alignas(16) TilePixels pixels;
  const Tile tile = tile_of(a, std::int64_t{gridDim.x} - 1 - blockIdx.x);
  const TileCarries carries = a.carries.at(tile.at);
  pass_over_tile<true, true>(
      a, tile, pixels,
      [&](auto& column, int position) {
        if (a.along_columns) finish_line(y, column, tile.rows, carries, 0, position);
      },
      [&](auto& row, int position) {
        if (a.along_rows) finish_line(x, row, tile.columns, carries, 2 * Order, position);
      });
  __syncthreads();
  store_tile(a, tile, pixels);
}

}  // namespace cumulus::recursive_filter
