#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/core/scratch_arena.h"
#include "kernels/kd_tree/kd_tree.h"

// How a build on the GPU is cut into kernels. Everything follows from the shape and the options: segments'
// sizes are known, or bounded, before a point is looked at.
namespace cumulus::kd_tree {

/// While segments are larger than a block can hold, all of them are split together, level by level, in tiles
/// of kTileThreads * kTileItems points.
inline constexpr int kTileThreads = 256;
inline constexpr int kTileItems = 16;
inline constexpr int kTilePoints = kTileThreads * kTileItems;
/// Bits that one pass of the selection decides.
inline constexpr int kDigitBits = 8;
inline constexpr int kDigits = 1 << kDigitBits;

/// Then a block takes each segment down to its leaves in shared memory, up to kMostBlockItems points a
/// thread.
inline constexpr int kMostBlockItems = 8;
inline constexpr int kMostBlockThreads = 1024;
inline constexpr std::size_t kMostBlockBytes = 64 * 1024;  // what every supported GPU has

/// The shared memory of such a block; offsets in bytes. `groups` is its number of leaves.
struct BlockLayout {
  std::size_t order;        // u16 [capacity]: the points in their present order
  std::size_t bounds;       // key [groups, 2, dimensions]
  std::size_t begins;       // u32 [2, groups + 1]: of the groups of this level, of the next
  std::size_t group_words;  // u32 [kGroupWords, groups]
  std::size_t warp_sums;    // u32 [32]
  std::size_t bytes;

  static constexpr int kGroupWords = 6;

  CUMULUS_KD_TREE_HOST_DEVICE BlockLayout(std::size_t number_bytes, int dimensions, std::int64_t capacity,
                                          std::int64_t groups) {
    const auto points = static_cast<std::size_t>(capacity);
    const auto leaves = static_cast<std::size_t>(groups);
    const auto width = static_cast<std::size_t>(dimensions);
    std::size_t next = points * width * number_bytes;
    const auto take = [&next](std::size_t size) {
      next = (next + 7) / 8 * 8;
      const std::size_t offset = next;
      next += size;
      return offset;
    };
    bounds = take(leaves * 2 * width * number_bytes);
    begins = take(2 * (leaves + 1) * sizeof(std::uint32_t));
    group_words = take(kGroupWords * leaves * sizeof(std::uint32_t));
    warp_sums = take(32 * sizeof(std::uint32_t));
    order = take(points * sizeof(std::uint16_t));
    bytes = next;
  }
};

struct BuildPlan {
  int together_levels = 0;  // levels whose segments are split together, each into two
  bool in_blocks = false;   // then blocks go on; else the segments are leaves
  int block_threads = 0;
  int block_items = 0;
  int block_capacity = 0;       // points
  std::size_t block_bytes = 0;  // of shared memory

  /// The most points that a segment of `level` has.
  static std::int64_t most_points(const KdTreeShape& shape, const KdTreeOptions& options, int level) {
    if (options.split == KdTreeSplit::kMidpoint) {
      return std::min(shape.points, kd_tree_capacity(shape, options.leaf_size, level));
    }
    return (shape.points + (std::int64_t{1} << level) - 1) >> level;
  }

  static std::int64_t tiles(std::int64_t points) {
    return std::max<std::int64_t>(1, (points + kTilePoints - 1) / kTilePoints);
  }

  BuildPlan(std::size_t number_bytes, const KdTreeShape& shape, const KdTreeOptions& options) {
    const int last = shape.levels - 1;
    for (int level = 0; level <= last; ++level) {
      together_levels = level;
      if (fits_block(number_bytes, shape, options, level)) return;
    }
  }

 private:
  /// With the smallest block that does. A group of a level has at most as many points as its threads take, so
  /// that there are never more groups than threads.
  bool fits_block(std::size_t number_bytes, const KdTreeShape& shape, const KdTreeOptions& options,
                  int level) {
    const std::int64_t points = most_points(shape, options, level);
    // Uneven groups may fill the room that their level has, up to the last point.
    const std::int64_t room =
        options.split == KdTreeSplit::kMidpoint ? kd_tree_capacity(shape, options.leaf_size, level) : points;
    const auto items = static_cast<int>(std::min<std::int64_t>(kMostBlockItems, options.leaf_size));
    const std::int64_t groups = std::int64_t{1} << (shape.levels - 1 - level);
    for (int threads = 64; threads <= kMostBlockThreads; threads *= 2) {
      if (room > std::int64_t{threads} * items || groups > threads) continue;
      const std::size_t bytes = BlockLayout(number_bytes, shape.dimensions, points, groups).bytes;
      if (bytes > kMostBlockBytes) return false;
      in_blocks = true;
      block_threads = threads;
      block_items = items;
      block_capacity = static_cast<int>(points);
      block_bytes = bytes;
      return true;
    }
    return false;
  }
};

/// Passes of a selection among numbers of so many bytes.
constexpr int selection_passes(std::size_t number_bytes) {
  return static_cast<int>(8 * number_bytes / kDigitBits);
}

/// What a level knows of each of its segments.
template <class Key>
struct Segment {
  std::int64_t begin;  // among all points
  std::int64_t count;
  std::int64_t left;  // points that go left
  Key least;          // of the segment's keys along its axis
  Key prefix;         // the pivot's key less `least`, without its undecided bits
  std::int64_t rank;  // of the pivot among the keys with this prefix; in the end, equal keys that go left
  std::int32_t undecided_bits;
  std::int32_t axis;
};

/// Scratch memory of a build, sized.
struct BuildScratch {
  std::size_t coordinates;
  std::size_t points;
  std::size_t segments;    // of the last level that is split together
  std::size_t tiles;       // of the level with most of them
  std::size_t bound_keys;  // of one level, and as many of the next
  std::size_t histograms;  // of all passes of one level

  BuildScratch(std::size_t number_bytes, const KdTreeShape& shape, const KdTreeOptions& options,
               const BuildPlan& plan)
      : coordinates(static_cast<std::size_t>(shape.coordinates())),
        points(static_cast<std::size_t>(shape.all_points())),
        segments(static_cast<std::size_t>(shape.trees << plan.together_levels)),
        tiles(0),
        bound_keys(segments * 2 * static_cast<std::size_t>(shape.dimensions)),
        histograms(plan.together_levels == 0
                       ? 0
                       : segments / 2 * kDigits * static_cast<std::size_t>(selection_passes(number_bytes))) {
    for (int level = 0; level < plan.together_levels; ++level) {
      const std::int64_t points_each = BuildPlan::most_points(shape, options, level);
      tiles =
          std::max(tiles, static_cast<std::size_t>((shape.trees << level) * BuildPlan::tiles(points_each)));
    }
  }
};

}  // namespace cumulus::kd_tree
