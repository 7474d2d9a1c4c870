#include "kernels/recursive_filter/windows/schedule.h"

#include <algorithm>

namespace cumulus::recursive_filter {

WindowSchedule plan_schedule(std::int64_t height, std::int64_t row_bytes, std::int64_t state_bytes,
                             std::int64_t images, const AxisPlan& y, const Windows& windows) {
  const std::int64_t rows = (height + kTile - 1) / kTile;
  const std::int64_t image_bytes = height * row_bytes;
  if (image_bytes <= kImageBytesAtOnce) {
    return {std::min(images, std::max<std::int64_t>(1, kImageBytesAtOnce / image_bytes)), {rows, 0, 0, rows}};
  }
  // As many rows of tiles' states as fit into the output behind those rows; but states that the rows
  // behind them read are in scratch memory all the same.
  const std::int64_t last_filtered =
      std::max<std::int64_t>(0, (image_bytes - kStateAlignment) / (state_bytes + kTile * row_bytes));
  const std::int64_t first = y.needs_runs() ? std::min(windows.y + 1, rows) : 0;
  const std::int64_t end = std::max(first, last_filtered - windows.y);
  return {1, {rows, first, end, last_filtered}};
}

}  // namespace cumulus::recursive_filter
