#pragma once

#include "kernels/core/cuda_executor.h"
#include "kernels/kd_tree/kd_tree.h"
#include "kernels/kd_tree/method.h"

// Builds on a GPU, of checked arguments. T is float or double.
namespace cumulus::kd_tree {

template <class T>
struct BuildJob {
  const T* points;  // [trees, points, dimensions]
  KdTreeShape shape;
  KdTreeOptions options;
  KdTreeArrays<T, Space::kDevice> tree;
};

/// Takes the plan's scratch bytes.
template <class T>
void build_trees(CudaExecutor& executor, const BuildPlan& plan, const BuildJob<T>& job, KdTreeReport* report);

/// `to` is not empty.
void permute(CudaExecutor& executor, const KdTreeShape& shape, DeviceSpan<const std::int64_t> idx_array,
             DeviceSpan<const std::byte> from, std::int64_t row_bytes, DeviceSpan<std::byte> to);

}  // namespace cumulus::kd_tree
