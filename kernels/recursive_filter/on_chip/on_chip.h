#pragma once

#include "kernels/core/cuda_executor.h"
#include "kernels/recursive_filter/images.h"
#include "kernels/recursive_filter/planned_filter.h"
#include "kernels/recursive_filter/plans.h"

namespace cumulus::recursive_filter {

/// The on-chip method with tiles in shared memory (on_chip/filter.cuh). T is float or Float16, Real (float or
/// double) the filter's precision.
template <class Real, class T>
void filter_in_shared_tiles(CudaExecutor& executor, const FilterImages<const T, Space::kDevice>& images,
                            const PlannedFilter& filter, const OnChipPlan& plan,
                            const FilterImages<T, Space::kDevice>& filtered);

/// The same with pixels in registers (on_chip/register_tiles.cuh), in single precision.
void filter_in_register_tiles(CudaExecutor& executor, const FilterImages<const float, Space::kDevice>& images,
                              const PlannedFilter& filter, const RegisterTilesPlan& plan,
                              const FilterImages<float, Space::kDevice>& filtered);

}  // namespace cumulus::recursive_filter
