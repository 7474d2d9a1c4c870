#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/core/cuda_error.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/recursive_filter/on_chip/capacity.h"
#include "kernels/recursive_filter/on_chip/filter.cuh"
#include "kernels/recursive_filter/on_chip/on_chip.h"

// Launches the kernel of on_chip/filter.cuh. A unit for each arithmetic: it takes long to compile.

namespace cumulus::recursive_filter {

/// With kParts threads a line.
template <int Order, class Real, int kParts>
struct OnChipLaunch {
  static constexpr Precision kPrecision =
      std::is_same_v<Real, float> ? Precision::kSingle : Precision::kDouble;
  static constexpr ResidentKernel kKernel = on_chip_kernel(Order, kPrecision, kParts);
  static_assert(kKernel.shared_bytes == sizeof(OnChipMemory<Order, Real, kParts>));
  static_assert(kKernel.words == OnChipWords<Order>::kCount);

  OnChipConstants<Order, Real> constants;

  explicit OnChipLaunch(const PlannedFilter& filter)
      : constants(filter.axes().y, filter.axes().x, *filter.windows(), kTile / kParts, kTile) {}

  /// Over images of `tiles` tiles together.
  static void run(CudaExecutor& executor, const PlannedFilter& filter, const TileImages& images,
                  std::int64_t tiles) {
    const auto& kept = filter.constants().template get<OnChipLaunch>([&] { return OnChipLaunch(filter); });
    const CudaExecutor::WideStatusWords words = executor.wide_status_words();
    const OnChipFilter<Order, Real> arguments{
        kept.constants, images, {reinterpret_cast<uint4*>(words.words.data()), words.tag}};
    if (!launch_cooperative(executor, filter_on_chip<Order, Real, kParts>,
                            {tiles, kKernel.threads, kKernel.shared_bytes}, arguments)) {
      CUMULUS_CUDA(cudaErrorCooperativeLaunchTooLarge);
    }
  }
};

template <int Order, class Real>
void launch_tiles(CudaExecutor& executor, const PlannedFilter& filter, const TileImages& images,
                  std::int64_t tiles, int parts) {
  if constexpr (std::is_same_v<Real, float>) {
    if (parts == kManyOnChipParts) {
      return OnChipLaunch<Order, Real, kManyOnChipParts>::run(executor, filter, images, tiles);
    }
  }
  OnChipLaunch<Order, Real, kOnChipParts>::run(executor, filter, images, tiles);
}

template <int Order, class Real, class T>
void filter_all(CudaExecutor& executor, const FilterImages<const T, Space::kDevice>& images,
                const PlannedFilter& filter, const OnChipPlan& plan,
                const FilterImages<T, Space::kDevice>& filtered) {
  const DeviceImage<const T>& image = images.first;
  const FilterTiles tiles(image.height, image.width, image.channels);
  TileImages tiled = tile_images(images, filtered, filter.axes().y, filter.axes().x);
  for (std::int64_t first = 0; first < images.count; first += plan.images_at_once) {
    for (std::int64_t channel = 0; channel < image.channels; channel += plan.channels_at_once) {
      executor.check_interrupt();
      const std::int64_t count = std::min(plan.images_at_once, images.count - first);
      tiled.channels = std::min(plan.channels_at_once, image.channels - channel);
      tiled.images = source_elements(image.data + first * images.image_stride + channel);
      tiled.carries.filtered = target_elements(filtered.first.data + first * filtered.image_stride + channel);
      const bool all = count == plan.images_at_once && tiled.channels == plan.channels_at_once;
      launch_tiles<Order, Real>(executor, filter, tiled, count * tiles.rows * tiles.columns * tiled.channels,
                                all ? plan.parts : plan.last_parts);
    }
  }
}

template <class Real, class T>
void filter_in_shared_tiles(CudaExecutor& executor, const FilterImages<const T, Space::kDevice>& images,
                            const PlannedFilter& filter, const OnChipPlan& plan,
                            const FilterImages<T, Space::kDevice>& filtered) {
  with_order(filter.axes().order,
             [&]<int Order>() { filter_all<Order, Real>(executor, images, filter, plan, filtered); });
}

}  // namespace cumulus::recursive_filter
