#include "kernels/core/cuda_error.h"
#include "kernels/kd_tree/kd_tree.h"
#include "kernels/kd_tree/kd_tree_sums.h"
#include "kernels/kd_tree/left_balanced.h"

// A build without CUDA has no device to make an executor of: these satisfy the linker.
#if !CUMULUS_WITH_CUDA

namespace cumulus {
namespace {

[[noreturn]] void unavailable(const char* call, int line) { throw CudaError(0, call, __FILE__, line); }

}  // namespace

void build_kd_tree(CudaExecutor& /*executor*/, DeviceSpan<const float> /*points*/,
                   const KdTreeShape& /*shape*/, const KdTreeOptions& /*options*/,
                   const KdTreeArrays<float, Space::kDevice>& /*tree*/, KdTreeReport* /*report*/) {
  unavailable("build_kd_tree", __LINE__);
}
void build_kd_tree(CudaExecutor& /*executor*/, DeviceSpan<const double> /*points*/,
                   const KdTreeShape& /*shape*/, const KdTreeOptions& /*options*/,
                   const KdTreeArrays<double, Space::kDevice>& /*tree*/, KdTreeReport* /*report*/) {
  unavailable("build_kd_tree", __LINE__);
}

void permute_rows(CudaExecutor& /*executor*/, const KdTreeShape& /*shape*/,
                  DeviceSpan<const std::int64_t> /*idx_array*/, DeviceSpan<const std::byte> /*from*/,
                  std::int64_t /*row_bytes*/, DeviceSpan<std::byte> /*to*/) {
  unavailable("permute_rows", __LINE__);
}

template <class T>
void find_nearest(CudaExecutor& /*executor*/, const NearestJob<T, Space::kDevice>& /*job*/,
                  NeighborReport* /*report*/) {
  unavailable("find_nearest", __LINE__);
}
template <class T>
void count_within(CudaExecutor& /*executor*/, const CountJob<T, Space::kDevice>& /*job*/,
                  NeighborReport* /*report*/) {
  unavailable("count_within", __LINE__);
}
template <class T>
void list_within(CudaExecutor& /*executor*/, const ListJob<T, Space::kDevice>& /*job*/,
                 NeighborListReport* /*report*/) {
  unavailable("list_within", __LINE__);
}

template void find_nearest(CudaExecutor&, const NearestJob<float, Space::kDevice>&, NeighborReport*);
template void find_nearest(CudaExecutor&, const NearestJob<double, Space::kDevice>&, NeighborReport*);
template void count_within(CudaExecutor&, const CountJob<float, Space::kDevice>&, NeighborReport*);
template void count_within(CudaExecutor&, const CountJob<double, Space::kDevice>&, NeighborReport*);
template void list_within(CudaExecutor&, const ListJob<float, Space::kDevice>&, NeighborListReport*);
template void list_within(CudaExecutor&, const ListJob<double, Space::kDevice>&, NeighborListReport*);

template <class T>
void sum_nearest(CudaExecutor& /*executor*/, const NearestSumJob<T, Space::kDevice>& /*job*/,
                 NeighborReport* /*report*/) {
  unavailable("sum_nearest", __LINE__);
}
template <class T>
void sum_within(CudaExecutor& /*executor*/, const WithinSumJob<T, Space::kDevice>& /*job*/,
                NeighborReport* /*report*/) {
  unavailable("sum_within", __LINE__);
}

template void sum_nearest(CudaExecutor&, const NearestSumJob<float, Space::kDevice>&, NeighborReport*);
template void sum_nearest(CudaExecutor&, const NearestSumJob<double, Space::kDevice>&, NeighborReport*);
template void sum_within(CudaExecutor&, const WithinSumJob<float, Space::kDevice>&, NeighborReport*);
template void sum_within(CudaExecutor&, const WithinSumJob<double, Space::kDevice>&, NeighborReport*);

void arrange_left_balanced(CudaExecutor& /*executor*/, DeviceSpan<const float> /*points*/,
                           const KdTreeShape& /*shape*/,
                           const LeftBalancedArrays<float, Space::kDevice>& /*arrays*/,
                           KdTreeReport* /*report*/) {
  unavailable("arrange_left_balanced", __LINE__);
}
void arrange_left_balanced(CudaExecutor& /*executor*/, DeviceSpan<const double> /*points*/,
                           const KdTreeShape& /*shape*/,
                           const LeftBalancedArrays<double, Space::kDevice>& /*arrays*/,
                           KdTreeReport* /*report*/) {
  unavailable("arrange_left_balanced", __LINE__);
}

}  // namespace cumulus

#endif
