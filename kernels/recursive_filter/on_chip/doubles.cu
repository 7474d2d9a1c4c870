#include "kernels/recursive_filter/on_chip/launch.cuh"

namespace cumulus::recursive_filter {

template void filter_in_shared_tiles<double, float>(CudaExecutor&,
                                                    const FilterImages<const float, Space::kDevice>&,
                                                    const PlannedFilter&, const OnChipPlan&,
                                                    const FilterImages<float, Space::kDevice>&);
template void filter_in_shared_tiles<double, Float16>(CudaExecutor&,
                                                      const FilterImages<const Float16, Space::kDevice>&,
                                                      const PlannedFilter&, const OnChipPlan&,
                                                      const FilterImages<Float16, Space::kDevice>&);

}  // namespace cumulus::recursive_filter
