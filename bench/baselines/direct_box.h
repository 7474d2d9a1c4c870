#pragma once

#include <cstdint>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/cuda_executor.h"
#include "kernels/core/views.h"

// The box filter that FilterBox is measured against: without a table, separable, of one channel.

namespace cumulus::bench {

/// The mean over the box of (2 * radius + 1)^2 pixels, of those inside the image; sums in float, first along
/// the rows into `row_sums`. Both outputs are dense, of the image's extents.
void filter_box_directly(CpuExecutor& executor, const HostImage<const float>& image, std::int64_t radius,
                         float* row_sums, float* means);
void filter_box_directly(CudaExecutor& executor, const DeviceImage<const float>& image, std::int64_t radius,
                         float* row_sums, float* means);

}  // namespace cumulus::bench
