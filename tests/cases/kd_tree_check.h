#pragma once

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/cases/kd_tree_case.h"

// KD-trees that are too large for the oracle. For tests and benchmarks.

namespace cumulus::testing {

/// Checks a tree of one cloud without building another, each node by its children: every point is there once,
/// every box is tight, every split falls where it must. A tree with kWidestSpread or kRoundRobin that passes
/// is the only one, but for kSampled: any plane between a node's children is right then. Empty, or what is
/// wrong.
template <class T>
class KdTreeCheck {
 public:
  KdTreeCheck(const std::vector<T>& cloud, const KdTreeOptions& options, const HostKdTree<T>& tree)
      : cloud_(cloud),
        options_(options),
        tree_(tree),
        points_(tree.shape.points),
        width_(static_cast<std::size_t>(tree.shape.dimensions)) {}

  std::string run() {
    std::vector<std::uint8_t> seen(tree_.idx_array.size());
    std::string wrong =
        first_wrong(points_, [&](std::int64_t position) { return point_fault(position, seen); });
    if (!wrong.empty()) return wrong;
    const auto missing = std::find(seen.begin(), seen.end(), 0);
    if (missing != seen.end()) return "point " + std::to_string(missing - seen.begin()) + " is missing";
    const KdTreeNode& root = tree_.node_data[0];
    if (root.begin != 0 || root.end != points_) return "the root has the wrong points";
    return first_wrong(tree_.shape.nodes(), [&](std::int64_t node) { return node_fault(node); });
  }

 private:
  struct Box {
    T lower[kMaxKdTreeDimensions];
    T upper[kMaxKdTreeDimensions];
  };

  /// Of `count` faults the first that is not empty; on all threads.
  template <class Fault>
  static std::string first_wrong(std::int64_t count, const Fault& fault) {
    std::atomic<std::int64_t> first(count);
    oneapi::tbb::parallel_for(
        oneapi::tbb::blocked_range<std::int64_t>(0, count, 1024), [&](const auto& range) {
          for (std::int64_t i = range.begin(); i < std::min(range.end(), first.load()); ++i) {
            if (fault(i).empty()) continue;
            std::int64_t before = first.load();
            while (i < before && !first.compare_exchange_weak(before, i)) {
            }
          }
        });
    return first < count ? fault(first) : "";
  }

  const T* point(std::int64_t position) const {
    return tree_.points.data() + static_cast<std::size_t>(position) * width_;
  }
  std::string point_fault(std::int64_t position, std::vector<std::uint8_t>& seen) const {
    const std::int64_t index = tree_.idx_array[static_cast<std::size_t>(position)];
    if (index < 0 || index >= points_) return "idx_array[" + std::to_string(position) + "] is out of range";
    std::atomic_ref<std::uint8_t>(seen[static_cast<std::size_t>(index)]).store(1, std::memory_order_relaxed);
    const T* given = cloud_.data() + static_cast<std::size_t>(index) * width_;
    if (std::equal(given, given + width_, point(position))) return "";
    return "point " + std::to_string(position) + " is not the cloud's";
  }

  Box box(std::int64_t node) const {
    Box stated{};
    const T* lower = tree_.node_bounds.data() + static_cast<std::size_t>(node) * width_;
    const T* upper = lower + static_cast<std::size_t>(tree_.shape.nodes()) * width_;
    std::copy_n(lower, width_, stated.lower);
    std::copy_n(upper, width_, stated.upper);
    return stated;
  }
  Box joined(std::int64_t node) const {
    Box both = box(2 * node + 1);
    const Box right = box(2 * node + 2);
    for (std::size_t axis = 0; axis < width_; ++axis) {
      both.lower[axis] = std::min(both.lower[axis], right.lower[axis]);
      both.upper[axis] = std::max(both.upper[axis], right.upper[axis]);
    }
    return both;
  }
  Box around(const KdTreeNode& leaf) const {
    Box tight{};
    std::fill_n(tight.lower, width_, std::numeric_limits<T>::infinity());
    std::fill_n(tight.upper, width_, -std::numeric_limits<T>::infinity());
    for (std::int64_t i = leaf.begin; i < leaf.end; ++i) {
      for (std::size_t axis = 0; axis < width_; ++axis) {
        tight.lower[axis] = std::min(tight.lower[axis], point(i)[axis]);
        tight.upper[axis] = std::max(tight.upper[axis], point(i)[axis]);
      }
    }
    return tight;
  }

