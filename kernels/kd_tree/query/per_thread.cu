#include <cuda_runtime.h>

#include "kernels/core/cuda_error.h"
#include "kernels/core/launch_slices.h"
#include "kernels/kd_tree/query/faults.cuh"
#include "kernels/kd_tree/query/list_offsets.cuh"
#include "kernels/kd_tree/query/search.cuh"
#include "kernels/kd_tree/query/search.h"
#include "kernels/kd_tree/query/traversal.h"
#include "kernels/kd_tree/query/with_kernels.cuh"

namespace cumulus::kd_tree {
namespace {

/// The nearest neighbours of each query, in a list in local memory.
/// Owns: thread i the i-th query of the slice.
/// Reads: the query; the tree's nodes, bounds and points that its search visits.
/// Writes: the query's row of indices and distances.
/// Waits for: nothing.
/// Cannot deadlock: no thread waits for another, and a search visits each node at most once.
/// Source: depth-first branch and bound, as in J. Bentley, "Multidimensional binary search trees used for
/// associative searching",
///   CACM 1975.
template <class T, int D, bool kPeriodic, int kCapacity>
__global__ void __launch_bounds__(kSearchThreads)
    search_nearest(Search<T> search, int neighbors, std::int64_t* indices, T* distances) {
  const std::int64_t number = search.begin + thread_number();
  if (number >= search.end || search.has_fault()) return;
  using Tree = QueriedTree<T, D, kPeriodic>;
  const Tree tree = search.template tree<D, kPeriodic>(number / search.queries_each);
  const ThreadQuery<T, D> query(search, number);
  NearestList<T, kCapacity, Tree> list(tree, neighbors, search.squared_radius(number));
  visit_nearest_first(
      tree, query.coordinates, [&] { return list.limit(); },
      [&](std::uint32_t position, T distance) { list.offer(position, distance); });
  for (int i = 0; i < neighbors; ++i) {
    const bool found = i < list.size();
    indices[number * neighbors + i] = found ? list.index(i) : -1;
    distances[number * neighbors + i] =
        found ? search.shown(list.squared_distance(i)) : static_cast<T>(INFINITY);
  }
}

/// How many points lie within the radius of each query.
/// Owns: thread i the i-th query of the slice.
/// Reads: the query; the tree's nodes, bounds and points that its search visits.
/// Writes: the query's count.
/// Waits for: nothing.
/// Cannot deadlock: no thread waits for another, and a search visits each node at most once.
/// Source: a range search by depth-first traversal without a stack; Bentley, as above.
template <class T, int D, bool kPeriodic>
__global__ void __launch_bounds__(kSearchThreads) search_counts(Search<T> search, std::int64_t* counts) {
  const std::int64_t number = search.begin + thread_number();
  if (number >= search.end || search.has_fault()) return;
  const ThreadQuery<T, D> query(search, number);
  std::int64_t found = 0;
  visit_within(search.template tree<D, kPeriodic>(number / search.queries_each), query.coordinates,
               search.squared_radius(number), [&](std::uint32_t /*position*/, T /*distance*/) { ++found; });
  counts[number] = found;
}

/// The points within the radius of each query.
/// Owns: thread i the i-th query of the slice.
/// Reads: the query and its offset; the tree's nodes, bounds and points that its search visits.
/// Writes: the query's part of indices and distances, as far as there is room.
/// Waits for: nothing.
/// Cannot deadlock: no thread waits for another, and a search visits each node at most once.
/// Source: as search_counts.
template <class T, int D, bool kPeriodic>
__global__ void __launch_bounds__(kSearchThreads)
    search_lists(Search<T> search, const std::int64_t* offsets, std::int64_t room, std::int64_t* indices,
                 T* distances) {
  const std::int64_t number = search.begin + thread_number();
  if (number >= search.end || search.has_fault()) return;
  const ThreadQuery<T, D> query(search, number);
  const QueriedTree<T, D, kPeriodic> tree = search.template tree<D, kPeriodic>(number / search.queries_each);
  std::int64_t next = offsets[number];
  visit_within(tree, query.coordinates, search.squared_radius(number),
               [&](std::uint32_t position, T distance) {
                 if (next < 0 || next >= room) return;
                 indices[next] = tree.index(position);
                 distances[next] = search.shown(distance);
                 ++next;
               });
}

template <class T>
void count_all(CudaExecutor& executor, const Search<T>& search, std::int64_t* counts) {
  launch_slices(executor, search.all_queries(), slice_bounds(search, kFirstSliceWithin),
                [&](std::int64_t begin, std::int64_t end) {
                  with_kernels(search,
                               [&]<int D, bool kPeriodic>(Dimensions<D> /*dimensions*/,
                                                          std::bool_constant<kPeriodic> /*periodic*/) {
                                 search_counts<T, D, kPeriodic>
                                     <<<search_blocks(end - begin), kSearchThreads, 0, executor.stream()>>>(
                                         search.slice(begin, end), counts);
                               });
                  CUMULUS_CUDA(cudaGetLastError());
                });
}

template <class T>
void list_all(CudaExecutor& executor, const Search<T>& search, const ListJob<T, Space::kDevice>& job) {
  launch_slices(
      executor, search.all_queries(), slice_bounds(search, kFirstSliceWithin),
      [&](std::int64_t begin, std::int64_t end) {
        with_kernels(search, [&]<int D, bool kPeriodic>(Dimensions<D> /*dimensions*/,
                                                        std::bool_constant<kPeriodic> /*periodic*/) {
          search_lists<T, D, kPeriodic><<<search_blocks(end - begin), kSearchThreads, 0, executor.stream()>>>(
              search.slice(begin, end), job.offsets.data(), static_cast<std::int64_t>(job.indices.size()),
              job.indices.data(), job.distances.data());
        });
        CUMULUS_CUDA(cudaGetLastError());
      });
}

/// The nearest neighbours of a slice.
template <class T>
void nearest_of(CudaExecutor& executor, const NearestPerThread& plan, const Search<T>& slice,
                const NearestJob<T, Space::kDevice>& job) {
  with_kernels(slice, [&]<int D, bool kPeriodic>(Dimensions<D> /*dimensions*/,
                                                 std::bool_constant<kPeriodic> /*periodic*/) {
    const auto launch = [&](auto* kernel) {
      kernel<<<search_blocks(slice.end - slice.begin), kSearchThreads, 0, executor.stream()>>>(
          slice, job.neighbors, job.indices.data(), job.distances.data());
    };
    if (plan.list_capacity == kSmallListCapacity) {
      launch(search_nearest<T, D, kPeriodic, kSmallListCapacity>);
    } else if (plan.list_capacity == kMediumListCapacity) {
      launch(search_nearest<T, D, kPeriodic, kMediumListCapacity>);
    } else {
      launch(search_nearest<T, D, kPeriodic, kMaxNeighbors>);
    }
  });
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace

template <class T>
void find_nearest_per_thread(CudaExecutor& executor, const NearestPerThread& plan,
                             const NearestJob<T, Space::kDevice>& job, NeighborReport* report) {
  Search<T> search = search_of(job.forest);
  report_faults(executor, search, report);
  launch_slices(executor, search.all_queries(), slice_bounds(search, kFirstSlicePerThread),
                [&](std::int64_t begin, std::int64_t end) {
                  nearest_of(executor, plan, search.slice(begin, end), job);
                });
}

template <class T>
void count_per_thread(CudaExecutor& executor, const CountJob<T, Space::kDevice>& job,
                      NeighborReport* report) {
  Search<T> search = search_of(job.forest);
  report_faults(executor, search, report);
  count_all(executor, search, job.counts.data());
}

template <class T>
void list_per_thread(CudaExecutor& executor, const ListPlan& plan, const ListJob<T, Space::kDevice>& job,
                     NeighborListReport* report) {
  Search<T> search = search_of(job.forest);
  const std::int64_t count = search.all_queries();
  std::int64_t* offsets = job.offsets.data();
  report_faults(executor, search, &report->queries);
  const auto sums = executor.scratch<std::int64_t>(static_cast<std::size_t>(plan.tiles));
  CUMULUS_CUDA(cudaMemsetAsync(offsets, 0, sizeof(std::int64_t), executor.stream()));
  report->listed = 0;
  if (count == 0) return;
  count_all(executor, search, offsets + 1);
  accumulate(executor.stream(), offsets + 1, count, sums);
  executor.download({reinterpret_cast<const std::byte*>(offsets + count), sizeof(report->listed)},
                    {reinterpret_cast<std::byte*>(&report->listed), sizeof(report->listed)});
  list_all(executor, search, job);
}

template void find_nearest_per_thread(CudaExecutor&, const NearestPerThread&,
                                      const NearestJob<float, Space::kDevice>&, NeighborReport*);
template void find_nearest_per_thread(CudaExecutor&, const NearestPerThread&,
                                      const NearestJob<double, Space::kDevice>&, NeighborReport*);
template void count_per_thread(CudaExecutor&, const CountJob<float, Space::kDevice>&, NeighborReport*);
template void count_per_thread(CudaExecutor&, const CountJob<double, Space::kDevice>&, NeighborReport*);
template void list_per_thread(CudaExecutor&, const ListPlan&, const ListJob<float, Space::kDevice>&,
                              NeighborListReport*);
template void list_per_thread(CudaExecutor&, const ListPlan&, const ListJob<double, Space::kDevice>&,
                              NeighborListReport*);

}  // namespace cumulus::kd_tree
