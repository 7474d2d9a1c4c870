#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "kernels/core/cuda_error.h"
#include "kernels/core/div.h"
#include "kernels/recursive_filter/lines/filter_lines.cuh"
#include "kernels/recursive_filter/lines/lines.h"

namespace cumulus::recursive_filter {
namespace {

unsigned int block_count(std::int64_t work, std::int64_t per_block) {
  return static_cast<unsigned int>(divide_up(work, per_block));
}

template <int Order, class Real, class T>
void filter_with(CudaExecutor& executor, const FilterImages<const T, Space::kDevice>& images,
                 const FilterAxes& plan, const FilterImages<T, Space::kDevice>& filtered) {
  const DeviceImage<const T>& image = images.first;
  const std::int64_t channels = image.channels;
  const std::int64_t row = filtered.first.row_stride;
  const auto launch = [&](const AxisPlan& axis, const LinePass& pass) {
    filter_lines<Order, Real><<<block_count(pass.images * pass.lines * channels, kLineThreads), kLineThreads,
                                0, executor.stream()>>>(LinePlan<Order, Real>(axis), pass);
    CUMULUS_CUDA(cudaGetLastError());
  };
  // Results along y; causal results of both passes.
  TargetElements between = target_elements(filtered.first.data);
  if constexpr (std::is_same_v<T, Float16>) {
    between = target_elements(
        executor.scratch<float>(static_cast<std::size_t>(images.count * image.elements())).data());
  }
  const LineElements<TargetElements> columns{between, filtered.image_stride, channels, row};
  launch(plan.y, {{source_elements(image.data), images.image_stride, channels, image.row_stride},
                  columns,
                  columns,
                  images.count,
                  image.width,
                  channels});
  executor.check_interrupt();
  launch(plan.x, {{read_only(between), filtered.image_stride, row, channels},
                  {between, filtered.image_stride, row, channels},
                  {target_elements(filtered.first.data), filtered.image_stride, row, channels},
                  images.count,
                  image.height,
                  channels});
}

}  // namespace

template <class T>
void filter_in_lines(CudaExecutor& executor, const FilterImages<const T, Space::kDevice>& images,
                     const PlannedFilter& filter, const FilterImages<T, Space::kDevice>& filtered) {
  with_order(filter.axes().order, [&]<int Order>() {
    if constexpr (!std::is_same_v<T, double>) {
      if (filter.single()) return filter_with<Order, float>(executor, images, filter.axes(), filtered);
    }
    filter_with<Order, double>(executor, images, filter.axes(), filtered);
  });
}

#define CUMULUS_INSTANTIATE(T)                                                                  \
  template void filter_in_lines<T>(CudaExecutor&, const FilterImages<const T, Space::kDevice>&, \
                                   const PlannedFilter&, const FilterImages<T, Space::kDevice>&);
CUMULUS_INSTANTIATE(float)
CUMULUS_INSTANTIATE(Float16)
CUMULUS_INSTANTIATE(double)
#undef CUMULUS_INSTANTIATE

}  // namespace cumulus::recursive_filter
