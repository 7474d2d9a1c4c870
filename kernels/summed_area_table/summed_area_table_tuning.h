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
  if (input_bytes == 2) {
    if (channels == 3) return sum_bytes == 4 ? TileShape{8, 8, 1, 12} : TileShape{4, 12, 1, 12};
    return channels == 1 ? TileShape{8, 16, 1, 4} : TileShape{8, 8, 2, 4};
  }
  if (input_bytes == 8) return TileShape{8, 6, 1, 4};
  if (channels == 3) return sum_bytes == 4 ? TileShape{4, 8, 1, 12} : TileShape{4, 7, 1, 12};
  return sum_bytes == 4 ? TileShape{8, 8, 1, 4} : TileShape{8, 10, 1, 4};
}

/// Blocks that a multiprocessor shall hold at once: some wait while others move data.
constexpr int blocks_per_multiprocessor(std::size_t sum_bytes, int channels) {
  if (channels > 1) return 3;
  return sum_bytes == 4 ? 5 : 4;
}

/// Tiles of small images of one channel, which blocks keep in registers (resident_build.cuh): low ones, a
/// multiprocessor for each, or tall ones, two to a multiprocessor.
inline constexpr TileShape kLowResidentShape = {8, 8, 1, 4};
inline constexpr TileShape kTallResidentShape = {8, 16, 1, 4};
constexpr int resident_tiles(const TileShape& shape) { return shape.rows() <= 64 ? 1 : 2; }

/// How a block of the kernel of strips (strip_build.cuh) goes down its strip: bands of groups of rows, each
/// group `group_rows` rows that `row_lanes` lanes, of four columns each, go through together.
struct StripShape {
  int row_lanes;
  int group_rows;
  int warps;        // that sum
  int turns;        // blocks that take a strip's bands in turn
  int ahead;        // of a block's bands: being copied
  int lag;          // between a band's totals and its table
  int drift;        // by which a warp may be ahead of the block's others
  int patience;     // summed after a band before it is asked what lies left of it
  int messengers;   // warps that ask for that
  bool sums_first;  // before it stores another band. Otherwise copies start earlier

  constexpr int groups() const { return warps * 32 / row_lanes; }
  constexpr int rows() const { return groups() * group_rows; }
  constexpr int columns() const { return 4 * row_lanes; }
};

/// What is on its way to a multiprocessor has to be enough for the memory's rate, and no more: what the
/// blocks tell each other stands in the same queues. So nobody asks before it is likely to be answered.
constexpr StripShape strip_shape(std::size_t input_bytes, int row_lanes, int turns) {
  if (input_bytes == 1 && turns == 2) return {row_lanes, 8, 8, 2, 4, 7, 1, 5, 2, true};
  if (input_bytes == 1) return {row_lanes, 8, 8, 1, 4, 7, 2, 2, 1, true};
  if (row_lanes == 16) return {16, 4, 8, 2, 3, 9, 1, 6, 3, false};
  if (turns == 2) return {32, 16, 4, 2, 2, 4, 1, 2, 1, true};
  return {32, 8, 8, 1, 2, 4, 2, 1, 1, true};
}
/// Bands whose totals are under way. A warp that sums band n has finished band n - lag - 1, and the others
/// band n - ring: who sums a band takes the places of the one `ring` before.
constexpr int strip_ring(const StripShape& shape) { return shape.lag + 1 + shape.drift; }

/// Bands that an adder lets its own block go on before it asks for what the others have told.
inline constexpr std::uint32_t kAdderPatience = 1;
/// Rows of a band that one warp adds up over all strips, two to a lane, and strips that it asks for at once.
inline constexpr int kAdderRows = 4;
inline constexpr int kStripsAtOnce = 64 / kAdderRows;
inline constexpr std::int64_t kMostStrips = 9 * kStripsAtOnce;

/// The kernel of slabs (slab_build.cuh): rows of a slab at most, and columns that a warp goes through at
/// once, four to a lane.
inline constexpr int kSlabRows = 32;
inline constexpr int kSegmentColumns = 128;
/// Columns are added up over so many groups of slabs side by side, a group of so many slabs by a thread.
inline constexpr int kSlabGroups = 32;
inline constexpr int kSlabsOfThread = 5;

/// How a block of that kernel has its slab: of each row, each of `warps` warps has `segments` stretches of
/// kSegmentColumns columns. The first `held` rows are in registers; those of bytes are all there.
struct SlabShape {
  int warps;
  int segments;
  int held;

  constexpr int threads() const { return 32 * warps; }
  constexpr int all_segments() const { return warps * segments; }
  constexpr int columns() const { return all_segments() * kSegmentColumns; }
};
/// For images of up to 2048 or 4096 columns.
constexpr SlabShape slab_shape(std::size_t input_bytes, int columns) {
  const int segments = columns <= 2048 ? 1 : 2;
  return {16, segments, input_bytes == 1 ? kSlabRows : 16 / segments};
}

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
