#pragma once

#include "kernels/core/cuda_executor.h"
#include "kernels/recursive_filter/images.h"
#include "kernels/recursive_filter/method.h"

namespace cumulus::recursive_filter {

/// Filters by a plan for tiles: float or Float16.
template <class T>
void filter_in_tiles(CudaExecutor& executor, const FilterImages<const T, Space::kDevice>& images,
                     const RecursiveFilterPlan& plan, const FilterImages<T, Space::kDevice>& filtered);

}  // namespace cumulus::recursive_filter
