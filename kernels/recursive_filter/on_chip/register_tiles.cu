#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "kernels/core/cuda_error.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/recursive_filter/on_chip/register_tiles.cuh"
#include "kernels/recursive_filter/windows/windows.h"

// Launches the kernels of on_chip/register_tiles.cuh.

namespace cumulus::recursive_filter {
namespace {

using ImagesIn = FilterImages<const float, Space::kDevice>;
using ImagesOut = FilterImages<float, Space::kDevice>;

/// Threads count pixels from row to row, two at a time, in 32 bits.
constexpr std::int64_t kLongestStride = std::int64_t{1} << 30;

/// Tiles of kSide x kSide pixels; kBlocks fit on a multiprocessor.
template <int Order, int kSide, int kBlocks>
struct RegisterTileLaunch {
  using Tile = RegisterTile<Order, kSide>;
  using Layout = typename Tile::Layout;
  using Constants = RegisterTileConstants<Order>;
  static constexpr std::size_t kBytes = sizeof(typename Tile::Pixels);
  static constexpr auto kKernel = filter_register_tiles<Order, kSide, kBlocks>;

  static Constants constants(const RecursiveFilterPlan& plan) {
    return {with_unit_gains(plan.y), with_unit_gains(plan.x), *plan.windows, Layout::kPart, kSide};
  }

  static std::int64_t resident_tiles(const CudaExecutor& executor) {
    constexpr std::int64_t kTilesWithWords =
        CudaExecutor::kWideStatusWords / RegisterTileWords<Order, kSide>::kCount;
    return std::min(kTilesWithWords, resident_blocks(executor, kKernel, Layout::kThreads, kBytes));
  }

  /// False where the images are not whole tiles, or one of them does not fit.
  static bool run(CudaExecutor& executor, const Constants& constants, const ImagesIn& images,
                  const ImagesOut& filtered) {
    const DeviceImage<const float>& image = images.first;
    if (image.height % kSide != 0 || image.width % kSide != 0) return false;
    const std::int64_t rows = image.height / kSide;
    const std::int64_t columns = image.width / kSide;
    const std::int64_t at_once = resident_tiles(executor) / (rows * columns);
    if (at_once == 0) return false;
    for (std::int64_t first = 0; first < images.count; first += at_once) {
      executor.check_interrupt();
      const CudaExecutor::WideStatusWords words = executor.wide_status_words();
      const RegisterTileFilter<Order> filter{{image.data + first * images.image_stride,
                                              filtered.first.data + first * filtered.image_stride,
                                              images.image_stride,
                                              filtered.image_stride,
                                              static_cast<int>(image.row_stride),
                                              static_cast<int>(filtered.first.row_stride),
                                              sizeof(float),
                                              {reinterpret_cast<uint4*>(words.words.data()), words.tag}},
                                             constants};
      const dim3 blocks(static_cast<unsigned>(columns), static_cast<unsigned>(rows),
                        static_cast<unsigned>(std::min(at_once, images.count - first)));
      if (!launch_cooperative(executor, kKernel, {blocks, Layout::kThreads, kBytes}, filter)) return false;
    }
    return true;
  }
};

/// The fewer pixels a thread has, the shorter its recursions. Where more tiles do not fit that way, larger
/// ones publish fewer words. Others: images that larger tiles do not divide.
template <int Order>
struct RegisterTileLaunches {
  using Few = RegisterTileLaunch<Order, kTile, 4>;
  using Many = RegisterTileLaunch<Order, 2 * kTile, 2>;
  using Others = RegisterTileLaunch<Order, kTile, Order <= 3 ? 8 : 4>;

  typename Few::Constants few;
  typename Many::Constants many;
  typename Others::Constants others;

  explicit RegisterTileLaunches(const RecursiveFilterPlan& plan)
      : few(Few::constants(plan)), many(Many::constants(plan)), others(Others::constants(plan)) {}

  bool run(CudaExecutor& executor, const ImagesIn& images, const ImagesOut& filtered) const {
    return Few::run(executor, few, images, filtered) || Many::run(executor, many, images, filtered) ||
           Others::run(executor, others, images, filtered);
  }
};

}  // namespace

bool filter_in_register_tiles(CudaExecutor& executor, const ImagesIn& images, const RecursiveFilterPlan& plan,
                              const ImagesOut& filtered) {
  const auto serves = [](const AxisPlan& axis) {
    return !axis.identity && !has_zero_gain(axis) && axis.pixels_left_out() == 0 && run_alike(axis);
  };
  if (!rows_are_aligned(images) || !serves(plan.y) || !serves(plan.x)) return false;
  if (std::max(images.first.row_stride, filtered.first.row_stride) > kLongestStride) return false;
  bool done = false;
  with_order(plan.order, [&]<int Order>() {
    using Launches = RegisterTileLaunches<Order>;
    const Launches& launches =
        plan.register_tile_constants->template get<Launches>([&] { return Launches(plan); });
    done = launches.run(executor, images, filtered);
  });
  return done;
}

}  // namespace cumulus::recursive_filter
