#pragma once

#include <cstdint>

namespace cumulus::bracket_match {

/// Elements that one CPU task matches with a stack of its own, which stays in the nearest cache.
inline constexpr std::int64_t kCpuTile = 16 * 1024;

/// Elements that one thread of the CUDA kernels matches in registers: one bit each of a word.
inline constexpr int kThreadItems = 32;
/// Threads of a block, which matches one tile.
inline constexpr int kTileThreads = 128;
inline constexpr int kTileItems = kTileThreads * kThreadItems;
/// Threads of a block that scans tiles, and tiles that each of them takes.
inline constexpr int kScanThreads = 1024;
inline constexpr int kScanTilesPerThread = 4;
/// Closes that reach out of a tile: so many are dealt out to a warp's lanes one by one, more are linked by
/// stretches of the tiles that serve them.
inline constexpr int kFewCloses = 256;
/// Of the opens that a tile leaves, so many of the lowest are listed by number.
inline constexpr int kListedOpens = 128;
/// Closes that a warp links at once.
inline constexpr int kLinkedAtOnce = 256;

}  // namespace cumulus::bracket_match
