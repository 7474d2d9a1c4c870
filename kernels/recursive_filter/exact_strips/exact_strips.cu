#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/core/cuda_error.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/primitives/tma_map.cuh"
#include "kernels/recursive_filter/exact_strips/column_suffixes.cuh"
#include "kernels/recursive_filter/exact_strips/exact_strips.h"
#include "kernels/recursive_filter/exact_strips/filter.cuh"
#include "kernels/recursive_filter/planned_filter.h"
#include "kernels/recursive_filter/plans.h"

// Launches the kernels of exact_strips/column_suffixes.cuh and exact_strips/filter.cuh.

namespace cumulus::recursive_filter {
namespace {

using Images = FilterImages<const float, Space::kDevice>;
using Filtered = FilterImages<float, Space::kDevice>;

/// Made once for each plan.
template <int Order>
struct ExactConstants {
  SuffixAxis<Order> y_suffixes;
  ExactStripAxes<Order> axes;

  explicit ExactConstants(const FilterAxes& plan) : y_suffixes(plan.y), axes(plan) {}
};

/// Writes the column suffix states to the output.
template <int Order>
void find_suffixes(CudaExecutor& executor, const DeviceImage<const float>& image,
                   const ExactStripDivision& division, const SuffixAxis<Order>& axis, FilterBoundary boundary,
                   const DeviceImage<float>& filtered) {
  const SuffixImage<Order> suffixes{axis,
                                    image.data,
                                    image.row_stride,
                                    static_cast<int>(image.height),
                                    static_cast<int>(image.width),
                                    division.tile_rows,
                                    boundary == FilterBoundary::kClamp,
                                    filtered.data};
  constexpr auto kMemory = static_cast<int>(sizeof(SuffixMemory<Order>));
  CUMULUS_CUDA(cudaFuncSetAttribute(find_column_suffixes<Order>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    kMemory));
  find_column_suffixes<Order>
      <<<static_cast<unsigned int>(division.strips), kSuffixThreads, kMemory, executor.stream()>>>(suffixes);
  CUMULUS_CUDA(cudaGetLastError());
}

template <int Order>
ExactStripFilter<Order> exact_strip_filter(CudaExecutor& executor, const DeviceImage<const float>& image,
                                           const ExactStripDivision& division, const FilterAxes& plan,
                                           const ExactStripAxes<Order>& axes,
                                           const DeviceImage<float>& filtered) {
  const std::int64_t height = image.height;
  const std::int64_t width = image.width;
  const CudaExecutor::WideStatusWords words =
      executor.wide_status_words(static_cast<std::uint32_t>(division.tile_rows));
  constexpr auto kSwizzle = TmaSwizzle::k128Bytes;
  return {make_tma_map(image.data, height, width, image.row_stride, kTile, kTmaColumns, kSwizzle),
          make_tma_map(filtered.data, height, width, width, kTile, kTmaColumns, kSwizzle),
          make_tma_map(filtered.data, height, width, width, Order, kTile, TmaSwizzle::kNone),
          axes,
          static_cast<int>(height),
          static_cast<int>(width),
          division.tile_rows,
          division.strips,
          division.strips_of_block,
          plan.y.boundary,
          plan.x.boundary,
          !plan.y.identity,
          !plan.x.identity,
          axes.y.scale * axes.x.scale,
          reinterpret_cast<uint4*>(words.words.data()),
          division.state_rows,
          words.tag};
}

template <int Order, bool kDirectForm>
void filter_all(CudaExecutor& executor, const Images& images, const PlannedFilter& planned,
                const ExactStripDivision& division, const Filtered& filtered) {
  using Constants = ExactConstants<Order>;
  const FilterAxes& plan = planned.strip_axes();
  const auto& constants = planned.constants().template get<Constants>([&] { return Constants(plan); });
  constexpr auto kMemory = static_cast<int>(sizeof(ExactStripMemory<Order>));
  const auto kernel = filter_exact_strips<Order, kDirectForm>;
  CUMULUS_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kMemory));
  for (std::int64_t i = 0; i < images.count; ++i) {
    executor.check_interrupt();
    DeviceImage<const float> image = images.first;
    image.data += i * images.image_stride;
    DeviceImage<float> into = filtered.first;
    into.data += i * filtered.image_stride;
    const auto filter = exact_strip_filter<Order>(executor, image, division, plan, constants.axes, into);
    if (filter.along_columns) {
      find_suffixes<Order>(executor, image, division, constants.y_suffixes, plan.y.boundary, into);
    }
    if (!launch_cooperative(executor, kernel, {division.blocks(), kExactStripThreads, kMemory}, filter)) {
      CUMULUS_CUDA(cudaErrorCooperativeLaunchTooLarge);
    }
  }
}

}  // namespace

void filter_in_exact_strips(CudaExecutor& executor, const Images& images, const PlannedFilter& filter,
                            const ExactStripsPlan& plan, const Filtered& filtered) {
  if (filter.has_direct_form()) {
    return filter_all<3, true>(executor, images, filter, plan.division, filtered);
  }
  with_order(filter.axes().order, [&]<int Order>() {
    if constexpr (Order <= kMaxExactStripOrder) {
      filter_all<Order, false>(executor, images, filter, plan.division, filtered);
    }
  });
}

}  // namespace cumulus::recursive_filter
