#include "kernels/recursive_filter/exact_strips/exact_strips.h"

#include "kernels/core/cuda_executor.h"
#include "kernels/recursive_filter/planned_filter.h"
#include "kernels/recursive_filter/tuning.h"

namespace cumulus::recursive_filter {

ExactStripDivision::ExactStripDivision(std::int64_t height, std::int64_t width, int strip_blocks)
    : tile_rows(static_cast<int>((height + kTile - 1) / kTile)),
      strips(static_cast<int>((width + kTile - 1) / kTile)) {
  strips_of_block = strip_blocks == 0 ? 0 : (strips + strip_blocks - 1) / strip_blocks;
  // Zero-state responses and carries, in both directions.
  const auto words_of_row = std::int64_t{4} * kTile * strips;
  state_rows = kMaxExactStateRows;
  while (state_rows > 0 &&
         state_rows * words_of_row > static_cast<std::int64_t>(CudaExecutor::kWideStatusWords)) {
    state_rows /= 2;
  }
}

namespace {

/// Tiles spread their work over more blocks, and their kernels have no ring to fill.
bool is_faster_than_tiles(const ExactStripDivision& division, int strip_blocks) {
  const std::int64_t most = std::int64_t{division.strips_of_block} * strip_blocks;
  return division.tile_rows >= kMinExactTileRows && 4 * std::int64_t{division.strips} >= 3 * most;
}
bool serves(const AxisPlan& plan) {
  return plan.order <= kMaxExactStripOrder && !plan.needs_runs() && !has_zero_gain(plan);
}

}  // namespace

bool exact_strips_serve(const FilterAxes& axes, const ExactStripDivision& division, int strip_blocks) {
  const bool fits = division.strips_of_block > 0 && division.strips_of_block <= kMaxStripsOfBlock &&
                    division.state_rows >= kMinExactStateRows;
  return fits && serves(axes.y) && serves(axes.x) && is_faster_than_tiles(division, strip_blocks);
}

}  // namespace cumulus::recursive_filter
