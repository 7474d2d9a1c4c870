#pragma once

#include <cstddef>
#include <cstdint>

namespace cumulus::summed_area_table {

/// How one block of the CUDA kernel covers its tile: each of `warps` warps takes `rows_per_warp`
/// whole rows of the tile; a row is `segments` stretches of 32 lanes times `lane_elements`
/// neighbouring elements. Elements count channels: a row of the tile holds columns() / channels pixels.
struct TileShape {
  int warps;
  int rows_per_warp;
  int segments;
  int lane_elements;

  constexpr int threads() const { return 32 * warps; }
  constexpr int rows() const { return warps * rows_per_warp; }
  constexpr int columns() const { return 32 * segments * lane_elements; }
};

/// Groups of rows that one warp looks after, one row a lane.
constexpr int row_groups(const TileShape& shape) { return (shape.rows() + 31) / 32; }

/// A lane's elements are whole pixels, and whole 16-byte words where the elements are floats. The
/// tile and its sums fit into the 64 KB of shared memory that every GPU offers a block.
constexpr TileShape tile_shape(std::size_t input_bytes, std::size_t sum_bytes, int channels) {
  if (input_bytes == 1)
    return channels == 1   ? TileShape{8, 16, 1, 4}
           : channels == 3 ? TileShape{8, 8, 1, 12}
                           : TileShape{8, 16, 2, 4};
  if (input_bytes == 2) return TileShape{8, 16, 1, 4};
  if (input_bytes == 8) return TileShape{8, 6, 1, 4};
  if (channels == 3) return sum_bytes == 4 ? TileShape{4, 8, 1, 12} : TileShape{4, 7, 1, 12};
  return sum_bytes == 4 ? TileShape{8, 8, 1, 4} : TileShape{8, 10, 1, 4};
}

/// Blocks that a multiprocessor shall hold at once: some wait while others move data.
constexpr int blocks_per_multiprocessor(std::size_t sum_bytes, int channels) {
  if (channels > 1) return 3;
  return sum_bytes == 4 ? 5 : 4;
}

/// Tiles of small images, of which each block has one (resident_build.cuh): `tall` ones have more rows. These
/// may take more shared memory than every GPU offers.
constexpr TileShape resident_shape(int channels, bool tall) {
  return {8, tall ? 16 : 8, 1, channels == 3 ? 12 : 4};
}
/// Tall tiles that a multiprocessor shall hold at most; of others one.
inline constexpr int kResidentTallTiles = 2;

/// How one block of the CUDA kernel of strips covers a band of its strip: groups of `row_lanes` lanes take
/// `group_rows` rows each, a lane `lane_elements` neighbouring elements. Shared memory holds `stages` bands,
/// of which `lag` wait to be finished. `messengers` warps talk to other blocks.
struct StripShape {
  int warps;
  int row_lanes;
  int lane_elements;
  int group_rows;
  int stages;
  int lag;
  int messengers;

  constexpr int columns() const { return row_lanes * lane_elements; }
  constexpr int groups() const { return warps * 32 / row_lanes; }
  constexpr int rows() const { return groups() * group_rows; }
};

/// Of one channel. Bands of 128 rows by 32 or 64 columns, or of 64 by 128: as many as shared memory holds.
constexpr StripShape strip_shape(std::size_t input_bytes, std::size_t sum_bytes, int row_lanes) {
  const bool narrow = row_lanes == 8;
  const int stages = input_bytes == 1 ? 12 : narrow ? (sum_bytes == 4 ? 12 : 9) : (sum_bytes == 4 ? 6 : 5);
  const int lag = stages == 12 ? 8 : stages == 9 ? 6 : stages - 2;
  return {8, row_lanes, 4, narrow ? 4 : 8, stages, lag, 8};
}

/// Strips that add up their rows' totals among themselves.
inline constexpr std::uint32_t kStripsOfGroup = 12;

/// Predecessors that look-back reads at once, at first and in all.
inline constexpr int kFirstLook = 2;
inline constexpr int kLookBackWindow = 6;

/// A band of the CPU version holds about this many bytes of input, and at least kBandRows rows: it
/// is read twice, the second time from the core's own cache, and its last row is summed in turn.
inline constexpr std::int64_t kBandBytes = 256 * 1024;
inline constexpr std::int64_t kBandRows = 8;
/// Output elements that one CPU task of the box filter computes, at least.
inline constexpr std::int64_t kBoxGrainElements = 64 * 1024;
/// Rectangles that one CPU task sums, at least.
inline constexpr std::int64_t kRectangleGrain = 4096;

}  // namespace cumulus::summed_area_table
