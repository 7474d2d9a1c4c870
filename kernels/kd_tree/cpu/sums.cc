#include <limits>
#include <type_traits>

#include "kernels/kd_tree/cpu/search.h"
#include "kernels/kd_tree/kd_tree_sums.h"
#include "kernels/kd_tree/query/check.h"
#include "kernels/kd_tree/query/row_sums.h"
#include "kernels/kd_tree/query/traversal.h"

namespace cumulus {
namespace {

using kd_tree::CpuSearch;
using kd_tree::NearestList;
using kd_tree::RowSum;
using kd_tree::SummedRows;

}  // namespace

template <class T>
void sum_nearest(CpuExecutor& executor, const NearestSumJob<T, Space::kHost>& job, NeighborReport* report) {
  kd_tree::check_job(job);
  CpuSearch<T> search(job.forest);
  if (!search.begin(executor, report)) return;
  const auto payload = SummedRows<T>::of(search.shape, job.payload);
  search.for_queries(
      executor, kd_tree::nearest_at_once(job.neighbors), [&](const auto& tree, std::int64_t number) {
        NearestList<T, kMaxNeighbors, std::decay_t<decltype(tree)>> list(tree, job.neighbors,
                                                                         search.squared_radius(number));
        kd_tree::visit_nearest_first(
            tree, search.query(number), [&] { return list.limit(); },
            [&](std::uint32_t position, T distance) { list.offer(position, distance); });
        for (std::int64_t group = 0; group < payload.groups(); ++group) {
          RowSum<T> sum(payload, number / search.search.queries, group);
          for (int i = 0; i < list.size(); ++i) sum.add(list.index(i));
          sum.store(payload.sums, number);
        }
        job.distances.data()[number] = list.size() == job.neighbors
                                           ? search.shown(list.squared_distance(job.neighbors - 1))
                                           : std::numeric_limits<T>::infinity();
      });
}

template <class T>
void sum_within(CpuExecutor& executor, const WithinSumJob<T, Space::kHost>& job, NeighborReport* report) {
  kd_tree::check_job(job);
  CpuSearch<T> search(job.forest);
  if (!search.begin(executor, report)) return;
  const auto payload = SummedRows<T>::of(search.shape, job.payload);
  search.for_queries(executor, kd_tree::kGrainWideQueries, [&](const auto& tree, std::int64_t number) {
    for (std::int64_t group = 0; group < payload.groups(); ++group) {
      RowSum<T> sum(payload, number / search.search.queries, group);
      std::int64_t found = 0;
      kd_tree::visit_within(tree, search.query(number), search.squared_radius(number),
                            [&](std::uint32_t position, T /*distance*/) {
                              sum.add(tree.index(position));
                              ++found;
                            });
      sum.store(payload.sums, number);
      job.counts.data()[number] = found;
    }
  });
}

template void sum_nearest(CpuExecutor&, const NearestSumJob<float, Space::kHost>&, NeighborReport*);
template void sum_nearest(CpuExecutor&, const NearestSumJob<double, Space::kHost>&, NeighborReport*);
template void sum_within(CpuExecutor&, const WithinSumJob<float, Space::kHost>&, NeighborReport*);
template void sum_within(CpuExecutor&, const WithinSumJob<double, Space::kHost>&, NeighborReport*);

}  // namespace cumulus
