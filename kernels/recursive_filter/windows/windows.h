#pragma once

#include "kernels/core/cuda_executor.h"
#include "kernels/recursive_filter/images.h"
#include "kernels/recursive_filter/planned_filter.h"
#include "kernels/recursive_filter/plans.h"

namespace cumulus::recursive_filter {

/// Truncated windows in two passes. T is float or Float16, Real (float or double) the filter's precision.
template <class Real, class T>
void filter_by_windows(CudaExecutor& executor, const FilterImages<const T, Space::kDevice>& images,
                       const PlannedFilter& filter, const WindowsPlan& plan,
                       const FilterImages<T, Space::kDevice>& filtered);

}  // namespace cumulus::recursive_filter
