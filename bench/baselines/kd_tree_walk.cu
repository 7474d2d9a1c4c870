#include <cuda_runtime.h>

#include <cmath>
#include <stdexcept>

#include "bench/baselines/kd_tree_walk.h"
#include "kernels/core/cuda_error.h"
#include "kernels/core/div.h"

namespace cumulus::bench {
namespace {

/// The closest point so far.
struct ClosestNode {
  float limit = INFINITY;
  int node = -1;

  __device__ explicit ClosestNode(int /*wanted*/) {}
  __device__ void offer(int its, float distance) {
    if (distance >= limit) return;
    limit = distance;
    node = its;
  }
  __device__ void store(const TreeWalkJob& job, std::int64_t query) const {
    job.indices[query] = job.idx_array[node];
    job.distances[query] = sqrtf(limit);
  }
};

/// The closest so far as a heap, the farthest on top, each a distance's bits above its node.
template <int kCapacity>
struct NodeHeap {
  float limit = INFINITY;
  int wanted;
  std::uint64_t keys[kCapacity];

  __device__ explicit NodeHeap(int count) : wanted(count) {
    for (int i = 0; i < wanted; ++i) keys[i] = key_of(INFINITY, -1);
  }
  __device__ static std::uint64_t key_of(float distance, int node) {
    return std::uint64_t{__float_as_uint(distance)} << 32 | static_cast<std::uint32_t>(node);
  }
  __device__ void offer(int node, float distance) {
    if (distance >= limit) return;
    sink(key_of(distance, node), wanted);
    limit = __uint_as_float(static_cast<unsigned>(keys[0] >> 32));
  }
  __device__ void sink(std::uint64_t key, int count) {
    int place = 0;
    for (int child = 1; child < count; child = 2 * place + 1) {
      if (child + 1 < count && keys[child + 1] > keys[child]) ++child;
      if (keys[child] <= key) break;
      keys[place] = keys[child];
      place = child;
    }
    keys[place] = key;
  }
  __device__ void store(const TreeWalkJob& job, std::int64_t query) {
    for (int rest = wanted - 1; rest >= 0; --rest) {
      const std::uint64_t top = keys[0];
      if (rest > 0) sink(keys[rest], rest);
      job.indices[query * wanted + rest] = job.idx_array[static_cast<std::uint32_t>(top)];
      job.distances[query * wanted + rest] = sqrtf(__uint_as_float(static_cast<unsigned>(top >> 32)));
    }
  }
};

/// A node's distance from a query, and the query's from the node's plane.
struct NodeDistances {
  float squared;
  float to_plane;

  __device__ NodeDistances(const float* nodes, int node, const float (&query)[3]) {
    const float* point = nodes + 3 * static_cast<std::int64_t>(node);
    const float x = query[0] - point[0];
    const float y = query[1] - point[1];
    const float z = query[2] - point[2];
    squared = x * x + y * y + z * z;
    const int axis = (31 - __clz(node + 1)) % 3;
    to_plane = axis == 0 ? x : axis == 1 ? y : z;
  }
};

template <class List>
__device__ void walk_with_stack(const float* nodes, int points, const float (&query)[3], List& list) {
  int later[30];
  float later_distance[30];
  int waiting = 0;
  int node = 0;
  for (;;) {
    while (node < points) {
      const NodeDistances from(nodes, node, query);
      list.offer(node, from.squared);
      const int side = from.to_plane < 0 ? 0 : 1;
      const int far = 2 * node + 2 - side;
      const float squared = from.to_plane * from.to_plane;
      if (squared < list.limit && far < points) {
        later[waiting] = far;
        later_distance[waiting++] = squared;
      }
      node = 2 * node + 1 + side;
    }
    do {
      if (waiting == 0) return;
      --waiting;
    } while (later_distance[waiting] >= list.limit);
    node = later[waiting];
  }
}

template <class List>
__device__ void walk_without_stack(const float* nodes, int points, const float (&query)[3], List& list) {
  int before = -1;
  int node = 0;
  while (node >= 0) {
    const int parent = (node + 1) / 2 - 1;
    if (node >= points) {  // a near child that is not there
      before = node;
      node = parent;
      continue;
    }
    const NodeDistances from(nodes, node, query);
    const int child = 2 * node + 1;
    if (before < child) list.offer(node, from.squared);
    const int side = from.to_plane > 0 ? 1 : 0;
    const int near = child + side;
    const int far = child + 1 - side;
    int next = parent;
    if (before == near) {
      if (far < points && from.to_plane * from.to_plane < list.limit) next = far;
    } else if (before != far && child < points) {
      next = near;
    }
    before = node;
    node = next;
  }
}

template <class List, bool kWithStack>
__global__ void walk_queries(TreeWalkJob job) {
  const std::int64_t number = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (number >= job.count) return;
  const float query[3] = {job.queries[3 * number], job.queries[3 * number + 1], job.queries[3 * number + 2]};
  List list(job.neighbors);
  if constexpr (kWithStack) {
    walk_with_stack(job.nodes, static_cast<int>(job.points), query, list);
  } else {
    walk_without_stack(job.nodes, static_cast<int>(job.points), query, list);
  }
  list.store(job, number);
}

template <class List>
void walk_with(CudaExecutor& executor, TreeWalk walk, int threads, const TreeWalkJob& job) {
  const auto blocks = static_cast<unsigned>(divide_up(job.count, threads));
  const auto kernel = walk == TreeWalk::kStack ? walk_queries<List, true> : walk_queries<List, false>;
  kernel<<<blocks, static_cast<unsigned>(threads), 0, executor.stream()>>>(job);
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace

void walk_tree(CudaExecutor& executor, TreeWalk walk, int threads, const TreeWalkJob& job) {
  if (job.neighbors == 1) return walk_with<ClosestNode>(executor, walk, threads, job);
  if (job.neighbors <= 8) return walk_with<NodeHeap<8>>(executor, walk, threads, job);
  if (job.neighbors <= 64) return walk_with<NodeHeap<64>>(executor, walk, threads, job);
  throw std::invalid_argument("walk_tree keeps at most 64 neighbours");
}

}  // namespace cumulus::bench
