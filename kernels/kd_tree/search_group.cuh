#pragma once

// The nearest neighbours of many queries: sorted by the tree itself, so that 32 neighbouring queries can go
// through it together, a warp at a time. All lanes see the same node or point; each measures its own
// distance.

#include <cstdint>

#include "kernels/kd_tree/search.cuh"

namespace cumulus::kd_tree {

/// Where the sorting of queries happens.
struct QuerySort {
  int level;                // queries are sorted by the node of this level that they come down to
  std::uint32_t* nodes;     // [queries]: that node, within its level
  std::uint32_t* ranks;     // [queries]: the query's number in its node
  std::uint32_t* order;     // [queries]: the queries of each tree, sorted
  std::uint32_t* counts;    // [trees, nodes of the level]: queries in each node; then where they begin
  std::uint32_t* reserved;  // [trees]: queries of nodes that have their place
};

/// Each query goes down to the nearer child, and is counted in the node that it comes to.
template <int D>
__global__ void __launch_bounds__(kSearchThreads) route_queries(Search<float> search, QuerySort sort) {
  const std::int64_t number = thread_number();
  if (number >= search.all_queries()) return;
  const std::int64_t tree_number = number / search.queries_each;
  const auto tree = search.template tree<D, false>(tree_number);
  const OwnQuery<float, D> query(search, number);
  std::uint32_t node = 0;
  for (int level = 0; level < sort.level; ++level) {
    const float left = tree.squared_box_distance(query.coordinates, 2 * node + 1);
    const float right = tree.squared_box_distance(query.coordinates, 2 * node + 2);
    node = 2 * node + (left <= right ? 1 : 2);
  }
  node -= (1u << sort.level) - 1;
  sort.nodes[number] = node;
  sort.ranks[number] = atomicAdd(sort.counts + (tree_number << sort.level) + node, 1u);
}

/// Gives the queries of each node a place. Those of the block's nodes stand together, in the order of the
/// nodes; blocks come in any order, which costs nothing but a little nearness. Block b has nodes b % blocks
/// of tree b / blocks.
inline constexpr unsigned kPlacedNodes = 1024;
__global__ void __launch_bounds__(kPlacedNodes) place_nodes(QuerySort sort, unsigned blocks) {
  __shared__ std::uint32_t warp_sums[32];
  __shared__ std::uint32_t begin;
  const std::int64_t tree = blockIdx.x / blocks;
  const std::uint32_t node = (blockIdx.x % blocks) * kPlacedNodes + threadIdx.x;
  std::uint32_t* count = sort.counts + (tree << sort.level) + node;
  const bool exists = node < 1u << sort.level;
  const std::uint32_t own = exists ? *count : 0;
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  std::uint32_t up_to = own;
  for (unsigned offset = 1; offset < 32; offset *= 2) {
    const std::uint32_t other = __shfl_up_sync(0xFFFFFFFFu, up_to, offset);
    if (lane >= offset) up_to += other;
  }
  if (lane == 31) warp_sums[warp] = up_to;
  __syncthreads();
  for (unsigned before = 0; before < warp; ++before) up_to += warp_sums[before];
  if (threadIdx.x == kPlacedNodes - 1) begin = atomicAdd(sort.reserved + tree, up_to);
  __syncthreads();
  if (exists) *count = begin + up_to - own;
}

__global__ void __launch_bounds__(kSearchThreads)
    order_queries(QuerySort sort, std::int64_t queries_each, std::int64_t all_queries) {
  const std::int64_t number = thread_number();
  if (number >= all_queries) return;
  const std::int64_t tree = number / queries_each;
  const std::int64_t place = sort.counts[(tree << sort.level) + sort.nodes[number]] + sort.ranks[number];
  sort.order[tree * queries_each + place] = static_cast<std::uint32_t>(number - tree * queries_each);
}

/// A candidate as a number that orders as (distance, index) does; no distance is negative.
__device__ inline std::uint64_t candidate_key(float squared_distance, std::uint32_t index) {
  return static_cast<std::uint64_t>(__float_as_uint(squared_distance)) << 32 | index;
}

/// The thread's nearest points so far, sorted, in registers: every index is known to the compiler.
template <int kCapacity>
class RegisterList {
 public:
  __device__ RegisterList(int wanted, float squared_radius)
      : wanted_(wanted), limit_(candidate_key(squared_radius, 0xFFFFFFFFu)) {
#pragma unroll
    for (int i = 0; i < kCapacity; ++i) keys_[i] = ~std::uint64_t{0};
  }

