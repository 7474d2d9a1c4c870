#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/summed_area_table/look_back.cuh"
#include "kernels/summed_area_table/summed_area_table_tuning.h"

// One tile of the CUDA kernel: how a block loads it, sums it, scans it and stores it. Each warp does so for a
// strip of its own, some whole rows of the tile.

namespace cumulus::summed_area_table {

/// Four neighbouring elements, moved as one word or two.
template <class T>
struct alignas(sizeof(T) * 4 < 16 ? sizeof(T) * 4 : 16) Quad {
  T v[4];
};

template <class T>
__device__ const Quad<T>& quad_at(const T* elements) {
  return *reinterpret_cast<const Quad<T>*>(elements);
}
template <class T>
__device__ Quad<T>& quad_at(T* elements) {
  return *reinterpret_cast<Quad<T>*>(elements);
}

#if __CUDA_ARCH__ == 750
inline constexpr int kMostThreadsPerMultiprocessor = 1024;
#else
inline constexpr int kMostThreadsPerMultiprocessor = 1536;  // or more
#endif

/// What the kernel knows at compile time.
template <class InputType, class SumType, int ChannelCount>
struct Plan {
  using Input = InputType;
  using Sum = SumType;
  static constexpr int kChannels = ChannelCount;
  static constexpr TileShape kShape = tile_shape(sizeof(Input), sizeof(Sum), kChannels);
  static constexpr int kThreads = kShape.threads();
  static constexpr int kWarps = kShape.warps;
  static constexpr int kRowsPerWarp = kShape.rows_per_warp;
  static constexpr int kSegments = kShape.segments;
  static constexpr int kElements = kShape.lane_elements;
  static constexpr int kQuads = kElements / 4;
  static constexpr int kRows = kShape.rows();
  static constexpr int kColumns = kShape.columns();
  static constexpr int kBlocks = blocks_per_multiprocessor(sizeof(Sum), kChannels);
  /// As many of these as fit by their threads: what the registers are for.
  static constexpr int kResidentBlocks = kBlocks * kThreads <= kMostThreadsPerMultiprocessor
                                             ? kBlocks
                                             : kMostThreadsPerMultiprocessor / kThreads;
  static_assert(kElements % kChannels == 0 && kElements % 4 == 0,
                "a lane holds whole pixels and whole quads");

  /// Rows are looked after by groups of a warp, one row a lane; the last group may be smaller.
  static constexpr int kRowGroups = row_groups(kShape);
  /// A warp's share of publishing and looking back: one channel of a group of rows, or 32 columns.
  static constexpr int kRowJobs = kRowGroups * kChannels;
  static constexpr int kJobs = kRowJobs + kColumns / 32;
  /// Words of a tile: its columns, the corner's share of each row job, its rows (channels interleaved).
  static constexpr int kCornerWord = kColumns;
  static constexpr int kRowWord = kColumns + kRowJobs;
};

template <class P>
struct Arguments {
  const typename P::Input* image;
  typename P::Sum* sums;
  std::int64_t height;
  std::int64_t row_elements;
  std::int64_t row_stride;
  std::uint32_t tile_rows;
  std::uint32_t tile_columns;
  std::int64_t words_per_tile;
  std::uint32_t* next_ticket;
  Word<typename P::Sum>* words;
  bool image_aligned;  // every row begins at a multiple of 16 bytes
  bool sums_aligned;
};

/// A block's shared memory.
template <class P>
struct TileMemory {
  using Sum = typename P::Sum;
  alignas(16) typename P::Input pixels[P::kRows][P::kColumns];
  alignas(16)
      Sum strips[P::kWarps][P::kColumns];  // the strips' sums by column; then the sums of all strips before
  alignas(16) Sum above[P::kColumns];      // the tile's sums by column; then of all above the tile
  /// The tile's sums by row; then, per row, what lies left of the tile in its group's rows that are not below
  /// it.
  Sum rows[P::kRows * P::kChannels];
  /// Per row job: what lies left of the tile in the group's rows, and above that.
  Sum group_left[P::kRowJobs];
  Sum group_corner[P::kRowJobs];
  TileIndex next_tile;
};

__device__ inline int lane_index() { return static_cast<int>(threadIdx.x % 32); }
__device__ inline int warp_index() { return static_cast<int>(threadIdx.x / 32); }

/// The first element of the lane's quad, counted from the tile's left edge.
template <class P>
__device__ int quad_column(int segment, int quad) {
  return (segment * 32 + lane_index()) * P::kElements + quad * 4;
}

template <class P>
__device__ bool inside(const Arguments<P>& a, TileIndex tile) {
  return (tile.row + std::int64_t{1}) * P::kRows <= a.height &&
         (tile.column + std::int64_t{1}) * P::kColumns <= a.row_elements;
}

/// Starts to copy 16 bytes of the image to shared memory. They are the first to leave the L2 cache:
/// what the tiles publish shall stay there.
__device__ inline void copy_async(void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "{ .reg .b64 streaming;\n"
      "  createpolicy.fractional.L2::evict_first.b64 streaming, 1.0;\n"
      "  cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, streaming; }" ::"r"(
          static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
      "l"(from)
      : "memory");
#else
  *static_cast<uint4*>(to) = __ldcs(static_cast<const uint4*>(from));
#endif
}

/// Starts to copy one element, or to write 0.
template <class T>
__device__ void copy_async_or_zero(T* to, const T* from, bool exists) {
#if __CUDA_ARCH__ >= 800
  if constexpr (sizeof(T) == 4) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(
                     static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
                 "l"(from), "r"(exists ? 4 : 0)
                 : "memory");
    return;
  }
#endif
  *to = exists ? __ldg(from) : T{0};
}

