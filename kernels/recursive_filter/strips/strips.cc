#include "kernels/recursive_filter/strips/strips.h"

#include <algorithm>
#include <bit>

#include "kernels/recursive_filter/math/tile_grid.h"
#include "kernels/recursive_filter/tuning.h"

namespace cumulus::recursive_filter {
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
