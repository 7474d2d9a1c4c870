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
#include "kernels/primitives/launch.cuh"

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

/// In front of all kernels of a search, each of which begins before the one in front of it has ended.
void clear_counts(CUstream_st* stream, const SortBuffers& buffers) {
  CUMULUS_CUDA(cudaMemsetAsync(buffers.counts.data(), 0, buffers.counts.bytes(), stream));
  CUMULUS_CUDA(cudaMemsetAsync(buffers.reserved.data(), 0, buffers.reserved.bytes(), stream));
}

/// Their counts are cleared. The report of faults is written besides.
template <class T, int D, class Forest>
void sort_queries(CUstream_st* stream, const Search<T>& search, const Forest& forest, const QuerySort& sort,
                  NeighborReport* report) {
  launch_dependent<look_at_order<T, D>>(stream, {1, kOrderThreads}, search, sort.in_order, report);
  const unsigned blocks = std::min(search_blocks(search.all_queries()), kMaxSortBlocks);
  const unsigned node_blocks = divide_up(1u << sort.level, kPlacedNodes);
  launch_dependent<route_queries<T, D, Forest>>(stream, {blocks, kSearchThreads}, search, forest, sort);
  launch_dependent<place_nodes>(stream, {search.shape.trees * node_blocks, static_cast<int>(kPlacedNodes)},
                                sort, node_blocks);
  launch_dependent<order_queries>(stream, {blocks, kSearchThreads}, sort, search.queries_each,
                                  search.all_queries());
  CUMULUS_CUDA(cudaGetLastError());
}

template <auto kKernel, int kThreads, class T>
void search_in_slices(CudaExecutor& executor, const NearestSorted& plan, const Search<T>& search,
                      const ChildExtents* boxes, const SortBuffers& sorted,
                      const NearestJob<T, Space::kDevice>& job) {
  launch_slices(executor, search.all_queries(), slice_bounds(search, kFirstSliceSorted),
                [&](std::int64_t begin, std::int64_t end) {
                  launch_dependent<kKernel>(
                      executor.stream(), {divide_up(end - begin, kThreads), kThreads, plan.shared_bytes},
                      search.slice(begin, end), boxes, job.neighbors, sorted.sort(plan.level),
                      job.indices.data(), job.distances.data());
                });
}

template <class T, int D, bool kPeriodic, class List>
void search_with(CudaExecutor& executor, const NearestSorted& plan, const Search<T>& search,
                 const ChildExtents* boxes, const SortBuffers& sorted,
                 const NearestJob<T, Space::kDevice>& job) {
  constexpr bool kOneTree = List::kInRegisters && !kPeriodic;  // has a kernel of its own
  const auto search_all =
      search.shape.trees == 1
          ? search_in_slices<search_sorted<T, D, kPeriodic, List, kOneTree>, List::kThreads, T>
          : search_in_slices<search_sorted<T, D, kPeriodic, List, false>, List::kThreads, T>;
  search_all(executor, plan, search, boxes, sorted, job);
}

template <auto kKernel, class T>
void search_closest_in_slices(CudaExecutor& executor, const Search<T>& search, const SplitArrays& splits,
                              const QuerySort& sort, const NearestJob<T, Space::kDevice>& job) {
  constexpr std::int64_t kWarp = 32;
  const std::int64_t warps = search.shape.trees * divide_up(search.queries_each, kWarp);
  launch_slices(executor, warps * kWarp, slice_bounds(search, kFirstSliceSorted),
                [&](std::int64_t begin, std::int64_t end) {
                  const std::int64_t first = divide_up(begin, kWarp);
                  const std::int64_t last = divide_up(end, kWarp);
                  if (first == last) return;
                  launch_dependent<kKernel>(
                      executor.stream(),
                      {divide_up((last - first) * kWarp, kClosestThreads), kClosestThreads},
                      search.slice(first, last), splits, sort, job.indices.data(), job.distances.data());
                });
}

}  // namespace

