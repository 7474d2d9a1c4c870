#pragma once

// The nearest neighbour of each of many sorted queries. A search begins at the leaf that its query came down
// to when it was sorted, and climbs from there: the nodes next to the leaf come first, nothing is put on a
// stack on the way, and the distance to beat is small from the start.

#include <cstdint>

#include "kernels/kd_tree/query/nearest_lists.cuh"
#include "kernels/kd_tree/query/search.cuh"
#include "kernels/kd_tree/query/sort.cuh"
#include "kernels/kd_tree/query/split_nodes.cuh"
#include "kernels/kd_tree/tuning.h"
#include "kernels/primitives/warp.cuh"

namespace cumulus::kd_tree {

/// The nearest point so far, of equally near ones that of the least index; or none within the radius.
struct ClosestPoint {
  static constexpr std::uint32_t kNone = ~0u;
  float limit;
  std::uint32_t position = kNone;

  __device__ void offer(float distance, std::uint32_t its, const std::int64_t* idx_array) {
    if (!(distance <= limit)) return;
    if (distance == limit && position != kNone && idx_array[its] >= idx_array[position]) return;
    limit = distance;
    position = its;
  }
};

/// One tree's points, four at a time where they lie so that 16 bytes are read at once.
template <int D>
struct PointGroups {
  static constexpr std::uint32_t kPoints = 4;
  const float* points;
  const std::int64_t* idx_array;
  std::uint32_t count;
  std::uint32_t
      vector_groups;  // that 16 bytes are read of at once: none where the tree's points begin elsewhere

  __device__ PointGroups(const Search<float>& search, std::int64_t tree)
      : points(search.tree_points + tree * search.shape.points * D),
        idx_array(search.idx_array + tree * search.shape.points),
        count(static_cast<std::uint32_t>(search.shape.points)),
        vector_groups(reinterpret_cast<std::uintptr_t>(points) % 16 == 0 ? count / kPoints : 0) {}

  __device__ void load(std::uint32_t group, float (&coordinates)[kPoints * D]) const {
    if (group < vector_groups) {
      const float4* vectors = reinterpret_cast<const float4*>(points) + static_cast<std::int64_t>(group) * D;
#pragma unroll
      for (int i = 0; i < D; ++i) {
        const float4 v = __ldg(vectors + i);
        coordinates[4 * i] = v.x;
        coordinates[4 * i + 1] = v.y;
        coordinates[4 * i + 2] = v.z;
        coordinates[4 * i + 3] = v.w;
      }
      return;
    }
#pragma unroll
    for (unsigned i = 0; i < kPoints; ++i) {  // the last point again where there are no more
      const std::int64_t row = static_cast<std::int64_t>(min(group * kPoints + i, count - 1)) * D;
#pragma unroll
      for (int axis = 0; axis < D; ++axis) coordinates[i * D + axis] = points[row + axis];
    }
  }

  /// Offers the points begin to end - 1, and those beside them that are read with them.
  __device__ void offer(const float* query, std::uint32_t begin, std::uint32_t end,
                        ClosestPoint& closest) const {
    for (std::uint32_t group = begin / kPoints; group * kPoints < end; ++group) {
      float coordinates[kPoints * D];
      load(group, coordinates);
      float distances[kPoints];
#pragma unroll
      for (unsigned i = 0; i < kPoints; ++i) {
        distances[i] = 0;
#pragma unroll
        for (int axis = 0; axis < D; ++axis) {
          const float distance = axis_distance(query[axis], coordinates[i * D + axis]);
          distances[i] = add(distances[i], multiply(distance, distance));
        }
      }
      const float least = fminf(fminf(distances[0], distances[1]), fminf(distances[2], distances[3]));
      if (!(least <= closest.limit)) continue;
#pragma unroll
      for (unsigned i = 0; i < kPoints; ++i)
        closest.offer(distances[i], min(group * kPoints + i, count - 1), idx_array);
    }
  }
};

/// Subtrees that a search comes back to, and how far they are along each axis.
template <int D>
class LaterSubtrees {
 public:
  __device__ bool empty() const { return waiting_ == 0; }
  __device__ void push(std::uint32_t node, const float (&offsets)[D]) {
    nodes_[waiting_] = node;
#pragma unroll
    for (int axis = 0; axis < D; ++axis) offsets_[waiting_][axis] = offsets[axis];
    ++waiting_;
  }
  __device__ std::uint32_t pop(float (&offsets)[D]) {
    --waiting_;
#pragma unroll
    for (int axis = 0; axis < D; ++axis) offsets[axis] = offsets_[waiting_][axis];
    return nodes_[waiting_];
  }

