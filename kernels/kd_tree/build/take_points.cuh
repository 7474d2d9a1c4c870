#pragma once

// The beginning of a build on the GPU.

#include <cstdint>

#include "kernels/kd_tree/build/forest.cuh"
#include "kernels/kd_tree/build/layout.h"
#include "kernels/kd_tree/math/arithmetic.h"
#include "kernels/kd_tree/threads.cuh"

namespace cumulus::kd_tree {

/// The roots' points, and bounds that nothing has widened yet.
/// Owns: thread i tree i.
/// Reads: nothing.
/// Writes: the tree's root and its bounds, as keys.
/// Waits for: nothing.
/// Cannot deadlock: no thread waits for another.
/// Source: this project's.
template <class T>
__global__ void begin_trees(Forest<T> forest, KeyOf<T>* bounds) {
  const std::int64_t tree = thread_number();
  if (tree >= forest.shape.trees) return;
  forest.tree_nodes(tree)[0] = {0, forest.shape.points, 0, 0};
  clear_bounds(bounds, tree, forest.shape.dimensions);
}

/// Copies the points axis by axis, bounds each tree and finds the first NaN.
/// Owns: block b tile b % tiles of tree b / tiles, kTilePoints points.
/// Reads: the tile's points, and the tree's bounds so far.
/// Writes: the tile's part of the copy; the tree's bounds and the first NaN, by atomic minima and maxima.
/// Waits for: nothing of other blocks.
/// Cannot deadlock: all threads of a block reach its barriers.
/// Source: this project's.
template <class T>
__global__ void __launch_bounds__(kTileThreads)
    take_points(Forest<T> forest, const T* points, std::int64_t tiles, PointCopy<T> copy, KeyOf<T>* bounds,
                unsigned long long* first_nan) {
  using Key = KeyOf<T>;
  __shared__ Key tile_bounds[2 * kMaxKdTreeDimensions];
  const std::int64_t tree = blockIdx.x / tiles;
  const std::int64_t first = (blockIdx.x - tree * tiles) * kTilePoints;
  const std::int64_t end = min(first + kTilePoints, forest.shape.points);
  const std::int64_t all = forest.shape.all_points();
  const int dimensions = forest.shape.dimensions;
  const auto count = static_cast<int>(end - first);
  const std::int64_t point = tree * forest.shape.points + first + threadIdx.x;  // the thread's of row 0
  unsigned long long nan = ~0ull;
  if (threadIdx.x == 0) clear_bounds(tile_bounds, 0, dimensions);
  __syncthreads();
#pragma unroll
  for (int row = 0; row < kTileItems; ++row) {
    if (!has_row(row, count)) continue;
    copy.order[point + row * kTileThreads] =
        static_cast<std::uint32_t>(first + row * kTileThreads + threadIdx.x);
  }
  for (int axis = 0; axis < dimensions; ++axis) {
    T rows[kTileItems];
#pragma unroll
    for (int row = 0; row < kTileItems; ++row) {
      if (has_row(row, count)) rows[row] = points[(point + row * kTileThreads) * dimensions + axis];
    }
    Key least = ~Key{0};
    Key greatest = 0;
#pragma unroll
    for (int row = 0; row < kTileItems; ++row) {
      if (!has_row(row, count)) continue;
      const T x = rows[row];
      const auto element = static_cast<unsigned long long>((point + row * kTileThreads) * dimensions + axis);
      if (x != x && element < nan) nan = element;
      copy.coordinates[axis * all + point + row * kTileThreads] = x;
      const Key key = ordered_key(x);
      least = min(least, key);
      greatest = max(greatest, key);
    }
    least = warp_least(least);
    greatest = warp_greatest(greatest);
    if (threadIdx.x % 32 == 0) {
      atomic_least(tile_bounds + axis, least);
      atomic_greatest(tile_bounds + dimensions + axis, greatest);
    }
  }
  widen_bounds(bounds + 2 * tree * dimensions, tile_bounds, 1, dimensions);
  if (nan != ~0ull) atomicMin(first_nan, nan);
}

/// What of the first NaN a report says.
/// Owns: one thread has all.
/// Reads: the first NaN's number among all coordinates.
/// Writes: the report.
/// Waits for: nothing.
/// Cannot deadlock: no thread waits for another.
/// Source: this project's.
template <class T>
__global__ void describe_nan(KdTreeShape shape, const unsigned long long* first_nan, std::int64_t crowded,
                             KdTreeReport* report) {
  *report = KdTreeReport();
  report->crowded = crowded;
  if (*first_nan == ~0ull) return;
  const auto element = static_cast<std::int64_t>(*first_nan);
  const std::int64_t point = element / shape.dimensions;
  *report = {point / shape.points, point % shape.points, element % shape.dimensions, crowded};
}

}  // namespace cumulus::kd_tree
