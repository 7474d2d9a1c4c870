#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/core/cuda_error.h"
#include "kernels/core/div.h"
#include "kernels/recursive_filter/math/tile_grid.h"
#include "kernels/recursive_filter/tiled/complete_carries.cuh"
#include "kernels/recursive_filter/tiled/filter_row_states.cuh"
#include "kernels/recursive_filter/tiled/gather_carries.cuh"
#include "kernels/recursive_filter/tiled/tiled.h"

// The tiled method reads the image twice and writes it once, as algorithm 5 of D. Nehab, A. Maximo, R.
// Lima and H. Hoppe ("GPU-efficient recursive filtering and summed-area tables", 2011) does: (1) each tile
// finds the zero-state responses of its columns and rows; (2) the columns' carries are completed over all
// tiles; (3) with them, the rows' responses are filtered along y; (4) the rows' carries are completed; (5)
// each tile is filtered. Unlike there, the carries of both directions are sums over the image
// (math/axis_plan.h), so that (2) and (4) run forwards and backwards at once, and the rows' responses in
// (1) are those of the unfiltered image, so that (1) need not filter.

namespace cumulus::recursive_filter {
namespace {

unsigned int block_count(std::int64_t work, std::int64_t per_block) {
  return static_cast<unsigned int>(divide_up(work, per_block));
}

template <int Order>
void complete_axis(CudaExecutor& executor, const CarryPlan<Order>& plan, std::int64_t images,
                   CompleteArguments<Order> arguments) {
  arguments.blocks_of_image = block_count(arguments.cross_length, kCarryLines) *
                              static_cast<unsigned int>(arguments.carries.channels);
  const auto blocks = arguments.blocks_of_image * static_cast<unsigned int>(images);
  complete_carries<Order>
      <<<blocks, dim3(kCarryLines, carry_segments(Order), 2), 0, executor.stream()>>>(arguments, plan);
  CUMULUS_CUDA(cudaGetLastError());
}

/// Made once for each plan.
template <int Order, class Real>
struct TiledConstants {
  TileAxis<Order, Real> y_axis;  // of rows' states
  FilterAxis<Order, Real> y_filter, x_filter;
  GatherAxis<Order> y_gather, x_gather;
  CarryPlan<Order> y_carries, x_carries;

  TiledConstants(const AxisPlan& y, const AxisPlan& x)
      : y_axis(y), y_filter(y), x_filter(x), y_gather(y), x_gather(x), y_carries(y), x_carries(x) {}
};

template <int Order, class Real, class T>
void filter_with(CudaExecutor& executor, const FilterImages<const T, Space::kDevice>& images,
                 const PlannedFilter& filter, const FilterImages<T, Space::kDevice>& filtered) {
  using Constants = TiledConstants<Order, Real>;
  const AxisPlan& y = filter.axes().y;
  const AxisPlan& x = filter.axes().x;
  const auto& constants = filter.constants().template get<Constants>([&] { return Constants(y, x); });
  const DeviceImage<const T>& image = images.first;
  const FilterTiles tiles(image.height, image.width, image.channels);
  const auto count = static_cast<std::size_t>(images.count);
  float* border = executor.scratch<float>(count * tiles.border_carries(Order)).data();
  float* first_pixels = executor.scratch<float>(count * tiles.border_pixels()).data();
  float* last_pixels = executor.scratch<float>(count * tiles.border_pixels()).data();
  TileImages tiled = tile_images(images, filtered, y, x);
  tiled.carries.border = border;
  tiled.carries.lines = 4 * Order;
  tiled.first_pixels = first_pixels;
  tiled.last_pixels = last_pixels;
  const CarryMap& carries = tiled.carries;
  const std::int64_t tile_count = tiles.count() * images.count;
  const auto blocks = static_cast<unsigned int>(tile_count);
  gather_carries<Order>
      <<<blocks, kTile, 0, executor.stream()>>>(tiled, constants.y_gather, constants.x_gather);
  CUMULUS_CUDA(cudaGetLastError());
  executor.check_interrupt();
  if (!y.identity) {
    const T* last_row = image.data + (image.height - 1) * image.row_stride;
    complete_axis<Order>(executor, constants.y_carries, images.count,
                         {carries,
                          {0, Order},
                          {source_elements(image.data), source_elements(last_row), images.image_stride},
                          image.width,
                          0,
                          true});
  }
  if (!y.identity && !x.identity) {
    using Memory = RowStateMemory<Order>;
    const std::int64_t border_lines = tile_count / tiles.columns * 2;
    const unsigned int border_blocks = block_count(border_lines, Memory::kLines);
    filter_row_states<Order, Real>
        <<<border_blocks + block_count(tile_count, Memory::kTiles), kRowStateThreads, 0, executor.stream()>>>(
            tiled, constants.y_axis, constants.x_gather.weights, blocks,
            static_cast<unsigned int>(border_lines), border_blocks);
    CUMULUS_CUDA(cudaGetLastError());
  }
  if (!x.identity) {
    complete_axis<Order>(executor, constants.x_carries, images.count,
                         {carries,
                          {2 * Order, 3 * Order},
                          {source_elements<float>(first_pixels), source_elements<float>(last_pixels),
                           static_cast<std::int64_t>(tiles.border_pixels())},
                          image.height,
                          0,
                          false});
  }
  executor.check_interrupt();
  filter_tiles<Order, Real>
      <<<blocks, kTile, 0, executor.stream()>>>(tiled, constants.y_filter, constants.x_filter);
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace

template <class T>
void filter_in_tiles(CudaExecutor& executor, const FilterImages<const T, Space::kDevice>& images,
                     const PlannedFilter& filter, const FilterImages<T, Space::kDevice>& filtered) {
  with_order(filter.axes().order, [&]<int Order>() {
    filter.single() ? filter_with<Order, float>(executor, images, filter, filtered)
                    : filter_with<Order, double>(executor, images, filter, filtered);
  });
}

#define CUMULUS_INSTANTIATE(T)                                                                  \
  template void filter_in_tiles<T>(CudaExecutor&, const FilterImages<const T, Space::kDevice>&, \
                                   const PlannedFilter&, const FilterImages<T, Space::kDevice>&);
CUMULUS_INSTANTIATE(float)
CUMULUS_INSTANTIATE(Float16)
#undef CUMULUS_INSTANTIATE

}  // namespace cumulus::recursive_filter
