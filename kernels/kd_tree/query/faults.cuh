#pragma once

#include "kernels/core/cuda_executor.h"
#include "kernels/kd_tree/query/search.cuh"

namespace cumulus::kd_tree {

/// Every search begins so: fills the report once the work is done, and makes the search's kernels do nothing
/// where there is a fault. T is float or double.
template <class T>
void report_faults(CudaExecutor& executor, Search<T>& search, NeighborReport* report);

}  // namespace cumulus::kd_tree
