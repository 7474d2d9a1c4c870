#pragma once

#include <cuda_pipeline.h>

#include "kernels/primitives/async_copy.cuh"
#include "kernels/recursive_filter/strips/ring.cuh"

// Where a strip lies. Copies tiles of one channel into shared memory and out of it.

namespace cumulus::recursive_filter {

/// Which strip a block has, or which part of one. Columns before the first and behind the last are those that
/// a repeated image has there.
struct StripPlace {
  std::int64_t image;
  int channel, column, first_tile, tiles;
  /// At the image's border initial conditions may follow from border pixels: then no tiles beyond are needed;
  /// below, a tile without pixels stands for them.
  bool closed_above, closed_below;
  int above, below;  // tiles beyond the strip
  bool stored;       // its pixels are stored

  /// `blocks_of_column`: of each column, one for each channel that it has alone.
  __device__ StripPlace(const StripImages& a, int blocks_of_column) {
    int index = static_cast<int>(blockIdx.x);
    channel = index % blocks_of_column;
    index /= blocks_of_column;
    column = a.first_strip + index % a.strips;
    index /= a.strips;
    first_tile = index % a.segments * a.segment_tiles;
    image = index / a.segments;
    tiles = min(a.segment_tiles, a.tile_rows - first_tile);
    const bool closed =
        a.along_columns && (a.boundary_y == FilterBoundary::kZero || a.boundary_y == FilterBoundary::kClamp);
    closed_above = closed && first_tile == 0;
    closed_below = closed && first_tile + tiles == a.tile_rows;
    above = closed_above ? 0 : a.window_y;
    below = closed_below ? 1 : a.window_y;
    stored = column >= a.stored_first && column < a.stored_end;
  }
  __device__ std::int64_t real_column(const StripImages& a) const {
    return column < 0 ? column + a.tile_columns : column >= a.tile_columns ? column - a.tile_columns : column;
  }
  template <int kSide = kTile>
  __device__ bool has_whole_columns(const StripImages& a) const {
    return (real_column(a) + 1) * kSide <= a.width;
  }
  /// Tiles that go through the stages, and whether one of them is filtered.
  __device__ int all_tiles() const { return above + tiles + below; }
  __device__ bool has(int tile) const { return tile >= above && tile < above + tiles; }
  __device__ bool is_closing(int tile) const { return closed_below && tile == above + tiles; }
  /// Of a tile, counted from the first that the block loads.
  template <int kSide = kTile>
  __device__ std::int64_t first_row(int tile) const {
    return std::int64_t{first_tile + tile - above} * kSide;
  }
};

/// Row or column `at` of the image as its boundary continues it; -1: nothing. Out of line: rarely needed, and
/// in line it takes registers from the tiles that are loaded whole.
inline __device__ __noinline__ std::int64_t continued(std::int64_t at, std::int64_t length,
                                                      FilterBoundary boundary) {
  if (at >= 0 && at < length) return at;
  // Mostly less than a period away, where no division is needed.
  const auto modulo = [](std::int64_t a, std::int64_t b) {
    if (a < -b || a >= 2 * b) return (a % b + b) % b;
    return a < 0 ? a + b : a >= b ? a - b : a;
  };
  switch (boundary) {
    case FilterBoundary::kZero:
      return -1;
    case FilterBoundary::kClamp:
      return at < 0 ? 0 : length - 1;
    case FilterBoundary::kRepeat:
      return modulo(at, length);
    case FilterBoundary::kReflect: {
      const std::int64_t folded = modulo(at, 2 * length);
      return folded < length ? folded : 2 * length - 1 - folded;
    }
    case FilterBoundary::kMirror: {
      if (length == 1) return 0;
      const std::int64_t folded = modulo(at, 2 * length - 2);
      return folded < length ? folded : 2 * length - 2 - folded;
    }
  }
  return -1;
}

template <int kAtOnce, class Row>
__device__ void load_strip_rows(const StripImages& a, const StripPlace& at, GrayTile& pixels,
                                const Row& row_of) {
  const int line = StripTeams<1>::line();
  const std::int64_t first_column = at.real_column(a) * kTile;
  const std::int64_t image = at.image * a.image_stride;
  const auto from_memory = [&](std::int64_t element, int row, int column, auto of_size) {
    using Pixels = decltype(of_size);
    __pipeline_memcpy_async(&pixels.at(row, column), a.images.as<float>() + element, sizeof(Pixels));
  };
  const bool half = a.images.kind == ElementKind::kHalf;
  if (kAtOnce == 1 && a.vector_loads && at.has_whole_columns(a)) {
    const int column = line % kRowThreads * kVector;
    const std::int64_t corner = image + first_column + column;
#pragma unroll 1
    for (int i = 0; i < kTile; i += kTile / kRowThreads) {
      const int row = i + line / kRowThreads;
      const std::int64_t from = row_of(row);
      if (from < 0) {
        pixels.vector(row, column) = make_float4(0, 0, 0, 0);
      } else if (half) {
        pixels.vector(row, column) = load_four(a.images.as<__half>() + corner + from * a.row_stride);
      } else {
        from_memory(corner + from * a.row_stride, row, column, float4{});
      }
    }
    return;
  }
  const std::int64_t column = continued(first_column + line, a.width, a.boundary_x);
  const std::int64_t corner = image + column * a.channels + at.channel;
#pragma unroll kAtOnce
  for (int row = 0; row < kTile; ++row) {
    const std::int64_t from = row_of(row);
    if (column < 0 || (kAtOnce == 1 && from < 0)) {
      pixels.at(row, line) = 0;
    } else if (half) {
      pixels.at(row, line) = __half2float(__ldg(a.images.as<__half>() + corner + from * a.row_stride));
    } else {
      from_memory(corner + from * a.row_stride, row, line, float{});
    }
  }
}

/// Rows that a thread copies at once, of whole tiles: loops that are unrolled longer evict other stages from
/// the instruction caches.
constexpr int kRowsAtOnce = 4;

/// The prefetch distance into the L2 cache, in tiles: the ring alone does not cover the memory's latency.
constexpr int kStripPrefetch = 2;
/// The cache lines of the thread's row of a tile.
template <class T>
__device__ void prefetch_row(const T* row) {
#pragma unroll
  for (int i = 0; i < kTile; i += 128 / static_cast<int>(sizeof(T))) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(row + i));
  }
}

