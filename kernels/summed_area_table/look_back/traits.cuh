#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/primitives/diagonal_tiles.h"
#include "kernels/primitives/multiprocessor.cuh"
#include "kernels/primitives/status_word.cuh"
#include "kernels/primitives/warp_scan.cuh"
#include "kernels/summed_area_table/look_back/look_back.h"
#include "kernels/summed_area_table/summand.h"
#include "kernels/summed_area_table/tuning.h"

// What the kernels of tiles know at compile time, their arguments, and their shared memory.

namespace cumulus::summed_area_table {

using Tile = GridTile;

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

/// What the kernel knows at compile time.
template <class InputType, class SumType, int ChannelCount, Terms kWhat, Layout kWhere,
          TileShape kTile = tile_shape(sizeof(InputType), sizeof(SumType), ChannelCount)>
struct TileTraits {
  using Input = InputType;
  using Sum = SumType;
  using WordBits = typename StatusWord<Sum>::Bits;
  static constexpr Layout kLayout = kWhere;
  static constexpr int kChannels = ChannelCount;
  static constexpr Terms kTerms = kWhat;
  static constexpr Term kFirstTerm = kWhat == Terms::kOffsets ? Term::kOffset : Term::kValue;
  static constexpr TileShape kShape = kTile;
  static constexpr int kThreads = kShape.threads();
  static constexpr int kWarps = kShape.warps;
  static constexpr int kRowsPerWarp = kShape.rows_per_warp;
  static constexpr int kSegments = kShape.segments;
  static constexpr int kElements = kShape.lane_elements;
  static constexpr int kQuads = kElements / 4;
  static constexpr int kRows = kShape.rows();
  static constexpr int kColumns = kShape.columns();
  /// One less where strides, and mostly offsets or a second table too, take registers.
  static constexpr int kBlocks =
      tile_blocks(sizeof(Input), sizeof(Sum), kChannels) - (kLayout == Layout::kStrided ? 1 : 0);
  /// As many of these as fit by their threads: what the registers are for.
  static constexpr int kResidentBlocks = blocks_per_multiprocessor(kBlocks, kThreads);
  static_assert(kElements % kChannels == 0 && kElements % 4 == 0,
                "a lane holds whole pixels and whole quads");

  /// Totals of rows that are summed over the warp together. One channel's kernels have no registers left for
  /// that.
  static constexpr int kRowTotalsAtOnce = kChannels == 1 ? 1 : 8;

  /// A warp has a group of 32 rows, one row a lane; the last group may be smaller.
  static constexpr int kRowGroups = row_groups(kShape);
  /// A warp's share of publishing and looking back: one channel of a group of rows, or 32 columns.
  static constexpr int kRowJobs = kRowGroups * kChannels;
  static constexpr int kJobs = kRowJobs + kColumns / 32;
  /// Words of a tile: its columns, the corner's share of each row job, its rows (channels interleaved).
  static constexpr int kCornerWord = kColumns;
  static constexpr int kRowWord = kColumns + kRowJobs;
};

/// Where an array's elements are: element (y, x) of plane p at plane(p) + y * row_stride + x *
/// element_stride().
template <class T, Layout kLayout>
struct Planes {
  T* data;
  std::int64_t plane_stride;  // from an image to the next
  std::int64_t row_stride;
  std::int64_t parts;  // 1, or the number of channels where each is a plane of its own
  bool aligned;        // every row begins at a multiple of 16 bytes, and parts is 1

  __device__ T* plane(std::uint32_t p) const {
    if constexpr (kLayout == Layout::kOne) {
      return data;
    } else if constexpr (kLayout == Layout::kPlanes) {
      return data + p * plane_stride;
    } else {
      const auto divisor = static_cast<std::uint32_t>(parts);
      return data + p / divisor * plane_stride + p % divisor;
    }
  }
  __device__ std::int64_t element_stride() const { return kLayout == Layout::kStrided ? parts : 1; }
};

template <class P>
struct Arguments {
  using Table = Planes<typename P::Sum, P::kLayout>;
  Planes<const typename P::Input, P::kLayout> image;
  Table sums;            // without the zeros of an exclusive table
  Table squares;         // likewise; Terms::kValuesAndSquares only
  const float* offsets;  // Terms::kOffsets only
  std::int64_t height;
  std::int64_t row_elements;
  std::uint32_t planes;
  std::uint32_t tile_rows;
  std::uint32_t tile_columns;
  std::int64_t words_per_tile;
  std::uint32_t* next_ticket;
  typename P::WordBits* words;
  bool exclusive;  // the row above each table and the column before it are to be zeroed

  __device__ std::int64_t words_of_plane() const {
    return std::int64_t{tile_rows} * tile_columns * words_per_tile;
  }
};

/// A block's shared memory.
template <class P>
struct TileMemory {
  using Sum = typename P::Sum;
  alignas(16) typename P::Input pixels[P::kRows][P::kColumns];
  alignas(16) Sum warp_columns[P::kWarps][P::kColumns];  // sums by column of each warp's rows; then exclusive
                                                         // prefixes over the warps
  alignas(16) Sum above[P::kColumns];  // the tile's sums by column; then of all above the tile
  /// The tile's sums by row; then, per row, the exclusive prefixes along x, summed over its group's rows that
  /// are not below it.
  Sum rows[P::kRows * P::kChannels];
  /// Per row job: the exclusive prefixes along x summed over the group's rows, and the corner.
  Sum group_left[P::kRowJobs];
  Sum group_corner[P::kRowJobs];
  Tile next_tile;
};

/// The first element of the lane's quad, counted from the tile's left edge.
template <class P>
__device__ int quad_column(int segment, int quad) {
  return (segment * 32 + lane_index()) * P::kElements + quad * 4;
}

/// Whether all the tile's columns lie inside the image.
template <class P>
__device__ bool has_whole_rows(const Arguments<P>& a, Tile tile) {
  return (tile.column + std::int64_t{1}) * P::kColumns <= a.row_elements;
}
/// And all its rows.
template <class P>
__device__ bool inside(const Arguments<P>& a, Tile tile) {
  return (tile.row + std::int64_t{1}) * P::kRows <= a.height && has_whole_rows(a, tile);
}

}  // namespace cumulus::summed_area_table
