#pragma once

// A query's traversal of a tree: one code for both backends.

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/kd_tree/kd_tree_query.h"
#include "kernels/kd_tree/math/arithmetic.h"
#include "kernels/kd_tree/math/dimensions.h"

namespace cumulus::kd_tree {

/// A search's parameters as its inner loops want them.
template <class T>
struct SearchParameters {
  T radius;
  bool squared;
  bool periodic;
  T period[kMaxKdTreeDimensions];  // +Inf where the axis does not close

  explicit SearchParameters(const NeighborSearch& search)
      : radius(static_cast<T>(search.radius)), squared(search.squared), periodic(false) {
    for (int axis = 0; axis < kMaxKdTreeDimensions; ++axis) {
      const double length = search.period[static_cast<std::size_t>(axis)];
      period[axis] = length > 0 ? static_cast<T>(length) : std::numeric_limits<T>::infinity();
      periodic = periodic || length > 0;
    }
  }
};

/// Where a forest's arrays lie.
template <class T>
struct TreeArrays {
  const T* points;
  const std::int64_t* idx_array;
  const KdTreeNode* node_data;
  const T* node_bounds;

  template <Space S>
  static TreeArrays of(const KdTreeView<T, S>& tree) {
    return {tree.points.data(), tree.idx_array.data(), tree.node_data.data(), tree.node_bounds.data()};
  }
};

/// One tree of a forest, and how far its points and boxes are from a query.
template <class T, int D, bool kPeriodic>
class QueriedTree {
 public:
  CUMULUS_KD_TREE_INLINE QueriedTree(const KdTreeShape& shape, const TreeArrays<T>& arrays, std::int64_t tree,
                                     const SearchParameters<T>& search)
      : dimensions_(shape.dimensions),
        count_(shape.points),
        inner_nodes_(static_cast<std::uint32_t>(shape.nodes() / 2)),
        points_(arrays.points + tree * shape.points * shape.dimensions),
        idx_array_(arrays.idx_array + tree * shape.points),
        nodes_(arrays.node_data + tree * shape.nodes()),
        lower_(arrays.node_bounds + 2 * tree * shape.nodes() * shape.dimensions),
        upper_(lower_ + shape.nodes() * shape.dimensions),
        search_(search) {}

  CUMULUS_KD_TREE_INLINE bool is_leaf(std::uint32_t node) const { return node >= inner_nodes_; }
  CUMULUS_KD_TREE_INLINE std::int64_t index(std::uint32_t position) const { return idx_array_[position]; }
  CUMULUS_KD_TREE_INLINE const T* period() const { return search_.period; }

  CUMULUS_KD_TREE_INLINE T squared_box_distance(const T* query, std::uint32_t node) const {
    const std::int64_t row = static_cast<std::int64_t>(node) * dimensions_.count();
    return squared_distance(query, lower_ + row, upper_ + row);
  }
  CUMULUS_KD_TREE_INLINE T squared_point_distance(const T* query, std::uint32_t position) const {
    const T* point = points_ + static_cast<std::int64_t>(position) * dimensions_.count();
    if constexpr (kPeriodic) return squared_distance(query, point, point);
    T sum = 0;
    for (int axis = 0; axis < dimensions_.count(); ++axis) {
      const T distance = axis_distance(query[axis], point[axis]);
      sum = add(sum, multiply(distance, distance));
    }
    return sum;
  }

  /// The leaf's points, as positions in the tree's order.
  CUMULUS_KD_TREE_INLINE void leaf_range(std::uint32_t leaf, std::uint32_t* begin, std::uint32_t* end) const {
    const std::int64_t first = nodes_[leaf].begin;
    const std::int64_t last = nodes_[leaf].end;
    *begin = static_cast<std::uint32_t>(first < 0 ? 0 : first > count_ ? count_ : first);
    *end = static_cast<std::uint32_t>(last < 0 ? 0 : last > count_ ? count_ : last);
  }

