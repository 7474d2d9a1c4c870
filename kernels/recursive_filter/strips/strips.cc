#include "kernels/recursive_filter/strips/strips.h"

#include <algorithm>
#include <bit>

#include "kernels/core/div.h"
#include "kernels/recursive_filter/tuning.h"

namespace cumulus::recursive_filter {
bool strips_serve(const AxisPlan& y, const AxisPlan& x) {
  if (y.order > kMaxStripOrder || x.boundary == FilterBoundary::kMirror) return false;
  if (x.needs_runs() && (x.length % kTile != 0 || x.length <= kMaxStripWindow * kTile)) return false;
  return !has_zero_gain(y) && !has_zero_gain(x);
}

int strip_blocks(const DeviceNumbers& device) {
  constexpr int kLongestWindow = kMaxStripWindowTiles<kMaxStripChannels>;
  const bool suffices = device.architecture >= 90 && device.block_shared_bytes >= kStripSharedBytes &&
                        device.multiprocessors > 2 * kLongestWindow;
  if (!suffices) return 0;
  constexpr int kLines = kColourTile * kMaxStripChannels;
  constexpr int kWords = kStripStateSlots * 2 * tagged_words(kMaxStripOrder) * kLines;
  constexpr int kBlocksWithWords = static_cast<int>(CudaExecutor::kWideStatusWords) / kWords;
  return std::min(device.multiprocessors, kBlocksWithWords);
}

StripGrid::StripGrid(std::int64_t height, std::int64_t width, std::int64_t channels,
                     const Windows::OfStrips& windows) {
  const int side = strip_tile_side(channels);
  rows = static_cast<int>(divide_up(height, side));
  columns = static_cast<int>(divide_up(width, side));
  window_y = static_cast<int>(windows.y) * (kTile / side);
  window_x = static_cast<int>(windows.x) * (kTile / side);
}

StripDivision::StripDivision(const StripGrid& grid, std::int64_t images, bool repeats, int blocks) {
  if (grid.columns <= blocks) {
    const int shares = blocks / grid.columns;
    panel_columns = grid.columns;
    segment_tiles = divide_up(grid.rows, shares);
    segments = divide_up(grid.rows, segment_tiles);
    images_at_once = std::min<std::int64_t>(images, shares / segments);
  } else {
    // Of two panels, each goes on at one side only, unless the image repeats.
    const bool two = !repeats && (grid.columns + 1) / 2 + grid.window_x <= blocks;
    const int fits = blocks - 2 * grid.window_x;
    const int panels = two ? 2 : divide_up(grid.columns, fits);
    panel_columns = divide_up(grid.columns, panels);
    segments = 1;
    segment_tiles = grid.rows;
    images_at_once = 1;
  }
  state_slots =
      static_cast<int>(std::bit_ceil(static_cast<unsigned int>(std::min(kStripStateSlots, segment_tiles))));
}

}  // namespace cumulus::recursive_filter
