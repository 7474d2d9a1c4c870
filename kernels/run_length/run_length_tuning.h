#pragma once

#include <cstdint>

namespace cumulus::run_length {

/// Elements of a tile of the CUDA encoder: 8 to 32 KiB of them, of which a block has two at a time. A
/// multiple of 2048, at most 32768.
constexpr int encode_tile_elements(int element_bytes) {
  switch (element_bytes) {
    case 1:
#ifdef ENC1
      return ENC1;
#endif
      return 8192;
    case 2:
    case 3:
      return 8192;
    case 4:
#ifdef ENC4
      return ENC4;
#endif
    case 6:
      return 4096;
    default:
      return 2048;
  }
}

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
/// Elements of as many granules as a block has warps that the block writes itself: runs of 8 on average. A
/// multiple of 32 for each of its threads.
inline constexpr int kShortTileElements = 8 * kTileWarps * kGranuleRuns;

/// The CPU encoder takes the array in pieces of this many bytes: each is read twice, the second time
/// from the core's own cache.
inline constexpr std::int64_t kPieceBytes = 128 * 1024;
/// Runs of a granule, and elements that a task writes, of the CPU decoder.
inline constexpr std::int64_t kCpuGranuleRuns = 4096;
inline constexpr std::int64_t kCpuDecodeBytes = 256 * 1024;

}  // namespace cumulus::run_length