  /// Nothing farther can enter the list.
  __device__ float limit() const { return __uint_as_float(static_cast<unsigned>(limit_ >> 32)); }
  __device__ std::uint64_t limit_key() const { return limit_; }

  __device__ void insert(std::uint64_t key) {
#pragma unroll
    for (int i = kCapacity - 1; i > 0; --i) keys_[i] = min(keys_[i], max(keys_[i - 1], key));
    keys_[0] = min(keys_[0], key);
  }
  /// To be called after insertions.
  __device__ void update_limit() {
#pragma unroll
    for (int i = 0; i < kCapacity; ++i) {
      if (i == wanted_ - 1 && keys_[i] < limit_) limit_ = keys_[i];
    }
  }

  /// Writes the list as results of query `number`.
  __device__ void store(const Search<float>& search, std::int64_t number, std::int64_t* indices,
                        float* distances) const {
#pragma unroll
    for (int i = 0; i < kCapacity; ++i) {
      if (i >= wanted_) continue;
      const bool found = keys_[i] != ~std::uint64_t{0};
      indices[number * wanted_ + i] = found ? static_cast<std::int64_t>(keys_[i] & 0xFFFFFFFFu) : -1;
      distances[number * wanted_ + i] =
          found ? search.shown(__uint_as_float(static_cast<unsigned>(keys_[i] >> 32))) : INFINITY;
    }
  }

 private:
  const int wanted_;
  std::uint64_t limit_;
  std::uint64_t keys_[kCapacity];
};

/// Likewise; new candidates wait in shared memory until the warp takes them in together.
template <int kCapacity>
class GroupList {
 public:
  static constexpr unsigned kRoom = 16;         // candidates that can wait
  static constexpr unsigned kPointsAtOnce = 8;  // between looks at how many wait

  /// `waiting` is the thread's column of the block's shared memory, [kRoom][kSearchThreads].
  __device__ GroupList(int wanted, float squared_radius, std::uint64_t* waiting)
      : list_(wanted, squared_radius), waiting_(waiting) {}

  __device__ const RegisterList<kCapacity>& list() const { return list_; }
  __device__ float limit() const { return list_.limit(); }
  __device__ unsigned waiting() const { return waiting_count_; }

  __device__ void offer(std::uint64_t key) {
    if (key >= list_.limit_key()) return;
    waiting_[waiting_count_ * kSearchThreads] = key;
    ++waiting_count_;
  }

  /// The whole warp calls this.
  __device__ void take_in() {
    const unsigned most = __reduce_max_sync(0xFFFFFFFFu, waiting_count_);
    for (unsigned i = 0; i < most; ++i) {
      list_.insert(i < waiting_count_ ? waiting_[i * kSearchThreads] : ~std::uint64_t{0});
    }
    waiting_count_ = 0;
    list_.update_limit();
  }

