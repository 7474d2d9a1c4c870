#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/bracket_match/tuning.h"
#include "kernels/core/div.h"
#include "kernels/core/scratch_arena.h"
#include "kernels/core/views.h"

namespace cumulus::bracket_match {

/// What consecutive elements do to the stack: pop `closes`, then push `opens`.
template <class Count>
struct StackChange {
  Count closes = 0;
  Count opens = 0;
};

/// A fault's rank in the order in which a reader meets them is 2 * position + one of these: a document that
/// ends unclosed does so before the element at which the next begins.
inline constexpr std::int64_t kUnclosedFault = 0;
inline constexpr std::int64_t kCloseFault = 1;

/// What the CUDA kernels add up, in device memory.
struct Findings {
  unsigned long long first_fault;  // the complement of the least rank; 0: none
  unsigned long long unmatched;    // modulo 2^64, as the sum of what tiles add and take away
  long long maximum_depth;
  long long final_depth;
  unsigned long long wrong_segment;  // the complement of the first's number; 0: none
};
inline constexpr unsigned long long kNoFault = ~0ull;
inline constexpr std::size_t kReportBytes = 64;

/// The minima of 32 tiles each, of 32 of those each, ... down to one group of at most 32.
struct TileTree {
  static constexpr int kMaxLevels = 8;  // 32^8 tiles are more than addresses
  int levels = 1;                       // the tiles themselves are level 0
  std::int64_t first[kMaxLevels] = {};  // where each level begins
  std::int64_t total = 0;

  static constexpr TileTree of(std::int64_t tiles) {
    TileTree tree;
    tree.total = tiles;
    for (std::int64_t count = tiles; count > 32; ++tree.levels) {
      count = divide_up(count, 32);
      tree.first[tree.levels] = tree.total;
      tree.total += count;
    }
    return tree;
  }
};

constexpr std::int64_t tiles_of(std::int64_t count, Space space) {
  return divide_up(count, space == Space::kHost ? kCpuTile : kTileItems);
}

/// Groups of tiles that the device scans one by one.
constexpr std::int64_t scan_groups_of(std::int64_t tiles) {
  return divide_up(tiles, std::int64_t{kScanThreads} * kScanTilesPerThread);
}

inline std::size_t host_scratch_bytes(std::size_t tiles) {
  ScratchSize size;
  size.add<std::uint64_t>(tiles * (kCpuTile / 64));  // opens that outlive their tile
  size.add<std::uint64_t>(tiles * (kCpuTile / 64));  // closes that reach out of it
  size.add<StackChange<std::int32_t>>(tiles);
  size.add<std::int64_t>(tiles);  // depth before each tile
  size.add<std::int64_t>(tiles);  // its bottom
  size.add<std::int64_t>(tiles);  // the tile below
  return size.bytes();
}

inline std::size_t device_scratch_bytes(std::size_t tiles, bool segmented) {
  const TileTree tree = TileTree::of(static_cast<std::int64_t>(tiles));
  ScratchSize size;
  size.add<std::uint32_t>(tiles * kTileThreads);         // opens that outlive their tile
  size.add<std::uint32_t>(tiles * kTileThreads);         // closes that reach out of it
  size.add<std::uint16_t>(tiles * (kTileThreads / 32));  // how many of them lie before each warp's chunk
  size.add<StackChange<std::int32_t>>(tiles);
  size.add<std::int64_t>(tiles);  // depth before each tile
  size.add<std::int64_t>(static_cast<std::size_t>(tree.total));
  size.add<StackChange<std::int64_t>>(static_cast<std::size_t>(
      scan_groups_of(static_cast<std::int64_t>(tiles))));  // what groups do to the stack
  size.add<Findings>(1);
  size.add<std::byte>(kReportBytes);
  if (segmented) size.add<std::uint32_t>(tiles * kTileThreads);  // where documents begin
  return size.bytes();
}

}  // namespace cumulus::bracket_match

namespace cumulus {

/// Scratch memory that match_brackets takes in space `S` for `count` elements, `segmented` where they are
/// several documents: exact. About 1/16 of an array of that many 32-bit numbers, and on a GPU 1/32 more
/// for segments.
template <Space S>
std::size_t match_brackets_scratch_bytes(std::int64_t count, bool segmented) {
  const auto tiles = static_cast<std::size_t>(bracket_match::tiles_of(count, S));
  return S == Space::kHost ? bracket_match::host_scratch_bytes(tiles)
                           : bracket_match::device_scratch_bytes(tiles, segmented);
}

}  // namespace cumulus
