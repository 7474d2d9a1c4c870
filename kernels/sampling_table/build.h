#pragma once

#include "kernels/sampling_table/method.h"
#include "kernels/sampling_table/sampling_table.h"

namespace cumulus::sampling_table {

/// Builds a table as `plan` has it, which `choose` made of `params`, for the executor's device or for one
/// with less shared memory. Arguments have been checked.
template <class T>
void build_by(CudaExecutor& executor, const BuildPlan& plan, DeviceImage<const T> weights,
              const SamplingTableParams& params, DeviceSpan<std::byte> table, SamplingTableReport* report);

}  // namespace cumulus::sampling_table
