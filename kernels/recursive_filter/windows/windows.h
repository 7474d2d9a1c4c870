#pragma once

#include "kernels/core/cuda_executor.h"
#include "kernels/recursive_filter/images.h"
#include "kernels/recursive_filter/method.h"

namespace cumulus::recursive_filter {

/// Filters images by the on-chip method or by truncated windows; `wanted` says which, or kAutomatic. T is
/// float or Float16, Real (float or double) the plan's precision. Throws DoesNotFitOnChip.
template <class Real, class T>
RecursiveFilterRun filter_by_windows(CudaExecutor& executor,
                                     const FilterImages<const T, Space::kDevice>& images,
                                     const RecursiveFilterPlan& plan, RecursiveFilterMethod wanted,
                                     const FilterImages<T, Space::kDevice>& filtered);

/// The on-chip method where an image is whole tiles of one channel and fits as such
/// (on_chip/register_tiles.cuh), in float; otherwise does nothing and returns false.
bool filter_in_register_tiles(CudaExecutor& executor, const FilterImages<const float, Space::kDevice>& images,
                              const RecursiveFilterPlan& plan,
                              const FilterImages<float, Space::kDevice>& filtered);

}  // namespace cumulus::recursive_filter
