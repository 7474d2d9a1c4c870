#include <cstddef>
#include <variant>

#include "kernels/kd_tree/build/build.h"
#include "kernels/kd_tree/check.h"
#include "kernels/kd_tree/kd_tree.h"
#include "kernels/kd_tree/kd_tree_query.h"
#include "kernels/kd_tree/left_balanced.h"
#include "kernels/kd_tree/left_balanced/arrange.h"
#include "kernels/kd_tree/left_balanced/places.h"
#include "kernels/kd_tree/method.h"
#include "kernels/kd_tree/query/check.h"
#include "kernels/kd_tree/query/search.h"
#include "kernels/kd_tree/sampled/sampled.h"

// The calls on a GPU: each checks its arguments, chooses a plan and carries it out.
namespace cumulus {
namespace {

template <class T>
void build(CudaExecutor& executor, const kd_tree::BuildJob<T>& job, KdTreeReport* report) {
  executor.bind_thread();
  executor.check_interrupt();
  const kd_tree::BuildPlan plan =
      kd_tree::choose_build(sizeof(T), job.shape, job.options, executor.device().numbers());
  if (const auto* sampled = std::get_if<kd_tree::BuildFromSamples>(&plan)) {
    if constexpr (sizeof(T) == 4) return kd_tree::build_from_samples(executor, *sampled, job, report);
  }
  const auto scratch = executor.scratch<std::byte>(kd_tree::scratch_bytes_of(plan));
  if (const auto* blocks = std::get_if<kd_tree::BuildInBlocks>(&plan)) {
    return kd_tree::build_trees(executor, *blocks, scratch, job, report);
  }
  kd_tree::build_trees(executor, std::get<kd_tree::BuildByLevels>(plan), scratch, job, report);
}

template <class T>
void arrange(CudaExecutor& executor, DeviceSpan<const T> points, const KdTreeShape& shape,
             const LeftBalancedArrays<T, Space::kDevice>& arrays, KdTreeReport* report) {
  kd_tree::check_left_balanced(points, shape, arrays);
  executor.bind_thread();
  const kd_tree::LeftBalancedPlan plan = kd_tree::choose_left_balanced(sizeof(T), shape);
  kd_tree::arrange(executor, plan, kd_tree::ArrangeJob<T>{points.data(), shape, arrays}, report);
}

}  // namespace

void build_kd_tree(CudaExecutor& executor, DeviceSpan<const float> points, const KdTreeShape& shape,
                   const KdTreeOptions& options, const KdTreeArrays<float, Space::kDevice>& tree,
                   KdTreeReport* report) {
  kd_tree::check_build(points, shape, options, tree);
  build<float>(executor, {points.data(), shape, options, tree}, report);
}
void build_kd_tree(CudaExecutor& executor, DeviceSpan<const double> points, const KdTreeShape& shape,
                   const KdTreeOptions& options, const KdTreeArrays<double, Space::kDevice>& tree,
                   KdTreeReport* report) {
  kd_tree::check_build(points, shape, options, tree);
  build<double>(executor, {points.data(), shape, options, tree}, report);
}

void permute_rows(CudaExecutor& executor, const KdTreeShape& shape, DeviceSpan<const std::int64_t> idx_array,
                  DeviceSpan<const std::byte> from, std::int64_t row_bytes, DeviceSpan<std::byte> to) {
  kd_tree::check_rows(shape, idx_array, from, row_bytes, to);
  executor.bind_thread();
  if (!to.empty()) kd_tree::permute(executor, shape, idx_array, from, row_bytes, to);
}

template <class T>
void find_nearest(CudaExecutor& executor, const NearestJob<T, Space::kDevice>& job, NeighborReport* report) {
  kd_tree::check_job(job);
  executor.bind_thread();
  const kd_tree::NearestPlan plan = kd_tree::choose_nearest(sizeof(T), job.forest.shape, job.forest.search,
                                                            job.neighbors, executor.device().numbers());
  if (const auto* sorted = std::get_if<kd_tree::NearestSorted>(&plan)) {
    return kd_tree::find_nearest_sorted(executor, *sorted, job, report);
  }
  if (const auto* closest = std::get_if<kd_tree::ClosestSorted>(&plan)) {
    return kd_tree::find_closest_sorted(executor, *closest, job, report);
  }
  kd_tree::find_nearest_per_thread(executor, std::get<kd_tree::NearestPerThread>(plan), job, report);
}

template <class T>
void count_within(CudaExecutor& executor, const CountJob<T, Space::kDevice>& job, NeighborReport* report) {
  kd_tree::check_job(job);
  executor.bind_thread();
  kd_tree::count_per_thread(executor, job, report);
}

template <class T>
void list_within(CudaExecutor& executor, const ListJob<T, Space::kDevice>& job, NeighborListReport* report) {
  kd_tree::check_job(job);
  executor.bind_thread();
  kd_tree::list_per_thread(executor, kd_tree::choose_list(job.forest.shape, job.forest.search), job, report);
}

template void find_nearest(CudaExecutor&, const NearestJob<float, Space::kDevice>&, NeighborReport*);
template void find_nearest(CudaExecutor&, const NearestJob<double, Space::kDevice>&, NeighborReport*);
template void count_within(CudaExecutor&, const CountJob<float, Space::kDevice>&, NeighborReport*);
template void count_within(CudaExecutor&, const CountJob<double, Space::kDevice>&, NeighborReport*);
template void list_within(CudaExecutor&, const ListJob<float, Space::kDevice>&, NeighborListReport*);
template void list_within(CudaExecutor&, const ListJob<double, Space::kDevice>&, NeighborListReport*);

void arrange_left_balanced(CudaExecutor& executor, DeviceSpan<const float> points, const KdTreeShape& shape,
                           const LeftBalancedArrays<float, Space::kDevice>& arrays, KdTreeReport* report) {
  arrange(executor, points, shape, arrays, report);
}
void arrange_left_balanced(CudaExecutor& executor, DeviceSpan<const double> points, const KdTreeShape& shape,
                           const LeftBalancedArrays<double, Space::kDevice>& arrays, KdTreeReport* report) {
  arrange(executor, points, shape, arrays, report);
}

}  // namespace cumulus
