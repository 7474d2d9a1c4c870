#include <cstdint>
#include <type_traits>

#include "kernels/core/div.h"
#include "kernels/recursive_filter/fir/both_axes.h"
#include "kernels/recursive_filter/fir/interpolate.cuh"
#include "kernels/recursive_filter/fir/launch_blocks.cuh"
#include "kernels/recursive_filter/fir/layers.cuh"
#include "kernels/recursive_filter/fir/sample.cuh"

namespace cumulus::recursive_filter {
namespace {

/// Calls run with the one of these numbers that is `value`, a constant then; with the last one if none is.
template <int kFirst, int... kOthers, class Run>
void run_with(int value, const Run& run) {
  if constexpr (sizeof...(kOthers) > 0) {
    if (value != kFirst) return run_with<kOthers...>(value, run);
  }
  run(std::integral_constant<int, kFirst>());
}

/// What stages that sample and interpolate have in common.
template <class Stage, class Tile>
Stage stage_on_device(const FirStage& stage, const Tile& tile, const Layers& layers) {
  Stage on_device{};
  on_device.y = axis_on_device<float>(stage.y, layers.from.extents.height);
  on_device.x = axis_on_device<float>(stage.x, layers.from.extents.width);
  on_device.tile = tile;
  on_device.channels = static_cast<int>(layers.channels);
  on_device.by_channels = FirDivisor(on_device.channels);
  on_device.by_runs = FirDivisor(tile.runs * on_device.channels);
  on_device.from_row_bytes = row_bytes_of(layers.from);
  on_device.from_image = layers.from.image;
  on_device.to_row = layers.to.row;
  on_device.to_image = layers.to.image;
  return on_device;
}

}  // namespace

void run_sampling(CudaExecutor& executor, const FirStage& stage, const SamplingTile& tile,
                  const Layers& layers) {
  auto on_device = stage_on_device<SamplingStage>(stage, tile, layers);
  const int planes = on_device.x.form.advance * on_device.channels;
  const int groups = tile.runs * kFirRun;
  on_device.by_planes = FirDivisor(planes);
  on_device.by_first_vectors = FirDivisor(tile.first_groups * planes / kSamplingWide);
  on_device.by_vectors = FirDivisor(groups * planes / kSamplingWide);
  on_device.by_result_vectors = FirDivisor(groups * on_device.channels / 4);
  on_device.from_vectors = has_vectors<kSamplingWide>(layers.from, layers.channels);
  const LaunchShape block(1, tile.threads, tile.shared_bytes);
  const std::int64_t blocks = tile.blocks_x * tile.blocks_y;
  const std::int64_t taps = stage.y.has_value() ? divide_up(stage.y->taps, stage.y->advance) : 1;
  const auto run = [&](auto at_once) {
    on_device.chunks = static_cast<int>(divide_up(taps, at_once.value));
    is_of_halves(layers.from) ? launch_blocks<sample_both<__half, at_once.value>, __half, float>(
                                    executor, on_device, blocks, block, layers)
                              : launch_blocks<sample_both<float, at_once.value>, float, float>(
                                    executor, on_device, blocks, block, layers);
  };
  run_with<4, 6, 8, kMaxColumnTaps>(sampling_taps(taps), run);
}

void run_interpolation(CudaExecutor& executor, const FirStage& stage, const InterpolationTile& tile,
                       const Layers& layers) {
  auto on_device = stage_on_device<InterpolationStage>(stage, tile, layers);
  const int groups = tile.runs * kFirRun;
  on_device.by_phases = FirDivisor(on_device.y.form.phases);
  on_device.by_vectors = FirDivisor(groups * on_device.x.form.phases * on_device.channels / 4);
  on_device.to_vectors = has_vectors<4>(layers.to, layers.channels);
  const LaunchShape block(1, tile.threads, tile.shared_bytes);
  const std::int64_t blocks = tile.blocks_x * tile.blocks_y;
  const auto run = [&](auto taps) {
    is_of_halves(layers.to) ? launch_blocks<interpolate_both<__half, taps.value>, float, __half>(
                                  executor, on_device, blocks, block, layers)
                            : launch_blocks<interpolate_both<float, taps.value>, float, float>(
                                  executor, on_device, blocks, block, layers);
  };
  run_with<4, 6, 8, 10, 12, kMaxInterpolationTaps>(interpolation_taps(stage), run);
}

}  // namespace cumulus::recursive_filter