  /// Calls visit(position) for the leaf's points, in their order.
  template <class Visit>
  CUMULUS_KD_TREE_INLINE void for_points(std::uint32_t leaf, const Visit& visit) const {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    leaf_range(leaf, &begin, &end);
    for (std::uint32_t i = begin; i < end; ++i) visit(i);
  }

 private:
  CUMULUS_KD_TREE_INLINE T squared_distance(const T* query, const T* lower, const T* upper) const {
    T sum = 0;
    for (int axis = 0; axis < dimensions_.count(); ++axis) {
      T distance;
      if constexpr (kPeriodic) {
        distance = periodic_axis_distance(query[axis], lower[axis], upper[axis], search_.period[axis]);
      } else {
        distance = axis_distance(query[axis], lower[axis], upper[axis]);
      }
      sum = add(sum, multiply(distance, distance));
    }
    return sum;
  }

  const Dimensions<D> dimensions_;
  const std::int64_t count_;
  const std::uint32_t inner_nodes_;
  const T* const points_;
  const std::int64_t* const idx_array_;
  const KdTreeNode* const nodes_;
  const T* const lower_;
  const T* const upper_;
  const SearchParameters<T>& search_;
};

/// Calls visit(position, squared distance) for all points that may be within `limit()`, a squared distance
/// that may shrink meanwhile, the nearer child of each node first.
template <class T, class Tree, class Limit, class Visit>
CUMULUS_KD_TREE_INLINE void visit_nearest_first(const Tree& tree, const T* query, const Limit& limit,
                                                const Visit& visit) {
  std::uint32_t later[kMaxKdTreeLevels];
  T later_distance[kMaxKdTreeLevels];
  int waiting = 0;
  std::uint32_t node = 0;
  T distance = tree.squared_box_distance(query, 0);
  for (;;) {
    if (distance <= limit()) {
      if (!tree.is_leaf(node)) {
        const T left = tree.squared_box_distance(query, 2 * node + 1);
        const T right = tree.squared_box_distance(query, 2 * node + 2);
        const bool left_first = left <= right;
        later[waiting] = 2 * node + (left_first ? 2 : 1);
        later_distance[waiting] = left_first ? right : left;
        ++waiting;
        node = 2 * node + (left_first ? 1 : 2);
        distance = left_first ? left : right;
        continue;
      }
      tree.for_points(node, [&](std::uint32_t position) {
        visit(position, tree.squared_point_distance(query, position));
      });
    }
    if (waiting == 0) return;
    --waiting;
    node = later[waiting];
    distance = later_distance[waiting];
  }
}

/// Calls visit(position, squared distance) for all points within `squared_radius`, in the tree's order.
template <class T, class Tree, class Visit>
CUMULUS_KD_TREE_INLINE void visit_within(const Tree& tree, const T* query, T squared_radius,
                                         const Visit& visit) {
  std::uint32_t node = 0;
  for (;;) {
    if (tree.squared_box_distance(query, node) <= squared_radius) {
      if (!tree.is_leaf(node)) {
        node = 2 * node + 1;
        continue;
      }
      tree.for_points(node, [&](std::uint32_t position) {
        const T distance = tree.squared_point_distance(query, position);
        if (distance <= squared_radius) visit(position, distance);
      });
    }
    while (node != 0 && node % 2 == 0) node = (node - 1) / 2;  // up from right children
    if (node == 0) return;
    ++node;  // the right sibling
  }
}

/// The nearest points so far, nearest first, equal distances by index. Room for kCapacity of them.
template <class T, int kCapacity, class Tree>
class NearestList {
 public:
  CUMULUS_KD_TREE_INLINE NearestList(const Tree& tree, int wanted, T squared_radius)
      : tree_(tree), wanted_(wanted), squared_radius_(squared_radius) {}

  CUMULUS_KD_TREE_INLINE int size() const { return size_; }
  CUMULUS_KD_TREE_INLINE T squared_distance(int i) const { return distances_[i]; }
  CUMULUS_KD_TREE_INLINE std::int64_t index(int i) const { return tree_.index(positions_[i]); }

