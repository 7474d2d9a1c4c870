#include <oneapi/tbb/spin_mutex.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/core/parallel.h"
#include "kernels/kd_tree/cpu/query_order.h"
#include "kernels/kd_tree/kd_tree_query.h"
#include "kernels/kd_tree/method.h"
#include "kernels/kd_tree/query/check.h"
#include "kernels/kd_tree/query/traversal.h"

namespace cumulus {
namespace {

using kd_tree::NearestList;
using kd_tree::OrderedQuery;
using kd_tree::QueriedTree;
using kd_tree::SearchParameters;

constexpr std::int64_t kGrainQueries = 64;
/// Of a query that may find all points.
constexpr std::int64_t kGrainWideQueries = 4;
/// Points that a piece of the queries may pass over at a leaf each.
constexpr std::int64_t kGrainPoints = std::int64_t{1} << 18;

/// Keeps the first fault that any thread finds.
class Faults {
 public:
  explicit Faults(NeighborReport* report) : report_(report) { *report = NeighborReport(); }

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

template <class T>
struct Search {
  explicit Search(const QueriedForest<T, Space::kHost>& forest)
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
  T squared_radius(std::int64_t number) const { return kd_tree::multiply(radius(number), radius(number)); }
  T shown(T squared_distance) const {
    return parameters.squared ? squared_distance : std::sqrt(squared_distance);
  }

  /// Fills the report.
  bool any_fault(CpuExecutor& executor, NeighborReport* report) const {
    Faults faults(report);
    parallel_ranges(executor, shape.trees * kd_tree::leaf_count(shape), 4096,
                    [&](std::int64_t first, std::int64_t end) {
                      for (std::int64_t i = first; i < end; ++i) {
                        if (faults.note(kd_tree::find_leaf_fault(shape, tree.node_data.data(), i))) return;
                      }
                    });
    if (faults.any()) return true;
    if (parameters.periodic) {
      for (std::int64_t i = 0; i < shape.trees; ++i) {
        if (faults.note(kd_tree::find_tree_fault(shape, tree.node_bounds.data(), parameters, i))) return true;
      }
    }
    parallel_ranges(executor, all_queries(), 4096, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t i = first; i < end; ++i) {
        if (faults.note(kd_tree::find_fault(query(i), shape.dimensions, radius(i), parameters, i))) return;
      }
    });
    return faults.any();
  }

  /// Scratch memory for an order of the queries; null where their own is good enough.
  OrderedQuery* reserve_order(CpuExecutor& executor) const {
    if (!kd_tree::choose_cpu_query(shape, search).in_morton_order) return nullptr;
    return executor.scratch<OrderedQuery>(static_cast<std::size_t>(all_queries())).data();
  }

  /// Sorts queries by where they lie, unless `order` is null.
  void sort(CpuExecutor& executor, OrderedQuery* order) const {
    if (order == nullptr) return;
    kd_tree::order_queries(
        executor, shape.trees, search.queries, order, [&](std::int64_t number_of_tree, std::int64_t number) {
          const T* lower = tree.node_bounds.data() + 2 * number_of_tree * shape.nodes() * shape.dimensions;
          const T* upper = lower + shape.nodes() * shape.dimensions;
          return kd_tree::MortonCurve<T>(lower, upper, shape.dimensions).code(query(number));
        });
  }

  /// Calls body(tree, number) for every query, in `order` unless that is null, on the executor's threads, at
  /// least `at_once` of them in a row.
  template <class Body>
  void for_queries(CpuExecutor& executor, const OrderedQuery* order, std::int64_t at_once,
                   const Body& body) const {
    if (parameters.periodic) return for_queries_of<0, true>(executor, order, at_once, body);
    kd_tree::with_dimensions(shape.dimensions, [&]<int D>(kd_tree::Dimensions<D> /*dimensions*/) {
      for_queries_of<D, false>(executor, order, at_once, body);
    });
  }

 private:
  template <int D, bool kPeriodic, class Body>
  void for_queries_of(CpuExecutor& executor, const OrderedQuery* order, std::int64_t at_once,
                      const Body& body) const {
    const auto arrays = kd_tree::TreeArrays<T>::of(tree);
    // Of a tree that is one leaf, each query passes over all points.
    const std::int64_t leaf_points = std::max<std::int64_t>(1, shape.points >> (shape.levels - 1));
    const std::int64_t grain = std::clamp<std::int64_t>(kGrainPoints / leaf_points, 1, at_once);
    parallel_ranges(executor, all_queries(), grain, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t i = first; i < end; ++i) {
        const std::int64_t number = order == nullptr ? i : order[i].number;
        body(QueriedTree<T, D, kPeriodic>(shape, arrays, number / search.queries, parameters), number);
      }
    });
  }
};

