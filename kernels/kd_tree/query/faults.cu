#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/core/cuda_error.h"
#include "kernels/core/div.h"
#include "kernels/kd_tree/query/faults.cuh"
#include "kernels/kd_tree/query/traversal.h"
#include "kernels/primitives/launch.cuh"

namespace cumulus::kd_tree {
namespace {

/// The number of the first leaf, tree or query at fault; leaves come before trees, and trees before queries.
/// Owns: thread i leaf i, tree i and query i.
/// Reads: the leaf and the one before it; where an axis closes, the root's bounds; the query and its radius.
/// Writes: the least number, by atomic minima.
/// Waits for: nothing.
/// Cannot deadlock: no thread waits for another.
/// Source: this project's.
template <class T>
__global__ void find_any_fault(Search<T> search, unsigned long long* first) {
  allow_secondary_kernel();
  using Fault = NeighborReport::Fault;
  const std::int64_t number = thread_number();
  const auto leaves = static_cast<unsigned long long>(search.all_leaves());
  const auto trees = static_cast<unsigned long long>(search.shape.trees);
  if (number < search.all_leaves() &&
      find_leaf_fault(search.shape, search.node_data, number).fault != Fault::kNone) {
    atomicMin(first, static_cast<unsigned long long>(number));
  }
  if (search.parameters.periodic && number < search.shape.trees &&
      find_tree_fault(search.shape, search.node_bounds, search.parameters, number).fault != Fault::kNone) {
    atomicMin(first, leaves + static_cast<unsigned long long>(number));
  }
  if (number < search.all_queries() &&
      find_fault(search.queries + number * search.shape.dimensions, search.shape.dimensions,
                 search.radius(number), search.parameters, number)
              .fault != Fault::kNone) {
    atomicMin(first, leaves + trees + static_cast<unsigned long long>(number));
  }
}

inline constexpr std::int64_t kCheckedCoordinates = 4;

/// As find_any_fault, of queries that only a NaN puts at fault: what most searches are.
/// Owns: thread i leaf i; coordinates of the queries, kCheckedCoordinates of them a block's threads apart.
/// Reads: the leaf and the one before it; the coordinates.
/// Writes: the least number, by atomic minima.
/// Waits for: nothing.
/// Cannot deadlock: no thread waits for another.
/// Source: this project's.
template <class T>
__global__ void __launch_bounds__(kSearchThreads)
    find_nan_or_leaf(Search<T> search, unsigned long long* first) {
  allow_secondary_kernel();
  const std::int64_t number = thread_number();
  if (number < search.all_leaves() &&
      find_leaf_fault(search.shape, search.node_data, number).fault != NeighborReport::Fault::kNone) {
    atomicMin(first, static_cast<unsigned long long>(number));
  }
  const std::int64_t coordinates = search.all_queries() * search.shape.dimensions;
  const std::int64_t from = std::int64_t{blockIdx.x} * kSearchThreads * kCheckedCoordinates + threadIdx.x;
#pragma unroll
  for (int i = 0; i < kCheckedCoordinates; ++i) {
    const std::int64_t at = from + i * kSearchThreads;
    if (at >= coordinates) break;
    const T x = search.queries[at];
    if (x == x) continue;
    atomicMin(first, static_cast<unsigned long long>(search.all_leaves() + search.shape.trees +
                                                     at / search.shape.dimensions));
  }
}

/// Owns: one thread has all.
/// Reads: the first fault's number; what is at fault.
/// Writes: the report.
/// Waits for: nothing.
/// Cannot deadlock: no thread waits for another.
/// Source: this project's.
template <class T>
__global__ void write_fault(Search<T> search, NeighborReport* report) {
  describe_fault(search, report);
}

/// Whether queries can be at fault by a NaN alone, that is, have neither a period to lie in nor a radius
/// each.
template <class T>
bool only_nan_counts(const Search<T>& search) {
  return !search.parameters.periodic && search.radii == nullptr && search.parameters.radius >= 0;
}

template <class T>
void launch_find_faults(CUstream_st* stream, const Search<T>& search, unsigned long long* first) {
  const std::int64_t coordinates = search.all_queries() * search.shape.dimensions;
  if (only_nan_counts(search)) {
    const std::int64_t threads = std::max(divide_up(coordinates, kCheckedCoordinates), search.all_leaves());
    if (threads > 0) find_nan_or_leaf<<<search_blocks(threads), kSearchThreads, 0, stream>>>(search, first);
    return;
  }
  const std::int64_t threads =
      std::max(search.all_queries(), search.all_leaves());  // which are no fewer than trees
  if (threads > 0) find_any_fault<<<search_blocks(threads), kSearchThreads, 0, stream>>>(search, first);
}

}  // namespace

template <class T>
FaultReport find_faults(CudaExecutor& executor, Search<T>& search, NeighborReport* report) {
  auto* first = reinterpret_cast<unsigned long long*>(executor.scratch<std::uint64_t>(1).data());
  const DeviceSpan<NeighborReport> found = executor.scratch<NeighborReport>(1);
  CUMULUS_CUDA(cudaMemsetAsync(first, 0xFF, sizeof(*first), executor.stream()));
  launch_find_faults(executor.stream(), search, first);
  CUMULUS_CUDA(cudaGetLastError());
  search.first_fault = first;
  executor.check_interrupt();
  // Where the report can be written by the kernel, nothing waits for a copy of it.
  auto* view = static_cast<NeighborReport*>(executor.device_view(report));
  return {report, view != nullptr ? view : found.data(), view == nullptr};
}

void FaultReport::finish(CudaExecutor& executor) const {
  if (!is_copied) return;
  executor.download({reinterpret_cast<const std::byte*>(view), sizeof(*report)},
                    {reinterpret_cast<std::byte*>(report), sizeof(*report)});
}

template <class T>
void report_faults(CudaExecutor& executor, Search<T>& search, NeighborReport* report) {
  const FaultReport found = find_faults(executor, search, report);
  write_fault<<<1, 1, 0, executor.stream()>>>(search, found.view);
  CUMULUS_CUDA(cudaGetLastError());
  found.finish(executor);
}

template FaultReport find_faults(CudaExecutor&, Search<float>&, NeighborReport*);
template FaultReport find_faults(CudaExecutor&, Search<double>&, NeighborReport*);
template void report_faults(CudaExecutor&, Search<float>&, NeighborReport*);
template void report_faults(CudaExecutor&, Search<double>&, NeighborReport*);

}  // namespace cumulus::kd_tree
