#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/core/div.h"
#include "kernels/core/launch_slices.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/recursive_filter/fir/columns.cuh"
#include "kernels/recursive_filter/fir/layers.cuh"
#include "kernels/recursive_filter/fir/rows.cuh"

namespace cumulus::recursive_filter {
namespace {

/// Whether four elements may be moved at once wherever a row has as many, or some of them and room behind.
template <class Elements>
bool has_vectors(const Layer<Elements>& layer, std::int64_t channels) {
  constexpr std::uintptr_t kVector = 4;
  const std::uintptr_t bytes =
      kVector * (layer.elements.kind == ElementKind::kHalf ? sizeof(std::uint16_t) : sizeof(float));
  return reinterpret_cast<std::uintptr_t>(layer.elements.first) % bytes == 0 && layer.row % 4 == 0 &&
         layer.image % 4 == 0 && (layer.padded || layer.extents.width * channels % 4 == 0);
}

template <auto kKernel, class From, class To>
void launch_axis(CudaExecutor& executor, const AxisStage& stage, const LaunchShape& block,
                 const Layers& layers) {
  const auto* from = reinterpret_cast<const From*>(layers.from.elements.first);
  auto* to = reinterpret_cast<To*>(layers.to.elements.first);
  const std::int64_t results =
      layers.to.extents.height * layers.to.extents.width * layers.channels * layers.images;
  const std::int64_t blocks = stage.blocks_x * stage.blocks_y * layers.images;
  const std::int64_t first = std::max<std::int64_t>(kFirstResults / divide_up(results, blocks), 1);
  launch_slices(executor, blocks, {.first = first}, [&](std::int64_t begin, std::int64_t end) {
    launch_dependent<kKernel>(executor.stream(), {end - begin, block.threads, block.shared_bytes}, from, to,
                              stage, begin);
  });
}

AxisStage axis_stage(const std::optional<FirPass>& pass, std::int64_t length, const Layers& layers) {
  AxisStage stage{};
  stage.axis = axis_on_device<float>(pass, length);
  stage.channels = static_cast<int>(layers.channels);
  stage.by_channels = FirDivisor(stage.channels);
  stage.by_advance = FirDivisor(stage.axis.form.advance);
  stage.by_phases = FirDivisor(stage.axis.form.phases);
  stage.from_row = layers.from.row;
  stage.from_image = layers.from.image;
  stage.to_row = layers.to.row;
  stage.to_image = layers.to.image;
  return stage;
}

/// Of `results` along y, so many a thread: tall blocks, which few rows beside are read for, if there are
/// enough of them to keep all multiprocessors at work.
void choose_runs(const CudaExecutor& executor, AxisStage& stage, std::int64_t results, int of_thread,
                 const Layers& layers) {
  constexpr std::int64_t kEnough = 8;  // blocks of a multiprocessor
  for (stage.column_runs = kColumnRuns;; stage.column_runs /= 2) {
    stage.blocks_y = divide_up(results, std::int64_t{stage.column_runs} * of_thread);
    const std::int64_t blocks = stage.blocks_x * stage.blocks_y * layers.images;
    if (stage.column_runs == 2 || blocks >= kEnough * executor.numbers().multiprocessors) return;
  }
}

bool run_interpolation(CudaExecutor& executor, const AxisStage& stage, std::int64_t taps,
                       const Layers& layers) {
  const bool is_half = layers.to.elements.kind == ElementKind::kHalf;
  const LaunchShape block(1, kColumnVectors * stage.column_runs);
  const auto run = [&](auto most) {
    is_half
        ? launch_axis<interpolate_columns<__half, most.value>, float, __half>(executor, stage, block, layers)
        : launch_axis<interpolate_columns<float, most.value>, float, float>(executor, stage, block, layers);
    return true;
  };
  if (taps <= 4) return run(std::integral_constant<int, 4>());
  if (taps <= 6) return run(std::integral_constant<int, 6>());
  if (taps <= 8) return run(std::integral_constant<int, 8>());
  if (taps <= 10) return run(std::integral_constant<int, 10>());
  if (taps <= 12) return run(std::integral_constant<int, 12>());
  return taps <= 20 && run(std::integral_constant<int, 20>());
}

bool run_columns(CudaExecutor& executor, const FirPass& pass, const Layers& layers) {
  AxisStage stage = axis_stage(pass, layers.from.extents.height, layers);
  const bool from_vectors = has_vectors(layers.from, layers.channels);
  stage.from_vectors = from_vectors;
  stage.to_vectors = has_vectors(layers.to, layers.channels);
  stage.numbers = layers.to.extents.width * layers.channels;
  stage.blocks_x = divide_up(stage.numbers, std::int64_t{4 * kColumnVectors});
  const std::int64_t units = layers.from.extents.height * (layers.from.row / (from_vectors ? 4 : 1));
  if (units > std::numeric_limits<int>::max()) return false;
  if (pass.phases > 1) {
    choose_runs(executor, stage, stage.axis.form.groups, kColumnGroups, layers);
    return from_vectors && layers.from.elements.kind == ElementKind::kFloat &&
           run_interpolation(executor, stage, pass.taps, layers);
  }
  if (!stage.to_vectors || layers.to.elements.kind != ElementKind::kFloat) return false;
  stage.pairs = static_cast<int>(divide_up(pass.taps, pass.advance * kColumnTaps));
  choose_runs(executor, stage, stage.axis.out_length, kFirRun, layers);
  const LaunchShape block(1, kColumnVectors * stage.column_runs);
  if (layers.from.elements.kind == ElementKind::kFloat) {
    from_vectors ? launch_axis<sum_columns<float, true>, float, float>(executor, stage, block, layers)
                 : launch_axis<sum_columns<float, false>, float, float>(executor, stage, block, layers);
  } else {
    from_vectors ? launch_axis<sum_columns<__half, true>, __half, float>(executor, stage, block, layers)
                 : launch_axis<sum_columns<__half, false>, __half, float>(executor, stage, block, layers);
  }
  return true;
}

bool run_rows(CudaExecutor& executor, const FirPass& pass, const Layers& layers) {
  if (layers.from.elements.kind != ElementKind::kFloat || layers.to.elements.kind != ElementKind::kFloat ||
      !has_vectors(layers.to, layers.channels)) {
    return false;
  }
  AxisStage stage = axis_stage(pass, layers.from.extents.width, layers);
  const FirForm& form = stage.axis.form;
  stage.runs = kRowRuns / stage.channels;
  stage.plane = stage.runs * kFirRun + form.tap_groups();
  if (stage.plane % 8 == 0) stage.plane += 4;  // neighbouring planes' numbers in different banks
  stage.pitch = RowBlock::pitch_of(stage.plane * form.advance * stage.channels + 1);
  stage.from_vectors = has_vectors(layers.from, stage.channels);
  const int results = RowBlock::pitch_of(RowBlock::row_numbers(stage.runs, form, stage.channels));
  const std::size_t shared_bytes =
      static_cast<std::size_t>(kRowLines * (stage.pitch + results)) * sizeof(float);
  if (shared_bytes > executor.numbers().block_shared_bytes) return false;
  stage.rows = layers.to.extents.height;
  stage.blocks_x = divide_up(form.groups, std::int64_t{stage.runs} * kFirRun);
  stage.blocks_y = divide_up(stage.rows, std::int64_t{kRowLines});
  launch_axis<filter_rows, float, float>(executor, stage, {1, kRowThreads, shared_bytes}, layers);
  return true;
}

}  // namespace

bool run_axis_stage(CudaExecutor& executor, const FirStage& stage, const Layers& layers) {
  if (stage.x.has_value() == stage.y.has_value()) return false;
  return stage.x.has_value() ? run_rows(executor, *stage.x, layers) : run_columns(executor, *stage.y, layers);
}

}  // namespace cumulus::recursive_filter
