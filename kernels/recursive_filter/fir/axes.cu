#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "kernels/core/div.h"
#include "kernels/recursive_filter/fir/columns.cuh"
#include "kernels/recursive_filter/fir/launch_blocks.cuh"
#include "kernels/recursive_filter/fir/layers.cuh"
#include "kernels/recursive_filter/fir/rows.cuh"

namespace cumulus::recursive_filter {
namespace {

AxisStage axis_stage(const std::optional<FirPass>& pass, std::int64_t length, const Layers& layers) {
  AxisStage stage{};
  stage.axis = axis_on_device<float>(pass, length);
  stage.channels = static_cast<int>(layers.channels);
  stage.by_channels = FirDivisor(stage.channels);
  stage.from_row = layers.from.row;
  stage.from_image = layers.from.image;
  stage.to_row = layers.to.row;
  stage.to_image = layers.to.image;
  stage.from_row_bytes = row_bytes_of(layers.from);
  stage.from_vectors = has_vectors<4>(layers.from, layers.channels);
  stage.to_vectors = has_vectors<4>(layers.to, layers.channels);
  return stage;
}

/// Tall blocks, which few rows beside are read for, if there are enough of them to keep all multiprocessors
/// at work.
void choose_runs(const CudaExecutor& executor, AxisStage& stage, const Layers& layers) {
  constexpr std::int64_t kEnough = 8;  // blocks of a multiprocessor
  for (stage.column_runs = kColumnRuns;; stage.column_runs /= 2) {
    stage.blocks_y = divide_up(stage.axis.out_length, std::int64_t{stage.column_runs} * kFirRun);
    const std::int64_t blocks = stage.blocks_x * stage.blocks_y * layers.images;
    if (stage.column_runs == 2 || blocks >= kEnough * executor.numbers().multiprocessors) return;
  }
}

template <class T>
void run_columns(CudaExecutor& executor, const FirPass& pass, const Layers& layers) {
  AxisStage stage = axis_stage(pass, layers.from.extents.height, layers);
  stage.numbers = layers.to.extents.width * layers.channels;
  stage.blocks_x = divide_up(stage.numbers, std::int64_t{4 * kColumnVectors});
  stage.chunks = static_cast<int>(divide_up(pass.taps, std::int64_t{kColumnTaps}));
  choose_runs(executor, stage, layers);
  launch_blocks<sum_columns<T>, T, T>(executor, stage, stage.blocks_x * stage.blocks_y,
                                      {1, kColumnVectors * stage.column_runs}, layers);
}

template <class T>
void run_rows(CudaExecutor& executor, const FirPass& pass, const Layers& layers) {
  AxisStage stage = axis_stage(pass, layers.from.extents.width, layers);
  const FirForm& form = stage.axis.form;
  stage.runs = kRowRuns / stage.channels;
  stage.plane = shared_plane_pitch(stage.runs * kFirRun + form.tap_groups());
  stage.pitch = shared_row_pitch(stage.plane * stage.channels + 1);
  const int results = shared_row_pitch(RowBlock<T>::row_numbers(stage.runs, stage.channels));
  const std::size_t shared_bytes =
      static_cast<std::size_t>(kRowLines * (stage.pitch + results)) * sizeof(float);
  stage.rows = layers.to.extents.height;
  stage.blocks_x = divide_up(form.groups, std::int64_t{stage.runs} * kFirRun);
  stage.blocks_y = divide_up(stage.rows, std::int64_t{kRowLines});
  launch_blocks<filter_rows<T>, T, T>(executor, stage, stage.blocks_x * stage.blocks_y,
                                      {1, kRowBlockThreads, shared_bytes}, layers);
}

template <class T>
void run_axis(CudaExecutor& executor, const FirStage& stage, const Layers& layers) {
  stage.x.has_value() ? run_rows<T>(executor, *stage.x, layers) : run_columns<T>(executor, *stage.y, layers);
}

}  // namespace

void run_axis_stage(CudaExecutor& executor, const FirStage& stage, const Layers& layers) {
  is_of_halves(layers.from) ? run_axis<__half>(executor, stage, layers)
                            : run_axis<float>(executor, stage, layers);
}

}  // namespace cumulus::recursive_filter
