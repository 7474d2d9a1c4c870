#include "kernels/core/cuda_error.h"
#include "kernels/kd_tree/kd_tree.h"
#include "kernels/kd_tree/kd_tree_query.h"
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

void find_nearest(CudaExecutor& /*executor*/, const KdTreeShape& /*shape*/,
                  const KdTreeView<float, Space::kDevice>& /*tree*/,
                  const NeighborQueries<float, Space::kDevice>& /*queries*/, const NeighborSearch& /*search*/,
                  int /*neighbors*/, DeviceSpan<std::int64_t> /*indices*/, DeviceSpan<float> /*distances*/,
                  NeighborReport* /*report*/) {
  unavailable("find_nearest", __LINE__);
}
void find_nearest(CudaExecutor& /*executor*/, const KdTreeShape& /*shape*/,
                  const KdTreeView<double, Space::kDevice>& /*tree*/,
                  const NeighborQueries<double, Space::kDevice>& /*queries*/,
                  const NeighborSearch& /*search*/, int /*neighbors*/, DeviceSpan<std::int64_t> /*indices*/,
                  DeviceSpan<double> /*distances*/, NeighborReport* /*report*/) {
  unavailable("find_nearest", __LINE__);
}

void count_within(CudaExecutor& /*executor*/, const KdTreeShape& /*shape*/,
                  const KdTreeView<float, Space::kDevice>& /*tree*/,
                  const NeighborQueries<float, Space::kDevice>& /*queries*/, const NeighborSearch& /*search*/,
                  DeviceSpan<std::int64_t> /*counts*/, NeighborReport* /*report*/) {
  unavailable("count_within", __LINE__);
}
void count_within(CudaExecutor& /*executor*/, const KdTreeShape& /*shape*/,
                  const KdTreeView<double, Space::kDevice>& /*tree*/,
                  const NeighborQueries<double, Space::kDevice>& /*queries*/,
                  const NeighborSearch& /*search*/, DeviceSpan<std::int64_t> /*counts*/,
                  NeighborReport* /*report*/) {
  unavailable("count_within", __LINE__);
}

void list_within(CudaExecutor& /*executor*/, const KdTreeShape& /*shape*/,
                 const KdTreeView<float, Space::kDevice>& /*tree*/,
                 const NeighborQueries<float, Space::kDevice>& /*queries*/, const NeighborSearch& /*search*/,
                 DeviceSpan<std::int64_t> /*offsets*/, DeviceSpan<std::int64_t> /*indices*/,
                 DeviceSpan<float> /*distances*/, NeighborListReport* /*report*/) {
  unavailable("list_within", __LINE__);
}
void list_within(CudaExecutor& /*executor*/, const KdTreeShape& /*shape*/,
                 const KdTreeView<double, Space::kDevice>& /*tree*/,
                 const NeighborQueries<double, Space::kDevice>& /*queries*/, const NeighborSearch& /*search*/,
                 DeviceSpan<std::int64_t> /*offsets*/, DeviceSpan<std::int64_t> /*indices*/,
                 DeviceSpan<double> /*distances*/, NeighborListReport* /*report*/) {
  unavailable("list_within", __LINE__);
}

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