  /// Nothing farther can enter the list.
  CUMULUS_KD_TREE_INLINE T limit() const {
    return size_ < wanted_ ? squared_radius_ : distances_[wanted_ - 1];
  }

  CUMULUS_KD_TREE_INLINE void offer(std::uint32_t position, T distance) {
    if (!(distance <= squared_radius_)) return;
    int place = size_;
    if (size_ == wanted_) {
      if (!before(position, distance, wanted_ - 1)) return;
      --place;
    } else {
      ++size_;
    }
    for (; place > 0 && before(position, distance, place - 1); --place) {
      distances_[place] = distances_[place - 1];
      positions_[place] = positions_[place - 1];
    }
    distances_[place] = distance;
    positions_[place] = position;
  }

 private:
  CUMULUS_KD_TREE_INLINE bool before(std::uint32_t position, T distance, int other) const {
    if (distance != distances_[other]) return distance < distances_[other];
    return tree_.index(position) < tree_.index(positions_[other]);
  }

  const Tree& tree_;
  const int wanted_;
  const T squared_radius_;
  int size_ = 0;
  T distances_[kCapacity];
  std::uint32_t positions_[kCapacity];
};

/// What is wrong with a query; `radius` is its own.
template <class T>
CUMULUS_KD_TREE_INLINE NeighborReport find_fault(const T* query, int dimensions, T radius,
                                                 const SearchParameters<T>& search, std::int64_t number) {
  using Fault = NeighborReport::Fault;
  constexpr T kInfinity = static_cast<T>(INFINITY);
  for (int axis = 0; axis < dimensions; ++axis) {
    if (query[axis] != query[axis]) return {Fault::kNanCoordinate, axis, number};
    const bool closes = search.period[axis] < kInfinity;
    if (closes && !(query[axis] >= 0 && query[axis] <= search.period[axis])) {
      return {Fault::kQueryOutside, axis, number};
    }
  }
  if (!(radius >= 0)) return {Fault::kRadius, -1, number};
  return {Fault::kNone, -1, -1};
}

/// Whether a tree's root box lies outside of the period.
template <class T>
CUMULUS_KD_TREE_INLINE NeighborReport find_tree_fault(const KdTreeShape& shape, const T* node_bounds,
                                                      const SearchParameters<T>& search, std::int64_t tree) {
  const T* lower = node_bounds + 2 * tree * shape.nodes() * shape.dimensions;
  const T* upper = lower + shape.nodes() * shape.dimensions;
  constexpr T kInfinity = static_cast<T>(INFINITY);
  for (int axis = 0; axis < shape.dimensions; ++axis) {
    const bool closes = search.period[axis] < kInfinity;
    if (closes && (lower[axis] < 0 || upper[axis] > search.period[axis])) {
      return {NeighborReport::Fault::kTreeOutside, axis, tree};
    }
  }
  return {NeighborReport::Fault::kNone, -1, -1};
}

/// The last nodes of all levels, of each tree.
CUMULUS_KD_TREE_INLINE std::int64_t leaf_count(const KdTreeShape& shape) { return shape.nodes() / 2 + 1; }

/// What is wrong with a leaf; `number` counts through all trees.
CUMULUS_KD_TREE_INLINE NeighborReport find_leaf_fault(const KdTreeShape& shape, const KdTreeNode* node_data,
                                                      std::int64_t number) {
  const std::int64_t leaves = leaf_count(shape);
  const std::int64_t leaf = number % leaves;
  const KdTreeNode* node = node_data + number / leaves * shape.nodes() + (shape.nodes() / 2 + leaf);
  const std::int64_t begin = leaf == 0 ? 0 : node[-1].end;
  const std::int64_t least_end = leaf == leaves - 1 ? shape.points : begin;
  const bool is_right = node->begin == begin && node->end >= least_end && node->end <= shape.points;
  if (is_right && begin <= node->end) return {NeighborReport::Fault::kNone, -1, -1};
  return {NeighborReport::Fault::kLeaves, -1, number};
}

}  // namespace cumulus::kd_tree
