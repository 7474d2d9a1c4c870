#include <limits>
#include <numeric>

#include "kernels/kd_tree/cpu/search.h"
#include "kernels/kd_tree/kd_tree_query.h"
#include "kernels/kd_tree/query/check.h"
#include "kernels/kd_tree/query/traversal.h"

namespace cumulus {
namespace {

using kd_tree::CpuSearch;
using kd_tree::NearestList;

template <class T>
void count_all(CpuExecutor& executor, const CpuSearch<T>& search, std::int64_t* counts) {
  search.for_queries(executor, kd_tree::kGrainWideQueries, [&](const auto& tree, std::int64_t number) {
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
  CpuSearch<T> search(job.forest);
  const int neighbors = job.neighbors;
  if (!search.begin(executor, report)) return;
  search.for_queries(
      executor, kd_tree::nearest_at_once(neighbors), [&](const auto& tree, std::int64_t number) {
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
  CpuSearch<T> search(job.forest);
  if (!search.begin(executor, report)) return;
  count_all(executor, search, job.counts.data());
}

template <class T>
void list_within(CpuExecutor& executor, const ListJob<T, Space::kHost>& job, NeighborListReport* report) {
  kd_tree::check_job(job);
  CpuSearch<T> search(job.forest);
  *report = NeighborListReport();
  if (!search.begin(executor, &report->queries)) return;
  std::int64_t* offsets = job.offsets.data();
  count_all(executor, search, offsets + 1);
  offsets[0] = 0;
  std::partial_sum(offsets, offsets + job.offsets.size(), offsets);
  report->listed = offsets[search.all_queries()];
  if (report->listed > static_cast<std::int64_t>(job.indices.size())) return;
  search.for_queries(executor, kd_tree::kGrainWideQueries, [&](const auto& tree, std::int64_t number) {
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
