#pragma once

// The nearest neighbour of each of many sorted queries. A search begins at the leaf that its query came down
// to when it was sorted, and climbs from there: the nodes next to the leaf come first, nothing is put on a
// stack on the way, and the distance to beat is small from the start.

#include <cstdint>

#include "kernels/kd_tree/query/best_keys.cuh"
#include "kernels/kd_tree/query/bounds.cuh"
#include "kernels/kd_tree/query/nearest_lists.cuh"
#include "kernels/kd_tree/query/point_groups.cuh"
#include "kernels/kd_tree/query/search.cuh"
#include "kernels/kd_tree/query/sort.cuh"
#include "kernels/kd_tree/query/split_nodes.cuh"
#include "kernels/kd_tree/tuning.h"
#include "kernels/primitives/warp.cuh"

namespace cumulus::kd_tree {

/// Subtrees that a search comes back to, and how far they are along each axis.
template <int D>
class LaterSubtrees {
 public:
  __device__ bool empty() const { return waiting_ == 0; }
  __device__ void push(std::uint32_t node, const float (&offsets)[D]) {
    Subtree subtree;
    subtree.node = node;
#pragma unroll
    for (int axis = 0; axis < D; ++axis) subtree.offsets[axis] = offsets[axis];
    subtrees_[waiting_++] = subtree;
  }
  __device__ std::uint32_t pop(float (&offsets)[D]) {
    const Subtree subtree = subtrees_[--waiting_];
#pragma unroll
    for (int axis = 0; axis < D; ++axis) offsets[axis] = subtree.offsets[axis];
    return subtree.node;
  }

 private:
  struct alignas(16) Subtree {
    float offsets[D];
    std::uint32_t node;
  };

  int waiting_ = 0;
  Subtree subtrees_[kMaxKdTreeLevels];
};

/// What a warp's lanes share: their queries, the best of each so far, and leaves that wait to be looked at.
template <class T, int D>
struct WarpSearch {
  static constexpr unsigned kLanes = 32;
  T queries[D][kLanes];
  BestKeys<T> best;
  std::uint32_t leaves[2 * kLanes];
  std::uint8_t owners[2 * kLanes];  // the lanes whose queries the leaves are for
};

/// The nearest neighbours of a warp's queries. A lane goes through the tree for its own query, but looks at
/// any lane's leaves: those that lanes come to wait until there is one for each lane.
template <class T, int D>
class ClosestWarp {
 public:
  using Query = SplitQuery<T, D>;

  __device__ ClosestWarp(const SplitTree& tree, const PointGroups<T, D>& points,
                         const std::int64_t* idx_array, WarpSearch<T, D>& shared)
      : tree_(tree), points_(points), idx_array_(idx_array), shared_(shared), lane_(threadIdx.x % 32) {}

  /// Of a lane's query, the best key so far; `start` is a node that it came down to, or the root.
  __device__ CandidateKey<T> run(const T (&coordinates)[D], const CandidateKey<T>& best, std::uint32_t start,
                                 bool active) {
#pragma unroll
    for (int axis = 0; axis < D; ++axis) shared_.queries[axis][lane_] = coordinates[axis];
    shared_.best.set(lane_, best);
    const Query query(coordinates);
    std::uint32_t climbed = start;
    while (active && !tree_.is_leaf(climbed)) {
      const ChildOffsets child = query.offsets(tree_.split(climbed));
      climbed = 2 * climbed + (child.left <= child.right ? 1 : 2);
    }
    append(active, climbed);
    look_at_leaves();
    const std::uint32_t path = climbed + 1;
    std::uint32_t siblings = active ? near_siblings(query, path) : 0;
    std::uint32_t node = kNone;
    float offsets[D];
    LaterSubtrees<D> later;
    do {
      // Each lane takes one step, whichever it is at.
      if (node == kNone && !later.empty()) {
        node = later.pop(offsets);
        if (!(squared(offsets) <= limit())) node = kNone;
      } else if (node == kNone && siblings != 0) {
        node = next_sibling(query, path, siblings, offsets);
      }
      if (node != kNone && !tree_.is_leaf(node)) node = step_down(query, node, offsets, later);
      const bool at_leaf = node != kNone && tree_.is_leaf(node);
      append(at_leaf, node);
      if (at_leaf) node = kNone;
      if (waiting_ >= 32) look_at_leaves();
    } while (__any_sync(kFullWarp, node != kNone || siblings != 0 || !later.empty()));
    while (waiting_ > 0) look_at_leaves();
    return shared_.best.of(lane_);
  }

 private:
  static constexpr std::uint32_t kNone = ~0u;

