#include "kernels/recursive_filter/recursive_filter_strips.h"

#include <algorithm>
#include <bit>

#include "kernels/recursive_filter/recursive_filter_scratch.h"

namespace cumulus::recursive_filter {

bool strips_serve(const AxisPlan& y, const AxisPlan& x) {
  if (y.order > kMostStripOrder || x.boundary == FilterBoundary::kMirror) return false;
  if (x.needs_runs() && (x.length % kTile != 0 || x.length <= kMostStripWindow * kTile)) return false;
  return !loses_all(y) && !loses_all(x);
}

StripDivision::StripDivision(std::int64_t height, std::int64_t width, std::int64_t channels,
                             std::int64_t images, const RecursiveFilterPlan& plan)
    : state_lines(2 * tagged_words(plan.order)) {
  const FilterTiles tiles(height, width, channels);
  const auto of_row = static_cast<int>(tiles.channels);
  const auto columns = static_cast<int>(tiles.columns);
  const auto rows = static_cast<int>(tiles.rows);
  const int most = strip_blocks();
  if (columns * of_row <= most) {
    const int shares = most / (columns * of_row);
    panel_columns = columns;
    segment_tiles = (rows + shares - 1) / shares;
    segments = (rows + segment_tiles - 1) / segment_tiles;
    images_at_once = std::min<std::int64_t>(images, shares / segments);
  } else {
    const int halo = 2 * static_cast<int>(plan.windows->of_strips->x);
    const int fits = most / of_row - halo;
    const int panels = (columns + fits - 1) / fits;
    panel_columns = (columns + panels - 1) / panels;
    segments = 1;
    segment_tiles = rows;
    images_at_once = 1;
  }
  state_slots =
      static_cast<int>(std::bit_ceil(static_cast<unsigned int>(std::min(kStripStateSlots, segment_tiles))));
}

#if !CUMULUS_WITH_CUDA
int strip_blocks() { return 0; }
#endif

}  // namespace cumulus::recursive_filter