  /// What is wrong with the node's box, or with its children's points.
  std::string node_fault(std::int64_t node) const {
    const KdTreeNode& found = tree_.node_data[static_cast<std::size_t>(node)];
    const std::string name = "node " + std::to_string(node);
    if (found.begin < 0 || found.begin > found.end || found.end > points_)
      return name + " has the wrong points";
    const bool leaf = node >= tree_.shape.nodes() / 2;
    const Box stated = box(node);
    const Box right = leaf ? around(found) : joined(node);
    if (!std::equal(right.lower, right.lower + width_, stated.lower) ||
        !std::equal(right.upper, right.upper + width_, stated.upper)) {
      return name + " has the wrong box";
    }
    if (leaf) return "";
    const std::int64_t middle = found.begin + (found.end - found.begin) / 2;
    const KdTreeNode& low = tree_.node_data[static_cast<std::size_t>(2 * node + 1)];
    const KdTreeNode& high = tree_.node_data[static_cast<std::size_t>(2 * node + 2)];
    const bool sampled = options_.medians == KdTreeMedians::kSampled;
    if (low.begin != found.begin || low.end != high.begin || high.end != found.end ||
        (low.end != middle && !sampled)) {
      return name + "'s children have the wrong points";
    }
    if (!sampled) return is_split(node, split_axis(node, stated)) ? "" : name + " is split wrongly";
    for (std::size_t axis = 0; axis < width_; ++axis) {
      if (is_split(node, axis)) return "";
    }
    return name + " is split by no plane";
  }

  /// Whether a plane across `axis` separates the node's children.
  bool is_split(std::int64_t node, std::size_t axis) const {
    const T last_left = box(2 * node + 1).upper[axis];
    const T first_right = box(2 * node + 2).lower[axis];
    return last_left < first_right ||
           (last_left == first_right &&
            ties_in_order(tree_.node_data[static_cast<std::size_t>(2 * node + 1)],
                          tree_.node_data[static_cast<std::size_t>(2 * node + 2)], axis, last_left));
  }

  std::size_t split_axis(std::int64_t node, const Box& of) const {
    if (options_.split == KdTreeSplit::kRoundRobin) {
      std::size_t level = 0;
      for (; node > 0; node = (node - 1) / 2) ++level;
      return level % width_;
    }
    const auto extent = [&](std::size_t axis) {
      return static_cast<double>(of.upper[axis]) - static_cast<double>(of.lower[axis]);
    };
    std::size_t widest = 0;
    for (std::size_t axis = 1; axis < width_; ++axis) {
      if (extent(axis) > extent(widest)) widest = axis;
    }
    return widest;
  }

  /// Of points at `x`, those on the left have the lesser indices.
  bool ties_in_order(const KdTreeNode& low, const KdTreeNode& high, std::size_t axis, T x) const {
    std::int64_t last_left = -1;
    std::int64_t first_right = points_;
    for (std::int64_t i = low.begin; i < low.end; ++i) {
      if (point(i)[axis] == x) last_left = std::max(last_left, tree_.idx_array[static_cast<std::size_t>(i)]);
    }
    for (std::int64_t i = high.begin; i < high.end; ++i) {
      if (point(i)[axis] == x)
        first_right = std::min(first_right, tree_.idx_array[static_cast<std::size_t>(i)]);
    }
    return last_left < first_right;
  }

  const std::vector<T>& cloud_;
  const KdTreeOptions options_;
  const HostKdTree<T>& tree_;
  const std::int64_t points_;
  const std::size_t width_;
};

}  // namespace cumulus::testing
