#include "kernels/recursive_filter/exact_strips/exact_strips.h"

#include <algorithm>

#include "kernels/recursive_filter/method.h"
#include "kernels/recursive_filter/strips/strips.h"

namespace cumulus::recursive_filter {

ExactStripDivision::ExactStripDivision(std::int64_t height, std::int64_t width)
    : tile_rows(static_cast<int>((height + kTile - 1) / kTile)),
      strips(static_cast<int>((width + kTile - 1) / kTile)) {
  const int most = strip_blocks();
  strips_of_block = most == 0 ? 0 : (strips + most - 1) / most;
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
bool is_faster_than_tiles(const ExactStripDivision& division) {
  const std::int64_t most = std::int64_t{division.strips_of_block} * strip_blocks();
  return division.tile_rows >= kMinExactTileRows && 4 * std::int64_t{division.strips} >= 3 * most;
}
bool serves(const AxisPlan& plan) {
  return plan.order <= kMaxExactStripOrder && !plan.needs_runs() && !has_zero_gain(plan);
}

}  // namespace

std::shared_ptr<const RecursiveFilterPlan> plan_exact_strips(const RecursiveFilter& filter,
                                                             const RecursiveFilterPlan& plan) {
  if (!serves(plan.y) || !serves(plan.x)) return nullptr;
  const ExactStripDivision division(plan.y.length, plan.x.length);
  const bool fits = division.strips_of_block > 0 && division.strips_of_block <= kMaxStripsOfBlock &&
                    division.state_rows >= kMinExactStateRows;
  if (!fits || !is_faster_than_tiles(division)) return nullptr;
  const auto exact = std::make_shared<RecursiveFilterPlan>(plan);
  exact->constants = std::make_shared<KernelConstants>();
  if (direct_form_serves(plan.y, plan.x)) use_direct_form(filter, *exact);
  return exact;
}

}  // namespace cumulus::recursive_filter
