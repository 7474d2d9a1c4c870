#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/div.h"

namespace cumulus::summed_area_table {

/// How one block of the CUDA kernel covers its tile: each of `warps` warps takes `rows_per_warp`
/// whole rows of the tile; a row is `segments` chunks of 32 lanes times `lane_elements`
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

/// Groups of 32 rows, a warp each, one row a lane.
constexpr int row_groups(const TileShape& shape) { return divide_up(shape.rows(), 32); }

/// A lane's elements are whole pixels, and whole 16-byte words where the elements are floats. The
/// tile and its sums fit into the 64 KB of shared memory that every GPU offers a block.
///
/// Every channel of a row is scanned by itself: lanes of 12 elements, whole pixels of 3 or 4 channels, have a
/// third of the scans of lanes of 4.
constexpr TileShape tile_shape(std::size_t input_bytes, std::size_t sum_bytes, int channels) {
  if (input_bytes == 8) return TileShape{8, 6, 1, 4};
  if (channels >= 3) {
    if (input_bytes == 1 || (input_bytes == 2 && sum_bytes == 4)) return TileShape{8, 8, 1, 12};
    return input_bytes == 4 && sum_bytes == 8 && channels == 4 ? TileShape{4, 7, 1, 12}
                                                               : TileShape{4, 8, 1, 12};
  }
  if (input_bytes == 4) return sum_bytes == 4 ? TileShape{8, 8, 1, 4} : TileShape{8, 10, 1, 4};
  if (channels == 1) return TileShape{8, 16, 1, 4};
  return input_bytes == 1 ? TileShape{8, 16, 2, 4} : TileShape{8, 8, 2, 4};
}

/// Blocks that a multiprocessor shall hold at once: some wait while others move data.
constexpr int tile_blocks(std::size_t input_bytes, std::size_t sum_bytes, int channels) {
  if (channels == 1) return sum_bytes == 4 ? 5 : 4;
  const bool are_small = input_bytes == 2 || (input_bytes == 4 && channels == 3);
  return sum_bytes == 8 && channels >= 3 && are_small ? 4 : 3;
}

/// Tiles of small images of one channel, which blocks keep in registers (resident/build.cuh), at most two to
/// a multiprocessor.
inline constexpr TileShape kLowResidentShape = {8, 8, 1, 4};
inline constexpr TileShape kTallResidentShape = {8, 16, 1, 4};
inline constexpr int kResidentTiles = 2;  // of a multiprocessor

/// How a block of the kernel of strips (strips/build.cuh) goes down its strip: bands of groups of rows, each
/// group `group_rows` rows that `row_lanes` lanes, of four columns each, go through together.
struct StripShape {
  int row_lanes;
  int group_rows;
  int warps;              // that sum
  int blocks_per_strip;   // that take a strip's bands alternately
  int prefetch_distance;  // of a block's bands: being copied
  int carry_latency;      // between a band's totals and its table
  int max_warp_skew;      // by which a warp may be ahead of the block's others
  int poll_delay;         // bands summed after one before its carries are polled
  int carry_loaders;      // warps that load carries
  bool sums_first;        // before it stores another band. Otherwise copies start earlier

  constexpr int groups() const { return warps * 32 / row_lanes; }
  constexpr int rows() const { return groups() * group_rows; }
  constexpr int columns() const { return 4 * row_lanes; }
};

/// Bytes under way to a multiprocessor have to be enough for the memory's rate, and no more: published words
/// go through the same queues. So no word is polled before it has likely come.
constexpr StripShape strip_shape(std::size_t input_bytes, int row_lanes, int blocks_per_strip) {
  if (input_bytes == 1 && blocks_per_strip == 2) return {row_lanes, 8, 8, 2, 4, 7, 1, 5, 2, true};
  if (input_bytes == 1) return {row_lanes, 8, 8, 1, 4, 7, 2, 2, 1, true};
  if (row_lanes == 16) return {16, 4, 8, 2, 3, 9, 1, 6, 3, false};
  if (blocks_per_strip == 2) return {32, 16, 4, 2, 2, 4, 1, 2, 1, true};
  return {32, 8, 8, 1, 2, 4, 2, 1, 1, true};
}
/// Bands whose totals are under way. A warp that sums band n has finished band n - carry_latency - 1, and the
/// others band n - ring: who sums a band takes the places of the one `ring` before.
constexpr int strip_ring(const StripShape& shape) { return shape.carry_latency + 1 + shape.max_warp_skew; }

/// Bands that a carry scanner lets its own block advance before it polls the totals of the others.
inline constexpr std::uint32_t kScannerPollDelay = 1;
/// Rows of a band that one warp scans over all strips, two to a lane, and strips that it loads at once.
inline constexpr int kScannerRows = 4;
inline constexpr int kStripsAtOnce = 64 / kScannerRows;
inline constexpr std::int64_t kMaxStrips = 9 * kStripsAtOnce;

/// Predecessors that look-back reads at once, at first and in all.
inline constexpr int kFirstLook = 2;
inline constexpr int kLookBackWindow = 6;

/// A band of the CPU version holds about this many bytes of pixels or of sums, whichever are more, and at
/// least kBandRows rows: its pixels are read twice, the second time from the core's own cache, and its last
/// row is summed in turn.
inline constexpr std::int64_t kBandBytes = 256 * 1024;
inline constexpr std::int64_t kBandRows = 8;
/// A table of at least so many bytes does not stay in the caches: the CPU writes it past them.
inline constexpr std::int64_t kStreamedBytes = 24 << 20;
/// Output elements that one CPU task of the box filter computes, at least.
inline constexpr std::int64_t kBoxGrainElements = 64 * 1024;
/// Rectangles that one CPU task sums, at least.
inline constexpr std::int64_t kRectangleGrain = 4096;

}  // namespace cumulus::summed_area_table
