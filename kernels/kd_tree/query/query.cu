#include <cuda_runtime.h>

#include "kernels/core/cuda_error.h"
#include "kernels/kd_tree/kd_tree_query.h"
#include "kernels/kd_tree/query/check.h"
#include "kernels/kd_tree/query/list_offsets.cuh"
#include "kernels/kd_tree/query/plan.h"
#include "kernels/kd_tree/query/scratch.h"
#include "kernels/kd_tree/query/search.cuh"
#include "kernels/kd_tree/query/search_sorted.cuh"
#include "kernels/kd_tree/query/traversal.h"

namespace cumulus {
namespace {

using kd_tree::kSearchThreads;
using kd_tree::NearestList;
using kd_tree::OwnQuery;
using kd_tree::QueriedTree;
using kd_tree::Search;
using kd_tree::search_blocks;
using kd_tree::SearchParameters;
using kd_tree::thread_number;

template <class T>
Search<T> search_of(const QueriedForest<T, Space::kDevice>& forest) {
  return {forest.shape,
          kd_tree::TreeArrays<T>::of(forest.tree),
          forest.queries.points.data(),
          forest.queries.radii.empty() ? nullptr : forest.queries.radii.data(),
          forest.search.queries,
          SearchParameters<T>(forest.search)};
}

/// The numbers of the first query and of the first tree at fault; trees come before queries.
template <class T>
__global__ void find_faults(Search<T> search, unsigned long long* first) {
  using Fault = NeighborReport::Fault;
  const std::int64_t number = thread_number();
  const auto trees = static_cast<unsigned long long>(search.shape.trees);
  if (search.parameters.periodic && number < search.shape.trees &&
      kd_tree::find_tree_fault(search.shape, search.arrays.node_bounds, search.parameters, number).fault !=
          Fault::kNone) {
    atomicMin(first, static_cast<unsigned long long>(number));
  }
  if (number < search.all_queries() &&
      kd_tree::find_fault(search.queries + number * search.shape.dimensions, search.shape.dimensions,
                          search.radius(number), search.parameters, number)
              .fault != Fault::kNone) {
    atomicMin(first, trees + static_cast<unsigned long long>(number));
  }
}

template <class T>
__global__ void describe_fault(Search<T> search, const unsigned long long* first, NeighborReport* report) {
  *report = NeighborReport();
  if (*first == ~0ull) return;
  const auto number = static_cast<std::int64_t>(*first);
  if (number < search.shape.trees) {
    *report = kd_tree::find_tree_fault(search.shape, search.arrays.node_bounds, search.parameters, number);
    return;
  }
  const std::int64_t query = number - search.shape.trees;
  *report = kd_tree::find_fault(search.queries + query * search.shape.dimensions, search.shape.dimensions,
                                search.radius(query), search.parameters, query);
}

template <class T, int D, bool kPeriodic, int kCapacity>
__global__ void __launch_bounds__(kSearchThreads)
    search_nearest(Search<T> search, int neighbors, std::int64_t* indices, T* distances) {
  const std::int64_t number = thread_number();
  if (number >= search.all_queries()) return;
  using Tree = QueriedTree<T, D, kPeriodic>;
  const Tree tree = search.template tree<D, kPeriodic>(number / search.queries_each);
  const OwnQuery<T, D> query(search, number);
  NearestList<T, kCapacity, Tree> list(tree, neighbors, search.squared_radius(number));
  kd_tree::visit_nearest_first(
      tree, query.coordinates, [&] { return list.limit(); },
      [&](std::uint32_t position, T distance) { list.offer(position, distance); });
  for (int i = 0; i < neighbors; ++i) {
    const bool found = i < list.size();
    indices[number * neighbors + i] = found ? list.index(i) : -1;
    distances[number * neighbors + i] =
        found ? search.shown(list.squared_distance(i)) : static_cast<T>(INFINITY);
  }
}

template <class T, int D, bool kPeriodic>
__global__ void __launch_bounds__(kSearchThreads) search_counts(Search<T> search, std::int64_t* counts) {
  const std::int64_t number = thread_number();
  if (number >= search.all_queries()) return;
  const OwnQuery<T, D> query(search, number);
  std::int64_t found = 0;
  kd_tree::visit_within(search.template tree<D, kPeriodic>(number / search.queries_each), query.coordinates,
                        search.squared_radius(number),
                        [&](std::uint32_t /*position*/, T /*distance*/) { ++found; });
  counts[number] = found;
}

template <class T, int D, bool kPeriodic>
__global__ void __launch_bounds__(kSearchThreads)
    search_lists(Search<T> search, const std::int64_t* offsets, std::int64_t room, std::int64_t* indices,
                 T* distances) {
  const std::int64_t number = thread_number();
  if (number >= search.all_queries()) return;
  const OwnQuery<T, D> query(search, number);
  const QueriedTree<T, D, kPeriodic> tree = search.template tree<D, kPeriodic>(number / search.queries_each);
  std::int64_t next = offsets[number];
  kd_tree::visit_within(tree, query.coordinates, search.squared_radius(number),
                        [&](std::uint32_t position, T distance) {
                          if (next < 0 || next >= room) return;
                          indices[next] = tree.index(position);
                          distances[next] = search.shown(distance);
                          ++next;
                        });
}

/// Calls body(Dimensions<D>, bool constant): the number of dimensions and whether an axis closes, as the
/// compiler is to know them.
template <class T, class Body>
void with_kernels(const Search<T>& search, const Body& body) {
  if (search.parameters.periodic)
    return body(kd_tree::Dimensions<0>(search.shape.dimensions), std::true_type());
  kd_tree::with_dimensions(search.shape.dimensions,
                           [&](auto dimensions) { body(dimensions, std::false_type()); });
}

template <class T>
void report_faults(CudaExecutor& executor, const Search<T>& search, NeighborReport* report) {
  auto* first = reinterpret_cast<unsigned long long*>(executor.scratch<std::uint64_t>(1).data());
  const DeviceSpan<NeighborReport> found = executor.scratch<NeighborReport>(1);
  CUMULUS_CUDA(cudaMemsetAsync(first, 0xFF, sizeof(*first), executor.stream()));
  const std::int64_t threads =
      search.all_queries() > search.shape.trees ? search.all_queries() : search.shape.trees;
  if (threads > 0) {
    find_faults<<<search_blocks(threads), kSearchThreads, 0, executor.stream()>>>(search, first);
  }
  describe_fault<<<1, 1, 0, executor.stream()>>>(search, first, found.data());
  CUMULUS_CUDA(cudaGetLastError());
  executor.download({reinterpret_cast<const std::byte*>(found.data()), sizeof(*report)},
                    {reinterpret_cast<std::byte*>(report), sizeof(*report)});
  executor.check_interrupt();
}

/// Calls body(Dimensions<D>) for the numbers of dimensions whose queries are sorted.
template <class Body>
void with_sorted_dimensions(int dimensions, const Body& body) {
  if (dimensions == 2) return body(kd_tree::Dimensions<2>(2));
  if (dimensions == 3) return body(kd_tree::Dimensions<3>(3));
  body(kd_tree::Dimensions<4>(4));
}

/// Scratch memory of a sorted search.
struct SortedSearch {
  DeviceSpan<kd_tree::ChildExtents> boxes;
  DeviceSpan<std::uint32_t> nodes;
  DeviceSpan<std::uint32_t> ranks;
  DeviceSpan<std::uint32_t> order;
  DeviceSpan<std::uint32_t> counts;
  DeviceSpan<std::uint32_t> reserved;
  int level;

