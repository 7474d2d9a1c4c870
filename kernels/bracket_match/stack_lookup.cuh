#pragma once

#include <cstdint>

#include "kernels/bracket_match/bracket_match_scratch.h"
#include "kernels/bracket_match/stack_change.cuh"

// Where in earlier tiles the opens of the stack are.

namespace cumulus::bracket_match {

inline constexpr int kTileWarps = kTileThreads / 32;
static_assert(kTileWarps == 4, "the counts before a tile's stretches are read as one ushort4");

/// The tiles of a text on the device. A tile's surviving opens are those that no close of the tile pops;
/// on the stack they lie at levels bottom + 1 and up.
struct DeviceTiles {
  std::uint32_t* surviving_opens;  // kTileThreads words for each tile, a bit for each element
  std::uint16_t* opens_before;     // for each stretch of 32 words: surviving opens of the tile before it
  StackChange<std::int32_t>* change;
  const std::uint32_t*
      begins;             // a bit for each element: a document begins there; null: there is one document
  std::int64_t* depth;    // the stack's size before the tile
  std::int64_t* bottoms;  // what of it the tile leaves in place; above it the levels of the tree of minima
  TileTree tree;
  std::int64_t count;

  /// Of 32 elements.
  __device__ std::uint32_t begins_of(std::int64_t word) const { return begins == nullptr ? 0 : begins[word]; }
};

/// The last tile before `tile` whose bottom is below `level`; the stack before `tile` must be that deep. To
/// be called by whole warps, with the same arguments in all lanes. At most two reads a level of the tree.
__device__ inline std::int64_t last_tile_below(const DeviceTiles& tiles, std::int64_t tile,
                                               std::int64_t level) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  std::int64_t node = tile;
  int up = 0;
  for (; up < tiles.tree.levels; ++up, node /= 32) {
    const std::int64_t mine = node / 32 * 32 + lane;
    const bool below = mine < node && tiles.bottoms[tiles.tree.first[up] + mine] < level;
    const std::uint32_t hits = __ballot_sync(kAllLanes, below);
    if (hits == 0) continue;
    node = node / 32 * 32 + highest_bit(hits);
    break;
  }
  while (up > 0) {
    --up;
    const bool below = tiles.bottoms[tiles.tree.first[up] + node * 32 + lane] < level;
    node = node * 32 + highest_bit(__ballot_sync(kAllLanes, below));
  }
  return node;
}

/// Lane i gets the surviving open of `tile` that has `rank` - i others below it, for ranks of at least 0; the
/// other lanes get -1. By whole warps, `tile` and `rank` the same in all lanes.
__device__ inline std::int64_t surviving_opens_down_from(const DeviceTiles& tiles, std::int64_t tile,
                                                         int rank) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const ushort4 packed = reinterpret_cast<const ushort4*>(tiles.opens_before)[tile];
  const int before_stretch[kTileWarps] = {packed.x, packed.y, packed.z, packed.w};
  const int mine = rank - lane;
  const int lowest = max(rank - 31, 0);
  std::int64_t found = -1;
#pragma unroll
  for (int stretch = kTileWarps - 1; stretch >= 0; --stretch) {
    const int first = before_stretch[stretch];
    const int end = stretch + 1 < kTileWarps ? before_stretch[stretch + 1] : kTileItems;
    if (first > rank || end <= lowest) continue;
    const std::uint32_t word = tiles.surviving_opens[(tile * kTileWarps + stretch) * 32 + lane];
    const int count = __popc(word);
    int through = count;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int before = __shfl_up_sync(kAllLanes, through, distance);
      if (lane >= distance) through += before;
    }
    const int before = through - count;
    int owner = 0;  // the last lane that has at most `mine` opens before its word
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      if (__shfl_sync(kAllLanes, before, owner + step) <= mine - first) owner += step;
    }
    const std::uint32_t owner_word = __shfl_sync(kAllLanes, word, owner);
    const int owner_before = __shfl_sync(kAllLanes, before, owner);
    if (mine >= first && mine < end) {
      found = tile * kTileItems + (stretch * 32 + owner) * 32 +
              select_bit(owner_word, mine - first - owner_before);
    }
  }
  return found;
}

/// Lane i gets the open at level `level` - i of the stack before `tile`, for the first `wanted` lanes (1 to
/// 32); the other lanes get anything. By whole warps, with the same arguments in all lanes; `level` is at
/// least `wanted`, and the stack that deep.
__device__ inline std::int64_t opens_down_from(const DeviceTiles& tiles, std::int64_t tile,
                                               std::int64_t level, int wanted) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  std::int64_t mine = -1;
  for (int served = 0; served < wanted;) {
    tile = last_tile_below(tiles, tile, level - served);
    const auto rank = static_cast<int>(level - served - tiles.bottoms[tile] - 1);
    const std::int64_t found = surviving_opens_down_from(tiles, tile, rank);
    const std::int64_t moved = __shfl_sync(kAllLanes, found, max(lane - served, 0));
    if (lane >= served && moved >= 0) mine = moved;
    served += rank + 1;
  }
  return mine;
}

}  // namespace cumulus::bracket_match
