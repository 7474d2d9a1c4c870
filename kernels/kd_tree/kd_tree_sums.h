#pragma once

#include <cstdint>

#include "kernels/kd_tree/kd_tree_query.h"

namespace cumulus {

// Sums over the neighbours that kd_tree_query.h finds, where their lists are not wanted: photons around a
// place. What that header says of searches, reports and trees that are none holds here too.
//
// Sums are made in double, of the nearest first, within a radius in the tree's order, and rounded once: they
// are the same bits on both backends.

/// What goes with each point, and where its sums go.
template <class T, Space S>
struct PayloadSums {
  Span<const T, S>
      rows;         ///< [trees, points, channels], in the order of the points that the trees were built of
  Span<T, S> sums;  ///< [trees, queries, channels]
  std::int64_t channels = 1;  ///< 1 or more
};

/// Of the `neighbors` nearest points of each query, or of those that there are.
template <class T, Space S>
struct NearestSumJob {
  QueriedForest<T, S> forest;
  int neighbors = 1;  ///< 1 to kMaxNeighbors
  PayloadSums<T, S> payload;
  Span<T, S> distances;  ///< [trees, queries], of the last of the nearest; +Inf where there are fewer
};

/// Of the points within the radius of each query.
template <class T, Space S>
struct WithinSumJob {
  QueriedForest<T, S> forest;
  PayloadSums<T, S> payload;
  Span<std::int64_t, S> counts;  ///< [trees, queries]
};

// T is float or double.

template <class T>
void sum_nearest(CpuExecutor& executor, const NearestSumJob<T, Space::kHost>& job, NeighborReport* report);
template <class T>
void sum_nearest(CudaExecutor& executor, const NearestSumJob<T, Space::kDevice>& job, NeighborReport* report);

template <class T>
void sum_within(CpuExecutor& executor, const WithinSumJob<T, Space::kHost>& job, NeighborReport* report);
template <class T>
void sum_within(CudaExecutor& executor, const WithinSumJob<T, Space::kDevice>& job, NeighborReport* report);

}  // namespace cumulus
