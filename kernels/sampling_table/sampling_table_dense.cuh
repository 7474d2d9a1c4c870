#pragma once

#include "kernels/core/cuda_executor.h"
#include "kernels/sampling_table/sampling_table_texels.cuh"

// All rows of a table at once, a block a row, sixteen cells a thread: the faster way, for the rows that fit.

namespace cumulus::sampling_dense {

/// Whether build_rows can build the rows of such a table, none of kBalancedForest.
bool fit(const CudaExecutor& executor, const sampling::TableHeader& header);

/// Whether build_rows writes the guide of a method that has one, and the nodes of kRadixForest.
bool has_lookup(sampling::Method method);

/// Lower bounds, and what has_lookup says. The rows' masses are left without their share of the sphere.
template <class T>
void build_rows(CudaExecutor& executor, const sampling_rows::RowsArguments<T>& arguments);

}  // namespace cumulus::sampling_dense
