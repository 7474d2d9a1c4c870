#include <cuda_runtime.h>

#include "kernels/core/cuda_error.h"
#include "kernels/core/launch_slices.h"
#include "kernels/kd_tree/kd_tree_sums.h"
#include "kernels/kd_tree/query/check.h"
#include "kernels/kd_tree/query/faults.cuh"
#include "kernels/kd_tree/query/row_sums.h"
#include "kernels/kd_tree/query/search.cuh"
#include "kernels/kd_tree/query/traversal.h"
#include "kernels/kd_tree/query/with_kernels.cuh"

namespace cumulus {
namespace kd_tree {
namespace {

/// Lists of neighbours, of which all queries have as many.
template <class T>
struct ListedNeighbors {
  const std::int64_t* indices;
  const T* distances;
  std::int64_t queries_each;  // of each tree
  int neighbors;
};

/// The sums of the rows that lists name.
/// Owns: thread i the i-th group of channels of the slice, query by query.
/// Reads: the query's list; the group's part of the rows that it names.
/// Writes: the group's part of the query's sums; the first group's thread its distance.
/// Waits for: nothing.
/// Cannot deadlock: no thread waits for another.
/// Source: none, a gather.
template <class T>
__global__ void __launch_bounds__(kSearchThreads)
    sum_lists(SummedRows<T> payload, ListedNeighbors<T> listed, std::int64_t begin, std::int64_t end,
              std::int64_t groups, T* distances) {
  const std::int64_t task = begin + thread_number();
  if (task >= end) return;
  const std::int64_t query = task / groups;
  RowSum<T> sum(payload, query / listed.queries_each, task % groups);
  const std::int64_t first = query * listed.neighbors;
  for (int i = 0; i < listed.neighbors; ++i) sum.add(listed.indices[first + i]);
  sum.store(payload.sums, query);
  if (task % groups == 0) distances[query] = listed.distances[first + listed.neighbors - 1];
}

/// The sums of the rows of all points within the radius of each query, and how many these are.
/// Owns: thread i the i-th group of channels of the slice, query by query.
/// Reads: the query; the tree's nodes, bounds and points that its search visits; the group's part of their
/// rows. Writes: the group's part of the query's sums; the first group's thread its count. Waits for:
/// nothing. Cannot deadlock: no thread waits for another, and a search visits each node at most once. Source:
/// as search_counts (per_thread.cu).
template <class T, int D, bool kPeriodic>
__global__ void __launch_bounds__(kSearchThreads)
    search_sums(Search<T> search, SummedRows<T> payload, std::int64_t groups, std::int64_t* counts) {
  const std::int64_t task = search.begin + thread_number();
  if (task >= search.end || search.has_fault()) return;
  const std::int64_t number = task / groups;
  const ThreadQuery<T, D> query(search, number);
  const QueriedTree<T, D, kPeriodic> tree = search.template tree<D, kPeriodic>(number / search.queries_each);
  RowSum<T> sum(payload, number / search.queries_each, task % groups);
  std::int64_t found = 0;
  visit_within(tree, query.coordinates, search.squared_radius(number),
               [&](std::uint32_t position, T /*distance*/) {
                 sum.add(tree.index(position));
                 ++found;
               });
  sum.store(payload.sums, number);
  if (task % groups == 0) counts[number] = found;
}

}  // namespace
}  // namespace kd_tree

template <class T>
void sum_nearest(CudaExecutor& executor, const NearestSumJob<T, Space::kDevice>& job,
                 NeighborReport* report) {
  using namespace kd_tree;
  check_job(job);
  const std::int64_t queries = job.forest.all_queries();
  const auto room = static_cast<std::size_t>(queries * job.neighbors);
  const auto indices = executor.scratch<std::int64_t>(room);
  const auto distances = executor.scratch<T>(room);
  find_nearest(executor, NearestJob<T, Space::kDevice>{job.forest, job.neighbors, indices, distances},
               report);
  const auto payload = SummedRows<T>::of(job.forest.shape, job.payload);
  const std::int64_t groups = payload.groups();
  const ListedNeighbors<T> listed{indices.data(), distances.data(), job.forest.search.queries, job.neighbors};
  launch_slices(executor, queries * groups, {.first = kFirstSliceSorted},
                [&](std::int64_t begin, std::int64_t end) {
                  sum_lists<<<search_blocks(end - begin), kSearchThreads, 0, executor.stream()>>>(
                      payload, listed, begin, end, groups, job.distances.data());
                  CUMULUS_CUDA(cudaGetLastError());
                });
}

template <class T>
void sum_within(CudaExecutor& executor, const WithinSumJob<T, Space::kDevice>& job, NeighborReport* report) {
  using namespace kd_tree;
  check_job(job);
  executor.bind_thread();
  Search<T> search = search_of(job.forest);
  report_faults(executor, search, report);
  const auto payload = SummedRows<T>::of(job.forest.shape, job.payload);
  const std::int64_t groups = payload.groups();
  launch_slices(
      executor, search.all_queries() * groups, slice_bounds(search, kFirstSliceWithin),
      [&](std::int64_t begin, std::int64_t end) {
        with_kernels(search, [&]<int D, bool kPeriodic>(Dimensions<D> /*dimensions*/,
                                                        std::bool_constant<kPeriodic> /*periodic*/) {
          search_sums<T, D, kPeriodic><<<search_blocks(end - begin), kSearchThreads, 0, executor.stream()>>>(
              search.slice(begin, end), payload, groups, job.counts.data());
        });
        CUMULUS_CUDA(cudaGetLastError());
      });
}

template void sum_nearest(CudaExecutor&, const NearestSumJob<float, Space::kDevice>&, NeighborReport*);
template void sum_nearest(CudaExecutor&, const NearestSumJob<double, Space::kDevice>&, NeighborReport*);
template void sum_within(CudaExecutor&, const WithinSumJob<float, Space::kDevice>&, NeighborReport*);
template void sum_within(CudaExecutor&, const WithinSumJob<double, Space::kDevice>&, NeighborReport*);

}  // namespace cumulus
