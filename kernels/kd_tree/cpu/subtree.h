#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/core/div.h"
#include "kernels/kd_tree/cpu/nodes.h"
#include "kernels/kd_tree/math/arithmetic.h"

// Subtrees of few points on the CPU. Their points are sorted along every axis once; from then on medians and
// boxes are there to be read, and a level is a stable partition of each axis' order, without branches.
namespace cumulus::kd_tree {

/// Radix sort, from the least digit on: stable. Longer keys are sorted by their leading bits, and what is
/// equal in these by comparison.
template <class T>
class AxisSort {
 public:
  void reserve(std::size_t count) {
    for (std::vector<Element>& elements : elements_) elements.resize(count);
  }

  /// `order` becomes 0 to count - 1, by (coordinate(i), i). All lie between `lower` and `upper`.
  template <class Coordinate>
  void sort(std::size_t count, T lower, T upper, const Coordinate& coordinate, std::uint16_t* order) {
    if (count == 0) return;
    const Key least = ordered_key(lower);
    const auto bits = static_cast<int>(std::bit_width(static_cast<Key>(ordered_key(upper) - least)));
    const int dropped = std::max(0, bits - kSortedBits);
    const int digits = divide_up(bits - dropped, kDigitBits);
    Element* from = elements_[0].data();
    Element* to = elements_[1].data();
    for (int digit = 0; digit < digits; ++digit) counts_[static_cast<std::size_t>(digit)].fill(0);
    for (std::size_t i = 0; i < count; ++i) {
      const auto key = static_cast<std::uint32_t>((ordered_key(coordinate(i)) - least) >> dropped);
      from[i] = {key, static_cast<std::uint16_t>(i)};
      for (int digit = 0; digit < digits; ++digit)
        ++counts_[static_cast<std::size_t>(digit)][bucket_of(key, digit)];
    }
    for (int digit = 0; digit < digits; ++digit) {
      std::uint32_t begin = 0;
      auto& begins = counts_[static_cast<std::size_t>(digit)];
      for (std::uint32_t& bucket : begins) begin += std::exchange(bucket, begin);
      for (std::size_t i = 0; i < count; ++i) to[begins[bucket_of(from[i].key, digit)]++] = from[i];
      std::swap(from, to);
    }
    for (std::size_t i = 0; i < count; ++i) order[i] = from[i].id;
    if (dropped > 0) sort_runs(count, from, coordinate, order);
  }

 private:
  using Key = KeyOf<T>;
  struct Element {
    std::uint32_t key;
    std::uint16_t id;
  };
  static constexpr int kSortedBits = 32;
  static constexpr int kDigitBits = 8;

  static std::size_t bucket_of(std::uint32_t key, int digit) {
    return static_cast<std::size_t>(key >> (kDigitBits * digit)) & ((1u << kDigitBits) - 1);
  }

  /// Puts those in order that differ only in what was dropped of their keys.
  template <class Coordinate>
  static void sort_runs(std::size_t count, const Element* sorted, const Coordinate& coordinate,
                        std::uint16_t* order) {
    const auto before = [&](std::uint16_t a, std::uint16_t b) {
      const Key key_a = ordered_key(coordinate(a));
      const Key key_b = ordered_key(coordinate(b));
      return key_a < key_b || (key_a == key_b && a < b);
    };
    for (std::size_t first = 0; first < count;) {
      std::size_t end = first + 1;
      while (end < count && sorted[end].key == sorted[first].key) ++end;
      if (!std::is_sorted(order + first, order + end, before)) std::sort(order + first, order + end, before);
      first = end;
    }
  }

