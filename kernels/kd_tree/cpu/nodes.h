#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/kd_tree/kd_tree.h"
#include "kernels/kd_tree/math/arithmetic.h"
#include "kernels/kd_tree/math/dimensions.h"

// What both parts of a build on the CPU do with a node.
namespace cumulus::kd_tree {

template <class T, int D>
struct Box {
  std::array<T, Dimensions<D>::kMax> lower;
  std::array<T, Dimensions<D>::kMax> upper;

  Box() {
    lower.fill(std::numeric_limits<T>::infinity());
    upper.fill(-std::numeric_limits<T>::infinity());
  }
  void include(std::size_t axis, T low, T high) {
    lower[axis] = low < lower[axis] ? low : lower[axis];
    upper[axis] = high > upper[axis] ? high : upper[axis];
  }
  void include(const Box& other) {
    for (std::size_t axis = 0; axis < lower.size(); ++axis)
      include(axis, other.lower[axis], other.upper[axis]);
  }
};

/// The box of `count` points.
template <class T, int D>
Box<T, D> box_of(const T* points, std::size_t count, Dimensions<D> dimensions) {
  constexpr std::size_t kAtOnce = 4;  // points, whose coordinates make up whole vectors
  const auto width = static_cast<std::size_t>(dimensions.count());
  std::array<T, kAtOnce * Dimensions<D>::kMax> lower;
  std::array<T, kAtOnce * Dimensions<D>::kMax> upper;
  lower.fill(std::numeric_limits<T>::infinity());
  upper.fill(-std::numeric_limits<T>::infinity());
  std::size_t i = 0;
  for (; i + kAtOnce <= count; i += kAtOnce) {
    for (std::size_t lane = 0; lane < kAtOnce * width; ++lane) {
      const T x = points[i * width + lane];
      lower[lane] = x < lower[lane] ? x : lower[lane];
      upper[lane] = x > upper[lane] ? x : upper[lane];
    }
  }
  Box<T, D> box;
  for (std::size_t lane = 0; lane < kAtOnce * width; ++lane)
    box.include(lane % width, lower[lane], upper[lane]);
  for (; i < count; ++i) {
    for (std::size_t axis = 0; axis < width; ++axis) {
      box.include(axis, points[i * width + axis], points[i * width + axis]);
    }
  }
  return box;
}

/// The nodes of one tree, and how they are split.
template <class T, int D>
class Nodes {
 public:
  Nodes(const KdTreeShape& shape, const KdTreeOptions& options, KdTreeNode* nodes, T* bounds)
      : shape_(shape), dimensions_(shape.dimensions), options_(options), nodes_(nodes), bounds_(bounds) {}

  std::size_t points() const { return static_cast<std::size_t>(shape_.points); }
  std::size_t width() const { return static_cast<std::size_t>(dimensions_.count()); }
  Dimensions<D> dimensions() const { return dimensions_; }
  bool is_last(int level) const { return level + 1 == shape_.levels; }

  void store(int level, std::size_t node, std::size_t begin, std::size_t count, const Box<T, D>& box) const {
    T* lower = bounds_ + node * width();
    T* upper = lower + static_cast<std::size_t>(shape_.nodes()) * width();
    for (std::size_t axis = 0; axis < width(); ++axis) {
      lower[axis] = box.lower[axis] + T{0};  // -0 becomes 0
      upper[axis] = box.upper[axis] + T{0};
    }
    nodes_[node] = {static_cast<std::int64_t>(begin), static_cast<std::int64_t>(begin + count),
                    is_last(level) ? 1 : 0,
                    box_radius(
                        dimensions_.count(), [=](int axis) { return lower[axis]; },
                        [=](int axis) { return upper[axis]; })};
  }

  std::size_t split_axis(int level, const Box<T, D>& box) const {
    if (options_.split == KdTreeSplit::kRoundRobin)
      return static_cast<std::size_t>(level % dimensions_.count());
    return static_cast<std::size_t>(widest_axis(
        dimensions_.count(), [&](int axis) { return box.lower[static_cast<std::size_t>(axis)]; },
        [&](int axis) { return box.upper[static_cast<std::size_t>(axis)]; }));
  }

  /// How many of the `count` points of a node of `level` go left. `up_to(x)` counts those whose coordinate is
  /// at most x.
  template <class CountUpTo>
  std::size_t split_position(int level, const Box<T, D>& box, std::size_t axis, std::size_t count,
                             const CountUpTo& up_to) const {
    if (options_.split != KdTreeSplit::kMidpoint) return count / 2;
    return static_cast<std::size_t>(
        midpoint_position(static_cast<std::int64_t>(count),
                          static_cast<std::int64_t>(up_to(middle(box.lower[axis], box.upper[axis]))),
                          kd_tree_capacity(shape_, options_.leaf_size, level + 1)));
  }

 private:
  const KdTreeShape& shape_;
  const Dimensions<D> dimensions_;
  const KdTreeOptions& options_;
  KdTreeNode* const nodes_;
  T* const bounds_;
};

/// Points of a tree under construction, and their indices.
template <class T>
struct PointRows {
  T* points;
  std::uint32_t* order;

  PointRows at(std::size_t row, std::size_t width) const { return {points + row * width, order + row}; }
};

}  // namespace cumulus::kd_tree
