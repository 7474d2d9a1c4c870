#pragma once

#include <cstdint>

#include "bench/baselines/sampling_table_retired.h"
#include "kernels/core/cuda_executor.h"
#include "kernels/sampling_table/draw/draw.h"

// Drawing by every method with the same kernels, marginals and loads.

namespace cumulus::bench {

/// Samples of 2^20 points or more, by a kernel for one search alone; `nodes` are the search's retired_nodes.
void draw_by_own_kernel(CudaExecutor& executor, Search search, DeviceSpan<const std::uint32_t> nodes,
                        const sampling_table::DrawLaunch<sampling_table::GivenPoints>& draw);

/// A number of all words and their places; waits.
std::uint64_t hash_of(CudaExecutor& executor, DeviceSpan<const float> words);

}  // namespace cumulus::bench
