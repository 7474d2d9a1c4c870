#pragma once

#include <cstdint>

namespace cumulus::bracket_match {

/// Elements that one CPU task matches with a stack of its own, which stays in the L1 cache.
inline constexpr std::int64_t kCpuTile = 16 * 1024;

/// Elements that one thread of the CUDA kernels matches in registers: one bit each of a word.
inline constexpr int kThreadItems = 32;
/// Threads of a block, which matches one tile.
inline constexpr int kTileThreads = 128;
inline constexpr int kTileItems = kTileThreads * kThreadItems;
inline constexpr int kTileWarps = kTileThreads / 32;
/// Tiles of a block that links: one for each warp.
inline constexpr int kLinkedTiles = kTileWarps;
/// Threads of a block that scans tiles, and tiles that each of them takes.
inline constexpr int kScanThreads = 1024;
inline constexpr int kScanTilesPerThread = 4;
/// Elements that a tile leaves to others: so many are listed by number, of more there is a bit for each
/// element of the tile in the same memory.
inline constexpr int kListed = 2 * kTileThreads;
/// Closes that pop opens of one tile: so many or more are linked in chunks, fewer are distributed over
/// lanes that each find their own.
inline constexpr int kManyServed = 64;
/// Closes of a chunk.
inline constexpr int kLinkedAtOnce = 512;

/// Threads of a block that intersects clips. So many blocks are enough to fill any GPU.
inline constexpr int kClipThreads = 256;
inline constexpr std::int64_t kMaxClipBlocks = 4096;
/// As many as a number of elements has bits.
inline constexpr int kMaxClipRounds = 64;

}  // namespace cumulus::bracket_match
