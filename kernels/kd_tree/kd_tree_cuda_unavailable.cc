#include "kernels/core/without_cuda.h"
#include "kernels/kd_tree/kd_tree.h"
#include "kernels/kd_tree/kd_tree_sums.h"
#include "kernels/kd_tree/left_balanced.h"

#if !CUMULUS_WITH_CUDA
namespace cumulus {

#define CUMULUS_INSTANTIATE(T)                                                                            \
  void CUMULUS_WITHOUT_CUDA(build_kd_tree, DeviceSpan<const T>, const KdTreeShape&, const KdTreeOptions&, \
                            const KdTreeArrays<T, Space::kDevice>&, KdTreeReport*);                       \
  void CUMULUS_WITHOUT_CUDA(arrange_left_balanced, DeviceSpan<const T>, const KdTreeShape&,               \
                            const LeftBalancedArrays<T, Space::kDevice>&, KdTreeReport*);                 \
  template <>                                                                                             \
  void CUMULUS_WITHOUT_CUDA(find_nearest, const NearestJob<T, Space::kDevice>&, NeighborReport*);         \
  template <>                                                                                             \
  void CUMULUS_WITHOUT_CUDA(count_within, const CountJob<T, Space::kDevice>&, NeighborReport*);           \
  template <>                                                                                             \
  void CUMULUS_WITHOUT_CUDA(list_within, const ListJob<T, Space::kDevice>&, NeighborListReport*);         \
  template <>                                                                                             \
  void CUMULUS_WITHOUT_CUDA(sum_nearest, const NearestSumJob<T, Space::kDevice>&, NeighborReport*);       \
  template <>                                                                                             \
  void CUMULUS_WITHOUT_CUDA(sum_within, const WithinSumJob<T, Space::kDevice>&, NeighborReport*);
CUMULUS_INSTANTIATE(float)
CUMULUS_INSTANTIATE(double)
void CUMULUS_WITHOUT_CUDA(permute_rows, const KdTreeShape&, DeviceSpan<const std::int64_t>,
                          DeviceSpan<const std::byte>, std::int64_t, DeviceSpan<std::byte>);

}  // namespace cumulus
#endif
