#pragma once

#include "kernels/core/cuda_executor.h"
#include "kernels/recursive_filter/images.h"
#include "kernels/recursive_filter/planned_filter.h"

namespace cumulus::recursive_filter {

/// By tiles: float or Float16.
template <class T>
void filter_in_tiles(CudaExecutor& executor, const FilterImages<const T, Space::kDevice>& images,
                     const PlannedFilter& filter, const FilterImages<T, Space::kDevice>& filtered);

}  // namespace cumulus::recursive_filter