  __device__ float limit() const { return rounded_up(shared_.best.limit(lane_)); }

  __device__ static float squared(const float (&offsets)[D]) {
    float sum = 0;
#pragma unroll
    for (int axis = 0; axis < D; ++axis) sum = Query::sum(sum, Query::square(offsets[axis]));
    return sum;
  }

  /// How far the query is from the sibling of a node on its way, along the axis between them. Numbers of
  /// nodes here begin at 1.
  struct Sibling {
    std::uint32_t node;
    int axis;
    float offset;

    __device__ Sibling(const SplitTree& tree, const Query& query, std::uint32_t of) : node((of ^ 1u) - 1) {
      const ChildOffsets child = query.offsets(tree.split(of / 2 - 1));
      axis = child.axis;
      offset = of % 2 == 0 ? child.right : child.left;
    }
    __device__ bool is_within(float limit) const { return Query::square(offset) <= limit; }
  };

  /// A bit for each node on the way up from the leaf whose sibling is near enough, the leaf's the lowest.
  __device__ std::uint32_t near_siblings(const Query& query, std::uint32_t path) const {
    std::uint32_t near = 0;
    const float most = limit();
#pragma unroll 4
    for (int height = 0; height < tree_.levels - 1; ++height) {
      if (Sibling(tree_, query, path >> height).is_within(most)) near |= 1u << height;
    }
    return near;
  }

  /// The lowest sibling, or kNone where it is too far by now.
  __device__ std::uint32_t next_sibling(const Query& query, std::uint32_t path, std::uint32_t& siblings,
                                        float (&offsets)[D]) const {
    const Sibling sibling(tree_, query, path >> (__ffs(static_cast<int>(siblings)) - 1));
    siblings &= siblings - 1;
#pragma unroll
    for (int axis = 0; axis < D; ++axis) offsets[axis] = axis == sibling.axis ? sibling.offset : 0.0f;
    return sibling.is_within(limit()) ? sibling.node : kNone;
  }

  /// One step down, to the nearer child, or kNone where it is too far.
  __device__ std::uint32_t step_down(const Query& query, std::uint32_t node, float (&offsets)[D],
                                     LaterSubtrees<D>& later) const {
    const ChildOffsets child = query.offsets(tree_.split(node));
    const float most = limit();
    const bool left_first = child.left <= child.right;
    const float nearer = left_first ? child.left : child.right;
    const float farther = left_first ? child.right : child.left;
    float far_offsets[D];
#pragma unroll
    for (int axis = 0; axis < D; ++axis) {
      far_offsets[axis] = axis == child.axis ? fmaxf(offsets[axis], farther) : offsets[axis];
      offsets[axis] = axis == child.axis ? fmaxf(offsets[axis], nearer) : offsets[axis];
    }
    if (squared(far_offsets) <= most) later.push(2 * node + (left_first ? 2 : 1), far_offsets);
    return squared(offsets) <= most ? 2 * node + (left_first ? 1 : 2) : kNone;
  }

  /// By the whole warp: leaves of the lanes that have one.
  __device__ void append(bool has, std::uint32_t leaf) {
    const unsigned with = __ballot_sync(kFullWarp, has);
    const unsigned place = waiting_ + __popc(with & ((1u << lane_) - 1));
    if (has) {
      shared_.leaves[place] = leaf;
      shared_.owners[place] = static_cast<std::uint8_t>(lane_);
    }
    waiting_ += __popc(with);
    __syncwarp();
  }

  /// By the whole warp: a leaf for each lane, the last that came.
  __device__ void look_at_leaves() {
    const unsigned taken = min(waiting_, 32u);
    waiting_ -= taken;
    unsigned owner = lane_;
    ClosestPoint<T> closest{};
    if (lane_ < taken) {
      owner = shared_.owners[waiting_ + lane_];
      closest.limit = shared_.best.limit(owner);
      find_closest(shared_.leaves[waiting_ + lane_], owner, closest);
    }
    shared_.best.offer(closest.position != ClosestPoint<T>::kNone, owner, closest, idx_array_);
  }

