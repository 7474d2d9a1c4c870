#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/core/cuda_error.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/recursive_filter/on_chip/filter.cuh"
#include "kernels/recursive_filter/windows/filter.cuh"
#include "kernels/recursive_filter/windows/windows.h"

// Launches the kernels of windows/filter.cuh and on_chip/filter.cuh. A unit for each arithmetic: they take
// long to compile.

namespace cumulus::recursive_filter {

/// The first pass, then the second over the rows of tiles whose output holds no states, then over the others.
template <int Order, class Real>
void launch_passes(CudaExecutor& executor, const WindowFilter<Order, Real>& filter, std::int64_t images) {
  const StateRows& rows = filter.states.rows;
  const std::int64_t row_tiles = filter.states.tile_columns * filter.states.channels;
  const std::int64_t all = images * rows.rows * row_tiles;
  const std::size_t bytes = WindowMemory<Order>::bytes(filter.transitions[kAlongX]);
  publish_tiles<<<static_cast<unsigned int>(all), kTile, bytes, executor.stream()>>>(filter);
  CUMULUS_CUDA(cudaGetLastError());
  const std::int64_t early = rows.all_in_scratch() ? all : rows.last_filtered * row_tiles;
  for (const auto& [first, count] : {std::pair(std::int64_t{0}, early), std::pair(early, all - early)}) {
    if (count == 0) continue;
    executor.check_interrupt();
    filter_windows<<<static_cast<unsigned int>(count), kTile, bytes, executor.stream()>>>(filter, first);
    CUMULUS_CUDA(cudaGetLastError());
  }
}

/// From the states in scratch memory to those in the output, in floats.
template <int Order, class Real>
std::int64_t states_in_output(const WindowFilter<Order, Real>& filter) {
  const CarryMap& target = filter.a.carries;
  const std::int64_t element_bytes = target.filtered.kind == ElementKind::kHalf ? 2 : 4;
  auto address = reinterpret_cast<std::uintptr_t>(target.filtered.first +
                                                  filter.states.rows.last_filtered * kTile * target.width *
                                                      target.channels * element_bytes);
  address = (address + kStateAlignment - 1) / kStateAlignment * kStateAlignment;
  return (static_cast<std::int64_t>(address) -
          static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(filter.states.scratch))) /
         static_cast<std::int64_t>(sizeof(float));
}

/// The on-chip kernel with kParts threads a line.
template <int Order, class Real, int kParts>
struct OnChipLaunch {
  static constexpr int kThreads = kParts * kTile;
  static constexpr std::size_t kBytes = sizeof(OnChipMemory<Order, Real, kParts>);

  static std::int64_t resident_tiles(const CudaExecutor& executor) {
    constexpr std::int64_t kTilesWithWords = CudaExecutor::kWideStatusWords / OnChipWords<Order>::kCount;
    return std::min(kTilesWithWords,
                    resident_blocks(executor, filter_on_chip<Order, Real, kParts>, kThreads, kBytes));
  }
  static void run(CudaExecutor& executor, OnChipFilter<Order, Real> filter, std::int64_t tiles) {
    void* arguments[] = {&filter};
    CUMULUS_CUDA(cudaLaunchCooperativeKernel(filter_on_chip<Order, Real, kParts>,
                                             dim3(static_cast<unsigned int>(tiles)), dim3(kThreads),
                                             arguments, kBytes, executor.stream()));
  }
};

/// Made once for each plan, for either method.
template <int Order, class Real>
struct WindowWays {
  WindowConstants<Order, Real> passes;
  OnChipConstants<Order, Real> on_chip, on_chip_of_many;  // kOnChipParts, kManyOnChipParts

  explicit WindowWays(const RecursiveFilterPlan& plan)
      : passes(plan), on_chip(plan, kTile / kOnChipParts), on_chip_of_many(plan, kTile / kManyOnChipParts) {}
};

