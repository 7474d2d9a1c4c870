#pragma once

#include <cstdint>

#include "kernels/core/cuda_executor.h"
#include "kernels/sampling_table/rows/arguments.h"

namespace cumulus::sampling_table {

/// Writes the table's header and gaps and, when the kernel before has ended, the report on a map of layers of
/// `height` rows.
template <class T>
void conclude(CudaExecutor& executor, const RowsArguments<T>& arguments, std::uint32_t height);

}  // namespace cumulus::sampling_table
