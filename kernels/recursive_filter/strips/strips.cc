#include "kernels/recursive_filter/strips/strips.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <utility>

#include "kernels/recursive_filter/math/tile_grid.h"
#include "kernels/recursive_filter/tuning.h"

namespace cumulus::recursive_filter {
namespace {

using Real = long double;

/// In direct form the pair keeps a part of each pixel's rounding error. A pair that hardly depends on its
/// last output does not determine the one before.
bool direct_form_serves(const DirectionPlan& plan) {
  constexpr Real kMinSecond = 0.25L;
  constexpr Real kMaxKept = 4;
  constexpr int kPixels = 1024;  // longer than any decay length in float
  const auto& pair = plan.sections.pairs[0];
  if (std::abs(pair.second) < kMinSecond) return false;
  const PairDirectForm<Real> form = direct_form_of(pair);
  Real kept = 0;
  Real before = 0;
  Real last = 1;
  for (int pixel = 0; pixel < kPixels; ++pixel) {
    kept += std::abs(last);
    before = std::exchange(last, form.last * last + form.before * before);
  }
  const Real half_sum = form.last / 2;
  const std::complex<Real> root = std::sqrt(std::complex<Real>(half_sum * half_sum + form.before));
  const Real radius =
      std::max({std::abs(half_sum + root), std::abs(half_sum - root), std::abs(plan.sections.single)});
  return kept * (1 - radius) <= kMaxKept;
}
bool direct_form_serves(const AxisPlan& plan) {
  return plan.identity || (direct_form_serves(plan.causal) && direct_form_serves(plan.anticausal));
}

}  // namespace

bool direct_form_serves(const AxisPlan& y, const AxisPlan& x) {
  return y.order == 3 && direct_form_serves(y) && direct_form_serves(x);
}

bool strips_serve(const AxisPlan& y, const AxisPlan& x) {
  if (y.order > kMaxStripOrder || x.boundary == FilterBoundary::kMirror) return false;
  if (x.needs_runs() && (x.length % kTile != 0 || x.length <= kMaxStripWindow * kTile)) return false;
  return !has_zero_gain(y) && !has_zero_gain(x);
}

int strip_blocks(const DeviceNumbers& device) {
  constexpr int kMaxChannels = 4;
  const bool suffices = device.architecture >= 90 && device.block_shared_bytes >= kStripSharedBytes &&
                        device.multiprocessors >= kMaxChannels * (2 * kMaxStripWindow + 1);
  if (!suffices) return 0;
  constexpr int kWords = kStripStateSlots * 2 * tagged_words(kMaxStripOrder) * kTile;
  constexpr int kBlocksWithWords = static_cast<int>(CudaExecutor::kWideStatusWords) / kWords;
  return std::min(device.multiprocessors, kBlocksWithWords);
}

StripDivision::StripDivision(const FilterTiles& tiles, std::int64_t images, std::int64_t window_x,
                             int blocks) {
  const auto of_row = static_cast<int>(tiles.channels);
  const auto columns = static_cast<int>(tiles.columns);
  const auto rows = static_cast<int>(tiles.rows);
  if (columns * of_row <= blocks) {
    const int shares = blocks / (columns * of_row);
    panel_columns = columns;
    segment_tiles = (rows + shares - 1) / shares;
    segments = (rows + segment_tiles - 1) / segment_tiles;
    images_at_once = std::min<std::int64_t>(images, shares / segments);
  } else {
    const int halo = 2 * static_cast<int>(window_x);
    const int fits = blocks / of_row - halo;
    const int panels = (columns + fits - 1) / fits;
    panel_columns = (columns + panels - 1) / panels;
    segments = 1;
    segment_tiles = rows;
    images_at_once = 1;
  }
  state_slots =
      static_cast<int>(std::bit_ceil(static_cast<unsigned int>(std::min(kStripStateSlots, segment_tiles))));
}

}  // namespace cumulus::recursive_filter
