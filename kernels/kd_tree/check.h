#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/kd_tree/kd_tree.h"

// What the two backends refuse alike, before anything runs.
namespace cumulus::kd_tree {

inline void require(bool holds, const std::string& what) {
  if (!holds) throw std::invalid_argument("kd_tree: " + what);
}

inline void check_size(const char* name, std::size_t size, std::int64_t wanted) {
  require(size == static_cast<std::size_t>(wanted), std::string(name) + " has " + std::to_string(size) +
                                                        " elements; " + std::to_string(wanted) +
                                                        " are right");
}

inline void check_shape(const KdTreeShape& shape) {
  require(shape.trees >= 0, "a forest of " + std::to_string(shape.trees) + " trees");
  require(shape.points >= 0 && shape.points <= kMaxKdTreePoints,
          std::to_string(shape.points) + " points a tree; 0 to " + std::to_string(kMaxKdTreePoints) +
              " are right");
  require(shape.dimensions >= kMinKdTreeDimensions && shape.dimensions <= kMaxKdTreeDimensions,
          std::to_string(shape.dimensions) + " dimensions; 2 to 16 are right");
  require(shape.levels >= 1 && shape.levels <= kMaxKdTreeLevels,
          std::to_string(shape.levels) + " levels; 1 to 31 are right");
}

template <class Arrays>
void check_tree(const KdTreeShape& shape, const Arrays& tree) {
  check_shape(shape);
  check_size("points", tree.points.size(), shape.coordinates());
  check_size("idx_array", tree.idx_array.size(), shape.all_points());
  check_size("node_data", tree.node_data.size(), shape.all_nodes());
  check_size("node_bounds", tree.node_bounds.size(), shape.bounds());
}

template <class T, Space S>
void check_build(Span<const T, S> points, const KdTreeShape& shape, const KdTreeOptions& options,
                 const KdTreeArrays<T, S>& tree) {
  check_tree(shape, tree);
  check_size("the input", points.size(), shape.coordinates());
  require(options.leaf_size >= 1, "leaves of " + std::to_string(options.leaf_size) + " points");
  require(shape.levels == kd_tree_levels(shape.points, options.leaf_size),
          std::to_string(shape.levels) + " levels do not go with " + std::to_string(shape.points) +
              " points in leaves of " + std::to_string(options.leaf_size));
}

template <Space S>
void check_rows(const KdTreeShape& shape, Span<const std::int64_t, S> idx_array,
                Span<const std::byte, S> from, std::int64_t row_bytes, Span<std::byte, S> to) {
  check_shape(shape);
  require(row_bytes >= 0, "rows of " + std::to_string(row_bytes) + " bytes");
  check_size("idx_array", idx_array.size(), shape.all_points());
  check_size("the rows", from.size(), shape.all_points() * row_bytes);
  check_size("the permuted rows", to.size(), shape.all_points() * row_bytes);
}

}  // namespace cumulus::kd_tree
