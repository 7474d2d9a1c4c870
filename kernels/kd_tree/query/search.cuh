#pragma once

// What the kernels of queries read.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/core/div.h"
#include "kernels/core/launch_slices.h"
#include "kernels/kd_tree/kd_tree_query.h"
#include "kernels/kd_tree/query/traversal.h"
#include "kernels/kd_tree/threads.cuh"
#include "kernels/kd_tree/tuning.h"

namespace cumulus::kd_tree {

/// A call's first slice has `usual` queries where leaves have no more than usual.
template <class Search>
SliceBounds slice_bounds(const Search& search, std::int64_t usual) {
  const std::int64_t leaf = divide_up(search.shape.points, leaf_count(search.shape));
  const std::int64_t times = divide_up(std::max<std::int64_t>(leaf, 1), kUsualLeaf);
  return {.first = std::max(usual / times, kWaveElements)};
}

inline unsigned search_blocks(std::int64_t threads) {
  return static_cast<unsigned>(divide_up(threads, kSearchThreads));
}

template <class T>
struct Search {
  KdTreeShape shape;
  const T* tree_points;
  const std::int64_t* idx_array;
  const KdTreeNode* node_data;
  const T* node_bounds;
  const T* queries;
  const T* radii;  // null: parameters.radius
  std::int64_t queries_each;
  SearchParameters<T> parameters;
  std::int64_t begin;  // the queries of one launch
  std::int64_t end;
  const unsigned long long* first_fault = nullptr;  // set by report_faults

  /// True of a search that has no answer, and that a forged tree could make long.
  __device__ bool has_fault() const { return *first_fault != ~0ull; }
  __host__ __device__ std::int64_t all_leaves() const { return shape.trees * leaf_count(shape); }
  __host__ __device__ std::int64_t all_queries() const { return shape.trees * queries_each; }
  Search slice(std::int64_t first, std::int64_t last) const {
    Search part = *this;
    part.begin = first;
    part.end = last;
    return part;
  }
  __device__ T radius(std::int64_t number) const {
    return radii == nullptr ? parameters.radius : radii[number];
  }
  __device__ T squared_radius(std::int64_t number) const { return multiply(radius(number), radius(number)); }
  __device__ T shown(T squared) const { return parameters.squared ? squared : std::sqrt(squared); }
  template <int D, bool kPeriodic>
  __device__ QueriedTree<T, D, kPeriodic> tree(std::int64_t number) const {
    return {shape, {tree_points, idx_array, node_data, node_bounds}, number, parameters};
  }
};

template <class T>
Search<T> search_of(const QueriedForest<T, Space::kDevice>& forest) {
  return {forest.shape,
          forest.tree.points.data(),
          forest.tree.idx_array.data(),
          forest.tree.node_data.data(),
          forest.tree.node_bounds.data(),
          forest.queries.points.data(),
          forest.queries.radii.empty() ? nullptr : forest.queries.radii.data(),
          forest.search.queries,
          SearchParameters<T>(forest.search),
          0,
          forest.all_queries()};
}

/// The thread's query, in registers.
template <class T, int D>
struct ThreadQuery {
  T coordinates[Dimensions<D>::kMax];

  __device__ ThreadQuery(const Search<T>& search, std::int64_t number) {
    const Dimensions<D> dimensions(search.shape.dimensions);
    for (int axis = 0; axis < dimensions.count(); ++axis) {
      coordinates[axis] = search.queries[number * dimensions.count() + axis];
    }
  }
};

}  // namespace cumulus::kd_tree
