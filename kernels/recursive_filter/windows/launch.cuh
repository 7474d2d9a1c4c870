#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/core/cuda_error.h"
#include "kernels/recursive_filter/windows/filter.cuh"
#include "kernels/recursive_filter/windows/windows.h"

// Launches the kernels of windows/filter.cuh. A unit for each arithmetic: they take long to compile.

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

template <int Order, class Real, class T>
void filter_passes(CudaExecutor& executor, const FilterImages<const T, Space::kDevice>& images,
                   const PlannedFilter& planned, const WindowsPlan& plan,
                   const FilterImages<T, Space::kDevice>& filtered) {
  const DeviceImage<const T>& image = images.first;
  const FilterAxes& axes = planned.axes();
  const FilterTiles tiles(image.height, image.width, image.channels);
  float* states = executor.scratch<float>(plan.state_floats).data();
  using Constants = WindowConstants<Order, Real>;
  const auto& constants =
      planned.constants().template get<Constants>([&] { return Constants(axes, *planned.windows()); });
  WindowFilter<Order, Real> filter{
      constants,
      tile_images(images, filtered, axes.y, axes.x),
      {states, 0, plan.schedule.rows, tiles.columns, tiles.channels, StateLayout<Order>::kFloats}};
  for (std::int64_t first = 0; first < images.count; first += plan.schedule.images_at_once) {
    executor.check_interrupt();
    filter.a.images = source_elements(image.data + first * images.image_stride);
    filter.a.carries.filtered = target_elements(filtered.first.data + first * filtered.image_stride);
    filter.states.output = states_in_output(filter);
    launch_passes(executor, filter, std::min(plan.schedule.images_at_once, images.count - first));
  }
}

template <class Real, class T>
void filter_by_windows(CudaExecutor& executor, const FilterImages<const T, Space::kDevice>& images,
                       const PlannedFilter& filter, const WindowsPlan& plan,
                       const FilterImages<T, Space::kDevice>& filtered) {
  with_order(filter.axes().order,
             [&]<int Order>() { filter_passes<Order, Real>(executor, images, filter, plan, filtered); });
}

}  // namespace cumulus::recursive_filter
