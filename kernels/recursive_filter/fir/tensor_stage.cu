#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/core/div.h"
#include "kernels/core/launch_slices.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/recursive_filter/fir/layers.cuh"
#include "kernels/recursive_filter/fir/tensor_stage.cuh"

namespace cumulus::recursive_filter {
namespace {

/// The nearest number of as many bits as the matrix units take.
float nearest_tf32(double value) {
  const auto nearest = static_cast<float>(value);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &nearest, sizeof(bits));
  bits = (bits + kHalfOfLowest) & kHighBits;
  float rounded = 0;
  std::memcpy(&rounded, &bits, sizeof(bits));
  return rounded;
}

TensorStageAxis tensor_axis(const std::optional<FirPass>& pass, std::int64_t length) {
  TensorStageAxis axis{};
  axis.form = tensor_form_of(pass, length);
  axis.in_length = axis.out_length = length;
  axis.taps = 1;
  axis.high[0] = 1;
  if (!pass.has_value()) return axis;
  axis.boundary = pass->boundary;
  axis.in_length = pass->in_length;
  axis.out_length = pass->out_length;
  axis.first = pass->first;
  axis.taps = static_cast<int>(pass->taps);
  for (std::size_t i = 0; i < pass->weights.size(); ++i) {
    axis.high[i] = nearest_tf32(pass->weights[i]);
    axis.low[i] = nearest_tf32(pass->weights[i] - static_cast<double>(axis.high[i]));
  }
  return axis;
}

bool is_aligned(const void* data, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
}

template <class Source, bool kExact, int kRow>
void launch_tensor_stage(CudaExecutor& executor, const TensorStageOnDevice& stage, const Layers& layers) {
  const std::int64_t blocks = stage.blocks_x * stage.blocks_y * layers.images;
  const std::int64_t first = std::max<std::int64_t>(kFirstResults / divide_up(layers.results(), blocks), 1);
  launch_slices(executor, blocks, {.first = first}, [&](std::int64_t begin, std::int64_t end) {
    launch_dependent<filter_tensor_stage<Source, kExact, kRow + kTensorRowPadding>>(
        executor.stream(), {end - begin, stage.tile.threads, stage.tile.shared_bytes}, layers.from.elements,
        layers.to.elements, stage, begin);
  });
}

template <class Source, bool kExact>
void run_stage(CudaExecutor& executor, const FirStage& stage, const Layers& layers) {
  TensorStageOnDevice on_device{};
  on_device.y = tensor_axis(stage.y, layers.from.extents.height);
  on_device.x = tensor_axis(stage.x, layers.from.extents.width);
  const TensorForm& y = on_device.y.form;
  const TensorForm& x = on_device.x.form;
  const int channels = static_cast<int>(layers.channels);
  const TensorTile tile =
      choose_tensor_tile(y, x, channels, layers.images, sizeof(Source), executor.numbers());
  on_device.tile = tile;
  on_device.channels = channels;
  constexpr unsigned kOne = 1U << 16U;
  const auto factor = [](int divisor) { return kOne / static_cast<unsigned>(divisor) + 1; };
  on_device.line_group_factor = factor(tile.line_groups);
  on_device.numbers_in = kTensorSide * x.reach(tile.column_blocks) * channels;
  on_device.numbers_out = kTensorSide * tile.column_blocks * x.phases * channels;
  on_device.column_units = divide_up(on_device.numbers_out, 32);
  on_device.column_unit_factor = factor(on_device.column_units);
  constexpr std::int64_t kVector = kTensorVectorBytes / sizeof(Source);
  on_device.aligned_rows = is_aligned(layers.from.elements.first, kTensorVectorBytes) &&
                           layers.from.row % kVector == 0 && layers.from.image % kVector == 0;
  on_device.aligned_results = is_aligned(layers.to.elements.first, kTensorVectorBytes) && layers.to.row % 4 == 0;
  on_device.from_row = layers.from.row;
  on_device.from_image = layers.from.image;
  on_device.blocks_x = divide_up(x.groups, std::int64_t{tile.column_blocks} * kTensorSide);
  on_device.blocks_y = divide_up(y.groups, std::int64_t{tile.row_blocks} * kTensorSide * tile.steps);
  if (tile.ring_pitch == kTensorNarrowRow + kTensorRowPadding) {
    launch_tensor_stage<Source, kExact, kTensorNarrowRow>(executor, on_device, layers);
  } else {
    launch_tensor_stage<Source, kExact, kTensorWideRow>(executor, on_device, layers);
  }
}

}  // namespace

void run_tensor_stage(CudaExecutor& executor, const FirStage& stage, const Layers& layers, bool exact) {
  if (layers.from.elements.kind == ElementKind::kHalf) return run_stage<__half, false>(executor, stage, layers);
  exact ? run_stage<float, true>(executor, stage, layers) : run_stage<float, false>(executor, stage, layers);
}

}  // namespace cumulus::recursive_filter
