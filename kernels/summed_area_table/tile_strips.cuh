#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/summed_area_table/look_back.cuh"
#include "kernels/summed_area_table/summed_area_table_tuning.h"

// One tile of the CUDA kernel: how a block loads it, sums it, scans it and stores it.

namespace cumulus::summed_area_table {

/// Four neighbouring elements, moved as one word where memory allows.
template <class T>
struct alignas(sizeof(T) * 4 < 16 ? sizeof(T) * 4 : 16) Quad {
  T v[4];
};

/// A quad of the image in registers: bytes stay packed.
template <class Input>
struct InputQuad;

template <>
struct InputQuad<float> {
  float v[4] = {};
  __device__ void load(const float* from) {
    const float4 word = __ldcs(reinterpret_cast<const float4*>(from));
    v[0] = word.x;
    v[1] = word.y;
    v[2] = word.z;
    v[3] = word.w;
  }
  __device__ void set(int i, float value) { v[i] = value; }
  __device__ float operator[](int i) const { return v[i]; }
};

template <>
struct InputQuad<std::uint8_t> {
  std::uint32_t packed = 0;
  __device__ void load(const std::uint8_t* from) {
    packed = __ldcs(reinterpret_cast<const std::uint32_t*>(from));
  }
  __device__ void set(int i, std::uint8_t value) {
    packed |= std::uint32_t{value} << (8 * i);
  }  // once, from zero
  __device__ std::uint32_t operator[](int i) const { return packed >> (8 * i) & 0xFF; }
};

/// What the kernel knows at compile time.
template <class InputType, class SumType, int ChannelCount>
struct Plan {
  using Input = InputType;
  using Sum = SumType;
  static constexpr int kChannels = ChannelCount;
  static constexpr TileShape kShape = tile_shape(sizeof(Input), kChannels);
  static constexpr int kWarps = kShape.warps;
  static constexpr int kRowsPerWarp = kShape.rows_per_warp;
  static constexpr int kSegments = kShape.segments;
  static constexpr int kElements = kShape.lane_elements;
  static constexpr int kQuads = kElements / 4;
  static constexpr int kRows = kShape.rows();
  static constexpr int kColumns = kShape.columns();
  static constexpr int kBlocksPerMultiprocessor = blocks_per_multiprocessor(sizeof(Sum), kChannels);
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

  /// A lane's pixels of the warp's rows.
  using Strip = InputQuad<Input>[kRowsPerWarp][kSegments][kQuads];
};

template <class P>
struct Arguments {
  const typename P::Input* image;
  typename P::Sum* sums;
  std::int64_t height;
  std::int64_t row_elements;
  std::int64_t row_stride;
  std::int64_t tile_rows;
  std::int64_t tile_columns;
  std::int64_t words_per_tile;
  unsigned int* next_ticket;
  Word<typename P::Sum>* words;
  bool quads_aligned;  // every row of both images begins at a multiple of a quad's alignment
};

template <class P>
struct TileMemory {
  using Sum = typename P::Sum;
  alignas(16)
      Sum strips[P::kWarps + 1][P::kColumns];  // column sums of the rows of the warps before; last: of all
  alignas(16) Sum above[P::kColumns];
  Sum row_sums[P::kRows * P::kChannels];
  /// Per row: what lies left of the tile in the rows of the row's group that are not below it.
  Sum left[P::kRows * P::kChannels];
  /// Per row job: what lies left of the tile in the group's rows, and above that.
  Sum group_left[P::kRowJobs];
  Sum group_corner[P::kRowJobs];
  TileIndex tile;
};

__device__ inline int lane_index() { return static_cast<int>(threadIdx.x % 32); }
__device__ inline int warp_index() { return static_cast<int>(threadIdx.x / 32); }

/// The first element of the lane's quad, counted from the tile's left edge.
template <class P>
__device__ int quad_column(int segment, int quad) {
  return (segment * 32 + lane_index()) * P::kElements + quad * 4;
}

template <class P>
__device__ void load_guarded(const Arguments<P>& a, std::int64_t y, std::int64_t x,
                             InputQuad<typename P::Input>& quad) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (y < a.height && x + i < a.row_elements) quad.set(i, __ldg(a.image + y * a.row_stride + x + i));
  }
}

