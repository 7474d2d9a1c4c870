#pragma once

#include "kernels/core/cuda_executor.h"
#include "kernels/kd_tree/kd_tree_query.h"
#include "kernels/kd_tree/method.h"

// Searches on a GPU, of checked jobs. Each takes its plan's scratch bytes. T is float or double.
namespace cumulus::kd_tree {

template <class T>
void find_nearest_per_thread(CudaExecutor& executor, const NearestPerThread& plan,
                             const NearestJob<T, Space::kDevice>& job, NeighborReport* report);
template <class T>
void find_nearest_sorted(CudaExecutor& executor, const NearestSorted& plan,
                         const NearestJob<T, Space::kDevice>& job, NeighborReport* report);
/// Of jobs for one neighbour.
template <class T>
void find_closest_sorted(CudaExecutor& executor, const ClosestSorted& plan,
                         const NearestJob<T, Space::kDevice>& job, NeighborReport* report);

template <class T>
void count_per_thread(CudaExecutor& executor, const CountJob<T, Space::kDevice>& job, NeighborReport* report);

template <class T>
void list_per_thread(CudaExecutor& executor, const ListPlan& plan, const ListJob<T, Space::kDevice>& job,
                     NeighborListReport* report);

}  // namespace cumulus::kd_tree
