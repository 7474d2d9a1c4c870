#include <cuda_runtime.h>

#include "kernels/core/cuda_error.h"
#include "kernels/core/div.h"
#include "kernels/core/launch_slices.h"
#include "kernels/kd_tree/query/faults.cuh"
#include "kernels/kd_tree/query/search.h"
#include "kernels/kd_tree/query/search_sorted.cuh"
#include "kernels/kd_tree/query/sort.cuh"

namespace cumulus::kd_tree {
namespace {

/// Calls body(Dimensions<D>) for the numbers of dimensions whose queries are sorted.
template <class Body>
void with_sorted_dimensions(int dimensions, const Body& body) {
  static_assert(kMaxSortedDimensions == 4);
  if (dimensions == 2) return body(Dimensions<2>(2));
  if (dimensions == 3) return body(Dimensions<3>(3));
  body(Dimensions<4>(4));
}

/// Scratch memory of a sorted search.
struct SortBuffers {
  DeviceSpan<ChildExtents> boxes;
  DeviceSpan<std::uint32_t> nodes;
  DeviceSpan<std::uint32_t> ranks;
  DeviceSpan<std::uint32_t> order;
  DeviceSpan<std::uint32_t> counts;
  DeviceSpan<std::uint32_t> reserved;

  SortBuffers(CudaExecutor& executor, const NearestSorted& plan,
              const QueriedForest<float, Space::kDevice>& forest)
      : boxes(executor.scratch<ChildExtents>(plan.child_extents)),
        nodes(executor.scratch<std::uint32_t>(static_cast<std::size_t>(forest.all_queries()))),
        ranks(executor.scratch<std::uint32_t>(nodes.size())),
        order(executor.scratch<std::uint32_t>(nodes.size())),
        counts(executor.scratch<std::uint32_t>(static_cast<std::size_t>(forest.shape.trees << plan.level))),
        reserved(executor.scratch<std::uint32_t>(static_cast<std::size_t>(forest.shape.trees))) {}
};

template <int D>
void sort_queries(CUstream_st* stream, const Search<float>& search, const NearestSorted& plan,
                  const SortBuffers& sorted) {
  const QuerySort sort{plan.level,          sorted.nodes.data(),  sorted.ranks.data(),
                       sorted.order.data(), sorted.counts.data(), sorted.reserved.data()};
  const std::int64_t inner_nodes = search.shape.trees * (search.shape.nodes() / 2);
  if (inner_nodes > 0) {
    gather_child_boxes<D><<<search_blocks(inner_nodes), kSearchThreads, 0, stream>>>(
        search.shape, search.node_bounds, sorted.boxes.data());
  }
  CUMULUS_CUDA(cudaMemsetAsync(sorted.counts.data(), 0, sorted.counts.bytes(), stream));
  CUMULUS_CUDA(cudaMemsetAsync(sorted.reserved.data(), 0, sorted.reserved.bytes(), stream));
  const unsigned blocks = search_blocks(search.all_queries());
  const unsigned node_blocks = divide_up(1u << sort.level, kPlacedNodes);
  route_queries<D><<<blocks, kSearchThreads, 0, stream>>>(search, sorted.boxes.data(), sort);
  place_nodes<<<static_cast<unsigned>(search.shape.trees) * node_blocks, kPlacedNodes, 0, stream>>>(
      sort, node_blocks);
  order_queries<<<blocks, kSearchThreads, 0, stream>>>(sort, search.queries_each, search.all_queries());
  CUMULUS_CUDA(cudaGetLastError());
}

template <int D, class List>
void search_with(CudaExecutor& executor, const NearestSorted& plan, const Search<float>& search,
                 const SortBuffers& sorted, const NearestJob<float, Space::kDevice>& job) {
  launch_slices(executor, search.all_queries(), slice_bounds(search, kFirstSliceSorted),
                [&](std::int64_t begin, std::int64_t end) {
                  const auto blocks = static_cast<unsigned>(divide_up(end - begin, List::kThreads));
                  search_sorted<D, List><<<blocks, List::kThreads, plan.shared_bytes, executor.stream()>>>(
                      search.slice(begin, end), sorted.boxes.data(), job.neighbors, sorted.order.data(),
                      job.indices.data(), job.distances.data());
                  CUMULUS_CUDA(cudaGetLastError());
                });
}

}  // namespace

void find_nearest_sorted(CudaExecutor& executor, const NearestSorted& plan,
                         const NearestJob<float, Space::kDevice>& job, NeighborReport* report) {
  Search<float> search = search_of(job.forest);
  report_faults(executor, search, report);
  if (search.all_queries() == 0) return;
  const SortBuffers sorted(executor, plan, job.forest);
  with_sorted_dimensions(search.shape.dimensions, [&]<int D>(Dimensions<D> /*dimensions*/) {
    sort_queries<D>(executor.stream(), search, plan, sorted);
    const auto search_all = plan.lists_in_registers ? search_with<D, RegisterList> : search_with<D, HeapList>;
    search_all(executor, plan, search, sorted, job);
  });
}

}  // namespace cumulus::kd_tree
