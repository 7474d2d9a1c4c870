#include "kernels/recursive_filter/windows/launch.cuh"

namespace cumulus::recursive_filter {

template void filter_by_windows<double, float>(CudaExecutor&,
                                               const FilterImages<const float, Space::kDevice>&,
                                               const PlannedFilter&, const WindowsPlan&,
                                               const FilterImages<float, Space::kDevice>&);
template void filter_by_windows<double, Float16>(CudaExecutor&,
                                                 const FilterImages<const Float16, Space::kDevice>&,
                                                 const PlannedFilter&, const WindowsPlan&,
                                                 const FilterImages<Float16, Space::kDevice>&);

}  // namespace cumulus::recursive_filter
