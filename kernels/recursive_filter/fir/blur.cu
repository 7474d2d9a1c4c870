#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <variant>

#include "kernels/core/cuda_error.h"
#include "kernels/core/div.h"
#include "kernels/core/launch_slices.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/recursive_filter/check.h"
#include "kernels/recursive_filter/fir/blur.h"
#include "kernels/recursive_filter/fir/direct.cuh"
#include "kernels/recursive_filter/fir/large_steps.cuh"
#include "kernels/recursive_filter/fir/layers.cuh"
#include "kernels/recursive_filter/fir/stage.cuh"
#include "kernels/recursive_filter/gpu/elements.cuh"
#include "kernels/recursive_filter/method.h"

namespace cumulus {
namespace {

using namespace recursive_filter;

constexpr std::int64_t kFirstResultsOfLargeSteps = std::int64_t{1} << 24;

template <class Real, int kRow>
void launch_stage(CudaExecutor& executor, const FirStageOnDevice<Real>& stage, const Layers& layers) {
  const std::int64_t results =
      layers.to.extents.height * layers.to.extents.width * layers.channels * layers.images;
  const std::int64_t blocks = stage.blocks_x * stage.blocks_y * layers.images;
  const std::int64_t first = std::max<std::int64_t>(kFirstResults / divide_up(results, blocks), 1);
  launch_slices(executor, blocks, {.first = first}, [&](std::int64_t begin, std::int64_t end) {
    launch_dependent<filter_stage<Real, kRow + 1>>(executor.stream(),
                                                   {end - begin, stage.tile.threads, stage.tile.shared_bytes},
                                                   layers.from.elements, layers.to.elements, stage, begin);
  });
}

template <class Real>
void run_stage(CudaExecutor& executor, const FirStage& stage, const FirTile& tile, const Layers& layers) {
  FirStageOnDevice<Real> on_device;
  on_device.y = axis_on_device<Real>(stage.y, layers.from.extents.height);
  on_device.x = axis_on_device<Real>(stage.x, layers.from.extents.width);
  const FirForm& y = on_device.y.form;
  const FirForm& x = on_device.x.form;
  const int channels = static_cast<int>(layers.channels);
  on_device.tile = tile;
  on_device.channels = channels;
  on_device.numbers_in = (tile.column_groups + x.tap_groups() - 1) * x.advance * channels;
  on_device.numbers_out = FirDivisor(tile.column_groups * x.phases * channels);
  on_device.runs_x = tile.column_groups / kFirRun * channels;
  on_device.by_advance_y = FirDivisor(y.advance);
  on_device.by_ring_groups = FirDivisor(tile.ring_groups);
  on_device.from_row = layers.from.row;
  on_device.from_image = layers.from.image;
  on_device.to_row = layers.to.row;
  on_device.to_image = layers.to.image;
  on_device.blocks_x = divide_up(x.groups, std::int64_t{tile.column_groups});
  on_device.blocks_y = divide_up(y.groups, std::int64_t{tile.step_groups} * tile.steps);
  if (tile.ring_pitch == kFirNarrowRow + 1) {
    launch_stage<Real, kFirNarrowRow>(executor, on_device, layers);
  } else {
    launch_stage<Real, kFirWideRow>(executor, on_device, layers);
  }
}

DirectAxis direct_axis(const FirPass& pass, const DirectTaps& taps) {
  DirectAxis axis{};
  axis.boundary = pass.boundary;
  axis.in_length = pass.in_length;
  axis.out_length = pass.out_length;
  axis.first = pass.first - taps.front;
  axis.chunks = taps.chunks;
  for (std::int64_t tap = 0; tap < pass.taps; ++tap) {
    const std::int64_t at = taps.front + tap;
    axis.weights[at / kDirectTaps].values[at % kDirectTaps] = static_cast<float>(pass.weights[tap]);
  }
  return axis;
}

template <class T, int kChannels, int kNumbers>
void launch_direct(CudaExecutor& executor, const DirectStage& stage, const Layers& layers) {
  const T* from = reinterpret_cast<const T*>(layers.from.elements.first);
  T* to = reinterpret_cast<T*>(layers.to.elements.first);
  const std::int64_t blocks = stage.tile.blocks_x * stage.tile.blocks_y * layers.images;
  const std::int64_t first = std::max<std::int64_t>(kFirstResults / (stage.tile.block_rows * kNumbers), 1);
  launch_slices(executor, blocks, {.first = first}, [&](std::int64_t begin, std::int64_t end) {
    launch_dependent<filter_direct<T, kChannels, kNumbers>>(
        executor.stream(), {end - begin, direct_threads(kNumbers), stage.tile.shared_bytes}, from, to, stage,
        begin);
  });
}

template <class T, int kChannels>
void launch_direct(CudaExecutor& executor, const DirectStage& stage, const Layers& layers) {
  stage.tile.numbers == kDirectFewNumbers
      ? launch_direct<T, kChannels, kDirectFewNumbers>(executor, stage, layers)
      : launch_direct<T, kChannels, kDirectManyNumbers>(executor, stage, layers);
}

/// In blocks of `tile`.
template <class T>
void run_direct(CudaExecutor& executor, const FirStage& stage, const DirectTile& tile, const Layers& layers) {
  constexpr std::int64_t kVector = 4;
  const std::int64_t channels = layers.channels;
  DirectStage on_device;
  on_device.y = direct_axis(*stage.y, direct_taps_y(*stage.y));
  on_device.x = direct_axis(*stage.x, direct_taps_x(*stage.x));
  on_device.tile = tile;
  on_device.from_row = layers.from.row;
  on_device.from_image = layers.from.image;
  on_device.to_row = layers.to.row;
  on_device.to_image = layers.to.image;
  const auto address = reinterpret_cast<std::uintptr_t>(layers.from.elements.first);
  on_device.aligned = address % (kVector * sizeof(T)) == 0 && layers.from.row % kVector == 0 &&
                      layers.from.image % kVector == 0;
  if (channels == 1) return launch_direct<T, 1>(executor, on_device, layers);
  if (channels == 2) return launch_direct<T, 2>(executor, on_device, layers);
  if (channels == 3) return launch_direct<T, 3>(executor, on_device, layers);
  launch_direct<T, 4>(executor, on_device, layers);
}

/// Of a stage along one axis.
template <class Real>
void run_large_step(CudaExecutor& executor, const FirStage& stage, const Layers& layers) {
  const bool along_x = stage.x.has_value();
  const FirPass& pass = along_x ? *stage.x : *stage.y;
  DevicePass on_device{pass.boundary, pass.in_length, pass.phases, pass.advance, pass.first, pass.taps,
                       pass.sigma,    pass.centre,    pass.scale,  along_x,      false,      {}};
  on_device.is_given = pass.weights.size() <= kFirWeights;
  if (on_device.is_given) std::copy(pass.weights.begin(), pass.weights.end(), on_device.weights);
  const PassExtents extents{layers.to.extents.height, layers.to.extents.width, layers.images,
                            layers.channels,          layers.from.row,         layers.from.image};
  constexpr std::int64_t kBlockResults = std::int64_t{kLargeStepThreads} * kLargeStepResults;
  const std::int64_t results = extents.images * extents.height * extents.width * extents.channels;
  launch_slices(executor, divide_up(results, kBlockResults),
                {.first = kFirstResultsOfLargeSteps / kBlockResults},
                [&](std::int64_t begin, std::int64_t end) {
                  launch(executor.stream(), filter_any_step<Real>, {end - begin, kLargeStepThreads},
                         layers.from.elements, layers.to.elements, on_device, extents, begin);
                });
}

/// A stage, by the kernel that was chosen for it.
template <class Real>
struct StageRun {
  CudaExecutor& executor;
  const FirStage& stage;
  const Layers& layers;

