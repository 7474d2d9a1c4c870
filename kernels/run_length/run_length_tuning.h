#pragma once

#include <cstdint>

namespace cumulus::run_length {

/// Elements that one block of the CUDA encoder takes: 16 to 32 KiB of them, so that they fit into the shared
/// memory of a multiprocessor several times. A multiple of 2048, at most 32768.
constexpr int encode_tile_elements(int element_bytes) {
  switch (element_bytes) {
    case 1:
      return 16384;
    case 2:
    case 3:
    case 4:
      return 8192;
    case 6:
    case 8:
      return 4096;
    default:
      return 2048;
  }
}

/// Whether the CUDA encoder loads elements by way of registers, rather than asynchronously.
constexpr bool load_through_registers(int element_bytes) { return element_bytes == 1; }

/// Elements that one block of the CUDA decoder writes: 24 to 32 KiB of them. A multiple of 1024.
constexpr int decode_tile_elements(int element_bytes) {
  switch (element_bytes) {
    case 1:
      return 32768;
    case 2:
      return 16384;
    case 3:
    case 4:
      return 8192;
    case 6:
    case 8:
      return 4096;
    default:
      return 2048;
  }
}

/// Warps of a block that handle elements; the encoder has one more, which looks back.
inline constexpr int kTileWarps = 8;

/// The encoder has room for a list of this share of a tile's elements; it lists more heads in several rounds.
inline constexpr int kListedShare = 2;
/// Where at most one element in this many is a head, each lane lists those in its own words.
inline constexpr int kFewHeadsShare = 16;

/// Runs of a granule: what one warp of the decoder scans at once. Where each begins is kept in scratch.
inline constexpr int kGranuleRuns = 256;
/// A granule of at most this many elements is written by one warp: runs of 4 on average. Small elements are
/// better off in tiles.
constexpr int short_granule_elements(int element_bytes) { return element_bytes < 4 ? 0 : 4 * kGranuleRuns; }
/// Granules whose lengths one block adds up: one per lane of a warp.
inline constexpr int kBlockGranules = 32;

/// The CPU encoder takes the array in pieces of this many bytes: each is read twice, the second time
/// from the core's own cache.
inline constexpr std::int64_t kPieceBytes = 128 * 1024;
/// Runs of a granule, and elements that a task writes, of the CPU decoder.
inline constexpr std::int64_t kCpuGranuleRuns = 4096;
inline constexpr std::int64_t kCpuDecodeBytes = 256 * 1024;

}  // namespace cumulus::run_length
