#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/core/cuda_error.h"
#include "kernels/recursive_filter/complete_carries.cuh"
#include "kernels/recursive_filter/filter_lines.cuh"
#include "kernels/recursive_filter/filter_row_states.cuh"
#include "kernels/recursive_filter/gather_carries.cuh"
#include "kernels/recursive_filter/recursive_filter.h"
#include "kernels/recursive_filter/recursive_filter_by_windows.h"
#include "kernels/recursive_filter/recursive_filter_check.h"
#include "kernels/recursive_filter/recursive_filter_exact_strips.h"
#include "kernels/recursive_filter/recursive_filter_strips.h"

// The tiled method reads the image twice and writes it once, as algorithm 5 of D. Nehab, A. Maximo, R. Lima
// and H. Hoppe ("GPU-efficient recursive filtering and summed-area tables", 2011) does: (1) each tile finds
// the states that its pixels leave in columns and in rows, as if nothing lay around it; (2) the columns'
// states are completed over all tiles; (3) with them, the rows' states are filtered along y; (4) the rows'
// states are completed; (5) each tile is filtered for good. Unlike there, the carries of both directions are
// sums over the image (recursive_filter_plan.h), so that (2) and (4) run forwards and backwards at once, and
// the rows' states in (1) are those of the unfiltered image, so that (1) need not filter.

namespace cumulus {
namespace {

using namespace recursive_filter;

template <class Real>
__global__ void __launch_bounds__(kAddThreads)
    add_elements(SourceElements addend, Real weight, TargetElements values, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kAddThreads + threadIdx.x;
  if (i >= count) return;
  const Real value = read_only(values).template load<Real>(i);
  values.store(i, addend.template load<Real>(i) + weight * value);
}

unsigned int block_count(std::int64_t work, std::int64_t per_block) {
  return static_cast<unsigned int>((work + per_block - 1) / per_block);
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

/// What follows from the plan alone.
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
void filter_in_tiles(CudaExecutor& executor, const FilterImages<const T, Space::kDevice>& images,
                     const RecursiveFilterPlan& plan, const FilterImages<T, Space::kDevice>& filtered) {
  using Constants = TiledConstants<Order, Real>;
  const AxisPlan& y = plan.y;
  const AxisPlan& x = plan.x;
  const auto& constants = plan.constants->template get<Constants>([&] { return Constants(y, x); });
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

template <int Order, class Real, class T>
void filter_in_lines(CudaExecutor& executor, const FilterImages<const T, Space::kDevice>& images,
                     const AxisPlan& y, const AxisPlan& x, const FilterImages<T, Space::kDevice>& filtered) {
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
  launch(y, {{source_elements(image.data), images.image_stride, channels, image.row_stride},
             columns,
             columns,
             images.count,
             image.width,
             channels});
  executor.check_interrupt();
  launch(x, {{read_only(between), filtered.image_stride, row, channels},
             {between, filtered.image_stride, row, channels},
             {target_elements(filtered.first.data), filtered.image_stride, row, channels},
             images.count,
             image.height,
             channels});
}

}  // namespace

template <class T>
RecursiveFilterRun apply_recursive_filter(CudaExecutor& executor,
                                          FilterImages<const T, Space::kDevice> images,
                                          const RecursiveFilter& filter,
                                          FilterImages<T, Space::kDevice> filtered,
                                          const RecursiveFilterChoice& choice) {
  using Method = RecursiveFilterMethod;
  constexpr bool kDoubles = std::is_same_v<T, double>;
  check_views(images, filtered);
  const auto kept_plan =
      require_plan_on_gpu(filter, images.first.height, images.first.width, kDoubles, choice);
  const RecursiveFilterPlan& plan = *kept_plan;
  executor.check_interrupt();
  executor.bind_thread();
  if constexpr (!kDoubles) {
    if (plan.method == Method::kDecaying) {
      filter_in_strips(executor, images, plan, filtered);
      return {Method::kDecaying, plan.windows->of_strips->truncation_bound};
    }
    if constexpr (std::is_same_v<T, float>) {
      if (plan.exact_strips != nullptr && copy_engine_serves(images)) {
        filter_in_exact_strips(executor, images, *plan.exact_strips, filtered);
        return {Method::kTiled};
      }
    }
    if (plan.method == Method::kOnChip) {
      return plan.precision == Precision::kSingle
                 ? filter_by_windows<float>(executor, images, plan, choice.method, filtered)
                 : filter_by_windows<double>(executor, images, plan, choice.method, filtered);
    }
  }
  with_order(plan.order, [&]<int Order>() {
    if constexpr (kDoubles) {
      filter_in_lines<Order, double>(executor, images, plan.y, plan.x, filtered);
    } else {
      const auto run = [&]<class Real>(Real /*precision*/) {
        if (plan.method == Method::kTiled) {
          filter_in_tiles<Order, Real>(executor, images, plan, filtered);
        } else {
          filter_in_lines<Order, Real>(executor, images, plan.y, plan.x, filtered);
        }
      };
      plan.precision == Precision::kSingle ? run(float{}) : run(double{});
    }
  });
  return {plan.method};
}

template <class T>
void add_scaled(CudaExecutor& executor, DeviceSpan<const T> addend, double weight, DeviceSpan<T> values) {
  check_addend(addend, values);
  executor.check_interrupt();
  executor.bind_thread();
  const auto count = static_cast<std::int64_t>(values.size());
  if (count == 0) return;
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  add_elements<Real><<<block_count(count, kAddThreads), kAddThreads, 0, executor.stream()>>>(
      source_elements(addend.data()), static_cast<Real>(weight), target_elements(values.data()), count);
  CUMULUS_CUDA(cudaGetLastError());
}

#define CUMULUS_INSTANTIATE(T)                                                      \
  template RecursiveFilterRun apply_recursive_filter<T>(                            \
      CudaExecutor&, FilterImages<const T, Space::kDevice>, const RecursiveFilter&, \
      FilterImages<T, Space::kDevice>, const RecursiveFilterChoice&);               \
  template void add_scaled<T>(CudaExecutor&, DeviceSpan<const T>, double, DeviceSpan<T>);
CUMULUS_INSTANTIATE(float)
CUMULUS_INSTANTIATE(Float16)
CUMULUS_INSTANTIATE(double)
#undef CUMULUS_INSTANTIATE

}  // namespace cumulus
