#pragma once

#include "kernels/core/cuda_executor.h"
#include "kernels/sampling_table/rows/texels.cuh"

// All rows of a table at once, a block a row, sixteen cells a thread: the faster way, for the rows that fit.

namespace cumulus::sampling_dense {

/// Whether build_rows can build the rows of such a table, and build_marginals its marginals; none of
/// kBalancedForest.
bool rows_fit(const CudaExecutor& executor, const sampling::TableHeader& header);
bool marginals_fit(const CudaExecutor& executor, const sampling::TableHeader& header);

/// Whether these write the guide of a method that has one, and the nodes of kRadixForest.
bool has_lookup(sampling::Method method);

/// Lower bounds, and what has_lookup says.
template <class T>
void build_rows(CudaExecutor& executor, const sampling_rows::RowsArguments<T>& arguments);

/// The same of the marginals. With `early`, the kernel before it on the stream is that of the rows, which
/// writes `row_masses`; their words are kNotYet before.
void build_marginals(CudaExecutor& executor, const sampling::TableHeader& header, std::byte* table,
                     const RowMass* row_masses, BuildFindings* findings, bool early);

}  // namespace cumulus::sampling_dense