/// Waits until the warp's copies have arrived.
__device__ inline void finish_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  __syncwarp();
}

/// Starts to load the warp's strip of a tile; zero beyond the image.
template <class P>
__device__ void load_strip(const Arguments<P>& a, TileMemory<P>& memory, TileIndex tile) {
  using Input = typename P::Input;
  const int strip_row = warp_index() * P::kRowsPerWarp;
  const std::int64_t first_row = std::int64_t{tile.row} * P::kRows + strip_row;
  const std::int64_t first_column = std::int64_t{tile.column} * P::kColumns;
  if (a.image_aligned && inside(a, tile)) {
    constexpr int kWordElements = 16 / sizeof(Input);
    constexpr int kWords = P::kColumns / kWordElements;
    static_assert(P::kRowsPerWarp * kWords % 32 == 0, "every lane copies as many words");
    const Input* from = a.image + first_row * a.row_stride + first_column;
#pragma unroll
    for (int i = 0; i < P::kRowsPerWarp * kWords / 32; ++i) {
      const int row = (i * 32 + lane_index()) / kWords;
      const int column = (i * 32 + lane_index()) % kWords * kWordElements;
      copy_async(&memory.pixels[strip_row + row][column], from + row * a.row_stride + column);
    }
    return;
  }
#pragma unroll 8
  for (int i = lane_index(); i < P::kRowsPerWarp * P::kColumns; i += 32) {
    const std::int64_t y = first_row + i / P::kColumns;
    const std::int64_t x = first_column + i % P::kColumns;
    const bool exists = y < a.height && x < a.row_elements;
    copy_async_or_zero(&memory.pixels[strip_row][0] + i, exists ? a.image + y * a.row_stride + x : a.image,
                       exists);
  }
}

template <class Sum>
__device__ Sum warp_sum(Sum value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
  return value;
}

template <class Sum>
__device__ Sum warp_inclusive_scan(Sum value) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const Sum before = __shfl_up_sync(~0u, value, distance);
    if (lane_index() >= distance) value += before;
  }
  return value;
}

template <class Sum>
__device__ Sum before_lane(Sum inclusive) {
  const Sum before = __shfl_up_sync(~0u, inclusive, 1);
  return lane_index() == 0 ? Sum{0} : before;
}

/// Sums the warp's strip by columns and by rows.
template <class P>
__device__ void sum_strip(TileMemory<P>& memory) {
  using Sum = typename P::Sum;
  Quad<Sum> columns[P::kSegments][P::kQuads] = {};
#pragma unroll
  for (int r = 0; r < P::kRowsPerWarp; ++r) {
    const int row = warp_index() * P::kRowsPerWarp + r;
    Sum totals[P::kChannels] = {};
#pragma unroll
    for (int s = 0; s < P::kSegments; ++s) {
#pragma unroll
      for (int q = 0; q < P::kQuads; ++q) {
        const auto pixels = quad_at(&memory.pixels[row][quad_column<P>(s, q)]);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const Sum value = static_cast<Sum>(pixels.v[i]);
          columns[s][q].v[i] += value;
          totals[(q * 4 + i) % P::kChannels] += value;
        }
      }
    }
#pragma unroll
    for (int channel = 0; channel < P::kChannels; ++channel) {
      const Sum total = warp_sum(totals[channel]);
      if (lane_index() == 0) memory.rows[row * P::kChannels + channel] = total;
    }
  }
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
#pragma unroll
    for (int q = 0; q < P::kQuads; ++q) {
      quad_at(&memory.strips[warp_index()][quad_column<P>(s, q)]) = columns[s][q];
    }
  }
}

/// Stores the warp's quads, `stride` elements from lane to lane, `to` being this lane's place. One
/// instruction writes 16 bytes a lane and memory takes whole sectors of 32: of quads of 32 bytes two lanes
/// write one together, then the other.
template <class Sum>
__device__ void store_quads(Sum* to, int stride, const Quad<Sum>& quad) {
  const auto* words = reinterpret_cast<const uint4*>(&quad);
  if constexpr (sizeof(quad) == 16) {
    __stcs(reinterpret_cast<uint4*>(to), words[0]);
  } else {
    const bool odd = lane_index() % 2 == 1;
    const uint4 given = odd ? words[0] : words[1];
    const uint4 taken{__shfl_xor_sync(~0u, given.x, 1), __shfl_xor_sync(~0u, given.y, 1),
                      __shfl_xor_sync(~0u, given.z, 1), __shfl_xor_sync(~0u, given.w, 1)};
    Sum* first = odd ? to - stride + 2 : to;
    __stcs(reinterpret_cast<uint4*>(first), odd ? taken : words[0]);
    __stcs(reinterpret_cast<uint4*>(first + stride), odd ? words[1] : taken);
  }
}

