#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/kd_tree/kd_tree_arithmetic.h"
#include "kernels/kd_tree/nodes_cpu.h"

// Subtrees of few points on the CPU. Their points are sorted along every axis once; from then on medians and
// boxes are there to be read, and a level is a stable partition of each axis' order, without branches.
namespace cumulus::kd_tree {

/// The most points of such a subtree, which 16 bits number. Its orders stay in a core's own cache.
inline constexpr std::size_t kSubtreePoints = 32768;

/// Radix sort, from the least digit on: stable.
template <class T>
class AxisSort {
 public:
  void reserve(std::size_t count) {
    for (std::vector<Element>& elements : elements_) elements.resize(count);
  }

  /// `order` becomes 0 to count - 1, by (coordinate(i), i).
  template <class Coordinate>
  void sort(std::size_t count, const Coordinate& coordinate, std::uint16_t* order) {
    const int digits = read_keys(count, coordinate);
    Element* from = elements_[0].data();
    Element* to = elements_[1].data();
    for (int digit = 0; digit < digits; ++digit) {
      std::uint32_t begin = 0;
      auto& begins = counts_[static_cast<std::size_t>(digit)];
      for (std::uint32_t& bucket : begins) begin += std::exchange(bucket, begin);
      for (std::size_t i = 0; i < count; ++i) to[begins[bucket_of(from[i].key, digit)]++] = from[i];
      std::swap(from, to);
    }
    for (std::size_t i = 0; i < count; ++i) order[i] = from[i].id;
  }

 private:
  using Key = KeyOf<T>;
  struct Element {
    Key key;
    std::uint16_t id;
  };
  static constexpr int kDigitBits = 8;

  static std::size_t bucket_of(Key key, int digit) {
    return static_cast<std::size_t>(key >> (kDigitBits * digit)) & ((1u << kDigitBits) - 1);
  }

  /// Keys less the least of them, and how often each digit has each value. How many digits they have.
  template <class Coordinate>
  int read_keys(std::size_t count, const Coordinate& coordinate) {
    Key least = ~Key{0};
    Key greatest = 0;
    Element* elements = elements_[0].data();
    for (std::size_t i = 0; i < count; ++i) {
      const Key key = ordered_key(coordinate(i));
      elements[i] = {key, static_cast<std::uint16_t>(i)};
      least = std::min(least, key);
      greatest = std::max(greatest, key);
    }
    if (count == 0) return 0;
    const int digits =
        (static_cast<int>(std::bit_width(static_cast<Key>(greatest - least))) + kDigitBits - 1) / kDigitBits;
    for (int digit = 0; digit < digits; ++digit) counts_[static_cast<std::size_t>(digit)].fill(0);
    for (std::size_t i = 0; i < count; ++i) {
      elements[i].key -= least;
      for (int digit = 0; digit < digits; ++digit)
        ++counts_[static_cast<std::size_t>(digit)][bucket_of(elements[i].key, digit)];
    }
    return digits;
  }

  std::array<std::vector<Element>, 2> elements_;
  std::array<std::array<std::uint32_t, 1 << kDigitBits>, sizeof(Key)> counts_;
};

/// Builds one subtree after another, with memory of its own.
template <class T, int D>
class SubtreeBuilder {
 public:
  /// The subtree below `node` of `level`, over the `count` points of `source` that the tree's order has from
  /// `begin` on. `source` is in the order of indices; `target` becomes the tree's.
  void build(const Nodes<T, D>& nodes, int level, std::size_t node, std::size_t begin, std::size_t count,
             const PointRows<T>& source, const PointRows<T>& target) {
    nodes_ = &nodes;
    points_ = source.points;
    begin_ = begin;
    reserve(count);
    for (std::size_t axis = 0; axis < nodes.width(); ++axis) {
      sort_.sort(
          count, [&](std::size_t id) { return coordinate(id, axis); }, order(axis));
    }
    build_node(level, node, 0, count);
    const std::size_t width = nodes.width();
    for (std::size_t id = 0; id < count; ++id) {
      const std::size_t to = next_of_leaf_[leaf_begin_[id]]++;
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
    for (std::vector<std::uint16_t>* of_points : {&rights_, &leaf_begin_, &next_of_leaf_})
      of_points->resize(count);
    goes_left_.resize(count);
  }

  std::uint16_t* order(std::size_t axis) { return orders_.data() + axis * capacity_; }
  T coordinate(std::size_t id, std::size_t axis) const { return points_[id * nodes_->width() + axis]; }

  void build_node(int level, std::size_t node, std::size_t first, std::size_t count) {
    const Box<T, D> box = box_of(first, count);
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

  Box<T, D> box_of(std::size_t first, std::size_t count) {
    Box<T, D> box;
    if (count == 0) return box;
    for (std::size_t axis = 0; axis < nodes_->width(); ++axis) {
      box.lower[axis] = coordinate(order(axis)[first], axis);
      box.upper[axis] = coordinate(order(axis)[first + count - 1], axis);
    }
    return box;
  }

  void end_leaf(std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i)
      leaf_begin_[order(0)[i]] = static_cast<std::uint16_t>(first);
    if (count > 0) next_of_leaf_[first] = static_cast<std::uint16_t>(first);
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
      std::memcpy(ids + left, rights, (count - left) * sizeof(std::uint16_t));
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
  std::vector<std::uint16_t> leaf_begin_;    // of each point's leaf
  std::vector<std::uint16_t> next_of_leaf_;  // where the leaf that begins here goes on
};

}  // namespace cumulus::kd_tree
