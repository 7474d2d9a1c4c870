#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kd_tree/kd_tree.h"

// KD-trees: clouds, the serial oracle of a build (every node sorted whole), verifier, bytes moved. For tests
// and benchmarks.

namespace cumulus::testing {

enum class CloudPattern {
  kUniform,     // in the unit cube
  kClustered,   // about few centres, of very different spreads
  kDuplicates,  // on a grid of 4 values an axis, zeros of both signs among them
  kAllEqual,
  kLine,        // along a diagonal, in order; no extent on the other axes
  kInfinities,  // uniform, with +Inf and -Inf among them
};

inline const std::vector<CloudPattern> kCloudPatterns = {
    CloudPattern::kUniform,  CloudPattern::kClustered, CloudPattern::kDuplicates,
    CloudPattern::kAllEqual, CloudPattern::kLine,      CloudPattern::kInfinities};

inline const char* name_of(CloudPattern pattern) {
  switch (pattern) {
    case CloudPattern::kUniform:
      return "uniform";
    case CloudPattern::kClustered:
      return "clustered";
    case CloudPattern::kDuplicates:
      return "duplicates";
    case CloudPattern::kAllEqual:
      return "all equal";
    case CloudPattern::kLine:
      return "line";
    case CloudPattern::kInfinities:
      return "infinities";
  }
  return "?";
}

/// [points, dimensions]
template <class T>
std::vector<T> make_cloud(std::int64_t points, int dimensions, CloudPattern pattern, std::uint32_t seed = 1) {
  std::mt19937 random(seed);
  const auto uniform = [&random] {
    return static_cast<T>(std::ldexp(static_cast<double>(random() >> 8), -24));
  };
  const auto element = [&](std::int64_t point, int axis, std::uint32_t cluster) -> T {
    switch (pattern) {
      case CloudPattern::kUniform:
        return uniform();
      case CloudPattern::kClustered: {
        const T centre = static_cast<T>((cluster * 7 + static_cast<std::uint32_t>(axis) * 5) % 11) / T{11};
        return centre + std::ldexp(uniform() + uniform() - T{1}, -static_cast<int>(cluster) - 2);
      }
      case CloudPattern::kDuplicates: {
        const auto value = static_cast<std::uint32_t>(random() % 5);
        return value == 4 ? -T{0} : static_cast<T>(value);
      }
      case CloudPattern::kAllEqual:
        return T{0.75};
      case CloudPattern::kLine:
        return axis < 2 ? static_cast<T>(point) : T{3};
      case CloudPattern::kInfinities: {
        const T x = uniform();
        const auto kind = static_cast<std::uint32_t>(random() % 8);
        return kind > 1 ? x : std::copysign(std::numeric_limits<T>::infinity(), kind == 0 ? T{1} : T{-1});
      }
    }
    return T{0};
  };
  std::vector<T> cloud;
  cloud.reserve(static_cast<std::size_t>(points * dimensions));
  for (std::int64_t point = 0; point < points; ++point) {
    const auto cluster = static_cast<std::uint32_t>(random() % 10);
    for (int axis = 0; axis < dimensions; ++axis) cloud.push_back(element(point, axis, cluster));
  }
  return cloud;
}

/// A forest's arrays in host memory.
template <class T>
struct HostKdTree {
  KdTreeShape shape;
  std::vector<T> points;
  std::vector<std::int64_t> idx_array;
  std::vector<KdTreeNode> node_data;
  std::vector<T> node_bounds;

  explicit HostKdTree(const KdTreeShape& of)
      : shape(of),
        points(static_cast<std::size_t>(of.coordinates())),
        idx_array(static_cast<std::size_t>(of.all_points())),
        node_data(static_cast<std::size_t>(of.all_nodes())),
        node_bounds(static_cast<std::size_t>(of.bounds())) {}