 private:
  RegisterList<kCapacity> list_;
  std::uint64_t* const waiting_;
  unsigned waiting_count_ = 0;
};

/// Every lane measures every point of the leaf.
template <int D, int kCapacity, class Tree>
__device__ void visit_leaf(const Tree& tree, const float* query, std::uint32_t leaf, bool active,
                           GroupList<kCapacity>& list) {
  using List = GroupList<kCapacity>;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  tree.leaf_range(leaf, &begin, &end);
  for (std::uint32_t first = begin; first < end; first += List::kPointsAtOnce) {
    float distances[List::kPointsAtOnce];
#pragma unroll
    for (unsigned i = 0; i < List::kPointsAtOnce; ++i) {
      distances[i] = first + i < end ? tree.squared_point_distance(query, first + i) : 0.0f;
    }
#pragma unroll
    for (unsigned i = 0; i < List::kPointsAtOnce; ++i) {
      if (first + i < end && active && distances[i] <= list.limit()) {
        list.offer(candidate_key(distances[i], static_cast<std::uint32_t>(tree.index(first + i))));
      }
    }
    if (__any_sync(0xFFFFFFFFu, list.waiting() > List::kRoom - List::kPointsAtOnce)) list.take_in();
  }
  if (__any_sync(0xFFFFFFFFu, list.waiting() > 0)) list.take_in();
}

/// The warp goes to a node that any of its lanes has to see, the child first that is nearer to most.
template <int D, int kCapacity, class Tree>
__device__ void visit_together(const Tree& tree, const float* query, bool active, std::uint32_t* later,
                               GroupList<kCapacity>& list) {
  const auto is_near = [&](std::uint32_t node) {
    const float distance = tree.squared_box_distance(query, node);
    return __any_sync(0xFFFFFFFFu, active && distance <= list.limit()) != 0;
  };
  int waiting = 0;
  std::uint32_t node = 0;
  bool near = is_near(0);
  for (;;) {
    if (near && !tree.is_leaf(node)) {
      const float left = tree.squared_box_distance(query, 2 * node + 1);
      const float right = tree.squared_box_distance(query, 2 * node + 2);
      const bool left_near = __any_sync(0xFFFFFFFFu, active && left <= list.limit()) != 0;
      const bool right_near = __any_sync(0xFFFFFFFFu, active && right <= list.limit()) != 0;
      const unsigned sooner_left = __ballot_sync(0xFFFFFFFFu, active && left < right);
      const unsigned sooner_right = __ballot_sync(0xFFFFFFFFu, active && right < left);
      const bool left_first = left_near && (!right_near || __popc(sooner_left) >= __popc(sooner_right));
      if (left_near && right_near) {
        if (threadIdx.x % 32 == 0) later[waiting] = 2 * node + (left_first ? 2 : 1);
        __syncwarp();
        ++waiting;
      }
      near = left_near || right_near;
      node = 2 * node + (left_first ? 1 : 2);
      continue;
    }
    if (near) visit_leaf<D>(tree, query, node, active, list);
    if (waiting == 0) return;
    --waiting;
    node = later[waiting];
    __syncwarp();  // before the place is written again
    near = is_near(node);
  }
}

/// Thread i has the i-th of the sorted queries for itself: short lists change too often for 32 threads to
/// share a way.
template <int D, int kCapacity>
__global__ void __launch_bounds__(kSearchThreads)
    search_sorted(Search<float> search, int neighbors, const std::uint32_t* order, std::int64_t* indices,
                  float* distances) {
  const std::int64_t place = thread_number();
  if (place >= search.all_queries()) return;
  const std::int64_t tree_number = place / search.queries_each;
  const std::int64_t number = tree_number * search.queries_each + order[place];
  const auto tree = search.template tree<D, false>(tree_number);
  const OwnQuery<float, D> query(search, number);
  RegisterList<kCapacity> list(neighbors, search.squared_radius(number));
  visit_nearest_first(
      tree, query.coordinates, [&] { return list.limit(); },
      [&](std::uint32_t position, float distance) {
        if (!(distance <= list.limit())) return;
        const std::uint64_t key = candidate_key(distance, static_cast<std::uint32_t>(tree.index(position)));
        if (key >= list.limit_key()) return;
        list.insert(key);
        list.update_limit();
      });
  list.store(search, number, indices, distances);
}

/// Warp w has sorted queries 32 * (w % warps) ... of tree w / warps.
template <int D, int kCapacity>
__global__ void __launch_bounds__(kSearchThreads)
    search_together(Search<float> search, int neighbors, const std::uint32_t* order, std::int64_t warps,
                    std::int64_t* indices, float* distances) {
  using List = GroupList<kCapacity>;
  __shared__ std::uint64_t waiting[List::kRoom * kSearchThreads];
  __shared__ std::uint32_t later[kSearchThreads / 32][kMaxKdTreeLevels];
  const std::int64_t warp = thread_number() / 32;
  const std::int64_t tree_number = warp / warps;
  if (tree_number >= search.shape.trees) return;  // the whole warp
  const std::int64_t place = (warp - tree_number * warps) * 32 + threadIdx.x % 32;
  const bool active = place < search.queries_each;
  const std::int64_t number =
      tree_number * search.queries_each + (active ? order[tree_number * search.queries_each + place] : 0);
  const auto tree = search.template tree<D, false>(tree_number);
  const OwnQuery<float, D> query(search, number);
  List list(neighbors, search.squared_radius(number), waiting + threadIdx.x);
  visit_together<D>(tree, query.coordinates, active, later[threadIdx.x / 32], list);
  if (!active) return;
  list.list().store(search, number, indices, distances);
}

}  // namespace cumulus::kd_tree
