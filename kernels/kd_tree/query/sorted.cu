#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/core/cuda_error.h"
#include "kernels/core/div.h"
#include "kernels/core/launch_slices.h"
#include "kernels/kd_tree/query/closest.cuh"
#include "kernels/kd_tree/query/faults.cuh"
#include "kernels/kd_tree/query/order.cuh"
#include "kernels/kd_tree/query/search.h"
#include "kernels/kd_tree/query/search_sorted.cuh"
#include "kernels/kd_tree/query/sort.cuh"
#include "kernels/kd_tree/query/split_nodes.cuh"

namespace cumulus::kd_tree {
namespace {

/// Calls body(Dimensions<D>) for D from kFirst to kLast.
template <int kFirst, int kLast, class Body>
void with_dimensions_between(int dimensions, const Body& body) {
  if constexpr (kFirst < kLast) {
    if (dimensions != kFirst) return with_dimensions_between<kFirst + 1, kLast>(dimensions, body);
  }
  body(Dimensions<kFirst>(kFirst));
}

/// Of a block, without being set for its kernel.
constexpr std::size_t kUnaskedSharedBytes = 48 * 1024;

/// Scratch memory in which queries are sorted.
struct SortBuffers {
  DeviceSpan<std::uint32_t> nodes;
  DeviceSpan<std::uint32_t> ranks;
  DeviceSpan<std::uint32_t> order;
  DeviceSpan<std::uint32_t> counts;
  DeviceSpan<std::uint32_t> reserved;
  DeviceSpan<std::uint32_t> in_order;

  template <class T>
  SortBuffers(CudaExecutor& executor, int level, const QueriedForest<T, Space::kDevice>& forest)
      : nodes(executor.scratch<std::uint32_t>(static_cast<std::size_t>(forest.all_queries()))),
        ranks(executor.scratch<std::uint32_t>(nodes.size())),
        order(executor.scratch<std::uint32_t>(nodes.size())),
        counts(executor.scratch<std::uint32_t>(static_cast<std::size_t>(forest.shape.trees << level))),
        reserved(executor.scratch<std::uint32_t>(static_cast<std::size_t>(forest.shape.trees))),
        in_order(executor.scratch<std::uint32_t>(1)) {}

  QuerySort sort(int level) const {
    return {level, nodes.data(), ranks.data(), order.data(), counts.data(), reserved.data(), in_order.data()};
  }
};

/// Blocks of a kernel whose threads take queries one after another: few, which end soon where there is
/// nothing to sort.
constexpr unsigned kMaxSortBlocks = 2048;

template <class T, int D, class Forest>
void sort_queries(CUstream_st* stream, const Search<T>& search, const Forest& forest,
                  const SortBuffers& buffers, int level) {
  const QuerySort sort = buffers.sort(level);
  CUMULUS_CUDA(cudaMemsetAsync(sort.counts, 0, buffers.counts.bytes(), stream));
  CUMULUS_CUDA(cudaMemsetAsync(sort.reserved, 0, buffers.reserved.bytes(), stream));
  look_at_order<T, D><<<1, kOrderThreads, 0, stream>>>(search, sort.in_order);
  const unsigned blocks = std::min(search_blocks(search.all_queries()), kMaxSortBlocks);
  const unsigned node_blocks = divide_up(1u << level, kPlacedNodes);
  route_queries<T, D><<<blocks, kSearchThreads, 0, stream>>>(search, forest, sort);
  place_nodes<<<static_cast<unsigned>(search.shape.trees) * node_blocks, kPlacedNodes, 0, stream>>>(
      sort, node_blocks);
  order_queries<<<blocks, kSearchThreads, 0, stream>>>(sort, search.queries_each, search.all_queries());
  CUMULUS_CUDA(cudaGetLastError());
}

template <class T, int D, bool kPeriodic, class List>
void search_with(CudaExecutor& executor, const NearestSorted& plan, const Search<T>& search,
                 const ChildExtents<T>* boxes, const SortBuffers& sorted,
                 const NearestJob<T, Space::kDevice>& job) {
  const auto kernel = search_sorted<T, D, kPeriodic, List>;
  // Always the same, so that threads that search at once set the same.
  if constexpr (List::kMaxSharedBytes > kUnaskedSharedBytes) {
    CUMULUS_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(List::kMaxSharedBytes)));
  }
  launch_slices(executor, search.all_queries(), slice_bounds(search, kFirstSliceSorted),
                [&](std::int64_t begin, std::int64_t end) {
                  const auto blocks = static_cast<unsigned>(divide_up(end - begin, List::kThreads));
                  kernel<<<blocks, List::kThreads, plan.shared_bytes, executor.stream()>>>(
                      search.slice(begin, end), boxes, job.neighbors, sorted.sort(plan.level),
                      job.indices.data(), job.distances.data());
                  CUMULUS_CUDA(cudaGetLastError());
                });
}