/// Writes the lane's quads of one row of the tile.
template <class P>
__device__ void store_row(const Arguments<P>& a, TileMemory<P>& memory, TileIndex tile, int tile_row,
                          const Quad<typename P::Sum> (&row)[P::kSegments][P::kQuads]) {
  using Sum = typename P::Sum;
  const std::int64_t y = std::int64_t{tile.row} * P::kRows + tile_row;
  const std::int64_t first_column = std::int64_t{tile.column} * P::kColumns;
  Sum* to = a.sums + y * a.row_elements + first_column;
  if (a.sums_aligned && inside(a, tile)) {
#pragma unroll
    for (int s = 0; s < P::kSegments; ++s) {
#pragma unroll
      for (int q = 0; q < P::kQuads; ++q) store_quads(to + quad_column<P>(s, q), P::kElements, row[s][q]);
    }
    return;
  }
  // By way of shared memory (the warp's own sums are not needed any more), so that lanes write neighbours.
  Sum* staged = memory.strips[warp_index()];
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
#pragma unroll
    for (int q = 0; q < P::kQuads; ++q) quad_at(staged + quad_column<P>(s, q)) = row[s][q];
  }
  __syncwarp();
  if (y < a.height) {
    for (int i = lane_index(); i < P::kColumns && first_column + i < a.row_elements; i += 32) {
      __stcs(to + i, staged[i]);
    }
  }
  __syncwarp();
}

/// What lies left of the tile in its rows up to this one, and above that, the corner.
template <class P>
__device__ typename P::Sum left_of_row(const TileMemory<P>& memory, int row, int channel) {
  typename P::Sum corner = 0;
  typename P::Sum groups_before = 0;
#pragma unroll
  for (int group = 0; group < P::kRowGroups; ++group) {
    corner += memory.group_corner[group * P::kChannels + channel];
    if (group < row / 32) groups_before += memory.group_left[group * P::kChannels + channel];
  }
  return corner + (groups_before + memory.rows[row * P::kChannels + channel]);
}

/// Scans the strip, on top of all that lies above and to the left of it, and stores it.
template <class P>
__device__ void store_strip(const Arguments<P>& a, TileMemory<P>& memory, TileIndex tile) {
  using Sum = typename P::Sum;
  constexpr int kElements = P::kElements;
  Sum columns[P::kSegments][kElements];
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
#pragma unroll
    for (int q = 0; q < P::kQuads; ++q) {
      const int column = quad_column<P>(s, q);
      const auto above = quad_at(&memory.above[column]);
      const auto strips = quad_at(&memory.strips[warp_index()][column]);
#pragma unroll
      for (int i = 0; i < 4; ++i) columns[s][q * 4 + i] = above.v[i] + strips.v[i];
    }
  }
  __syncwarp();
#pragma unroll
  for (int r = 0; r < P::kRowsPerWarp; ++r) {
    const int tile_row = warp_index() * P::kRowsPerWarp + r;
    Sum base[P::kChannels];
#pragma unroll
    for (int channel = 0; channel < P::kChannels; ++channel)
      base[channel] = left_of_row<P>(memory, tile_row, channel);
    Quad<Sum> row[P::kSegments][P::kQuads];
#pragma unroll
    for (int s = 0; s < P::kSegments; ++s) {
      Sum scan[kElements];
#pragma unroll
      for (int q = 0; q < P::kQuads; ++q) {
        const auto pixels = quad_at(&memory.pixels[tile_row][quad_column<P>(s, q)]);
#pragma unroll
        for (int e = q * 4; e < q * 4 + 4; ++e) {
          columns[s][e] += static_cast<Sum>(pixels.v[e % 4]);
          scan[e] = columns[s][e];
          if (e >= P::kChannels) scan[e] += scan[e - P::kChannels];
        }
      }
      Sum before[P::kChannels];
#pragma unroll
      for (int channel = 0; channel < P::kChannels; ++channel) {
        const Sum through_lane = warp_inclusive_scan(scan[kElements - P::kChannels + channel]);
        before[channel] = base[channel] + before_lane(through_lane);
        base[channel] += __shfl_sync(~0u, through_lane, 31);
      }
#pragma unroll
      for (int e = 0; e < kElements; ++e) row[s][e / 4].v[e % 4] = before[e % P::kChannels] + scan[e];
    }
    store_row<P>(a, memory, tile, tile_row, row);
  }
}

}  // namespace cumulus::summed_area_table