  std::array<std::vector<Element>, 2> elements_;
  std::array<std::array<std::uint32_t, 1 << kDigitBits>, divide_up(kSortedBits, kDigitBits)> counts_;
};

/// A subtree: its root, and the range of the tree's order that its points have.
struct Subtree {
  int level;
  std::size_t node;
  std::size_t begin;
  std::size_t count;
};

/// Builds one subtree after another, with memory of its own.
template <class T, int D>
class SubtreeBuilder {
 public:
  /// `source` has the subtree's points in the order of indices; `target` becomes the tree's.
  void build(const Nodes<T, D>& nodes, const Subtree& subtree, const PointRows<T>& source,
             const PointRows<T>& target) {
    const std::size_t count = subtree.count;
    nodes_ = &nodes;
    points_ = source.points;
    begin_ = subtree.begin;
    reserve(count);
    const Box<T, D> box = kd_tree::box_of(source.points, count, nodes.dimensions());
    for (std::size_t axis = 0; axis < nodes.width(); ++axis) {
      sort_.sort(
          count, box.lower[axis], box.upper[axis], [&](std::size_t id) { return coordinate(id, axis); },
          order(axis));
    }
    next_of_leaf_.clear();
    build_node(subtree.level, subtree.node, 0, count);
    const std::size_t width = nodes.width();
    for (std::size_t id = 0; id < count; ++id) {
      const std::size_t to = next_of_leaf_[leaf_[id]]++;
      std::memcpy(target.points + to * width, source.points + id * width, width * sizeof(T));
      target.order[to] = source.order[id];
    }
  }

 private:
  void reserve(std::size_t count) {
    if (count <= capacity_) return;
    capacity_ = count;
    sort_.reserve(count);
    orders_.resize(nodes_->width() * count);
    rights_.resize(count);
    leaf_.resize(count);
    goes_left_.resize(count);
  }

  std::uint16_t* order(std::size_t axis) { return orders_.data() + axis * capacity_; }
  T coordinate(std::size_t id, std::size_t axis) const { return points_[id * nodes_->width() + axis]; }

  void build_node(int level, std::size_t node, std::size_t first, std::size_t count) {
    const Box<T, D> box = box_of_sorted(first, count);
    nodes_->store(level, node, begin_ + first, count, box);
    if (nodes_->is_last(level)) return end_leaf(first, count);
    const std::size_t axis = nodes_->split_axis(level, box);
    const std::uint16_t* sorted = order(axis) + first;
    const std::size_t left = nodes_->split_position(level, box, axis, count, [&](T x) {
      return std::partition_point(sorted, sorted + count,
                                  [&](std::uint16_t id) { return coordinate(id, axis) <= x; }) -
             sorted;
    });
    partition(axis, first, left, count);
    build_node(level + 1, 2 * node + 1, first, left);
    build_node(level + 1, 2 * node + 2, first + left, count - left);
  }

  Box<T, D> box_of_sorted(std::size_t first, std::size_t count) {
    Box<T, D> box;
    if (count == 0) return box;
    for (std::size_t axis = 0; axis < nodes_->width(); ++axis) {
      box.lower[axis] = coordinate(order(axis)[first], axis);
      box.upper[axis] = coordinate(order(axis)[first + count - 1], axis);
    }
    return box;
  }

  void end_leaf(std::size_t first, std::size_t count) {
    if (count == 0) return;
    const auto leaf = static_cast<std::uint16_t>(next_of_leaf_.size());
    for (std::size_t i = first; i < first + count; ++i) leaf_[order(0)[i]] = leaf;
    next_of_leaf_.push_back(static_cast<std::uint16_t>(first));
  }

  /// Stable, along every axis.
  void partition(std::size_t split_axis, std::size_t first, std::size_t left, std::size_t count) {
    const std::uint16_t* sorted = order(split_axis) + first;
    std::uint8_t* const goes_left = goes_left_.data();
    std::uint16_t* const rights = rights_.data();
    for (std::size_t i = 0; i < count; ++i) goes_left[sorted[i]] = i < left ? 1 : 0;
    for (std::size_t axis = 0; axis < nodes_->width(); ++axis) {
      if (axis == split_axis) continue;
      std::uint16_t* ids = order(axis) + first;
      std::size_t lefts = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint16_t id = ids[i];
        ids[lefts] = id;
        rights[i - lefts] = id;
        lefts += goes_left[id];
      }
      std::copy_n(rights, count - left, ids + left);
    }
  }

  const Nodes<T, D>* nodes_ = nullptr;
  const T* points_ = nullptr;
  std::size_t begin_ = 0;
  AxisSort<T> sort_;
  std::size_t capacity_ = 0;
  std::vector<std::uint16_t> orders_;  // [axes, capacity]
  std::vector<std::uint8_t> goes_left_;
  std::vector<std::uint16_t> rights_;
  std::vector<std::uint16_t> leaf_;          // of each point, among those that have any
  std::vector<std::uint16_t> next_of_leaf_;  // where the next of its points goes
};

}  // namespace cumulus::kd_tree
