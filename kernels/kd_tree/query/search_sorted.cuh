#pragma once

// The nearest neighbours of sorted queries. Each thread traverses the tree by itself, but a warp's threads
// reconverge at their next leaves, and measure the points of these together.

#include <cstdint>

#include "kernels/kd_tree/query/bounds.cuh"
#include "kernels/kd_tree/query/nearest_lists.cuh"
#include "kernels/kd_tree/query/point_groups.cuh"
#include "kernels/kd_tree/query/search.cuh"
#include "kernels/kd_tree/query/sort.cuh"
#include "kernels/kd_tree/query/split_nodes.cuh"
#include "kernels/primitives/warp.cuh"

namespace cumulus::kd_tree {

/// Whether points are measured four at a time from where 16 bytes are read at once. FLOAT64 took longer so,
/// and points of many dimensions take too many registers.
template <class T, int D>
inline constexpr bool kReadsGroups = sizeof(T) == 4 && D <= kMaxSplitDimensions;

/// Blocks that a multiprocessor is to have registers for, where that is worth a few spills; 0: as the
/// compiler likes.
template <class T, int D, class List>
inline constexpr int kMinSortedBlocks = 0;
template <int D>
inline constexpr int kMinSortedBlocks<float, D, RegisterList<float>> =
    kReadsGroups<float, D> ? kRegisterListWarps * 32 / kRegisterListThreads : 0;

/// Points read before the first is waited for.
inline constexpr std::uint32_t kLoads = 4;

/// The fused distances of the points `first` to `first` + 3 from a query, of the last before `end` again
/// where there are no more; `first` is a multiple of 4.
template <class T, int D, bool kPeriodic>
__device__ void measure(const QueriedTree<T, D, kPeriodic>& tree, const PointGroups<T, D>& points,
                        const T* query, std::uint32_t first, std::uint32_t end, T (&distances)[kLoads]) {
  if constexpr (kReadsGroups<T, D>) {
    points.template squared_distances<kPeriodic, true>(query, tree.period(), first / kLoads, distances);
  } else {
#pragma unroll
    for (std::uint32_t j = 0; j < kLoads; ++j) {
      distances[j] =
          points.template squared_distance_of<kPeriodic, true>(query, tree.period(), min(first + j, end - 1));
    }
  }
}

/// A bit for each of the points `first` to `end` - 1, of at most 32, that may be within the limit; `first` is
/// a multiple of 4.
template <class T, int D, bool kPeriodic>
__device__ std::uint32_t near_points(const QueriedTree<T, D, kPeriodic>& tree,
                                     const PointGroups<T, D>& points, const T* query, std::uint32_t first,
                                     std::uint32_t end, T limit) {
  std::uint32_t near = 0;
  const T most = fused_bound(limit);
  for (std::uint32_t i = 0; i < 32 && first + i < end; i += kLoads) {
    T distances[kLoads];
    measure(tree, points, query, first + i, end, distances);
#pragma unroll
    for (std::uint32_t j = 0; j < kLoads; ++j)
      if (!(distances[j] > most)) near |= 1u << (i + j);  // NaN may be
  }
  return end - first < 32 ? near & ~(~0u << (end - first)) : near;
}

/// Of a leaf's points, what the `wanted`-th least squared distance is at most, of at most kCapacity; rounded
/// up to FLOAT32, and +Inf where there are fewer.
template <int kCapacity, class T, int D, bool kPeriodic>
__device__ T distance_of_last(const QueriedTree<T, D, kPeriodic>& tree, const PointGroups<T, D>& points,
                              const T* query, std::uint32_t begin, std::uint32_t end, int wanted) {
  float least[kCapacity];  // sorted; in front of the wanted ones, zeros, which nothing comes before
#pragma unroll
  for (int i = 0; i < kCapacity; ++i) least[i] = i < kCapacity - wanted ? 0.0f : INFINITY;
  for (std::uint32_t first = begin - begin % kLoads; first < end; first += kLoads) {
    T distances[kLoads];
    measure(tree, points, query, first, end, distances);
#pragma unroll
    for (std::uint32_t j = 0; j < kLoads; ++j) {
      float next = first + j >= begin && first + j < end ? fminf(rounded_up(distances[j]), INFINITY)
                                                         : INFINITY;  // of NaN, too
#pragma unroll
      for (int i = 0; i < kCapacity; ++i) {
        const float lesser = fminf(least[i], next);
        next = fmaxf(least[i], next);
        least[i] = lesser;
      }
    }
  }
  return fused_bound(static_cast<T>(least[kCapacity - 1]));
}

/// An insertion costs more than a distance: first, all lanes find which points of their leaves are within
/// their limits; then each offers its first one, its second one, and so on, so that lanes insert together. An
/// empty list in registers would take every point of its first leaf: those are measured once before, and no
/// more are offered than the list keeps.
template <class T, int D, bool kPeriodic, class List>
__device__ void offer_leaf(const QueriedTree<T, D, kPeriodic>& tree, const PointGroups<T, D>& points,
                           const T* query, std::uint32_t leaf, bool is_first, List& list) {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  tree.leaf_range(leaf, &begin, &end);
  T limit = static_cast<T>(INFINITY);
  if constexpr (List::kInRegisters) {
    if (is_first) limit = distance_of_last<List::kCapacity>(tree, points, query, begin, end, list.wanted());
  }
  for (std::uint32_t first = begin - begin % 4; first < end; first += 32) {
    std::uint32_t near = near_points(tree, points, query, first, end, fmin(limit, list.limit()));
    if (first < begin) near &= ~0u << (begin - first);
    for (; near != 0; near &= near - 1) {
      const std::uint32_t position = first + static_cast<std::uint32_t>(__ffs(static_cast<int>(near))) - 1;
      list.offer(candidate_key(points.template squared_distance_of<kPeriodic>(query, tree.period(), position),
                               static_cast<std::uint32_t>(tree.index(position))));
    }
  }
}

/// Offers the list all points that may be within its limit, the nearer child's of each node first. `boxes`
/// are those of the tree's inner nodes.
template <class T, int D, bool kPeriodic, class List>
__device__ void offer_near_points(const QueriedTree<T, D, kPeriodic>& tree, const PointGroups<T, D>& points,
                                  const ChildExtents* boxes, const T* query, List& list) {
  constexpr std::uint32_t kNone = ~0u;
  const BoxQuery<T, D, kPeriodic> box_query(query, tree.period());
  std::uint32_t later[kMaxKdTreeLevels];
  float later_distance[kMaxKdTreeLevels];
  int waiting = 0;
  bool is_first = true;
  float most = rounded_up(fused_bound(list.limit()));
  const auto next = [&] {
    while (waiting > 0) {
      --waiting;
      if (later_distance[waiting] <= most) return later[waiting];
    }
    return kNone;
  };
  for (std::uint32_t node = 0; node != kNone; node = next()) {
    while (node != kNone && !tree.is_leaf(node)) {
      float left;
      float right;
      box_query.squared_child_distances(boxes + static_cast<std::int64_t>(node) * D, &left, &right);
      const bool left_first = left <= right;
      const float nearer = left_first ? left : right;
      const float farther = left_first ? right : left;
      if (farther <= most) {
        later[waiting] = 2 * node + (left_first ? 2 : 1);
        later_distance[waiting] = farther;
        ++waiting;
      }
      node = nearer <= most ? 2 * node + (left_first ? 1 : 2) : next();
    }
    if (node == kNone) return;
    offer_leaf(tree, points, query, node, is_first, list);
    is_first = false;
    most = rounded_up(fused_bound(list.limit()));
  }
}

/// Where the neighbours of all queries go.
template <class T>
struct NearestRows {
  int neighbors;
  std::int64_t* indices;
  T* distances;
};

/// The whole warp writes the lists of its lanes, one after another; `column` is the first lane's. An active
/// lane has query `number`.
template <class T>
__device__ void store_lists(const Search<T>& search, const KeyColumn<T>& column, bool active,
                            std::int64_t number, const NearestRows<T>& rows) {
  const auto neighbors = static_cast<unsigned>(rows.neighbors);
  const unsigned lists = __ballot_sync(kFullWarp, active);
  for (unsigned item = threadIdx.x % 32; item < 32 * neighbors; item += 32) {
    const unsigned list = item / neighbors;
    const unsigned i = item - list * neighbors;
    const std::int64_t row = __shfl_sync(kFullWarp, number, static_cast<int>(list)) * rows.neighbors;
    if ((lists >> list & 1u) == 0) continue;
    const CandidateKey<T> key = column.of_lane(list).load(i);
    const bool found = key_index(key) != kNoPoint;
    rows.indices[row + i] = found ? static_cast<std::int64_t>(key_index(key)) : -1;
    rows.distances[row + i] = found ? search.shown(key_distance(key)) : static_cast<T>(INFINITY);
  }
}

/// The nearest neighbours of sorted queries, by groups of threads that see much the same nodes. That there is
/// one tree only saves registers.
/// Owns: thread i the i-th query of the slice in the order of `sort`; a warp's lists have columns of shared
/// memory. Reads: the query; the boxes, leaves and points that its search visits. Writes: the query's row of
/// indices and distances, by its warp. Waits for: the kernel in front; nothing of other warps; a warp's lanes
/// for each other before the rows are written. Cannot deadlock: a search visits each node at most once, and
/// all lanes come to the rows. Source: Bentley, CACM 1975; queries sorted for coherence, and leaves postponed
/// until all lanes have one, as
///   for rays in T. Aila and S. Laine, "Understanding the efficiency of ray traversal on GPUs", 2009.
template <class T, int D, bool kPeriodic, class List, bool kOneTree>
__global__ void __launch_bounds__(List::kThreads, kMinSortedBlocks<T, D, List>)
    search_sorted(Search<T> search, const ChildExtents* boxes, int neighbors, QuerySort sort,
                  std::int64_t* indices, T* distances) {
  extern __shared__ std::uint64_t columns[];
  wait_for_primary_kernel();
  allow_secondary_kernel();
  const std::int64_t place = search.begin + thread_number();
  const bool active = place < search.end && !search.has_fault();
  const std::int64_t tree_number = !kOneTree && active ? place / search.queries_each : 0;
  const std::int64_t before = tree_number * search.queries_each;
  const std::int64_t number = active ? sort.query_at(before, place - before) : 0;
  const KeyColumn<T> column(columns, static_cast<unsigned>(neighbors), List::kThreads / 32);
  if (active) {
    const auto tree = search.template tree<D, kPeriodic>(tree_number);
    const ThreadQuery<T, D> query(search, number);
    List list(neighbors, search.squared_radius(number), column.of_lane(threadIdx.x % 32));
    const PointGroups<T, D> points(search, tree_number);
    offer_near_points(tree, points, boxes + tree_number * (search.shape.nodes() / 2) * D, query.coordinates,
                      list);
    list.finish();
  }
  __syncwarp();
  store_lists<T>(search, column, active, number, {neighbors, indices, distances});
}

}  // namespace cumulus::kd_tree