  /// Of a leaf's points, and those beside them that are read with them, the closest to a lane's query. By
  /// fused distances the least of each group is found, and the least of all groups; only that group's points
  /// are offered, unless another's may be as near.
  __device__ void find_closest(std::uint32_t leaf, unsigned owner, ClosestPoint<T>& closest) const {
    constexpr std::uint32_t kPoints = PointGroups<T, D>::kPoints;
    T query[D];
    bool finite = true;  // else a fused distance may be NaN, which no minimum shows
#pragma unroll
    for (int axis = 0; axis < D; ++axis) {
      query[axis] = shared_.queries[axis][owner];
      finite = finite && fabs(query[axis]) < static_cast<T>(INFINITY);
    }
    const std::uint32_t end = tree_.end(leaf);
    const std::uint32_t begin = tree_.begin(leaf) / kPoints;
    std::uint32_t nearest = kNone;
    T least = fused_bound(closest.limit);
    T second = static_cast<T>(INFINITY);
    for (std::uint32_t group = begin; group * kPoints < end; ++group) {
      T distances[kPoints];
      points_.template squared_distances<false, true>(query, nullptr, group, distances);
      T of_group = distances[0];
#pragma unroll
      for (unsigned i = 1; i < kPoints; ++i) of_group = fmin(of_group, distances[i]);
      if (of_group <= least) nearest = group;
      second = fmin(second, fmax(of_group, least));
      least = fmin(of_group, least);
    }
    if (finite && nearest == kNone) return;
    if (finite && second > fused_bound(fused_bound(least))) return offer_group(query, nearest, closest);
    for (std::uint32_t group = begin; group * kPoints < end; ++group) offer_group(query, group, closest);
  }

  __device__ void offer_group(const T (&query)[D], std::uint32_t group, ClosestPoint<T>& closest) const {
    constexpr std::uint32_t kPoints = PointGroups<T, D>::kPoints;
    T distances[kPoints];
    points_.template squared_distances<false, false>(query, nullptr, group, distances);
#pragma unroll
    for (unsigned i = 0; i < kPoints; ++i)
      closest.offer(distances[i], min(group * kPoints + i, points_.count - 1), idx_array_);
  }

  const SplitTree& tree_;
  const PointGroups<T, D>& points_;
  const std::int64_t* const idx_array_;
  WarpSearch<T, D>& shared_;
  const unsigned lane_;
  unsigned waiting_ = 0;  // leaves; the same in all lanes
};

/// The nearest neighbours of sorted queries, by warps of queries that see much the same nodes. That there is
/// one tree only saves registers.
/// Owns: warp i the i-th 32 queries of a tree, in `order`, from the slice's first on; its part of shared
/// memory. Reads: the query; the splits, leaves and points that its search visits. Writes: the query's index
/// and distance. Waits for: the kernel in front; nothing of other warps; a warp's lanes for each other after
/// each step. Cannot deadlock: all lanes of a warp stay in its loop until none has anything left, and a
/// search visits
///   each node at most once on its way down and once on its way up.
/// Source: Bentley, CACM 1975; offsets along each axis as in S. Arya and D. Mount, "Algorithms for fast
/// vector
///   quantization", 1993; from the leaf upwards as stackless traversals of bounding volumes do; work of a
///   warp's lanes gathered until there is some for each, as in T. Aila and S. Laine, 2009.
template <class T, int D, bool kOneTree>
__global__ void __launch_bounds__(kClosestThreads)
    search_closest(Search<T> search, SplitArrays splits, QuerySort sort, std::int64_t* indices,
                   T* distances) {
  __shared__ WarpSearch<T, D> warps[kClosestThreads / 32];
  wait_for_primary_kernel();
  allow_secondary_kernel();
  if (search.has_fault()) return;
  const std::int64_t warp_number = search.begin + thread_number() / 32;
  if (warp_number >= search.end) return;
  const std::int64_t warps_each = divide_up(search.queries_each, std::int64_t{32});
  const std::int64_t tree_number = kOneTree ? 0 : warp_number / warps_each;
  const std::int64_t place = (warp_number - tree_number * warps_each) * 32 + threadIdx.x % 32;
  const bool active = place < search.queries_each;
  const std::int64_t first = tree_number * search.queries_each;
  const std::int64_t number = active ? sort.query_at(first, place) : first;
  const ThreadQuery<T, D> query(search, number);
  const SplitTree tree(search.shape, splits, tree_number);
  const PointGroups<T, D> points(search, tree_number);
  ClosestWarp<T, D> warp(tree, points, search.idx_array + tree_number * search.shape.points,
                         warps[threadIdx.x / 32]);
  const std::uint32_t start = sort.takes_as_they_come() ? 0 : sort.nodes[number] + ((1u << sort.level) - 1);
  const CandidateKey<T> best =
      warp.run(query.coordinates, candidate_key(search.squared_radius(number), kNoPoint), start, active);
  if (!active) return;
  const bool found = key_index(best) != kNoPoint;
  indices[number] = found ? static_cast<std::int64_t>(key_index(best)) : -1;
  distances[number] = found ? search.shown(key_distance(best)) : static_cast<T>(INFINITY);
}

}  // namespace cumulus::kd_tree
