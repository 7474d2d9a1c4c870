#pragma once

// Many queries are sorted by the tree itself: those of a warp then see much the same nodes and points.

#include <cstdint>

#include "kernels/kd_tree/query/bounds.cuh"
#include "kernels/kd_tree/query/layout.h"
#include "kernels/kd_tree/query/search.cuh"
#include "kernels/primitives/launch.cuh"
#include "kernels/primitives/warp_scan.cuh"

namespace cumulus::kd_tree {

/// Copies the boxes of each inner node's children side by side: a 16-byte load for each axis and step.
/// Owns: thread i the i-th inner node of all trees. Reads: the bounds of its two children. Writes: its
/// `boxes`. Waits for: the kernel in front. Cannot deadlock: no thread waits for another. Source: this
/// project's, after wide nodes of bounding volume hierarchies.
template <class T, int D>
__global__ void __launch_bounds__(kSearchThreads)
    gather_child_boxes(KdTreeShape shape, const T* node_bounds, ChildExtents* boxes) {
  wait_for_primary_kernel();
  allow_secondary_kernel();
  const std::int64_t nodes = shape.nodes();
  const std::int64_t inner_nodes = nodes / 2;
  const std::int64_t number = thread_number();
  if (number >= shape.trees * inner_nodes) return;
  const std::int64_t tree = number / inner_nodes;
  const std::int64_t left = 2 * (number - tree * inner_nodes) + 1;
  const T* lower = node_bounds + (2 * tree * nodes + left) * D;
  const T* upper = lower + nodes * D;
  for (int axis = 0; axis < D; ++axis) {
    boxes[number * D + axis] = {rounded_down(lower[axis]), rounded_up(upper[axis]),
                                rounded_down(lower[D + axis]), rounded_up(upper[D + axis])};
  }
}

/// A query as boxes see it, in FLOAT32. Each operation is rounded so that no point of a box is nearer than
/// the box, but for the rounding of the point's own sum (fused_bound).
template <class T, int D, bool kPeriodic>
class BoxQuery {
 public:
  /// `period` is read where axes may close on themselves.
  __device__ BoxQuery(const T* query, const T* period) {
#pragma unroll
    for (int axis = 0; axis < D; ++axis) {
      below_[axis] = rounded_down(query[axis]);
      above_[axis] = rounded_up(query[axis]);
      period_[axis] = kPeriodic ? rounded_down(period[axis]) : INFINITY;
    }
  }
  /// From both children of a node, whose extents are `boxes`.
  __device__ void squared_child_distances(const ChildExtents* boxes, float* left, float* right) const {
    *left = 0;
    *right = 0;
#pragma unroll
    for (int axis = 0; axis < D; ++axis) {
      const ChildExtents extents = boxes[axis];
      const float from_left = distance(axis, extents.left_lower, extents.left_upper);
      const float from_right = distance(axis, extents.right_lower, extents.right_upper);
      *left = __fmaf_rd(from_left, from_left, *left);
      *right = __fmaf_rd(from_right, from_right, *right);
    }
  }

 private:
  /// As axis_distance and periodic_axis_distance.
  __device__ float distance(int axis, float lower, float upper) const {
    const float direct = fmaxf(fmaxf(__fsub_rd(lower, above_[axis]), __fsub_rd(below_[axis], upper)), 0.0f);
    if constexpr (!kPeriodic) return direct;
    const float around =
        __fsub_rd(period_[axis], fmaxf(__fsub_ru(above_[axis], lower), __fsub_ru(upper, below_[axis])));
    return around < direct ? fmaxf(around, 0.0f) : direct;
  }

  float below_[D];
  float above_[D];
  float period_[D];
};

/// Scratch memory in which queries are sorted.
struct QuerySort {
  int level;                // queries are sorted by the node of this level that they come down to
  std::uint32_t* nodes;     // [queries]: that node, within its level
  std::uint32_t* ranks;     // [queries]: the query's number in its node
  std::uint32_t* order;     // [queries]: the queries of each tree, sorted
  std::uint32_t* counts;    // [trees, nodes of the level]: queries in each node; then where they begin
  std::uint32_t* reserved;  // [trees]: queries of nodes that have their place
  std::uint32_t* in_order;  // 1: queries are taken as they come, and nothing else here is written

  __device__ bool takes_as_they_come() const { return *in_order != 0; }
  /// The query at a place of a tree whose first query is `first`, as a number among all trees' queries.
  __device__ std::int64_t query_at(std::int64_t first, std::int64_t place) const {
    return first + (takes_as_they_come() ? place : order[first + place]);
  }
};

/// The inner nodes of all trees as their children's boxes. Whether axes close makes no odds to the order of
/// queries.
template <class T, int D>
struct BoxForest {
  const ChildExtents* boxes;
  std::int64_t inner_nodes;  // of a tree

