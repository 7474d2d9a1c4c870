#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "kernels/core/cuda_error.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/recursive_filter/on_chip/capacity.h"
#include "kernels/recursive_filter/on_chip/on_chip.h"
#include "kernels/recursive_filter/on_chip/register_tiles.cuh"

// Launches the kernels of on_chip/register_tiles.cuh.

namespace cumulus::recursive_filter {
namespace {

using ImagesIn = FilterImages<const float, Space::kDevice>;
using ImagesOut = FilterImages<float, Space::kDevice>;

template <int Order, RegisterTiles kForm>
struct RegisterTileLaunch {
  static constexpr int kSide = register_tile_side(kForm);
  static constexpr int kBlocks = register_tile_blocks(kForm);
  static constexpr ResidentKernel kKernel = register_tile_kernel(kForm, Order);
  using Layout = typename RegisterTile<Order, kSide>::Layout;
  static_assert(kKernel.threads == Layout::kThreads);
  static_assert(kKernel.shared_bytes == sizeof(typename RegisterTile<Order, kSide>::Pixels));
  static_assert(kKernel.words == RegisterTileWords<Order, kSide>::kCount);

  RegisterTileConstants<Order> constants;

  explicit RegisterTileLaunch(const PlannedFilter& filter)
      : constants(with_unit_gains(filter.axes().y), with_unit_gains(filter.axes().x), *filter.windows(),
                  Layout::kPart, kSide) {}

  static void run(CudaExecutor& executor, const ImagesIn& images, const PlannedFilter& planned,
                  std::int64_t at_once, const ImagesOut& filtered) {
    const auto& kept =
        planned.constants().template get<RegisterTileLaunch>([&] { return RegisterTileLaunch(planned); });
    const DeviceImage<const float>& image = images.first;
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
                                             kept.constants};
      const dim3 blocks(static_cast<unsigned>(image.width / kSide),
                        static_cast<unsigned>(image.height / kSide),
                        static_cast<unsigned>(std::min(at_once, images.count - first)));
      if (!launch_cooperative(executor, filter_register_tiles<Order, kSide, kBlocks>,
                              {blocks, kKernel.threads, kKernel.shared_bytes}, filter)) {
        CUMULUS_CUDA(cudaErrorCooperativeLaunchTooLarge);
      }
    }
  }
};

}  // namespace

void filter_in_register_tiles(CudaExecutor& executor, const ImagesIn& images, const PlannedFilter& filter,
                              const RegisterTilesPlan& plan, const ImagesOut& filtered) {
  const auto run = [&]<int Order, RegisterTiles kForm>() {
    RegisterTileLaunch<Order, kForm>::run(executor, images, filter, plan.images_at_once, filtered);
  };
  with_order(filter.axes().order, [&]<int Order>() {
    switch (plan.form) {
      case RegisterTiles::kFew:
        return run.template operator()<Order, RegisterTiles::kFew>();
      case RegisterTiles::kLarge:
        return run.template operator()<Order, RegisterTiles::kLarge>();
    }
  });
}

}  // namespace cumulus::recursive_filter
