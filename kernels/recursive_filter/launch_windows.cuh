#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "kernels/core/cuda_error.h"
#include "kernels/recursive_filter/filter_windows.cuh"
#include "kernels/recursive_filter/recursive_filter_by_windows.h"

// The host's side of filter_windows.cuh. A unit for each arithmetic: they take long to compile.

namespace cumulus::recursive_filter {
/// Blocks of the on-chip method that the device holds at once.
template <int Order, class Real>
std::int64_t resident_blocks(const CudaExecutor& executor, std::size_t bytes) {
  int blocks = 0;
  CUMULUS_CUDA(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, filter_on_chip<Order, Real>, kTile, bytes));
  return std::int64_t{blocks} * executor.device().multiprocessors();
}

/// Both passes over the images in memory of their own, one band of one image's rows of tiles after another.
template <int Order, class Real>
class BandedPasses {
 public:
  BandedPasses(CudaExecutor& executor, const WindowFilter<Order, Real>& filter,
               const WindowSchedule& schedule, std::int64_t images, bool needs_last_rows)
      : executor_(executor),
        filter_(filter),
        rows_(schedule.slots.rows),
        row_tiles_(filter.states.tile_columns * filter.states.channels),
        band_(schedule.band_rows),
        images_(images),
        last_rows_(needs_last_rows && !schedule.slots.holds_all() ? schedule.slots.kept : 0) {}

  void run() {
    if (band_ >= rows_) {
      const TileRange all{0, images_ * rows_ * row_tiles_};
      launch(all, {});
      return launch({}, all);
    }
    // The tiles of the first rows look at the last ones too where the boundary asks for it.
    if (last_rows_ > 0) launch(rows_of_tiles(rows_ - last_rows_, rows_), {});
    const std::int64_t behind = 1 + (filter_.moves[kAlongY].window + band_ - 1) / band_;
    for (std::int64_t band = 0; (band - behind) * band_ < rows_; ++band) {
      executor_.check_interrupt();
      launch(rows_of_tiles(band * band_, std::min((band + 1) * band_, rows_ - last_rows_)),
             rows_of_tiles((band - behind) * band_, std::min((band - behind + 1) * band_, rows_)));
    }
  }

 private:
  TileRange rows_of_tiles(std::int64_t first, std::int64_t end) const {
    if (first < 0 || first >= end) return {};
    return {first * row_tiles_, (end - first) * row_tiles_};
  }
  void launch(const TileRange& to_publish, const TileRange& to_filter) const {
    const auto blocks = static_cast<unsigned int>(to_publish.count + to_filter.count);
    if (blocks == 0) return;
    filter_windows<Order, Real>
        <<<blocks, kTile, WindowMemory<Order>::bytes(filter_.moves[kAlongX], false), executor_.stream()>>>(
            filter_, to_publish, to_filter);
    CUMULUS_CUDA(cudaGetLastError());
  }

  CudaExecutor& executor_;
  const WindowFilter<Order, Real>& filter_;
  std::int64_t rows_, row_tiles_, band_, images_, last_rows_;
};

template <int Order, class Real>
void launch_on_chip(CudaExecutor& executor, WindowFilter<Order, Real>& filter, std::int64_t tiles) {
  void* arguments[] = {&filter};
  CUMULUS_CUDA(cudaLaunchCooperativeKernel(
      filter_on_chip<Order, Real>, dim3(static_cast<unsigned int>(tiles)), dim3(kTile), arguments,
      WindowMemory<Order>::bytes(filter.moves[kAlongX], true), executor.stream()));
}

template <int Order, class Real, class T>
RecursiveFilterMethod filter_with(CudaExecutor& executor, const FilterImages<const T, Space::kDevice>& images,
                                  const RecursiveFilterPlan& plan, RecursiveFilterMethod wanted,
                                  const FilterImages<T, Space::kDevice>& filtered) {
  using Method = RecursiveFilterMethod;
  const DeviceImage<const T>& image = images.first;
  const FilterTiles tiles(image.height, image.width, image.channels);
  const WindowSchedule schedule =
      plan_schedule(image.height, image.width * image.channels * static_cast<std::int64_t>(sizeof(T)),
                    images.count, *plan.windows);
  float* states = executor.scratch<float>(schedule.state_floats<Order>(tiles.columns, tiles.channels)).data();
  const std::int64_t last_rows = image.height - (tiles.rows - 1) * kTile;
  WindowFilter<Order, Real> filter{
      tile_images(images, filtered, plan.y, plan.x),
      {states, schedule.slots, tiles.columns, tiles.channels, StateLayout<Order>::kFloats},
      WindowAxis<Order, Real>(plan.y),
      WindowAxis<Order, Real>(plan.x),
      {WindowMoves<Order>(plan.y, plan.windows->y), WindowMoves<Order>(plan.x, plan.windows->x)},
      {TileResponses<Order>(plan.y, kTile), TileResponses<Order>(plan.y, last_rows)}};
  const std::int64_t resident =
      resident_blocks<Order, Real>(executor, WindowMemory<Order>::bytes(filter.moves[kAlongX], true));
  const bool fits = schedule.slots.holds_all() && tiles.count() * schedule.images_at_once <= resident;
  if (wanted == Method::kOnChip && !fits) throw DoesNotFitOnChip(tiles.count(), resident);
  const bool on_chip = fits && wanted != Method::kDecaying;
  for (std::int64_t first = 0; first < images.count; first += schedule.images_at_once) {
    executor.check_interrupt();
    const std::int64_t count = std::min(schedule.images_at_once, images.count - first);
    filter.a.images = source_elements(image.data + first * images.image_stride);
    filter.a.carries.filtered = target_elements(filtered.first.data + first * filtered.image_stride);
    if (on_chip) {
      launch_on_chip(executor, filter, tiles.count() * count);
    } else {
      BandedPasses<Order, Real>(executor, filter, schedule, count, plan.y.needs_runs()).run();
    }
  }
  return on_chip ? Method::kOnChip : Method::kDecaying;
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
