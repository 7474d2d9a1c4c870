#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "kernels/core/cuda_error.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/recursive_filter/strips/filter.cuh"
#include "kernels/recursive_filter/strips/strips.h"

// Launches the kernel of strips/filter.cuh.

namespace cumulus::recursive_filter {
namespace {

int strip_blocks_of(int device) {
  int memory = 0;
  int multiprocessors = 0;
  CUMULUS_CUDA(cudaDeviceGetAttribute(&memory, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  CUMULUS_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  constexpr int kMaxChannels = 4;
  const bool suffices = static_cast<std::size_t>(memory) >= sizeof(StripMemory<kMaxStripOrder>) &&
                        multiprocessors >= kMaxChannels * (2 * kMaxStripWindow + 1);
  if (!suffices) return 0;
  cudaFuncAttributes compiled{};
  CUMULUS_CUDA(cudaFuncGetAttributes(&compiled, filter_strips<kMaxStripOrder, false>));
  constexpr int kWords = kStripStateSlots * 2 * tagged_words(kMaxStripOrder) * kTile;
  constexpr int kBlocksWithWords = static_cast<int>(CudaExecutor::kWideStatusWords) / kWords;
  const bool compiled_in = compiled.ptxVersion >= 90;
  return compiled_in ? std::min(multiprocessors, kBlocksWithWords) : 0;
}

/// A launch over whole images, or over the columns of tiles from `first_column` on that it stores.
template <int Order, bool kDirectForm>
void launch_strips(CudaExecutor& executor, StripFilter<Order>& filter, const StripDivision& division,
                   int first_column, std::int64_t images) {
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
  const std::int64_t blocks = images * filter.segments * filter.strips * filter.channels;
  if (!launch_cooperative(executor, filter_strips<Order, kDirectForm>,
                          {blocks, kStripThreads, sizeof(StripMemory<Order>)}, filter)) {
    CUMULUS_CUDA(cudaErrorCooperativeLaunchTooLarge);
  }
}

template <int Order, class T>
StripFilter<Order> strip_filter(const FilterImages<const T, Space::kDevice>& images,
                                const RecursiveFilterPlan& plan,
                                const FilterImages<T, Space::kDevice>& filtered,
                                const StripDivision& division) {
  using Axes = StripAxes<Order>;
  const auto& axes = plan.constants->template get<Axes>([&] { return Axes(plan); });
  StripFilter<Order> filter{{}, axes.y, axes.x};
  filter.scale = axes.y.scale * axes.x.scale;
  const DeviceImage<const T>& image = images.first;
  const FilterTiles tiles(image.height, image.width, image.channels);
  filter.image_stride = images.image_stride;
  filter.filtered_stride = filtered.image_stride;
  filter.row_stride = image.row_stride;
  filter.height = image.height;
  filter.width = image.width;
  filter.channels = static_cast<int>(image.channels);
  filter.tile_rows = static_cast<int>(tiles.rows);
  filter.tile_columns = static_cast<int>(tiles.columns);
  filter.segments = division.segments;
  filter.segment_tiles = division.segment_tiles;
  filter.window_y = static_cast<int>(plan.windows->of_strips->y);
  filter.window_x = static_cast<int>(plan.windows->of_strips->x);
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

int strip_blocks() {
  static const int least = [] {
    const int devices = cuda_device_count();
    int blocks = devices == 0 ? 0 : strip_blocks_of(0);
    for (int device = 1; device < devices; ++device) blocks = std::min(blocks, strip_blocks_of(device));
    return blocks;
  }();
  return least;
}

template <class T>
void filter_in_strips(CudaExecutor& executor, const FilterImages<const T, Space::kDevice>& images,
                      const RecursiveFilterPlan& plan, const FilterImages<T, Space::kDevice>& filtered) {
  const DeviceImage<const T>& image = images.first;
  const StripDivision division(image.height, image.width, image.channels, images.count, plan);
  const auto filter_all = [&]<int Order, bool kDirectForm>() {
    StripFilter<Order> filter = strip_filter<Order>(images, plan, filtered, division);
    CUMULUS_CUDA(cudaFuncSetAttribute(filter_strips<Order, kDirectForm>,
                                      cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(sizeof(StripMemory<Order>))));
    for (std::int64_t first = 0; first < images.count; first += division.images_at_once) {
      filter.images = source_elements(image.data + first * images.image_stride);
      filter.filtered = target_elements(filtered.first.data + first * filtered.image_stride);
      const std::int64_t count = std::min(division.images_at_once, images.count - first);
      for (int column = 0; column < filter.tile_columns; column += division.panel_columns) {
        executor.check_interrupt();
        launch_strips<Order, kDirectForm>(executor, filter, division, column, count);
      }
    }
  };
  if (plan.direct_form) return filter_all.template operator()<3, true>();
  with_order(plan.order, [&]<int Order>() {
    if constexpr (Order <= kMaxStripOrder) filter_all.template operator()<Order, false>();
  });
}

template void filter_in_strips<float>(CudaExecutor&, const FilterImages<const float, Space::kDevice>&,
                                      const RecursiveFilterPlan&, const FilterImages<float, Space::kDevice>&);
template void filter_in_strips<Float16>(CudaExecutor&, const FilterImages<const Float16, Space::kDevice>&,
                                        const RecursiveFilterPlan&,
                                        const FilterImages<Float16, Space::kDevice>&);

}  // namespace cumulus::recursive_filter