template <class T>
void count_all(CpuExecutor& executor, const Search<T>& search, const OrderedQuery* order,
               std::int64_t* counts) {
  search.for_queries(executor, order, kGrainWideQueries, [&](const auto& tree, std::int64_t number) {
    std::int64_t found = 0;
    kd_tree::visit_within(tree, search.query(number), search.squared_radius(number),
                          [&](std::uint32_t /*position*/, T /*distance*/) { ++found; });
    counts[number] = found;
  });
}

}  // namespace

template <class T>
void find_nearest(CpuExecutor& executor, const NearestJob<T, Space::kHost>& job, NeighborReport* report) {
  kd_tree::check_job(job);
  const Search<T> search(job.forest);
  const int neighbors = job.neighbors;
  const std::int64_t at_once = std::clamp<std::int64_t>(8 * kGrainQueries / neighbors, 1, kGrainQueries);
  OrderedQuery* order = search.reserve_order(executor);
  if (search.any_fault(executor, report)) return;
  search.sort(executor, order);
  search.for_queries(executor, order, at_once, [&](const auto& tree, std::int64_t number) {
    NearestList<T, kMaxNeighbors, std::decay_t<decltype(tree)>> list(tree, neighbors,
                                                                     search.squared_radius(number));
    kd_tree::visit_nearest_first(
        tree, search.query(number), [&] { return list.limit(); },
        [&](std::uint32_t position, T distance) { list.offer(position, distance); });
    std::int64_t* index = job.indices.data() + number * neighbors;
    T* distance = job.distances.data() + number * neighbors;
    for (int i = 0; i < neighbors; ++i) {
      index[i] = i < list.size() ? list.index(i) : -1;
      distance[i] =
          i < list.size() ? search.shown(list.squared_distance(i)) : std::numeric_limits<T>::infinity();
    }
  });
}

template <class T>
void count_within(CpuExecutor& executor, const CountJob<T, Space::kHost>& job, NeighborReport* report) {
  kd_tree::check_job(job);
  const Search<T> search(job.forest);
  OrderedQuery* order = search.reserve_order(executor);
  if (search.any_fault(executor, report)) return;
  search.sort(executor, order);
  count_all(executor, search, order, job.counts.data());
}

template <class T>
void list_within(CpuExecutor& executor, const ListJob<T, Space::kHost>& job, NeighborListReport* report) {
  kd_tree::check_job(job);
  const Search<T> search(job.forest);
  *report = NeighborListReport();
  OrderedQuery* order = search.reserve_order(executor);
  if (search.any_fault(executor, &report->queries)) return;
  search.sort(executor, order);
  std::int64_t* offsets = job.offsets.data();
  count_all(executor, search, order, offsets + 1);
  offsets[0] = 0;
  std::partial_sum(offsets, offsets + job.offsets.size(), offsets);
  report->listed = offsets[search.all_queries()];
  if (report->listed > static_cast<std::int64_t>(job.indices.size())) return;
  search.for_queries(executor, order, kGrainWideQueries, [&](const auto& tree, std::int64_t number) {
    std::int64_t next = offsets[number];
    kd_tree::visit_within(tree, search.query(number), search.squared_radius(number),
                          [&](std::uint32_t position, T distance) {
                            job.indices.data()[next] = tree.index(position);
                            job.distances.data()[next] = search.shown(distance);
                            ++next;
                          });
  });
}

template void find_nearest(CpuExecutor&, const NearestJob<float, Space::kHost>&, NeighborReport*);
template void find_nearest(CpuExecutor&, const NearestJob<double, Space::kHost>&, NeighborReport*);
template void count_within(CpuExecutor&, const CountJob<float, Space::kHost>&, NeighborReport*);
template void count_within(CpuExecutor&, const CountJob<double, Space::kHost>&, NeighborReport*);
template void list_within(CpuExecutor&, const ListJob<float, Space::kHost>&, NeighborListReport*);
template void list_within(CpuExecutor&, const ListJob<double, Space::kHost>&, NeighborListReport*);

}  // namespace cumulus
