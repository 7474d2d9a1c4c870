#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/cases/neighbor_case.h"

// Left-balanced layouts: the serial oracle, which sorts every node's points whole, and a search that knows of
// the layout only what its documentation says.

namespace cumulus::testing {

/// The indices of one cloud's points, node after node.
template <class T>
class LeftBalancedOracle {
 public:
  LeftBalancedOracle(const T* cloud, std::int64_t points, int dimensions)
      : cloud_(cloud), dimensions_(dimensions), nodes_(static_cast<std::size_t>(points), -1) {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(points));
    std::iota(indices.begin(), indices.end(), 0);
    arrange(0, 0, indices);
  }

  const std::vector<std::int64_t>& nodes() const { return nodes_; }

 private:
  std::int64_t nodes_below(std::size_t node) const {
    if (node >= nodes_.size()) return 0;
    return 1 + nodes_below(2 * node + 1) + nodes_below(2 * node + 2);
  }

  void arrange(int depth, std::size_t node, std::vector<std::int64_t> indices) {
    if (indices.empty()) return;
    const auto key = [&](std::int64_t index) {
      return std::pair(cloud_[index * dimensions_ + depth % dimensions_] + T{0}, index);
    };
    std::sort(indices.begin(), indices.end(),
              [&](std::int64_t a, std::int64_t b) { return key(a) < key(b); });
    const std::int64_t left = nodes_below(2 * node + 1);
    nodes_[node] = indices[static_cast<std::size_t>(left)];
    arrange(depth + 1, 2 * node + 1, {indices.begin(), indices.begin() + left});
    arrange(depth + 1, 2 * node + 2, {indices.begin() + left + 1, indices.end()});
  }

  const T* cloud_;
  const int dimensions_;
  std::vector<std::int64_t> nodes_;
};

/// The `wanted` nearest nodes of one layout's points to `query`, as neighbours with the points' indices.
template <class T>
class LeftBalancedSearch {
 public:
  LeftBalancedSearch(const std::vector<T>& points, const std::vector<std::int64_t>& idx_array, int dimensions)
      : points_(points), idx_array_(idx_array), dimensions_(static_cast<std::size_t>(dimensions)) {}

  std::vector<Neighbor<T>> nearest(const T* query, std::size_t wanted) {
    found_.clear();
    visit(0, 0, query, wanted);
    return found_;
  }
  std::size_t visited() const { return visited_; }

 private:
  void visit(std::size_t node, std::size_t depth, const T* query, std::size_t wanted) {
    if (node >= idx_array_.size()) return;
    ++visited_;
    T sum = 0;
    for (std::size_t axis = 0; axis < dimensions_; ++axis) {
      const T distance = query[axis] - points_[node * dimensions_ + axis];
      sum += distance * distance;
    }
    found_.insert(std::upper_bound(found_.begin(), found_.end(), Neighbor<T>{sum, idx_array_[node]}),
                  {sum, idx_array_[node]});
    if (found_.size() > wanted) found_.pop_back();
    const std::size_t axis = depth % dimensions_;
    const T beyond = query[axis] - points_[node * dimensions_ + axis];
    const std::size_t near = 2 * node + (beyond < 0 ? 1 : 2);
    visit(near, depth + 1, query, wanted);
    if (found_.size() < wanted || beyond * beyond <= found_.back().squared_distance)
      visit(4 * node + 3 - near, depth + 1, query, wanted);
  }

  const std::vector<T>& points_;
  const std::vector<std::int64_t>& idx_array_;
  const std::size_t dimensions_;
  std::vector<Neighbor<T>> found_;
  std::size_t visited_ = 0;
};

}  // namespace cumulus::testing
