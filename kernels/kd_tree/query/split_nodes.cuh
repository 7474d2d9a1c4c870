#pragma once

// A tree's inner nodes as splits of 8 bytes, and its leaves as numbers of 4: what a search on a GPU goes
// through, so that it reads an eighth of what the nodes' boxes take.

#include <cstdint>

#include "kernels/kd_tree/query/bounds.cuh"
#include "kernels/kd_tree/query/layout.h"
#include "kernels/kd_tree/query/search.cuh"
#include "kernels/primitives/launch.cuh"

namespace cumulus::kd_tree {

/// The least number above `x` whose lowest bit is `bit`, or `x` itself: never NaN, except where x is +Inf and
/// `bit` is 1.
__device__ inline float raised_to_bit(float x, unsigned bit) {
  const float positive_zero = x + 0.0f;
  const unsigned bits = __float_as_uint(positive_zero);
  if ((bits & 1u) == bit) return positive_zero;
  return __uint_as_float((bits >> 31) != 0 ? bits - 1 : bits + 1);
}

/// A node's split, its bounds rounded outwards by a unit in the last place to hold the axis.
__device__ inline SplitNode split_at(int axis, float left_upper, float right_lower) {
  if (!(left_upper < INFINITY) || !(right_lower > -INFINITY)) return {INFINITY, -INFINITY};
  const auto bits = static_cast<unsigned>(axis);
  return {raised_to_bit(left_upper, bits & 1u), -raised_to_bit(-right_lower, bits >> 1)};
}
__device__ inline int axis_of(const SplitNode& node) {
  return static_cast<int>((__float_as_uint(node.left_upper) & 1u) | (__float_as_uint(node.right_lower) & 1u)
                                                                        << 1);
}

/// The splits and leaves of all trees.
struct SplitArrays {
  SplitNode* nodes;            // [trees, inner nodes]
  std::uint32_t* leaf_begins;  // [trees, leaves + 1]
};

/// Finds the axis along which each inner node's children lie apart, and where its leaves begin. Where there
/// is no such axis, as in a forged tree, neither child is ever passed by. Owns: thread i the i-th inner node
/// of all trees, and the i-th leaf. Reads: the bounds of the node's children; the leaf's first point. Writes:
/// its split; where the leaf begins, and after a tree's last one where it ends. Waits for: the kernel in
/// front. Cannot deadlock: no thread waits for another. Source: this project's; the two planes of a node are
/// those of bounding interval hierarchies (C. Waechter
///   and A. Keller, "Instant ray tracing: the bounding interval hierarchy", 2006).
template <class T, int D>
__global__ void __launch_bounds__(kSearchThreads) gather_splits(Search<T> search, SplitArrays arrays) {
  wait_for_primary_kernel();
  allow_secondary_kernel();
  const std::int64_t nodes = search.shape.nodes();
  const std::int64_t inner_nodes = nodes / 2;
  const std::int64_t number = thread_number();
  if (number >= search.all_leaves()) return;
  const std::int64_t leaf_tree = number / (inner_nodes + 1);
  const std::int64_t leaf = number - leaf_tree * (inner_nodes + 1);
  const KdTreeNode& node = search.node_data[leaf_tree * nodes + inner_nodes + leaf];
  std::uint32_t* begin = arrays.leaf_begins + leaf_tree * (inner_nodes + 2) + leaf;
  begin[0] = static_cast<std::uint32_t>(node.begin);
  if (leaf == inner_nodes) begin[1] = static_cast<std::uint32_t>(node.end);
  if (number >= search.shape.trees * inner_nodes) return;
  const std::int64_t tree = number / inner_nodes;
  const std::int64_t left = 2 * (number - tree * inner_nodes) + 1;
  const T* lower = search.node_bounds + (2 * tree * nodes + left) * D;
  const T* upper = lower + nodes * D;
  SplitNode split{INFINITY, -INFINITY};
  T widest = -1;
  for (int axis = 0; axis < D; ++axis) {
    const T gap = lower[D + axis] - upper[axis];
    if (!(gap > widest) || gap < 0) continue;
    widest = gap;
    split = split_at(axis, rounded_up(upper[axis]), rounded_down(lower[D + axis]));
  }
  arrays.nodes[number] = split;
}

__device__ inline SplitNode load_split(const SplitNode* node) {
  const float2 planes = __ldg(reinterpret_cast<const float2*>(node));
  return {planes.x, planes.y};
}

/// values[axis], of registers.
template <int D>
__device__ float at_axis(const float* values, int axis) {
  float value = values[0];
#pragma unroll
  for (int i = 1; i < D; ++i) value = axis == i ? values[i] : value;
  return value;
}

/// How far a query is from both children of a node, along the axis of its split.
struct ChildOffsets {
  int axis;
  float left;
  float right;
};

/// A query as splits see it, and sums of its offsets from them, which are those of no point beyond: they are
/// summed as a point's distance is, so that no such point is nearer, whatever the rounding.
template <class T, int D>
class SplitQuery;

template <int D>
class SplitQuery<float, D> {
 public:
  __device__ explicit SplitQuery(const float* query) {
#pragma unroll
    for (int axis = 0; axis < D; ++axis) x_[axis] = query[axis];
  }
  __device__ ChildOffsets offsets(const SplitNode& split) const {
    const int axis = axis_of(split);
    const float x = at_axis<D>(x_, axis);
    return {axis, fmaxf(x - split.left_upper, 0.0f), fmaxf(split.right_lower - x, 0.0f)};
  }
  __device__ static float square(float offset) { return multiply(offset, offset); }
  __device__ static float sum(float a, float b) { return add(a, b); }

