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

/// A lane's elements are whole pixels, and whole 16-byte words where the elements are floats.
constexpr TileShape tile_shape(std::size_t input_bytes, int channels) {
  if (channels == 3) return {8, 6, 1, 12};
  const bool narrow = channels == 1;
  if (input_bytes == 1) return {8, 16, narrow ? 1 : 2, 4};
  return {8, 8, narrow ? 1 : 2, 4};
}

/// Predecessors that one round of look-back reads at once.
inline constexpr int kLookBackWindow = 4;

/// Bytes of input that a band of the CPU version holds at most (unless one row is longer): it is
/// read twice, the second time from the core's own cache.
inline constexpr std::int64_t kBandBytes = 192 * 1024;
/// Bands in flight at once on the CPU, at most.
inline constexpr std::size_t kBandsInFlight = 64;
/// Output elements that one CPU task of the box filter computes, at least.
inline constexpr std::int64_t kBoxGrainElements = 64 * 1024;

}  // namespace cumulus::summed_area_table
