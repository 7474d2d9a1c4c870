#pragma once

#include "kernels/core/cuda_executor.h"
#include "kernels/sampling_table/rows/texels.cuh"

// Register-blocked rows: all rows of a table at once, a block a row, sixteen cells a thread.

namespace cumulus::sampling_table {

/// Whether launch_register_blocked_rows can build the rows of such a table, and
/// launch_register_blocked_marginals its marginals; none of kBalancedForest.
bool register_blocked_rows_fit(const CudaExecutor& executor, const sampling::TableHeader& header);
bool register_blocked_marginals_fit(const CudaExecutor& executor, const sampling::TableHeader& header);

/// Whether these write the guide of a method that has one, and the nodes of kRadixForest.
bool register_blocked_lookup(sampling::Method method);

/// Lower bounds, and guide and nodes where register_blocked_lookup holds.
template <class T>
void launch_register_blocked_rows(CudaExecutor& executor, const RowsArguments<T>& arguments);

/// The same of the marginals. With `early`, the kernel before it on the stream is that of the rows, which
/// writes `row_masses`; their words are kNotPublished before.
void launch_register_blocked_marginals(CudaExecutor& executor, const sampling::TableHeader& header,
                                       std::byte* table, const RowMass* row_masses, BuildFindings* findings,
                                       bool early);

}  // namespace cumulus::sampling_table
