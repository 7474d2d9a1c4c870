#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/bracket_match/bracket_match_tuning.h"
#include "kernels/core/scratch_arena.h"
#include "kernels/core/views.h"

namespace cumulus::bracket_match {

constexpr std::int64_t divide_up(std::int64_t count, std::int64_t by) { return (count + by - 1) / by; }

/// What a stretch of elements does to the stack: pops `closes`, then pushes `opens`.
template <class Count>
struct StackChange {
  Count closes = 0;
  Count opens = 0;
};

/// What the CUDA kernels add up and hand on, in device memory.
struct Findings {
  std::uint64_t first_fault;  // position << 1 | wrong kind, of a close; kNoFault
  std::int64_t unmatched;
  std::int64_t maximum_depth;
  std::int64_t final_depth;
};
inline constexpr std::uint64_t kNoFault = ~std::uint64_t{0};

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

}  // namespace cumulus::bracket_match

namespace cumulus {

/// Scratch memory that match_brackets takes in space `S` for `count` elements: exact. About 1/15 of an
/// array of that many 32-bit numbers on the host, 1/30 on a GPU.
template <Space S>
std::size_t match_brackets_scratch_bytes(std::int64_t count) {
  using namespace bracket_match;
  const auto tiles = static_cast<std::size_t>(tiles_of(count, S));
  if constexpr (S == Space::kHost) {
    const std::size_t words = tiles * (kCpuTile / 64);
    return ScratchSize()
        .add<std::uint64_t>(words)              // opens that outlive their tile
        .add<std::uint64_t>(words)              // closes that reach out of it
        .add<StackChange<std::int32_t>>(tiles)  // of each tile
        .add<std::int64_t>(tiles)               // depth before each tile
        .add<std::int64_t>(tiles)               // its bottom
        .add<std::int64_t>(tiles)               // the tile below
        .bytes();
  } else {
    return ScratchSize()
        .add<std::uint32_t>(tiles * kTileThreads)         // opens that outlive their tile
        .add<std::uint16_t>(tiles * (kTileThreads / 32))  // how many of them lie before each warp's stretch
        .add<StackChange<std::int32_t>>(tiles)
        .add<std::int64_t>(tiles)  // depth before each tile
        .add<std::int64_t>(static_cast<std::size_t>(TileTree::of(static_cast<std::int64_t>(tiles)).total))
        .add<Findings>(1)
        .add<std::byte>(sizeof(std::int32_t) * 16)  // the report
        .bytes();
  }
}

}  // namespace cumulus
