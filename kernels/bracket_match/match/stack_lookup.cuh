#pragma once

#include <cstdint>

#include "kernels/bracket_match/match/stack_change.cuh"
#include "kernels/bracket_match/records.h"
#include "kernels/primitives/warp_scan.cuh"

// Where in earlier tiles the opens of the stack are.

namespace cumulus::bracket_match {

static_assert(kTileWarps == 4, "the counts before a tile's chunks are read as one word");

/// A tile's surviving opens and reaching closes are listed, as 16-bit entries, where the entries fit into the
/// words that hold a bit for each element otherwise. An entry is the element's number in the tile, and its
/// kind modulo 4 above.
using ListEntry = std::uint16_t;
inline constexpr int kEntryKindShift = 12;
static_assert(kTileItems <= 1 << kEntryKindShift);
__device__ inline ListEntry entry_of(int item, std::uint32_t kind) {
  return static_cast<ListEntry>(static_cast<std::uint32_t>(item) | kind << kEntryKindShift);
}
__device__ inline int item_of(ListEntry entry) { return entry % (1 << kEntryKindShift); }
__device__ inline bool same_kind(ListEntry a, ListEntry b) { return (a ^ b) >> kEntryKindShift == 0; }
__device__ inline bool is_listed(std::int32_t count) { return count <= kListed; }
__device__ inline const ListEntry* listed(const std::uint32_t* left_items, std::int64_t tile) {
  return reinterpret_cast<const ListEntry*>(left_items + tile * kTileThreads);
}

/// The tiles of a text on the device. A tile's surviving opens are those that no close of the tile pops;
/// on the stack they lie at levels bottom + 1 and up. Its reaching closes pop no open of the tile.
struct DeviceTiles {
  std::uint32_t* surviving_opens;  // kTileThreads words for each tile: entries or bits
  std::uint32_t* reaching_closes;  // likewise
  std::uint16_t* opens_before;  // for each chunk of 32 words of bits: surviving opens of the tile before it
  StackChange<std::int32_t>* change;
  const std::uint32_t*
      begins;             // a bit for each element: a document begins there; null: there is one document
  std::int64_t* depth;    // the stack's size before the tile
  std::int64_t* bottoms;  // what of it the tile leaves in place; above it the levels of the tree of minima
  StackChange<std::int64_t>* groups;  // of tiles, for the scan
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
    const std::uint32_t hits = __ballot_sync(kFullWarp, below);
    if (hits == 0) continue;
    node = node / 32 * 32 + highest_bit(hits);
    break;
  }
  while (up > 0) {
    --up;
    const bool below = tiles.bottoms[tiles.tree.first[up] + node * 32 + lane] < level;
    node = node * 32 + highest_bit(__ballot_sync(kFullWarp, below));
  }
  return node;
}

/// A chunk of 32 words of surviving opens, a word to each lane, with the ranks of their opens in the tile.
struct OpenChunk {
  std::uint32_t word;
  int before;  // surviving opens of the tile before this lane's word
  int through;

  /// By whole warps.
  __device__ OpenChunk(const DeviceTiles& tiles, std::int64_t tile, int chunk, int first)
      : word(tiles.surviving_opens[(tile * kTileWarps + chunk) * 32 + threadIdx.x % 32]) {
    through = first + warp_inclusive_sum(__popc(word));
    before = through - __popc(word);
  }

  /// Each lane gets where in the chunk the open with `rank` others below it in its tile is; for ranks that
  /// the chunk has.
  __device__ int find(int rank) const {
    int owner = 0;  // the last lane that has at most `rank` opens before its word
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      if (__shfl_sync(kFullWarp, before, owner + step) <= rank) owner += step;
    }
    const std::uint32_t bits = __shfl_sync(kFullWarp, word, owner);
    return owner * 32 + select_bit(bits, rank - __shfl_sync(kFullWarp, before, owner));
  }

  /// Calls body(rank, where) for the ranks from `lowest` to `highest` that the chunk has, word by word.
  template <class Body>
  __device__ void enumerate(int lowest, int highest, const Body& body) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    std::uint32_t owners = __ballot_sync(kFullWarp, before <= highest && through > lowest && word != 0);
    while (owners != 0) {
      const int owner = highest_bit(owners);
      owners ^= 1u << owner;
      const std::uint32_t bits = __shfl_sync(kFullWarp, word, owner);
      const int rank = __shfl_sync(kFullWarp, before, owner) + __popc(bits & ((1u << lane) - 1));
      if ((bits >> lane & 1) != 0 && rank <= highest && rank >= lowest) body(rank, owner * 32 + lane);
    }
  }
};

