#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "kernels/core/cuda_error.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/recursive_filter/plans.h"
#include "kernels/recursive_filter/strips/filter.cuh"
#include "kernels/recursive_filter/strips/strips.h"

// Launches the kernel of strips/filter.cuh.

namespace cumulus::recursive_filter {
namespace {

/// A launch over whole images, or over the columns of tiles from `first_column` on that it stores.
template <int Order, int Channels>
void launch_strips(CudaExecutor& executor, StripFilter<Order, Channels>& filter,
                   const StripDivision& division, int first_column, std::int64_t images) {
  const int columns = filter.tile_columns;
  filter.stored_first = first_column;
  filter.stored_end = std::min(first_column + division.panel_columns, columns);
  filter.first_strip = 0;
  int end = columns;
  if (division.panel_columns < columns) {
    filter.first_strip = filter.stored_first - filter.window_x;
    end = filter.stored_end + filter.window_x;
    if (filter.boundary_x != FilterBoundary::kRepeat) {
      filter.first_strip = std::max(filter.first_strip, 0);
      end = std::min(end, columns);
    }
  }
  filter.strips = end - filter.first_strip;
  const CudaExecutor::WideStatusWords words =
      executor.wide_status_words(static_cast<std::uint32_t>(filter.segment_tiles));
  filter.states = reinterpret_cast<uint4*>(words.words.data());
  filter.first_tag = words.tag;
  const std::int64_t blocks = images * filter.segments * filter.strips;
  if (!launch_cooperative(executor, filter_strips<Order, Channels>,
                          {blocks, StripTeams<Channels>::kThreads, sizeof(StripMemory<Order, Channels>)},
                          filter)) {
    CUMULUS_CUDA(cudaErrorCooperativeLaunchTooLarge);
  }
}

template <int Order, int Channels, class T>
StripFilter<Order, Channels> strip_filter(const FilterImages<const T, Space::kDevice>& images,
                                          const PlannedFilter& planned, const StripDivision& division,
                                          const FilterImages<T, Space::kDevice>& filtered) {
  using Axes = StripAxes<Order, strip_tile_side(Channels)>;
  const FilterAxes& plan = planned.axes();
  const auto& axes = planned.constants().template get<Axes>([&] { return Axes(plan); });
  StripFilter<Order, Channels> filter{{}, axes.y, axes.x};
  filter.scale = axes.y.scale * axes.x.scale;
  const DeviceImage<const T>& image = images.first;
  const StripGrid grid(image.height, image.width, image.channels, *planned.windows()->of_strips);
  filter.image_stride = images.image_stride;
  filter.filtered_stride = filtered.image_stride;
  filter.row_stride = image.row_stride;
  filter.height = image.height;
  filter.width = image.width;
  filter.channels = static_cast<int>(image.channels);
  filter.tile_rows = grid.rows;
  filter.tile_columns = grid.columns;
  filter.segments = division.segments;
  filter.segment_tiles = division.segment_tiles;
  filter.window_y = grid.window_y;
  filter.window_x = grid.window_x;
  filter.state_slots = division.state_slots;
  filter.boundary_y = plan.y.boundary;
  filter.boundary_x = plan.x.boundary;
  filter.along_columns = !plan.y.identity;
  filter.along_rows = !plan.x.identity;
  filter.vector_loads = rows_are_aligned(images);
  filter.vector_stores = rows_are_aligned(filtered);
  return filter;
}

}  // namespace

template <class T>
void filter_in_strips(CudaExecutor& executor, const FilterImages<const T, Space::kDevice>& images,
                      const PlannedFilter& planned, const StripsPlan& plan,
                      const FilterImages<T, Space::kDevice>& filtered) {
  const DeviceImage<const T>& image = images.first;
  const StripDivision& division = plan.division;
  const auto filter_all = [&]<int Order, int Channels>() {
    auto filter = strip_filter<Order, Channels>(images, planned, division, filtered);
    for (std::int64_t first = 0; first < images.count; first += division.images_at_once) {
      filter.images = source_elements(image.data + first * images.image_stride);
      filter.filtered = target_elements(filtered.first.data + first * filtered.image_stride);
      const std::int64_t count = std::min(division.images_at_once, images.count - first);
      for (int column = 0; column < filter.tile_columns; column += division.panel_columns) {
        executor.check_interrupt();
        launch_strips<Order>(executor, filter, division, column, count);
      }
    }
  };
  const auto filter_pixels = [&]<int Order>() {
    switch (image.channels) {
      case 1:
        return filter_all.template operator()<Order, 1>();
      case 2:
        return filter_all.template operator()<Order, 2>();
      case 3:
        return filter_all.template operator()<Order, 3>();
      default:
        return filter_all.template operator()<Order, 4>();
    }
  };
  with_order(planned.axes().order, [&]<int Order>() {
    if constexpr (Order <= kMaxStripOrder) filter_pixels.template operator()<Order>();
  });
}

template void filter_in_strips<float>(CudaExecutor&, const FilterImages<const float, Space::kDevice>&,
                                      const PlannedFilter&, const StripsPlan&,
                                      const FilterImages<float, Space::kDevice>&);
template void filter_in_strips<Float16>(CudaExecutor&, const FilterImages<const Float16, Space::kDevice>&,
                                        const PlannedFilter&, const StripsPlan&,
                                        const FilterImages<Float16, Space::kDevice>&);

}  // namespace cumulus::recursive_filter
