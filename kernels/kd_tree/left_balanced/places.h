#pragma once

#include <cstdint>

#include "kernels/core/host_device.h"
#include "kernels/kd_tree/check.h"
#include "kernels/kd_tree/left_balanced.h"
#include "kernels/kd_tree/shape.h"

// Where the nodes of a left-balanced tree are; shared by both backends.
namespace cumulus::kd_tree {

/// Nodes below the left child of a tree of `count` nodes: all levels are full but the last, which is full up
/// to some node.
CUMULUS_HOST_DEVICE constexpr std::int64_t left_balanced_left(std::int64_t count) {
  if (count < 2) return 0;
  std::int64_t last_row = 1;  // nodes that the last level has room for
  while (2 * last_row <= count) last_row *= 2;
  const std::int64_t half = last_row / 2;
  const std::int64_t in_last_row = count - (last_row - 1);
  return half - 1 + (in_last_row < half ? in_last_row : half);
}

/// A subtree: its root, and its nodes' places in the tree's inorder.
struct LeftBalancedPart {
  std::int64_t node = 0;
  std::int64_t begin = 0;
  std::int64_t count = 0;

  CUMULUS_HOST_DEVICE constexpr std::int64_t root_place() const { return begin + left_balanced_left(count); }
  CUMULUS_HOST_DEVICE constexpr LeftBalancedPart left() const {
    return {2 * node + 1, begin, left_balanced_left(count)};
  }
  CUMULUS_HOST_DEVICE constexpr LeftBalancedPart right() const {
    return {2 * node + 2, root_place() + 1, begin + count - root_place() - 1};
  }
};

/// Of a tree of `count` nodes, the subtree of depth `depth` that the node at `place` of the inorder is in; a
/// node that is less deep is a part of its own.
CUMULUS_HOST_DEVICE constexpr LeftBalancedPart left_balanced_part(std::int64_t count, std::int64_t place,
                                                                  int depth) {
  LeftBalancedPart part{0, 0, count};
  for (int level = 0; level < depth; ++level) {
    const std::int64_t root = part.root_place();
    if (place == root) return {part.node, place, 1};
    part = place < root ? part.left() : part.right();
  }
  return part;
}

/// Levels of a tree of `count` nodes.
constexpr int left_balanced_levels(std::int64_t count) {
  int levels = 0;
  for (; count > 0; count /= 2) ++levels;
  return levels;
}

template <class T, Space S>
void check_left_balanced(Span<const T, S> points, const KdTreeShape& shape,
                         const LeftBalancedArrays<T, S>& arrays) {
  check_shape(shape);
  require(shape.all_points() <= kMaxLeftBalancedPoints,
          std::to_string(shape.all_points()) + " points of all trees; at most " +
              std::to_string(kMaxLeftBalancedPoints) + " are right");
  check_size("the input", points.size(), shape.coordinates());
  check_size("points", arrays.points.size(), shape.coordinates());
  check_size("idx_array", arrays.idx_array.size(), shape.all_points());
}

}  // namespace cumulus::kd_tree