template <class T>
void find_nearest_sorted(CudaExecutor& executor, const NearestSorted& plan,
                         const NearestJob<T, Space::kDevice>& job, NeighborReport* report) {
  Search<T> search = search_of(job.forest);
  if (search.all_queries() == 0) return report_faults(executor, search, report);
  ChildExtents* const boxes = executor.scratch<ChildExtents>(plan.child_extents).data();
  const SortBuffers sorted(executor, plan.level, job.forest);
  clear_counts(executor.stream(), sorted);
  const FaultReport faults = find_faults(executor, search, report);
  const std::int64_t inner_nodes = search.shape.nodes() / 2;
  with_dimensions_between<2, kMaxSortedDimensions>(
      search.shape.dimensions, [&]<int D>(Dimensions<D> /*dimensions*/) {
        if (inner_nodes > 0) {
          launch_dependent<gather_child_boxes<T, D>>(
              executor.stream(), {search_blocks(search.shape.trees * inner_nodes), kSearchThreads},
              search.shape, search.node_bounds, boxes);
        }
        sort_queries<T, D>(executor.stream(), search, BoxForest<T, D>{boxes, inner_nodes},
                           sorted.sort(plan.level), faults.view);
        const auto search_all = search.parameters.periodic ? plan.lists_in_registers
                                                                 ? search_with<T, D, true, RegisterList<T>>
                                                                 : search_with<T, D, true, HeapList<T>>
                                : plan.lists_in_registers ? search_with<T, D, false, RegisterList<T>>
                                                           : search_with<T, D, false, HeapList<T>>;
        search_all(executor, plan, search, boxes, sorted, job);
      });
  faults.finish(executor);
}

template void find_nearest_sorted(CudaExecutor&, const NearestSorted&,
                                  const NearestJob<float, Space::kDevice>&, NeighborReport*);
template void find_nearest_sorted(CudaExecutor&, const NearestSorted&,
                                  const NearestJob<double, Space::kDevice>&, NeighborReport*);

template <class T>
void find_closest_sorted(CudaExecutor& executor, const ClosestSorted& plan,
                         const NearestJob<T, Space::kDevice>& job, NeighborReport* report) {
  Search<T> search = search_of(job.forest);
  if (search.all_queries() == 0) return report_faults(executor, search, report);
  const SplitArrays splits{executor.scratch<SplitNode>(plan.splits).data(),
                           executor.scratch<std::uint32_t>(plan.leaf_begins).data()};
  const SortBuffers sorted(executor, plan.level, job.forest);
  clear_counts(executor.stream(), sorted);
  const FaultReport faults = find_faults(executor, search, report);
  with_dimensions_between<2, kMaxSplitDimensions>(search.shape.dimensions, [&]<int D>(
                                                                               Dimensions<D> /*dimensions*/) {
    launch_dependent<gather_splits<T, D>>(
        executor.stream(), {search_blocks(search.all_leaves()), kSearchThreads}, search, splits);
    sort_queries<T, D>(executor.stream(), search, SplitForest<T, D>{splits.nodes, search.shape.nodes() / 2},
                       sorted.sort(plan.level), faults.view);
    const auto search_all = search.shape.trees == 1
                                ? search_closest_in_slices<search_closest<T, D, true>, T>
                                : search_closest_in_slices<search_closest<T, D, false>, T>;
    search_all(executor, search, splits, sorted.sort(plan.level), job);
  });
  faults.finish(executor);
}

template void find_closest_sorted(CudaExecutor&, const ClosestSorted&,
                                  const NearestJob<float, Space::kDevice>&, NeighborReport*);
template void find_closest_sorted(CudaExecutor&, const ClosestSorted&,
                                  const NearestJob<double, Space::kDevice>&, NeighborReport*);

}  // namespace cumulus::kd_tree