  __device__ bool left_is_nearer(std::int64_t tree, std::uint32_t node, const T* query) const {
    float left;
    float right;
    BoxQuery<T, D, false>(query, nullptr)
        .squared_child_distances(boxes + (tree * inner_nodes + node) * D, &left, &right);
    return left <= right;
  }
};

/// Each query goes down to the nearer child, level after level, and is counted in the node that it comes to.
/// Owns: each thread of `threads` in all, query after query, as many apart.
/// Reads: the query; the nodes on its way down.
/// Writes: the query's node, and its rank there; the node's count, by an atomic addition.
/// Waits for: the kernel in front.
/// Cannot deadlock: no thread waits for another.
/// Source: this project's; a counting sort's histogram.
template <class T, int D, class Forest>
__global__ void __launch_bounds__(kSearchThreads)
    route_queries(Search<T> search, Forest forest, QuerySort sort) {
  wait_for_primary_kernel();
  allow_secondary_kernel();
  if (sort.takes_as_they_come()) return;
  const std::int64_t threads = std::int64_t{gridDim.x} * kSearchThreads;
  for (std::int64_t number = thread_number(); number < search.all_queries(); number += threads) {
    const std::int64_t tree = number / search.queries_each;
    const ThreadQuery<T, D> query(search, number);
    std::uint32_t node = 0;
    for (int level = 0; level < sort.level; ++level)
      node = 2 * node + (forest.left_is_nearer(tree, node, query.coordinates) ? 1 : 2);
    node -= (1u << sort.level) - 1;
    sort.nodes[number] = node;
    sort.ranks[number] = atomicAdd(sort.counts + (tree << sort.level) + node, 1u);
  }
}

inline constexpr unsigned kPlacedNodes = 1024;

/// Counts become the places where nodes' queries begin. Queries of a block's nodes stand together, in the
/// order of the nodes; blocks stand in any order, which costs nothing but a little locality between blocks.
/// Owns: block b of `blocks` a tree has kPlacedNodes nodes, from (b % blocks) * kPlacedNodes on, of tree
///   b / blocks; a thread one of them.
/// Reads: the nodes' counts.
/// Writes: where their queries begin; the tree's queries that have places, by an atomic addition.
/// Waits for: the kernel in front; nothing of other blocks, which reserve places by the atomic addition.
/// Cannot deadlock: all threads of a block reach its barriers.
/// Source: a counting sort's scan, with places reserved in place of a scan over blocks.
__global__ void __launch_bounds__(kPlacedNodes) place_nodes(QuerySort sort, unsigned blocks) {
  __shared__ std::uint32_t warp_sums[32];
  __shared__ std::uint32_t begin;
  wait_for_primary_kernel();
  allow_secondary_kernel();
  if (sort.takes_as_they_come()) return;
  const std::int64_t tree = blockIdx.x / blocks;
  const std::uint32_t node = (blockIdx.x % blocks) * kPlacedNodes + threadIdx.x;
  std::uint32_t* count = sort.counts + (tree << sort.level) + node;
  const bool exists = node < 1u << sort.level;
  const std::uint32_t queries = exists ? *count : 0;
  const unsigned warp = threadIdx.x / 32;
  std::uint32_t inclusive = warp_inclusive_sum(queries);
  if (threadIdx.x % 32 == 31) warp_sums[warp] = inclusive;
  __syncthreads();
  for (unsigned before = 0; before < warp; ++before) inclusive += warp_sums[before];
  if (threadIdx.x == kPlacedNodes - 1) begin = atomicAdd(sort.reserved + tree, inclusive);
  __syncthreads();
  if (exists) *count = begin + inclusive - queries;
}

/// The last step of the sort: each query at its place.
/// Owns: each thread of `threads` in all, query after query, as many apart.
/// Reads: its node and rank; where its node's queries begin.
/// Writes: its number at its place of `order`.
/// Waits for: the kernel in front.
/// Cannot deadlock: no thread waits for another.
/// Source: a counting sort's scatter.
__global__ void __launch_bounds__(kSearchThreads)
    order_queries(QuerySort sort, std::int64_t queries_each, std::int64_t all_queries) {
  wait_for_primary_kernel();
  allow_secondary_kernel();
  if (sort.takes_as_they_come()) return;
  const std::int64_t threads = std::int64_t{gridDim.x} * kSearchThreads;
  for (std::int64_t number = thread_number(); number < all_queries; number += threads) {
    const std::int64_t tree = number / queries_each;
    const std::int64_t place = sort.counts[(tree << sort.level) + sort.nodes[number]] + sort.ranks[number];
    sort.order[tree * queries_each + place] = static_cast<std::uint32_t>(number - tree * queries_each);
  }
}

}  // namespace cumulus::kd_tree
