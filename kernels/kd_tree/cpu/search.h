#pragma once

#include <oneapi/tbb/spin_mutex.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/core/parallel.h"
#include "kernels/kd_tree/cpu/query_order.h"
#include "kernels/kd_tree/kd_tree_query.h"
#include "kernels/kd_tree/method.h"
#include "kernels/kd_tree/query/traversal.h"

namespace cumulus::kd_tree {

inline constexpr std::int64_t kGrainQueries = 64;
/// Of a query that may find all points.
inline constexpr std::int64_t kGrainWideQueries = 4;
/// Points that a piece of the queries may pass over at a leaf each.
inline constexpr std::int64_t kGrainPoints = std::int64_t{1} << 18;

/// Queries of so many neighbours each that are searched in a row.
inline std::int64_t nearest_at_once(int neighbors) {
  return std::clamp<std::int64_t>(8 * kGrainQueries / neighbors, 1, kGrainQueries);
}

/// Keeps the first fault that any thread finds.
class QueryFaults {
 public:
  explicit QueryFaults(NeighborReport* report) : report_(report) { *report = NeighborReport(); }

  /// Whether there is one.
  bool note(const NeighborReport& found) {
    if (found.fault == NeighborReport::Fault::kNone) return false;
    const oneapi::tbb::spin_mutex::scoped_lock lock(mutex_);
    if (report_->fault == NeighborReport::Fault::kNone || found.query < report_->query) *report_ = found;
    return true;
  }
  bool any() const { return report_->fault != NeighborReport::Fault::kNone; }

 private:
  NeighborReport* report_;
  oneapi::tbb::spin_mutex mutex_;
};

/// A forest's queries on a CPU.
template <class T>
struct CpuSearch {
  explicit CpuSearch(const QueriedForest<T, Space::kHost>& forest)
      : shape(forest.shape),
        tree(forest.tree),
        queries(forest.queries),
        search(forest.search),
        parameters(forest.search) {}

  const KdTreeShape& shape;
  const KdTreeView<T, Space::kHost>& tree;
  const NeighborQueries<T, Space::kHost>& queries;
  const NeighborSearch& search;
  const SearchParameters<T> parameters;

  std::int64_t all_queries() const { return shape.trees * search.queries; }
  const T* query(std::int64_t number) const { return queries.points.data() + number * shape.dimensions; }
  T radius(std::int64_t number) const {
    return queries.radii.empty() ? parameters.radius : queries.radii.data()[number];
  }
  T squared_radius(std::int64_t number) const { return multiply(radius(number), radius(number)); }
  T shown(T squared_distance) const {
    return parameters.squared ? squared_distance : std::sqrt(squared_distance);
  }

  /// What each search begins with: looks for faults, fills the report, and sorts the queries where
  /// that is worth it. Whether there was no fault.
  bool begin(CpuExecutor& executor, NeighborReport* report) {
    order_ = reserve_order(executor);
    if (any_fault(executor, report)) return false;
    if (order_ != nullptr) sort(executor);
    return true;
  }

  /// After begin(): calls body(tree, number) for every query, in their order, on the executor's threads, at
  /// least `at_once` of them in a row.
  template <class Body>
  void for_queries(CpuExecutor& executor, std::int64_t at_once, const Body& body) const {
    if (parameters.periodic) return for_queries_of<0, true>(executor, at_once, body);
    with_dimensions(shape.dimensions, [&]<int D>(Dimensions<D> /*dimensions*/) {
      for_queries_of<D, false>(executor, at_once, body);
    });
  }

 private:
  /// Fills the report.
  bool any_fault(CpuExecutor& executor, NeighborReport* report) const {
    QueryFaults faults(report);
    parallel_ranges(executor, shape.trees * leaf_count(shape), 4096,
                    [&](std::int64_t first, std::int64_t end) {
                      for (std::int64_t i = first; i < end; ++i) {
                        if (faults.note(find_leaf_fault(shape, tree.node_data.data(), i))) return;
                      }
                    });
    if (faults.any()) return true;
    if (parameters.periodic) {
      for (std::int64_t i = 0; i < shape.trees; ++i) {
        if (faults.note(find_tree_fault(shape, tree.node_bounds.data(), parameters, i))) return true;
      }
    }
    parallel_ranges(executor, all_queries(), 4096, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t i = first; i < end; ++i) {
        if (faults.note(find_fault(query(i), shape.dimensions, radius(i), parameters, i))) return;
      }
    });
    return faults.any();
  }

  /// Scratch memory for an order of the queries; null where their own is good enough.
  OrderedQuery* reserve_order(CpuExecutor& executor) const {
    if (!choose_cpu_query(shape, search).in_morton_order) return nullptr;
    return executor.scratch<OrderedQuery>(static_cast<std::size_t>(all_queries())).data();
  }

  /// Sorts queries by where they lie.
  void sort(CpuExecutor& executor) const {
    order_queries(
        executor, shape.trees, search.queries, order_, [&](std::int64_t number_of_tree, std::int64_t number) {
          const T* lower = tree.node_bounds.data() + 2 * number_of_tree * shape.nodes() * shape.dimensions;
          const T* upper = lower + shape.nodes() * shape.dimensions;
          return MortonCurve<T>(lower, upper, shape.dimensions).code(query(number));
        });
  }

  template <int D, bool kPeriodic, class Body>
  void for_queries_of(CpuExecutor& executor, std::int64_t at_once, const Body& body) const {
    const auto arrays = TreeArrays<T>::of(tree);
    // Of a tree that is one leaf, each query passes over all points.
    const std::int64_t leaf_points = std::max<std::int64_t>(1, shape.points >> (shape.levels - 1));
    const std::int64_t grain = std::clamp<std::int64_t>(kGrainPoints / leaf_points, 1, at_once);
    parallel_ranges(executor, all_queries(), grain, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t i = first; i < end; ++i) {
        const std::int64_t number = order_ == nullptr ? i : order_[i].number;
        body(QueriedTree<T, D, kPeriodic>(shape, arrays, number / search.queries, parameters), number);
      }
    });
  }

  OrderedQuery* order_ = nullptr;  // null: as they are
};

}  // namespace cumulus::kd_tree
