#pragma once

// What both parts of a build on the GPU work on.

#include <cstdint>

#include "kernels/kd_tree/build/layout.h"
#include "kernels/kd_tree/kd_tree.h"
#include "kernels/kd_tree/math/arithmetic.h"
#include "kernels/primitives/warp.cuh"
#include "kernels/primitives/warp_scan.cuh"

namespace cumulus::kd_tree {

/// One copy of all points: coordinates axis after axis, and each point's index within its tree.
template <class T>
struct PointCopy {
  T* coordinates;  // [dimensions, all points]
  std::uint32_t* order;
};

/// The forest under construction, as kernels see it.
template <class T>
struct Forest {
  KdTreeShape shape;
  KdTreeNode* nodes;
  T* bounds;
  KdTreeSplit split;
  std::int64_t leaf_size;

  /// The node of a segment, within its tree.
  __device__ std::int64_t node_of(std::int64_t segment, int level) const {
    return (std::int64_t{1} << level) - 1 + (segment & ((std::int64_t{1} << level) - 1));
  }
  __device__ KdTreeNode* tree_nodes(std::int64_t tree) const { return nodes + tree * shape.nodes(); }
  __device__ T* tree_bounds(std::int64_t tree) const {
    return bounds + 2 * tree * shape.nodes() * shape.dimensions;
  }
};

template <class Key>
__device__ Key warp_least(Key key) {
  for (int offset = 16; offset > 0; offset /= 2) {
    const Key other = __shfl_xor_sync(kFullWarp, key, offset);
    key = other < key ? other : key;
  }
  return key;
}
__device__ inline std::uint32_t warp_least(std::uint32_t key) { return warp_min(key); }
template <class Key>
__device__ Key warp_greatest(Key key) {
  return ~warp_least(static_cast<Key>(~key));
}

__device__ inline void atomic_least(std::uint32_t* to, std::uint32_t key) { atomicMin(to, key); }
__device__ inline void atomic_least(std::uint64_t* to, std::uint64_t key) {
  atomicMin(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(key));
}
__device__ inline void atomic_greatest(std::uint32_t* to, std::uint32_t key) { atomicMax(to, key); }
__device__ inline void atomic_greatest(std::uint64_t* to, std::uint64_t key) {
  atomicMax(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(key));
}

/// Bounds of segments are kept as ordered keys: [segments, 2, dimensions].
template <class Key>
__device__ void clear_bounds(Key* keys, std::int64_t segment, int dimensions) {
  for (int axis = 0; axis < dimensions; ++axis) {
    keys[2 * segment * dimensions + axis] = ~Key{0};
    keys[(2 * segment + 1) * dimensions + axis] = 0;
  }
}

/// Widens bounds in memory, [segments, 2, dimensions], to those that a block's threads have gathered in
/// shared memory, if these are wider. Most tiles of a segment widen nothing, and a load costs less than an
/// atomic operation that all of them contend for. The whole block calls this.
template <class Key>
__device__ void widen_bounds(Key* keys, const Key* gathered, int segments, int dimensions) {
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < 2 * segments * dimensions;
       i += static_cast<int>(blockDim.x)) {
    const bool least = i / dimensions % 2 == 0;
    if (least && gathered[i] < __ldcg(keys + i)) atomic_least(keys + i, gathered[i]);
    if (!least && gathered[i] > __ldcg(keys + i)) atomic_greatest(keys + i, gathered[i]);
  }
}

/// A node and its points, begin ... end - 1 of its tree's.
struct NodePoints {
  std::int64_t tree;
  std::int64_t node;
  std::int64_t begin;
  std::int64_t end;
};

/// Writes a node: its points, and the bounds and the radius that its keys say.
template <class T>
__device__ void store_node(const Forest<T>& forest, const NodePoints& of, bool leaf, const KeyOf<T>* least,
                           const KeyOf<T>* greatest) {
  const auto lower = [=](int axis) {
    return of.begin == of.end ? static_cast<T>(INFINITY) : from_ordered_key<T>(least[axis]);
  };
  const auto upper = [=](int axis) {
    return of.begin == of.end ? static_cast<T>(-INFINITY) : from_ordered_key<T>(greatest[axis]);
  };
  const int dimensions = forest.shape.dimensions;
  T* lowers = forest.tree_bounds(of.tree) + of.node * dimensions;
  T* uppers = lowers + forest.shape.nodes() * dimensions;
  for (int axis = 0; axis < dimensions; ++axis) {
    lowers[axis] = lower(axis);
    uppers[axis] = upper(axis);
  }
  forest.tree_nodes(of.tree)[of.node] = {of.begin, of.end, leaf ? 1 : 0,
                                         box_radius(dimensions, lower, upper)};
}

template <class T>
__device__ int split_axis(const Forest<T>& forest, int level, const KeyOf<T>* least,
                          const KeyOf<T>* greatest) {
  if (forest.split == KdTreeSplit::kRoundRobin) return level % forest.shape.dimensions;
  return widest_axis(
      forest.shape.dimensions, [=](int axis) { return from_ordered_key<T>(least[axis]); },
      [=](int axis) { return from_ordered_key<T>(greatest[axis]); });
}

/// The thread's elements of a tile: element `row` is element row * kTileThreads + threadIdx.x of the tile.
/// All loads are issued before the first is waited for.
template <class T>
__device__ void load_rows(const T* tile, int count, T* rows) {
#pragma unroll
  for (int row = 0; row < kTileItems; ++row) {
    const int i = row * kTileThreads + static_cast<int>(threadIdx.x);
    if (i < count) rows[row] = tile[i];
  }
}

/// Whether the thread has an element of the tile in this row.
__device__ inline bool has_row(int row, int count) {
  return row * kTileThreads + static_cast<int>(threadIdx.x) < count;
}

}  // namespace cumulus::kd_tree
