#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/core/div.h"
#include "kernels/kd_tree/kd_tree.h"
#include "kernels/kd_tree/tuning.h"

// How a build on the GPU lies in memory, and how large its segments are. Everything follows from the shape
// and the options: segments' sizes are known, or bounded, before a point is read.
namespace cumulus::kd_tree {

/// The shared memory of a block that takes a segment down to its leaves; offsets in bytes. `groups` is its
/// number of leaves.
struct BlockLayout {
  std::size_t order;        // u16 [capacity]: the points in their present order
  std::size_t bounds;       // key [groups, 2, dimensions]
  std::size_t begins;       // u32 [2, groups + 1]: of the groups of this level, of the next
  std::size_t group_words;  // u32 [kGroupWords, groups]
  std::size_t warp_sums;    // u32 [32]
  std::size_t bytes;

  static constexpr int kGroupWords = 6;

  CUMULUS_HOST_DEVICE BlockLayout(std::size_t element_bytes, int dimensions, std::int64_t capacity,
                                  std::int64_t groups) {
    const auto points = static_cast<std::size_t>(capacity);
    const auto leaves = static_cast<std::size_t>(groups);
    const auto width = static_cast<std::size_t>(dimensions);
    std::size_t next = points * width * element_bytes;
    const auto take = [&next](std::size_t size) {
      next = divide_up(next, std::size_t{8}) * 8;
      const std::size_t offset = next;
      next += size;
      return offset;
    };
    bounds = take(leaves * 2 * width * element_bytes);
    begins = take(2 * (leaves + 1) * sizeof(std::uint32_t));
    group_words = take(kGroupWords * leaves * sizeof(std::uint32_t));
    warp_sums = take(32 * sizeof(std::uint32_t));
    order = take(points * sizeof(std::uint16_t));
    bytes = next;
  }
};

/// The most points that a segment of `level` has.
inline std::int64_t max_segment_points(const KdTreeShape& shape, const KdTreeOptions& options, int level) {
  if (options.split == KdTreeSplit::kMidpoint) {
    return std::min(shape.points, kd_tree_capacity(shape, options.leaf_size, level));
  }
  return (shape.points + (std::int64_t{1} << level) - 1) >> level;
}

/// Tiles of each segment of `level`.
inline std::int64_t segment_tiles(const KdTreeShape& shape, const KdTreeOptions& options, int level) {
  const std::int64_t points = max_segment_points(shape, options, level);
  return std::max<std::int64_t>(1, divide_up(points, kTilePoints));
}

/// Passes of a radix selection among numbers of so many bytes.
constexpr int selection_passes(std::size_t element_bytes) {
  return static_cast<int>(8 * element_bytes / kDigitBits);
}

/// What a level keeps of each of its segments.
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

}  // namespace cumulus::kd_tree