 private:
  float x_[D];
};

/// Of FLOAT64 the offsets are FLOAT32, each operation rounded down: never more than the same in FLOAT64,
/// which rounds monotonely and holds each of them.
template <int D>
class SplitQuery<double, D> {
 public:
  __device__ explicit SplitQuery(const double* query) {
#pragma unroll
    for (int axis = 0; axis < D; ++axis) {
      below_[axis] = rounded_down(query[axis]);
      above_[axis] = rounded_up(query[axis]);
    }
  }
  __device__ ChildOffsets offsets(const SplitNode& split) const {
    const int axis = axis_of(split);
    return {axis, fmaxf(__fsub_rd(at_axis<D>(below_, axis), split.left_upper), 0.0f),
            fmaxf(__fsub_rd(split.right_lower, at_axis<D>(above_, axis)), 0.0f)};
  }
  __device__ static float square(float offset) { return __fmul_rd(offset, offset); }
  __device__ static float sum(float a, float b) { return __fadd_rd(a, b); }

 private:
  float below_[D];
  float above_[D];
};

/// The inner nodes of all trees as their splits.
template <class T, int D>
struct SplitForest {
  const SplitNode* nodes;
  std::int64_t inner_nodes;  // of a tree

  __device__ bool left_is_nearer(std::int64_t tree, std::uint32_t node, const T* query) const {
    const ChildOffsets child = SplitQuery<T, D>(query).offsets(load_split(nodes + tree * inner_nodes + node));
    return child.left <= child.right;
  }
};

/// One tree's splits and leaves.
struct SplitTree {
  const SplitNode* nodes;
  const std::uint32_t* leaf_begins;
  std::uint32_t inner_nodes;
  int levels;

  __device__ SplitTree(const KdTreeShape& shape, const SplitArrays& arrays, std::int64_t tree)
      : nodes(arrays.nodes + tree * (shape.nodes() / 2)),
        leaf_begins(arrays.leaf_begins + tree * (shape.nodes() / 2 + 2)),
        inner_nodes(static_cast<std::uint32_t>(shape.nodes() / 2)),
        levels(shape.levels) {}

  __device__ bool is_leaf(std::uint32_t node) const { return node >= inner_nodes; }
  __device__ SplitNode split(std::uint32_t node) const { return load_split(nodes + node); }
  __device__ std::uint32_t begin(std::uint32_t leaf) const {
    return __ldg(leaf_begins + (leaf - inner_nodes));
  }
  __device__ std::uint32_t end(std::uint32_t leaf) const {
    return __ldg(leaf_begins + (leaf - inner_nodes) + 1);
  }
};

}  // namespace cumulus::kd_tree