  SortedSearch(CudaExecutor& executor, const KdTreeShape& shape, const NeighborSearch& search)
      : boxes(executor.scratch<kd_tree::ChildExtents>(kd_tree::child_extents(shape))),
        nodes(executor.scratch<std::uint32_t>(static_cast<std::size_t>(shape.trees * search.queries))),
        ranks(executor.scratch<std::uint32_t>(nodes.size())),
        order(executor.scratch<std::uint32_t>(nodes.size())),
        counts(executor.scratch<std::uint32_t>(
            static_cast<std::size_t>(shape.trees << kd_tree::sorting_level(shape, search)))),
        reserved(executor.scratch<std::uint32_t>(static_cast<std::size_t>(shape.trees))),
        level(kd_tree::sorting_level(shape, search)) {}
};

template <int D>
void sort_queries(CUstream_st* stream, const Search<float>& search, const SortedSearch& sorted) {
  const kd_tree::QuerySort sort{sorted.level,        sorted.nodes.data(),  sorted.ranks.data(),
                                sorted.order.data(), sorted.counts.data(), sorted.reserved.data()};
  const std::int64_t inner_nodes = search.shape.trees * (search.shape.nodes() / 2);
  if (inner_nodes > 0) {
    kd_tree::gather_child_boxes<D><<<search_blocks(inner_nodes), kSearchThreads, 0, stream>>>(
        search.shape, search.arrays.node_bounds, sorted.boxes.data());
  }
  CUMULUS_CUDA(cudaMemsetAsync(sorted.counts.data(), 0, sorted.counts.bytes(), stream));
  CUMULUS_CUDA(cudaMemsetAsync(sorted.reserved.data(), 0, sorted.reserved.bytes(), stream));
  const unsigned blocks = search_blocks(search.all_queries());
  const unsigned node_blocks = ((1u << sort.level) + kd_tree::kPlacedNodes - 1) / kd_tree::kPlacedNodes;
  kd_tree::route_queries<D><<<blocks, kSearchThreads, 0, stream>>>(search, sorted.boxes.data(), sort);
  kd_tree::place_nodes<<<static_cast<unsigned>(search.shape.trees) * node_blocks, kd_tree::kPlacedNodes, 0,
                         stream>>>(sort, node_blocks);
  kd_tree::order_queries<<<blocks, kSearchThreads, 0, stream>>>(sort, search.queries_each,
                                                                search.all_queries());
}

template <int D, class List>
void search_with(CUstream_st* stream, const Search<float>& search, const SortedSearch& sorted,
                 const NearestJob<float, Space::kDevice>& job) {
  const auto blocks = static_cast<unsigned>((search.all_queries() + List::kThreads - 1) / List::kThreads);
  kd_tree::search_sorted<D, List>
      <<<blocks, List::kThreads, kd_tree::search_sorted_bytes<List>(job.neighbors), stream>>>(
          search, sorted.boxes.data(), job.neighbors, sorted.order.data(), job.indices.data(),
          job.distances.data());
}

void nearest_of_sorted(CudaExecutor& executor, const Search<float>& search, const SortedSearch& sorted,
                       const NearestJob<float, Space::kDevice>& job) {
  with_sorted_dimensions(search.shape.dimensions, [&]<int D>(kd_tree::Dimensions<D> /*dimensions*/) {
    sort_queries<D>(executor.stream(), search, sorted);
    executor.check_interrupt();
    const auto search_all = job.neighbors <= kd_tree::RegisterList::kMost
                                ? search_with<D, kd_tree::RegisterList>
                                : search_with<D, kd_tree::HeapList>;
    search_all(executor.stream(), search, sorted, job);
  });
  CUMULUS_CUDA(cudaGetLastError());
}

template <class T>
void count_all(CudaExecutor& executor, const Search<T>& search, std::int64_t* counts) {
  with_kernels(search, [&]<int D, bool kPeriodic>(kd_tree::Dimensions<D> /*dimensions*/,
                                                  std::bool_constant<kPeriodic> /*periodic*/) {
    search_counts<T, D, kPeriodic>
        <<<search_blocks(search.all_queries()), kSearchThreads, 0, executor.stream()>>>(search, counts);
  });
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace

template <class T>
void find_nearest(CudaExecutor& executor, const NearestJob<T, Space::kDevice>& job, NeighborReport* report) {
  kd_tree::check_job(job);
  executor.bind_thread();
  const Search<T> search = search_of(job.forest);
  report_faults(executor, search, report);
  if (search.all_queries() == 0) return;
  if constexpr (sizeof(T) == 4) {
    if (kd_tree::sorts_queries(sizeof(T), job.forest.shape, job.forest.search)) {
      return nearest_of_sorted(executor, search, SortedSearch(executor, job.forest.shape, job.forest.search),
                               job);
    }
  }
  with_kernels(search, [&]<int D, bool kPeriodic>(kd_tree::Dimensions<D> /*dimensions*/,
                                                  std::bool_constant<kPeriodic> /*periodic*/) {
    const auto launch = [&](auto* kernel) {
      kernel<<<search_blocks(search.all_queries()), kSearchThreads, 0, executor.stream()>>>(
          search, job.neighbors, job.indices.data(), job.distances.data());
    };
    if (job.neighbors <= 8) {
      launch(search_nearest<T, D, kPeriodic, 8>);
    } else if (job.neighbors <= 32) {
      launch(search_nearest<T, D, kPeriodic, 32>);
    } else {
      launch(search_nearest<T, D, kPeriodic, kMaxNeighbors>);
    }
  });
  CUMULUS_CUDA(cudaGetLastError());
}

template <class T>
void count_within(CudaExecutor& executor, const CountJob<T, Space::kDevice>& job, NeighborReport* report) {
  kd_tree::check_job(job);
  executor.bind_thread();
  const Search<T> search = search_of(job.forest);
  report_faults(executor, search, report);
  if (search.all_queries() > 0) count_all(executor, search, job.counts.data());
}

template <class T>
void list_within(CudaExecutor& executor, const ListJob<T, Space::kDevice>& job, NeighborListReport* report) {
  kd_tree::check_job(job);
  executor.bind_thread();
  const Search<T> search = search_of(job.forest);
  const std::int64_t count = search.all_queries();
  std::int64_t* offsets = job.offsets.data();
  report_faults(executor, search, &report->queries);
  const auto sums =
      executor.scratch<std::int64_t>(static_cast<std::size_t>(kd_tree::accumulation_tiles(count)));
  CUMULUS_CUDA(cudaMemsetAsync(offsets, 0, sizeof(std::int64_t), executor.stream()));
  report->listed = 0;
  if (count == 0) return;
  count_all(executor, search, offsets + 1);
  kd_tree::accumulate(executor.stream(), offsets + 1, count, sums.data());
  executor.download({reinterpret_cast<const std::byte*>(offsets + count), sizeof(report->listed)},
                    {reinterpret_cast<std::byte*>(&report->listed), sizeof(report->listed)});
  with_kernels(search, [&]<int D, bool kPeriodic>(kd_tree::Dimensions<D> /*dimensions*/,
                                                  std::bool_constant<kPeriodic> /*periodic*/) {
    search_lists<T, D, kPeriodic><<<search_blocks(count), kSearchThreads, 0, executor.stream()>>>(
        search, offsets, static_cast<std::int64_t>(job.indices.size()), job.indices.data(),
        job.distances.data());
  });
  CUMULUS_CUDA(cudaGetLastError());
}

template void find_nearest(CudaExecutor&, const NearestJob<float, Space::kDevice>&, NeighborReport*);
template void find_nearest(CudaExecutor&, const NearestJob<double, Space::kDevice>&, NeighborReport*);
template void count_within(CudaExecutor&, const CountJob<float, Space::kDevice>&, NeighborReport*);
template void count_within(CudaExecutor&, const CountJob<double, Space::kDevice>&, NeighborReport*);
template void list_within(CudaExecutor&, const ListJob<float, Space::kDevice>&, NeighborListReport*);
template void list_within(CudaExecutor&, const ListJob<double, Space::kDevice>&, NeighborListReport*);

}  // namespace cumulus
