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

/// A lane's elements are whole pixels, and whole 16-byte words where the elements are floats.
constexpr TileShape tile_shape(std::size_t input_bytes, int channels) {
  if (channels == 3) return {8, 6, 1, 12};
  const bool narrow = channels == 1;
  if (input_bytes == 1) return {8, 16, narrow ? 1 : 2, 4};
  return {8, 8, narrow ? 1 : 2, 4};
}

/// Blocks that the registers of a multiprocessor (64 Ki of them) must suffice for: some wait while others
/// move data.
constexpr int blocks_per_multiprocessor(std::size_t sum_bytes, int channels) {
  if (channels > 1) return 2;
  return sum_bytes == 4 ? 4 : 3;
}

/// Predecessors that one round of look-back reads at once.
inline constexpr int kLookBackWindow = 4;

/// A band of the CPU version holds about this many bytes of input, and at least kBandRows rows: it
/// is read twice, the second time from the core's own cache, and its last row is summed in turn.
inline constexpr std::int64_t kBandBytes = 256 * 1024;
inline constexpr std::int64_t kBandRows = 8;
/// Output elements that one CPU task of the box filter computes, at least.
inline constexpr std::int64_t kBoxGrainElements = 64 * 1024;

}  // namespace cumulus::summed_area_table
