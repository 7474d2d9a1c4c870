#pragma once

#include "kernels/core/cuda_executor.h"
#include "kernels/sampling_table/rows/arguments.h"

// A block a row, or a marginal, that keeps no cell: it reads the weights once for the largest, once for the
// sum and once for the lower bounds. For what no block of the device has shared memory for.

namespace cumulus::sampling_table {

struct ThreePassPlan {
  bool writes_guides() const { return false; }
};

template <class T>
void build_rows(CudaExecutor& executor, const ThreePassPlan& plan, const RowsArguments<T>& arguments);
void build_marginals(CudaExecutor& executor, const ThreePassPlan& plan, const MarginalsArguments& arguments);

}  // namespace cumulus::sampling_table
