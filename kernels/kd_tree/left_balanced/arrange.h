#pragma once

#include "kernels/core/cuda_executor.h"
#include "kernels/kd_tree/left_balanced.h"
#include "kernels/kd_tree/method.h"

// The left-balanced layout on a GPU, of checked arguments. T is float or double.
namespace cumulus::kd_tree {

template <class T>
struct ArrangeJob {
  const T* points;  // [trees, points, dimensions]
  KdTreeShape shape;
  LeftBalancedArrays<T, Space::kDevice> arrays;
};

/// Takes the plan's scratch bytes.
template <class T>
void arrange(CudaExecutor& executor, const LeftBalancedPlan& plan, const ArrangeJob<T>& job,
             KdTreeReport* report);

}  // namespace cumulus::kd_tree