/// With more threads a tile where there are few tiles.
template <int Order, class Real>
void launch_on_chip(CudaExecutor& executor, const WindowWays<Order, Real>& constants,
                    const TileImages& images, std::int64_t tiles) {
  const CudaExecutor::WideStatusWords words = executor.wide_status_words();
  const PublishedMemory published{reinterpret_cast<uint4*>(words.words.data()), words.tag};
  if constexpr (sizeof(Real) == sizeof(float)) {
    using Many = OnChipLaunch<Order, Real, kManyOnChipParts>;
    if (tiles <= Many::resident_tiles(executor)) {
      return Many::run(executor, {constants.on_chip_of_many, images, published}, tiles);
    }
  }
  OnChipLaunch<Order, Real, kOnChipParts>::run(executor, {constants.on_chip, images, published}, tiles);
}

template <int Order, class Real, class T>
RecursiveFilterMethod filter_with(CudaExecutor& executor, const FilterImages<const T, Space::kDevice>& images,
                                  const RecursiveFilterPlan& plan, RecursiveFilterMethod wanted,
                                  const FilterImages<T, Space::kDevice>& filtered) {
  using Method = RecursiveFilterMethod;
  const DeviceImage<const T>& image = images.first;
  const FilterTiles tiles(image.height, image.width, image.channels);
  const WindowSchedule schedule = window_schedule<Order, T>(image.height, image.width, image.channels,
                                                            images.count, plan.y, *plan.windows);
  const std::size_t state_floats = schedule.scratch_floats<Order>(tiles.columns, tiles.channels);
  float* states = executor.scratch<float>(state_floats).data();
  using Ways = WindowWays<Order, Real>;
  const Ways& constants = plan.constants->template get<Ways>([&] { return Ways(plan); });
  WindowFilter<Order, Real> filter{
      constants.passes,
      tile_images(images, filtered, plan.y, plan.x),
      {states, 0, schedule.rows, tiles.columns, tiles.channels, StateLayout<Order>::kFloats}};
  if constexpr (std::is_same_v<T, float> && std::is_same_v<Real, float>) {
    if (wanted != Method::kDecaying && filter_in_register_tiles(executor, images, plan, filtered)) {
      return Method::kOnChip;
    }
  }
  const std::int64_t resident = OnChipLaunch<Order, Real, kOnChipParts>::resident_tiles(executor);
  const bool fits = schedule.rows.all_in_scratch() && tiles.count() * schedule.images_at_once <= resident;
  if (wanted == Method::kOnChip && !fits) throw DoesNotFitOnChip(tiles.count(), resident);
  const bool once = fits && wanted != Method::kDecaying;
  for (std::int64_t first = 0; first < images.count; first += schedule.images_at_once) {
    executor.check_interrupt();
    const std::int64_t count = std::min(schedule.images_at_once, images.count - first);
    filter.a.images = source_elements(image.data + first * images.image_stride);
    filter.a.carries.filtered = target_elements(filtered.first.data + first * filtered.image_stride);
    if (once) {
      launch_on_chip(executor, constants, filter.a, tiles.count() * count);
    } else {
      filter.states.output = states_in_output(filter);
      launch_passes(executor, filter, count);
    }
  }
  return once ? Method::kOnChip : Method::kDecaying;
}

template <class Real, class T>
RecursiveFilterRun filter_by_windows(CudaExecutor& executor,
                                     const FilterImages<const T, Space::kDevice>& images,
                                     const RecursiveFilterPlan& plan, RecursiveFilterMethod wanted,
                                     const FilterImages<T, Space::kDevice>& filtered) {
  RecursiveFilterRun run{wanted, plan.windows->truncation_bound};
  with_order(plan.order, [&]<int Order>() {
    run.method = filter_with<Order, Real>(executor, images, plan, wanted, filtered);
  });
  return run;
}

}  // namespace cumulus::recursive_filter
