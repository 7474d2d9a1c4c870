#include "kernels/summed_area_table/look_back/launch.cuh"

namespace cumulus {

#define CUMULUS_ON_CUDA(Input, Sum) \
  template void build_summed_area_table(CudaExecutor&, const TableJob<Input, Sum, Space::kDevice>&)
CUMULUS_SUMMED_AREA_TABLE_HALF_PAIRS(CUMULUS_ON_CUDA);

}  // namespace cumulus
