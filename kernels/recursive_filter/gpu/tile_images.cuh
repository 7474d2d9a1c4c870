#pragma once

#include <cuda_pipeline.h>

#include <cstdint>

#include "kernels/primitives/async_copy.cuh"
#include "kernels/recursive_filter/gpu/carries.cuh"
#include "kernels/recursive_filter/images.h"
#include "kernels/recursive_filter/math/tile_grid.h"

// Images as tiles, and their copies to and from shared memory. A block has a tile.

namespace cumulus::recursive_filter {

/// The images, their tiles, and where their carries lie.
struct TileImages {
  SourceElements images;
  std::int64_t image_stride;
  std::int64_t row_stride;
  std::int64_t height;
  std::int64_t channels;  // that a launch filters, of the interleaved ones (carries.channels)
  CarryMap carries;       // and the output
  float* first_pixels;    // of each row; in the end, filtered along y
  float* last_pixels;
  int rows_left_out, columns_left_out;  // pixels at the end of runs over the image
  bool along_columns, along_rows;       // where anything is to be filtered at all
  bool vector_loads, vector_stores;     // rows of one channel, each at a multiple of four elements
};

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
          image.channels,
          carries,
          nullptr,
          nullptr,
          static_cast<int>(y.pixels_left_out()),
          static_cast<int>(x.pixels_left_out()),
          !y.identity,
          !x.identity,
          rows_are_aligned(images),
          rows_are_aligned(filtered)};
}

/// Which pixels of a tile's column or row take part in runs over the image: those before `causal_end`, and
/// those from `anticausal_first` to before `end`.
struct LineRuns {
  int causal_end, anticausal_first, end;
};

/// One tile, and which of its pixels take part in runs.
struct Tile {
  TileIndex at;
  int rows, columns;                      // inside the image
  int causal_rows, causal_columns;        // runs from the first end before these
  int anticausal_row, anticausal_column;  // runs from the last end with these

  __device__ LineRuns of_columns() const { return {causal_rows, anticausal_row, rows}; }
  __device__ LineRuns of_rows() const { return {causal_columns, anticausal_column, columns}; }
  __device__ bool plain() const {
    return causal_rows == kTile && causal_columns == kTile && anticausal_row == 0 && anticausal_column == 0;
  }
};

/// `index` is that of a block or less: divisions of 64 bits take longer than what follows.
__device__ inline Tile tile_of(const TileImages& a, std::uint32_t index) {
  Tile tile;
  TileIndex& at = tile.at;
  const auto next = [&](std::int64_t count) {
    const auto divisor = static_cast<std::uint32_t>(count);
    const std::uint32_t remainder = index % divisor;
    index /= divisor;
    return remainder;
  };
  at.channel = next(a.channels);
  at.column = next(a.carries.tile_columns);
  at.row = next(a.carries.tile_rows);
  at.image = index;
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

using TilePixels = float[kTile][kTilePitch];
/// Pixels that a thread moves at once, and the threads that move a tile's row.
constexpr int kVector = 4;
constexpr int kRowThreads = kTile / kVector;

__device__ inline float4& vector_at(TilePixels& pixels, int row, int column) {
  return *reinterpret_cast<float4*>(&pixels[row][column]);
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
  float4 vectors[kTile / kRows];
#pragma unroll
  for (int i = 0; i < kTile / kRows; ++i) {
    vectors[i] = load_four(tile + (first_row + i * kRows) * row_stride + column);
  }
#pragma unroll
  for (int i = 0; i < kTile / kRows; ++i) vector_at(pixels, first_row + i * kRows, column) = vectors[i];
}

/// Starts to copy a tile into shared memory, by kThreads threads; finish_loading waits for it. `policy`: the
/// image's L2 eviction policy.
template <int kThreads = kTile>
__device__ void begin_loading(const TileImages& a, const Tile& tile, TilePixels& pixels,
                              std::uint64_t policy = evict_normal()) {
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t corner = tile.at.image * a.image_stride + tile.at.row * kTile * a.row_stride +
                              tile.at.column * kTile * a.carries.channels + tile.at.channel;
  const bool half = a.images.kind == ElementKind::kHalf;
  if (a.vector_loads && tile.rows == kTile && tile.columns == kTile) {
    if (half) {
      if (thread < kTile) load_vectors(a.images.as<__half>() + corner, a.row_stride, pixels);
      return;
    }
    const int column = thread % kRowThreads * kVector;
    const float* from = a.images.as<float>() + corner + column;
#pragma unroll
    for (int i = 0; i < kTile; i += kThreads / kRowThreads) {
      const int row = thread / kRowThreads + i;
      copy_async(&pixels[row][column], from + row * a.row_stride, policy);
    }
    __pipeline_commit();
    return;
  }
  if (thread >= tile.columns) return;
  const std::int64_t column = corner + thread * a.carries.channels;
  if (half) {
    const __half* from = a.images.as<__half>() + column;
#pragma unroll 16
    for (int i = 0; i < tile.rows; ++i) pixels[i][thread] = __half2float(__ldg(from + i * a.row_stride));
  } else {
    const float* from = a.images.as<float>() + column;
#pragma unroll 16
    for (int i = 0; i < tile.rows; ++i) pixels[i][thread] = __ldg(from + i * a.row_stride);
  }
}
/// By all threads of the block: the tile is in shared memory afterwards.
__device__ inline void finish_loading() {
  __pipeline_wait_prior(0);
  __syncthreads();
}

/// Writes a tile's pixels to the output, past the caches, by kThreads threads.
template <int kThreads = kTile>
__device__ void store_tile(const TileImages& a, const Tile& tile, TilePixels& pixels) {
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t row_elements = a.carries.width * a.carries.channels;
  const std::int64_t corner = tile.at.image * a.carries.image_stride + tile.at.row * kTile * row_elements +
                              tile.at.column * kTile * a.carries.channels + tile.at.channel;
  if (a.vector_stores && tile.columns == kTile) {
    const int first_column = thread % kRowThreads * kVector;
#pragma unroll 4
    for (int row = thread / kRowThreads; row < tile.rows; row += kThreads / kRowThreads) {
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

}  // namespace cumulus::recursive_filter