  void operator()(const DirectPlan& plan) const {
    layers.from.elements.kind == ElementKind::kHalf ? run_direct<__half>(executor, stage, plan.tile, layers)
                                                    : run_direct<float>(executor, stage, plan.tile, layers);
  }
  void operator()(const RingPlan& plan) const { run_stage<Real>(executor, stage, plan.tile, layers); }
  void operator()(const OneAxisPlan& /*plan*/) const { run_axis_stage(executor, stage, layers); }
  void operator()(const SamplingPlan& plan) const { run_sampling(executor, stage, plan.tile, layers); }
  void operator()(const InterpolationPlan& plan) const {
    run_interpolation(executor, stage, plan.tile, layers);
  }
  void operator()(const LargeStepPlan& /*plan*/) const { run_large_step<Real>(executor, stage, layers); }
};

}  // namespace

template <class T>
void fir_gaussian_blur(CudaExecutor& executor, FilterImages<const T, Space::kDevice> images,
                       const FirBlur& blur, FilterImages<T, Space::kDevice> blurred) {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  check_views(images, blurred);
  check_fir_blur(blur);
  const DeviceImage<const T>& shape = images.first;
  const FirExtents extents{shape.height, shape.width};
  const FirPlan plan = choose(blur, images_shape(images), executor.numbers());
  const bool large_steps = std::holds_alternative<LargeStepPlan>(plan.kernels.front());
  const DeviceSpan<Real> even = executor.scratch<Real>(static_cast<std::size_t>(plan.scratch.even));
  const DeviceSpan<Real> odd = executor.scratch<Real>(static_cast<std::size_t>(plan.scratch.odd));
  executor.bind_thread();
  Layers layers{{source_elements(shape.data), extents, shape.row_stride, images.image_stride, false},
                {},
                images.count,
                shape.channels};
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    executor.check_interrupt();
    layers.to.extents = extents_after(plan.stages[i], layers.from.extents);
    const std::int64_t numbers = layers.to.extents.width * shape.channels;
    const bool is_last = i + 1 == plan.stages.size();
    layers.to.row = is_last || large_steps ? numbers : divide_up(numbers, kFirDeviceRow) * kFirDeviceRow;
    layers.to.image = layers.to.extents.height * layers.to.row;
    layers.to.padded = !is_last && !large_steps;
    layers.to.elements =
        is_last ? target_elements(blurred.first.data) : target_elements((i % 2 == 0 ? even : odd).data());
    std::visit(StageRun<Real>{executor, plan.stages[i], layers}, plan.kernels[i]);
    layers.from = {read_only(layers.to.elements), layers.to.extents, layers.to.row, layers.to.image,
                   layers.to.padded};
  }
}

#define CUMULUS_INSTANTIATE(T)                                                                             \
  template void fir_gaussian_blur<T>(CudaExecutor&, FilterImages<const T, Space::kDevice>, const FirBlur&, \
                                     FilterImages<T, Space::kDevice>);
CUMULUS_INSTANTIATE(float)
CUMULUS_INSTANTIATE(Float16)
CUMULUS_INSTANTIATE(double)
#undef CUMULUS_INSTANTIATE

}  // namespace cumulus
