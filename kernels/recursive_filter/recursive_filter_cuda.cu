#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/core/cuda_error.h"
#include "kernels/recursive_filter/filter_lines.cuh"
#include "kernels/recursive_filter/filter_tiles.cuh"
#include "kernels/recursive_filter/recursive_filter.h"
#include "kernels/recursive_filter/recursive_filter_check.h"
#include "kernels/recursive_filter/tile_carries.cuh"

// The tiled method reads the image twice and writes it once, as algorithm 5 of D. Nehab, A. Maximo, R. Lima
// and H. Hoppe ("GPU-efficient recursive filtering and summed-area tables", 2011) does: (1) each tile finds
// the states that its pixels leave in columns and rows, as if nothing lay around it; (2) the columns' states
// are completed over all tiles, (3) what that changes in the rows' states is added, (4) the rows' states are
// completed; (5) each tile is filtered for good. Unlike there, the carries of both directions are sums over
// the image (recursive_filter_plan.h), so that (2) and (4) run forwards and backwards at once, and the first
// pass needs no twice-incomplete carries.

namespace cumulus {
namespace {

using namespace recursive_filter;

unsigned int block_count(std::int64_t work, std::int64_t per_block) {
  return static_cast<unsigned int>((work + per_block - 1) / per_block);
}

template <int Order>
void complete_axis(CudaExecutor& executor, const AxisPlan& axis, const CompleteArguments<Order>& arguments) {
  const CarryPlan<Order> plan(axis);
  const unsigned int blocks = block_count(arguments.cross_length, kCarryLines) *
                              static_cast<unsigned int>(arguments.carries.channels);
  complete_carries<Order>
      <<<blocks, dim3(kCarryLines, kCarrySegments), 0, executor.stream()>>>(arguments, plan);
  CUMULUS_CUDA(cudaGetLastError());
}

template <int Order, class Real>
void filter_in_tiles(CudaExecutor& executor, const DeviceImage<const float>& image, const AxisPlan& y,
                     const AxisPlan& x, const DeviceImage<float>& filtered) {
  const FilterTiles tiles(image.height, image.width, image.channels);
  float* border = executor.scratch<float>(tiles.border_carries(Order)).data();
  float* first_pixels = executor.scratch<float>(tiles.border_pixels()).data();
  float* last_pixels = executor.scratch<float>(tiles.border_pixels()).data();
  const CarryMap carries{filtered.data, border,        image.width, image.channels,
                         tiles.rows,    tiles.columns, 4 * Order};
  const TileArguments<Order, Real> arguments{image.data,
                                             image.row_stride,
                                             image.height,
                                             carries,
                                             first_pixels,
                                             last_pixels,
                                             TileAxis<Order, Real>(y),
                                             TileAxis<Order, Real>(x)};
  const auto blocks = static_cast<unsigned int>(tiles.count());
  gather_carries<Order, Real><<<blocks, kTile, 0, executor.stream()>>>(arguments);
  CUMULUS_CUDA(cudaGetLastError());
  executor.check_interrupt();
  complete_axis<Order>(executor, y,
                       {carries,
                        {0, Order},
                        {image.data, image.data + (image.height - 1) * image.row_stride},
                        image.width,
                        true});
  correct_row_states<Order, Real>
      <<<blocks, kTile, 0, executor.stream()>>>(arguments, ColumnResponse<Order>(y));
  CUMULUS_CUDA(cudaGetLastError());
  complete_axis<Order>(executor, x,
                       {carries, {2 * Order, 3 * Order}, {first_pixels, last_pixels}, image.height, false});
  executor.check_interrupt();
  filter_tiles<Order, Real><<<blocks, kTile, 0, executor.stream()>>>(arguments);
  CUMULUS_CUDA(cudaGetLastError());
}

template <int Order, class Real>
void filter_in_lines(CudaExecutor& executor, const DeviceImage<const float>& image, const AxisPlan& y,
                     const AxisPlan& x, const DeviceImage<float>& filtered) {
  const std::int64_t channels = image.channels;
  const auto launch = [&](const AxisPlan& axis, const float* source, LineLayout from, LineLayout to,
                          std::int64_t lines) {
    filter_lines<Order, Real><<<block_count(lines, kLineThreads), kLineThreads, 0, executor.stream()>>>(
        LinePlan<Order, Real>(axis), source, from, filtered.data, to, lines, channels);
    CUMULUS_CUDA(cudaGetLastError());
  };
  launch(y, image.data, {channels, image.row_stride}, {channels, filtered.row_stride},
         image.width * channels);
  executor.check_interrupt();
  const LineLayout rows{filtered.row_stride, channels};
  launch(x, filtered.data, rows, rows, image.height * channels);
}

bool use_tiles(RecursiveFilterMethod method, const RecursiveFilter& filter) {
  if (method == RecursiveFilterMethod::kTiled && !tiles_serve(filter)) {
    throw std::invalid_argument(
        "recursive_filter: the tiled method does not fold an image back (reflect, mirror) for a filter whose "
        "directions differ; the line method does");
  }
  return method != RecursiveFilterMethod::kLines && tiles_serve(filter);
}

}  // namespace

void apply_recursive_filter(CudaExecutor& executor, DeviceImage<const float> image,
                            const RecursiveFilter& filter, DeviceImage<float> filtered,
                            RecursiveFilterMethod method) {
  check_views(image, filtered);
  const bool tiled = use_tiles(method, filter);
  const Precision precision = precision_for(filter);
  const int order = kernel_order(filter);
  const AxisPlan y = plan_axis(filter.y, image.height, order, precision);
  const AxisPlan x = plan_axis(filter.x, image.width, order, precision);
  executor.check_interrupt();
  executor.bind_thread();
  with_order(order, [&]<int Order>() {
    const auto run = [&]<class Real>(Real /*precision*/) {
      if (tiled) {
        filter_in_tiles<Order, Real>(executor, image, y, x, filtered);
      } else {
        filter_in_lines<Order, Real>(executor, image, y, x, filtered);
      }
    };
    precision == Precision::kSingle ? run(float{}) : run(double{});
  });
}

}  // namespace cumulus