  KdTreeView<T, Space::kHost> view() const {
    return {{points.data(), points.size()},
            {idx_array.data(), idx_array.size()},
            {node_data.data(), node_data.size()},
            {node_bounds.data(), node_bounds.size()}};
  }
  KdTreeArrays<T, Space::kHost> arrays() {
    return {{points.data(), points.size()},
            {idx_array.data(), idx_array.size()},
            {node_data.data(), node_data.size()},
            {node_bounds.data(), node_bounds.size()}};
  }
};

/// The serial oracle: every node's indices are sorted whole, by coordinate and index.
template <class T>
class KdTreeOracle {
 public:
  KdTreeOracle(const std::vector<T>& cloud, const KdTreeShape& shape, const KdTreeOptions& options)
      : cloud_(cloud), options_(options), tree_(shape) {
    for (std::int64_t tree = 0; tree < shape.trees; ++tree) {
      std::vector<std::int64_t> indices(static_cast<std::size_t>(shape.points));
      std::iota(indices.begin(), indices.end(), 0);
      build(tree, 0, 0, 0, indices);
    }
  }

  const HostKdTree<T>& tree() const { return tree_; }

 private:
  T at(std::int64_t tree, std::int64_t index, int axis) const {
    return cloud_[static_cast<std::size_t>((tree * tree_.shape.points + index) * tree_.shape.dimensions +
                                           axis)];
  }

  void build(std::int64_t tree, int level, std::int64_t node, std::int64_t begin,
             std::vector<std::int64_t> indices) {
    const KdTreeShape& shape = tree_.shape;
    const auto count = static_cast<std::int64_t>(indices.size());
    std::vector<T> lower(16, std::numeric_limits<T>::infinity());
    std::vector<T> upper(16, -std::numeric_limits<T>::infinity());
    double squared_radius = 0;
    for (int axis = 0; axis < shape.dimensions; ++axis) {
      const auto a = static_cast<std::size_t>(axis);
      for (const std::int64_t index : indices) {
        lower[a] = std::min(lower[a], at(tree, index, axis));
        upper[a] = std::max(upper[a], at(tree, index, axis));
      }
      if (count > 0 && lower[a] != upper[a]) {
        const double half = 0.5 * (static_cast<double>(upper[a]) - static_cast<double>(lower[a]));
        squared_radius += half * half;
      }
      const auto element =
          static_cast<std::size_t>((2 * tree * shape.nodes() + node) * shape.dimensions + axis);
      tree_.node_bounds[element] = lower[a];
      tree_.node_bounds[element + static_cast<std::size_t>(shape.nodes() * shape.dimensions)] = upper[a];
    }
    const bool leaf = level + 1 == shape.levels;
    tree_.node_data[static_cast<std::size_t>(tree * shape.nodes() + node)] = {
        begin, begin + count, leaf ? 1 : 0, std::sqrt(squared_radius)};
    if (leaf) {
      std::sort(indices.begin(), indices.end());
      for (std::int64_t i = 0; i < count; ++i)
        store_point(tree, begin + i, indices[static_cast<std::size_t>(i)]);
      return;
    }
    const int axis =
        options_.split == KdTreeSplit::kRoundRobin ? level % shape.dimensions : widest(lower, upper);
    std::sort(indices.begin(), indices.end(), [&](std::int64_t a, std::int64_t b) {
      const T x = at(tree, a, axis);
      const T y = at(tree, b, axis);
      return x < y || (x == y && a < b);
    });
    std::int64_t left = count / 2;
    if (options_.split == KdTreeSplit::kMidpoint) {
      left = midpoint(tree, level, axis, indices, lower[static_cast<std::size_t>(axis)],
                      upper[static_cast<std::size_t>(axis)]);
    }
    build(tree, level + 1, 2 * node + 1, begin, {indices.begin(), indices.begin() + left});
    build(tree, level + 1, 2 * node + 2, begin + left, {indices.begin() + left, indices.end()});
  }