template <class P>
__device__ void load_strip(const Arguments<P>& a, TileIndex tile, bool whole, typename P::Strip& strip) {
  const std::int64_t first_row = tile.row * P::kRows + warp_index() * P::kRowsPerWarp;
  const std::int64_t first_column = tile.column * P::kColumns;
#pragma unroll
  for (int r = 0; r < P::kRowsPerWarp; ++r) {
#pragma unroll
    for (int s = 0; s < P::kSegments; ++s) {
#pragma unroll
      for (int q = 0; q < P::kQuads; ++q) {
        const std::int64_t x = first_column + quad_column<P>(s, q);
        if (whole) {
          strip[r][s][q].load(a.image + (first_row + r) * a.row_stride + x);
        } else {
          load_guarded<P>(a, first_row + r, x, strip[r][s][q]);
        }
      }
    }
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

/// `value` as a Sum. Converted anew each time: where the compiler could, it would convert a strip of
/// floats once, and keep it as doubles, in twice the registers, for as long as the strip lives.
template <class Sum, class T>
__device__ Sum to_sum(T value) {
  if constexpr (std::is_same_v<T, float> && std::is_same_v<Sum, double>) {
    double converted;
    asm volatile("cvt.f64.f32 %0, %1;" : "=d"(converted) : "f"(value));
    return converted;
  } else {
    return static_cast<Sum>(value);
  }
}

/// Sums the warp's strip by columns and by rows.
template <class P>
__device__ void sum_strip(const typename P::Strip& strip, TileMemory<P>& memory) {
  using Sum = typename P::Sum;
  Quad<Sum> columns[P::kSegments][P::kQuads] = {};
#pragma unroll
  for (int r = 0; r < P::kRowsPerWarp; ++r) {
    Sum totals[P::kChannels] = {};
#pragma unroll
    for (int s = 0; s < P::kSegments; ++s) {
#pragma unroll
      for (int e = 0; e < P::kElements; ++e) {
        const Sum value = to_sum<Sum>(strip[r][s][e / 4][e % 4]);
        columns[s][e / 4].v[e % 4] += value;
        totals[e % P::kChannels] += value;
      }
    }
    const int row = warp_index() * P::kRowsPerWarp + r;
#pragma unroll
    for (int channel = 0; channel < P::kChannels; ++channel) {
      const Sum total = warp_sum(totals[channel]);
      if (lane_index() == 0) memory.row_sums[row * P::kChannels + channel] = total;
    }
  }
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
#pragma unroll
    for (int q = 0; q < P::kQuads; ++q) {
      *reinterpret_cast<Quad<Sum>*>(&memory.strips[warp_index()][quad_column<P>(s, q)]) = columns[s][q];
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
__device__ void store_row(const Arguments<P>& a, TileMemory<P>& memory, bool whole, std::int64_t y,
                          const Quad<typename P::Sum> (&row)[P::kSegments][P::kQuads]) {
  using Sum = typename P::Sum;
  const std::int64_t first_column = memory.tile.column * P::kColumns;
  Sum* to = a.sums + y * a.row_elements + first_column;
  if (whole) {
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
    for (int q = 0; q < P::kQuads; ++q)
      *reinterpret_cast<Quad<Sum>*>(staged + quad_column<P>(s, q)) = row[s][q];
  }
  __syncwarp();
  if (y < a.height) {
    for (int i = lane_index(); i < P::kColumns && first_column + i < a.row_elements; i += 32)
      to[i] = staged[i];
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
  return corner + (groups_before + memory.left[row * P::kChannels + channel]);
}

/// Scans the strip, on top of all that lies above and to the left of it, and stores it.
template <class P>
__device__ void store_strip(const Arguments<P>& a, TileMemory<P>& memory, bool whole,
                            const typename P::Strip& strip) {
  using Sum = typename P::Sum;
  constexpr int kElements = P::kElements;
  const int warp_row = warp_index() * P::kRowsPerWarp;
  Sum columns[P::kSegments][kElements];
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
#pragma unroll
    for (int q = 0; q < P::kQuads; ++q) {
      const int column = quad_column<P>(s, q);
      const auto above = *reinterpret_cast<const Quad<Sum>*>(&memory.above[column]);
      const auto strips = *reinterpret_cast<const Quad<Sum>*>(&memory.strips[warp_index()][column]);
#pragma unroll
      for (int i = 0; i < 4; ++i) columns[s][q * 4 + i] = above.v[i] + strips.v[i];
    }
  }
#pragma unroll
  for (int r = 0; r < P::kRowsPerWarp; ++r) {
    Sum base[P::kChannels];
#pragma unroll
    for (int channel = 0; channel < P::kChannels; ++channel) {
      base[channel] = left_of_row<P>(memory, warp_row + r, channel);
    }
    Quad<Sum> row[P::kSegments][P::kQuads];
#pragma unroll
    for (int s = 0; s < P::kSegments; ++s) {
      Sum scan[kElements];
#pragma unroll
      for (int e = 0; e < kElements; ++e) {
        columns[s][e] += to_sum<Sum>(strip[r][s][e / 4][e % 4]);
        scan[e] = columns[s][e];
        if (e >= P::kChannels) scan[e] += scan[e - P::kChannels];
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
    store_row<P>(a, memory, whole, memory.tile.row * P::kRows + warp_row + r, row);
  }
}

}  // namespace cumulus::summed_area_table