 private:
  int waiting_ = 0;
  std::uint32_t nodes_[kMaxKdTreeLevels];
  float offsets_[kMaxKdTreeLevels][D];
};

/// Summed as a point's distance is, so that no point of the subtree is nearer, whatever the rounding.
template <int D>
__device__ float squared_offsets(const float (&offsets)[D]) {
  float sum = 0;
#pragma unroll
  for (int axis = 0; axis < D; ++axis) sum = add(sum, multiply(offsets[axis], offsets[axis]));
  return sum;
}

/// What a warp's lanes share: their queries, the best of each so far, and leaves that wait to be looked at.
template <int D>
struct WarpSearch {
  static constexpr unsigned kLanes = 32;
  float queries[D][kLanes];
  std::uint64_t best[kLanes];  // candidate keys
  std::uint32_t leaves[2 * kLanes];
  std::uint8_t owners[2 * kLanes];  // the lanes whose queries the leaves are for
};

/// The nearest neighbours of a warp's queries. A lane goes through the tree for its own query, but looks at
/// any lane's leaves: those that lanes come to wait until there is one for each lane.
template <int D>
class ClosestWarp {
 public:
  __device__ ClosestWarp(const SplitTree& tree, const PointGroups<D>& points, WarpSearch<D>& shared)
      : tree_(tree), points_(points), shared_(shared), lane_(threadIdx.x % 32) {}