/// Calls body(i, open) for the surviving opens of `tile` from the one that has `highest` others below it
/// downwards, `count` of them, each by one lane: i counts from 0. By whole warps, with the same arguments in
/// all lanes.
template <class Body>
__device__ void for_surviving_opens(const DeviceTiles& tiles, std::int64_t tile, int highest, int count,
                                    const Body& body) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  if (is_listed(tiles.change[tile].opens)) {
    const ListEntry* entries = listed(tiles.surviving_opens, tile);
    for (int i = lane; i < count; i += 32) body(i, tile * kTileItems + item_of(entries[highest - i]));
    return;
  }
  const std::uint64_t before_chunks = reinterpret_cast<const std::uint64_t*>(tiles.opens_before)[tile];
  const auto before = [&](int chunk) { return static_cast<int>(before_chunks >> (16 * chunk) & 0xFFFF); };
  const int lowest = highest - count + 1;
#pragma unroll 1
  for (int chunk = kTileWarps - 1; chunk >= 0; --chunk) {
    const int first = before(chunk);
    const int end = chunk + 1 < kTileWarps ? before(chunk + 1) : kTileItems;
    if (first > highest || end <= lowest) continue;
    const OpenChunk opens(tiles, tile, chunk, first);
    const std::int64_t begin = (tile * kTileWarps + chunk) * 32 * 32;
    if (count > 32) {
      opens.enumerate(lowest, highest, [&](int rank, int where) { body(highest - rank, begin + where); });
      continue;
    }
    const int rank = highest - lane;
    const int where = opens.find(rank);
    if (rank >= max(first, lowest) && rank < end) body(lane, begin + where);
  }
}

/// The open at level `level` of the stack before `tile`, at least 1, and the stack that deep. By whole warps,
/// with the same arguments in all lanes, which all get it.
__device__ inline std::int64_t open_at(const DeviceTiles& tiles, std::int64_t tile, std::int64_t level) {
  tile = last_tile_below(tiles, tile, level);
  std::int64_t found = -1;
  for_surviving_opens(tiles, tile, static_cast<int>(level - tiles.bottoms[tile] - 1), 1,
                      [&](int, std::int64_t open) { found = open; });
  return warp_max(found);
}

/// Goes through what the pops out of a tile pop, from the first on, and keeps which earlier tile serves them.
class OpenCursor {
 public:
  /// The stack before `tile` is `depth` deep.
  __device__ OpenCursor(const DeviceTiles& tiles, std::int64_t tile, std::int64_t depth)
      : tiles_(tiles), tile_(tile), depth_(depth) {}

  /// Calls body(number, open) for the pops from number `number` to before `end`, at most `depth`, by one lane
  /// each; for no lower number than the call before. By whole warps, with the same arguments in all lanes.
  template <class Body>
  __device__ void for_opens(int number, int end, const Body& body) {
    while (number < end) {
      const std::int64_t level = depth_ - number;
      if (level <= bottom_) {
        tile_ = last_tile_below(tiles_, tile_, level);
        bottom_ = tiles_.bottoms[tile_];
      }
      const auto rank = static_cast<int>(level - bottom_ - 1);
      const int here = min(rank + 1, end - number);
      for_surviving_opens(tiles_, tile_, rank, here,
                          [&](int i, std::int64_t open) { body(number + i, open); });
      number += here;
    }
  }

 private:
  const DeviceTiles& tiles_;
  std::int64_t tile_;
  std::int64_t depth_;
  std::int64_t bottom_ = INT64_MAX;  // of tile_, where it serves
};

/// The opens of the pops out of `tile` from number `number` to before `end`, by a whole block: a share for
/// each warp.
template <class Body>
__device__ void for_opens_of_pops(const DeviceTiles& tiles, std::int64_t tile, std::int64_t depth, int number,
                                  int end, const Body& body) {
  const int share = max(divide_up(end - number, kTileWarps), 32);
  const int first = number + static_cast<int>(threadIdx.x) / 32 * share;
  OpenCursor(tiles, tile, depth).for_opens(first, min(first + share, end), body);
}

}  // namespace cumulus::bracket_match