  int widest(const std::vector<T>& lower, const std::vector<T>& upper) const {
    int best = 0;
    double greatest = 0;
    for (int axis = 0; axis < tree_.shape.dimensions; ++axis) {
      const auto a = static_cast<std::size_t>(axis);
      const double extent = static_cast<double>(upper[a]) - static_cast<double>(lower[a]);
      if (extent > greatest) {
        greatest = extent;
        best = axis;
      }
    }
    return best;
  }

  std::int64_t midpoint(std::int64_t tree, int level, int axis, const std::vector<std::int64_t>& indices,
                        T lower, T upper) const {
    const auto count = static_cast<std::int64_t>(indices.size());
    const T middle = static_cast<T>(0.5 * static_cast<double>(lower) + 0.5 * static_cast<double>(upper));
    const std::int64_t left = std::count_if(
        indices.begin(), indices.end(), [&](std::int64_t index) { return at(tree, index, axis) <= middle; });
    if (left == 0 || left == count) return count / 2;
    std::int64_t room = 2 * options_.leaf_size;  // of either child
    for (int below = level + 2; below < tree_.shape.levels; ++below) room *= 2;
    return std::clamp(left, std::max<std::int64_t>(0, count - room), std::min(count, room));
  }

  void store_point(std::int64_t tree, std::int64_t position, std::int64_t index) {
    const KdTreeShape& shape = tree_.shape;
    tree_.idx_array[static_cast<std::size_t>(tree * shape.points + position)] = index;
    for (int axis = 0; axis < shape.dimensions; ++axis) {
      tree_.points[static_cast<std::size_t>((tree * shape.points + position) * shape.dimensions + axis)] =
          at(tree, index, axis);
    }
  }

  const std::vector<T>& cloud_;
  const KdTreeOptions options_;
  HostKdTree<T> tree_;
};

/// The first element in which two arrays differ: exactly, where -0 and 0 are equal.
template <class T>
std::string first_difference(const char* name, const std::vector<T>& wanted, const std::vector<T>& found) {
  if (wanted.size() != found.size()) return std::string(name) + ": sizes differ";
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == found[i]) continue;
    std::ostringstream text;
    text.precision(17);
    text << name << "[" << i << "] is " << found[i] << "; " << wanted[i] << " is right";
    return text.str();
  }
  return "";
}

/// Empty where `tree` is the one that the oracle builds, exactly; else its first wrong element.
template <class T>
std::string verify_kd_tree(const HostKdTree<T>& wanted, const HostKdTree<T>& tree) {
  for (std::size_t i = 0; i < wanted.node_data.size(); ++i) {
    const KdTreeNode& right = wanted.node_data[i];
    const KdTreeNode& node = tree.node_data[i];
    if (right.begin == node.begin && right.end == node.end && right.is_leaf == node.is_leaf &&
        right.radius == node.radius) {
      continue;
    }
    std::ostringstream text;
    text.precision(17);
    text << "node " << i << " is " << node.begin << " to " << node.end << ", leaf " << node.is_leaf
         << ", radius " << node.radius << "; " << right.begin << " to " << right.end << ", " << right.is_leaf
         << ", " << right.radius << " is right";
    return text.str();
  }
  std::string wrong = first_difference("idx_array", wanted.idx_array, tree.idx_array);
  if (wrong.empty()) wrong = first_difference("points", wanted.points, tree.points);
  if (wrong.empty()) wrong = first_difference("node_bounds", wanted.node_bounds, tree.node_bounds);
  return wrong;
}

/// Bytes that any build must move: the points read and written once, the order written once.
template <class T>
std::size_t kd_tree_bytes(const KdTreeShape& shape) {
  return static_cast<std::size_t>(2 * shape.coordinates()) * sizeof(T) +
         static_cast<std::size_t>(shape.all_points()) * sizeof(std::int64_t);
}

}  // namespace cumulus::testing
