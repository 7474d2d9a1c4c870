#pragma once

#include "kernels/core/cuda_executor.h"
#include "kernels/kd_tree/query/search.cuh"
#include "kernels/kd_tree/query/traversal.h"

namespace cumulus::kd_tree {

/// A caller's report, and where kernels write it.
struct FaultReport {
  NeighborReport* report;
  NeighborReport* view;
  bool is_copied;  // once the kernel that writes it is on the stream

  void finish(CudaExecutor& executor) const;
};

/// Every search begins so: makes the search's kernels do nothing where there is a fault. One of them calls
/// describe_fault, and may begin before this one's kernel has ended. T is float or double.
template <class T>
FaultReport find_faults(CudaExecutor& executor, Search<T>& search, NeighborReport* report);

/// Or so, where none calls describe_fault.
template <class T>
void report_faults(CudaExecutor& executor, Search<T>& search, NeighborReport* report);

/// By one thread: what of the first fault a report says.
template <class T>
__device__ void describe_fault(const Search<T>& search, NeighborReport* report) {
  *report = NeighborReport();
  if (!search.has_fault()) return;
  auto number = static_cast<std::int64_t>(*search.first_fault);
  if (number < search.all_leaves()) {
    *report = find_leaf_fault(search.shape, search.node_data, number);
    return;
  }
  number -= search.all_leaves();
  if (number < search.shape.trees) {
    *report = find_tree_fault(search.shape, search.node_bounds, search.parameters, number);
    return;
  }
  const std::int64_t query = number - search.shape.trees;
  *report = find_fault(search.queries + query * search.shape.dimensions, search.shape.dimensions,
                       search.radius(query), search.parameters, query);
}

}  // namespace cumulus::kd_tree
