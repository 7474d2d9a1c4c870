#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/host_device.h"
#include "kernels/core/scratch_arena.h"
#include "kernels/core/views.h"

namespace cumulus {

inline constexpr int kMinKdTreeDimensions = 2;
inline constexpr int kMaxKdTreeDimensions = 16;
/// Of one tree.
inline constexpr std::int64_t kMaxKdTreePoints = (std::int64_t{1} << 31) - 1;
inline constexpr int kMaxKdTreeLevels = 31;

/// Levels of a tree, as scikit-learn counts them: leaves have at least leaf_size points, and at most twice as
/// many.
constexpr int kd_tree_levels(std::int64_t points, std::int64_t leaf_size) {
  int levels = 1;
  for (std::int64_t leaves = (points - 1) / leaf_size; leaves > 1; leaves /= 2) ++levels;
  return levels;
}

/// A forest of trees of equal shape, each over points of its own.
struct KdTreeShape {
  std::int64_t trees = 1;   ///< 0 or more
  std::int64_t points = 0;  ///< of one tree: 0 to kMaxKdTreePoints
  int dimensions = 3;       ///< kMinKdTreeDimensions to kMaxKdTreeDimensions
  int levels = 1;           ///< 1 to kMaxKdTreeLevels

  /// Nodes of one tree.
  CUMULUS_HOST_DEVICE constexpr std::int64_t nodes() const { return (std::int64_t{1} << levels) - 1; }
  CUMULUS_HOST_DEVICE constexpr std::int64_t all_points() const { return trees * points; }
  CUMULUS_HOST_DEVICE constexpr std::int64_t all_nodes() const { return trees * nodes(); }
  CUMULUS_HOST_DEVICE constexpr std::int64_t coordinates() const { return all_points() * dimensions; }
  CUMULUS_HOST_DEVICE constexpr std::int64_t bounds() const { return 2 * all_nodes() * dimensions; }
};

/// The shape that build_kd_tree gives to trees of `points` points.
constexpr KdTreeShape kd_tree_shape(std::int64_t trees, std::int64_t points, int dimensions,
                                    std::int64_t leaf_size) {
  return {trees, points, dimensions, kd_tree_levels(points, leaf_size)};
}

/// The most points that a node of `level` may have, so that those below it find room in leaves of 2 *
/// leaf_size.
CUMULUS_HOST_DEVICE constexpr std::int64_t kd_tree_capacity(const KdTreeShape& shape, std::int64_t leaf_size,
                                                            int level) {
  const std::int64_t leaf = leaf_size < shape.points ? 2 * leaf_size : 2 * (shape.points + 1);
  return leaf << (shape.levels - 1 - level);
}

}  // namespace cumulus
