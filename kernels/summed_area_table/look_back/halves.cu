#include "kernels/summed_area_table/look_back/launch.cuh"

namespace cumulus::summed_area_table {

#define CUMULUS_BY_LOOK_BACK(Input, Sum)                                                       \
  template void build_by_look_back(CudaExecutor&, const TableJob<Input, Sum, Space::kDevice>&, \
                                   const LookBackPlan&, DeviceSpan<std::byte>)
CUMULUS_SUMMED_AREA_TABLE_HALF_PAIRS(CUMULUS_BY_LOOK_BACK);

}  // namespace cumulus::summed_area_table