/// Starts to copy a tile of the strip, by kTile threads. Beyond the border the image is as its boundary
/// continues it.
__device__ inline void load_strip_tile(const StripImages& a, const StripPlace& at, int tile,
                                       GrayTile& pixels) {
  const int line = StripTeams<1>::line();
  const std::int64_t first = at.first_row(tile);
  const bool inside = first >= 0 && first + kTile <= a.height;
  const bool by_vectors = inside && at.has_whole_columns(a) && a.vector_loads;
  const bool floats = a.images.kind == ElementKind::kFloat;
  const std::int64_t corner = at.image * a.image_stride + first * a.row_stride + at.real_column(a) * kTile;
  if (by_vectors && first + (kStripPrefetch + 1) * kTile <= a.height) {
    const std::int64_t later = corner + (kStripPrefetch * kTile + line) * a.row_stride;
    floats ? prefetch_row(a.images.as<float>() + later) : prefetch_row(a.images.as<__half>() + later);
  }
  const int row = line / kRowThreads;
  const int column = line % kRowThreads * kVector;
  const std::int64_t first_element = corner + row * a.row_stride + column;
  const std::int64_t step = kTile / kRowThreads * a.row_stride;
  if (by_vectors && floats) {
    const float* from = a.images.as<float>() + first_element;
    float* to = &pixels.at(row, column);
#pragma unroll kRowsAtOnce
    for (int i = 0; i < kTile; i += kTile / kRowThreads) {
      copy_async(to + i * kTilePitch, from, evict_first_three_quarters());
      from += step;
    }
  } else if (by_vectors) {
    const __half* from = a.images.as<__half>() + first_element;
#pragma unroll 8
    for (int i = 0; i < kTile; i += kTile / kRowThreads) {
      pixels.vector(row + i, column) = load_four(from);
      from += step;
    }
  } else if (inside) {
    load_strip_rows<8>(a, at, pixels, [&](int row) { return first + row; });
  } else {
    load_strip_rows<1>(a, at, pixels,
                       [&](int row) { return continued(first + row, a.height, a.boundary_y); });
  }
}
/// Writes a filtered tile of the strip, scaled, by kTile threads.
__device__ inline void store_strip_tile(const StripImages& a, const StripPlace& at, int tile,
                                        GrayTile& pixels) {
  const int line = StripTeams<1>::line();
  const float scale = a.scale;
  const std::int64_t first = at.first_row(tile);
  const std::int64_t first_column = std::int64_t{at.column} * kTile;
  const int rows = static_cast<int>(min(a.height - first, std::int64_t{kTile}));
  const std::int64_t row_elements = a.width * a.channels;
  const std::int64_t corner = at.image * a.filtered_stride + first * row_elements;
  const bool by_vectors = a.vector_stores && at.has_whole_columns(a);
  if (by_vectors && rows == kTile && a.filtered.kind == ElementKind::kFloat) {
    const int row = line / kRowThreads;
    const int column = line % kRowThreads * kVector;
    const float* from = &pixels.at(row, column);
    float* to = a.filtered.as<float>() + corner + row * row_elements + first_column + column;
    const std::int64_t step = kTile / kRowThreads * row_elements;
#pragma unroll kRowsAtOnce
    for (int i = 0; i < kTile; i += kTile / kRowThreads) {
      const float4 four = *reinterpret_cast<const float4*>(from + i * kTilePitch);
      __stcs(reinterpret_cast<float4*>(to),
             make_float4(four.x * scale, four.y * scale, four.z * scale, four.w * scale));
      to += step;
    }
    return;
  }
  if (by_vectors) {
    const int column = line % kRowThreads * kVector;
#pragma unroll 4
    for (int row = line / kRowThreads; row < rows; row += kTile / kRowThreads) {
      float4 four = pixels.vector(row, column);
      four = make_float4(four.x * scale, four.y * scale, four.z * scale, four.w * scale);
      store_four(a.filtered, corner + first_column + column + row * row_elements, four);
    }
    return;
  }
  if (first_column + line >= a.width) return;
  const std::int64_t first_element = corner + (first_column + line) * a.channels + at.channel;
#pragma unroll 4
  for (int row = 0; row < rows; ++row) {
    a.filtered.store(first_element + row * row_elements, pixels.at(row, line) * scale);
  }
}

}  // namespace cumulus::recursive_filter