template <class T, int D>
void search_closest_in_slices(CudaExecutor& executor, const Search<T>& search, const SplitArrays& splits,
                              const QuerySort& sort, const NearestJob<T, Space::kDevice>& job) {
  constexpr std::int64_t kWarp = 32;
  const std::int64_t warps = search.shape.trees * divide_up(search.queries_each, kWarp);
  const auto kernel = search.shape.trees == 1 ? search_closest<T, D, true> : search_closest<T, D, false>;
  launch_slices(executor, warps * kWarp, slice_bounds(search, kFirstSliceSorted),
                [&](std::int64_t begin, std::int64_t end) {
                  const std::int64_t first = divide_up(begin, kWarp);
                  const std::int64_t last = divide_up(end, kWarp);
                  if (first == last) return;
                  const auto blocks =
                      static_cast<unsigned>(divide_up((last - first) * kWarp, kClosestThreads));
                  kernel<<<blocks, kClosestThreads, 0, executor.stream()>>>(
                      search.slice(first, last), splits, sort, job.indices.data(), job.distances.data());
                  CUMULUS_CUDA(cudaGetLastError());
                });
}

}  // namespace

template <class T>
void find_nearest_sorted(CudaExecutor& executor, const NearestSorted& plan,
                         const NearestJob<T, Space::kDevice>& job, NeighborReport* report) {
  Search<T> search = search_of(job.forest);
  report_faults(executor, search, report);
  if (search.all_queries() == 0) return;
  ChildExtents<T>* const boxes = executor.scratch<ChildExtents<T>>(plan.child_extents).data();
  const SortBuffers sorted(executor, plan.level, job.forest);
  const std::int64_t inner_nodes = search.shape.nodes() / 2;
  with_dimensions_between<2,
                          kMaxSortedDimensions>(search.shape.dimensions, [&]<int D>(
                                                                             Dimensions<D> /*dimensions*/) {
    if (inner_nodes > 0) {
      gather_child_boxes<T, D>
          <<<search_blocks(search.shape.trees * inner_nodes), kSearchThreads, 0, executor.stream()>>>(
              search.shape, search.node_bounds, boxes);
    }
    sort_queries<T, D>(executor.stream(), search, BoxForest<T, D>{boxes, inner_nodes}, sorted, plan.level);
    const auto search_all = search.parameters.periodic ? plan.lists_in_registers
                                                             ? search_with<T, D, true, RegisterList<T>>
                                                             : search_with<T, D, true, HeapList<T>>
                            : plan.lists_in_registers ? search_with<T, D, false, RegisterList<T>>
                                                       : search_with<T, D, false, HeapList<T>>;
    search_all(executor, plan, search, boxes, sorted, job);
  });
}

template void find_nearest_sorted(CudaExecutor&, const NearestSorted&,
                                  const NearestJob<float, Space::kDevice>&, NeighborReport*);
template void find_nearest_sorted(CudaExecutor&, const NearestSorted&,
                                  const NearestJob<double, Space::kDevice>&, NeighborReport*);

template <class T>
void find_closest_sorted(CudaExecutor& executor, const ClosestSorted& plan,
                         const NearestJob<T, Space::kDevice>& job, NeighborReport* report) {
  Search<T> search = search_of(job.forest);
  report_faults(executor, search, report);
  if (search.all_queries() == 0) return;
  const SplitArrays splits{executor.scratch<SplitNode>(plan.splits).data(),
                           executor.scratch<std::uint32_t>(plan.leaf_begins).data()};
  const SortBuffers sorted(executor, plan.level, job.forest);
  with_dimensions_between<2, kMaxSplitDimensions>(
      search.shape.dimensions, [&]<int D>(Dimensions<D> /*dimensions*/) {
        gather_splits<T, D>
            <<<search_blocks(search.all_leaves()), kSearchThreads, 0, executor.stream()>>>(search, splits);
        sort_queries<T, D>(executor.stream(), search,
                           SplitForest<T, D>{splits.nodes, search.shape.nodes() / 2}, sorted, plan.level);
        search_closest_in_slices<T, D>(executor, search, splits, sorted.sort(plan.level), job);
      });
}

template void find_closest_sorted(CudaExecutor&, const ClosestSorted&,
                                  const NearestJob<float, Space::kDevice>&, NeighborReport*);
template void find_closest_sorted(CudaExecutor&, const ClosestSorted&,
                                  const NearestJob<double, Space::kDevice>&, NeighborReport*);

}  // namespace cumulus::kd_tree