  /// Of a lane's query, the best key so far; `start` is a node that it came down to.
  __device__ std::uint64_t run(const float (&query)[D], std::uint64_t best, std::uint32_t start,
                               bool active) {
#pragma unroll
    for (int axis = 0; axis < D; ++axis) shared_.queries[axis][lane_] = query[axis];
    shared_.best[lane_] = best;
    std::uint32_t climbed = start;
    while (active && !tree_.is_leaf(climbed)) {
      const ChildOffsets<D> child(tree_.split(climbed), query);
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
        if (!(squared_offsets(offsets) <= limit())) node = kNone;
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
    return shared_.best[lane_];
  }

 private:
  static constexpr std::uint32_t kNone = ~0u;

  __device__ float limit() const { return key_distance(shared_.best[lane_]); }

  /// How far the query is from the sibling of a node on its way, along the axis between them. Numbers of
  /// nodes here begin at 1.
  struct Sibling {
    std::uint32_t node;
    int axis;
    float offset;

    __device__ Sibling(const SplitTree& tree, const float (&query)[D], std::uint32_t of)
        : node((of ^ 1u) - 1) {
      const ChildOffsets<D> child(tree.split(of / 2 - 1), query);
      axis = child.axis;
      offset = of % 2 == 0 ? child.right : child.left;
    }
    __device__ bool is_within(float limit) const { return multiply(offset, offset) <= limit; }
  };

  /// A bit for each node on the way up from the leaf whose sibling is near enough, the leaf's the lowest.
  __device__ std::uint32_t near_siblings(const float (&query)[D], std::uint32_t path) const {
    std::uint32_t near = 0;
    const float most = limit();
#pragma unroll 4
    for (int height = 0; height < tree_.levels - 1; ++height) {
      if (Sibling(tree_, query, path >> height).is_within(most)) near |= 1u << height;
    }
    return near;
  }

  /// The lowest sibling, or kNone where it is too far by now.
  __device__ std::uint32_t next_sibling(const float (&query)[D], std::uint32_t path, std::uint32_t& siblings,
                                        float (&offsets)[D]) const {
    const Sibling sibling(tree_, query, path >> (__ffs(static_cast<int>(siblings)) - 1));
    siblings &= siblings - 1;
#pragma unroll
    for (int axis = 0; axis < D; ++axis) offsets[axis] = axis == sibling.axis ? sibling.offset : 0.0f;
    return sibling.is_within(limit()) ? sibling.node : kNone;
  }

  /// One step down, to the nearer child, or kNone where it is too far.
  __device__ std::uint32_t step_down(const float (&query)[D], std::uint32_t node, float (&offsets)[D],
                                     LaterSubtrees<D>& later) const {
    const ChildOffsets<D> child(tree_.split(node), query);
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
    if (squared_offsets(far_offsets) <= most) later.push(2 * node + (left_first ? 2 : 1), far_offsets);
    return squared_offsets(offsets) <= most ? 2 * node + (left_first ? 1 : 2) : kNone;
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
    if (lane_ < taken) {
      const std::uint32_t leaf = shared_.leaves[waiting_ + lane_];
      const unsigned owner = shared_.owners[waiting_ + lane_];
      float query[D];
#pragma unroll
      for (int axis = 0; axis < D; ++axis) query[axis] = shared_.queries[axis][owner];
      ClosestPoint closest{key_distance(shared_.best[owner])};
      points_.offer(query, tree_.begin(leaf), tree_.end(leaf), closest);
      if (closest.position != ClosestPoint::kNone) {
        atomicMin(reinterpret_cast<unsigned long long*>(&shared_.best[owner]),
                  static_cast<unsigned long long>(candidate_key(
                      closest.limit, static_cast<std::uint32_t>(points_.idx_array[closest.position]))));
      }
    }
    __syncwarp();
  }

  const SplitTree& tree_;
  const PointGroups<D>& points_;
  WarpSearch<D>& shared_;
  const unsigned lane_;
  unsigned waiting_ = 0;  // leaves; the same in all lanes
};

/// The nearest neighbours of sorted queries, by warps of queries that see much the same nodes. That there is
/// one tree only saves registers.
/// Owns: warp i the i-th 32 queries of a tree, in `order`, from the slice's first on; its part of shared
/// memory. Reads: the query; the splits, leaves and points that its search visits. Writes: the query's index
/// and distance. Waits for: nothing of other warps; a warp's lanes for each other after each step. Cannot
/// deadlock: all lanes of a warp stay in its loop until none has anything left, and a search visits
///   each node at most once on its way down and once on its way up.
/// Source: Bentley, CACM 1975; offsets along each axis as in S. Arya and D. Mount, "Algorithms for fast
/// vector
///   quantization", 1993; from the leaf upwards as stackless traversals of bounding volumes do; work of a
///   warp's lanes gathered until there is some for each, as in T. Aila and S. Laine, 2009.
template <int D, bool kOneTree>
__global__ void __launch_bounds__(kClosestThreads)
    search_closest(Search<float> search, SplitArrays splits, QuerySort sort, std::int64_t* indices,
                   float* distances) {
  __shared__ WarpSearch<D> warps[kClosestThreads / 32];
  if (search.has_fault()) return;
  const std::int64_t warp_number = search.begin + thread_number() / 32;
  if (warp_number >= search.end) return;
  const std::int64_t warps_each = divide_up(search.queries_each, std::int64_t{32});
  const std::int64_t tree_number = kOneTree ? 0 : warp_number / warps_each;
  const std::int64_t place = (warp_number - tree_number * warps_each) * 32 + threadIdx.x % 32;
  const bool active = place < search.queries_each;
  const std::int64_t first = tree_number * search.queries_each;
  const std::int64_t number = first + (active ? sort.order[first + place] : 0);
  const ThreadQuery<float, D> query(search, number);
  const SplitTree tree(search.shape, splits, tree_number);
  const PointGroups<D> points(search, tree_number);
  ClosestWarp<D> warp(tree, points, warps[threadIdx.x / 32]);
  const std::uint64_t best =
      warp.run(query.coordinates, candidate_key(search.squared_radius(number), kNoPoint),
               sort.nodes[number] + ((1u << sort.level) - 1), active);
  if (!active) return;
  const bool found = key_index(best) != kNoPoint;
  indices[number] = found ? static_cast<std::int64_t>(key_index(best)) : -1;
  distances[number] = found ? search.shown(key_distance(best)) : INFINITY;
}

}  // namespace cumulus::kd_tree
