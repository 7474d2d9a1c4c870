#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/cuda_executor.h"
#include "kernels/core/device_numbers.h"
#include "kernels/recursive_filter/images.h"
#include "kernels/recursive_filter/math/axis_plan.h"
#include "kernels/recursive_filter/math/tile_grid.h"

// Truncated windows in one pass (strips/filter.cuh): a block has a strip, which is a column of tiles, or a
// segment of one, and goes down it. All blocks of a launch are resident.

namespace cumulus::recursive_filter {

class PlannedFilter;
struct StripsPlan;

/// Blocks that a GPU holds at once, one on a multiprocessor; 0 where it has too little shared memory for
/// that, or too few multiprocessors for any image, or runs code for compute capabilities before 9.0.
int strip_blocks(const DeviceNumbers& device);

/// Whether strips continue the image as its boundaries do: in a mirror or around the image, where tiles are
/// whole and no pixel is left out.
bool strips_serve(const AxisPlan& y, const AxisPlan& x);

/// How images are divided among launches and blocks: columns of tiles, in panels where they are too
/// many to be resident, then segments of their height, then images.
struct StripDivision {
  int panel_columns;  // stored by one launch
  int segments;
  int segment_tiles;
  std::int64_t images_at_once;
  int state_slots;

  /// `window_x` tiles on either side of a panel are filtered with it. `blocks`: strip_blocks, not 0.
  StripDivision(const FilterTiles& tiles, std::int64_t images, std::int64_t window_x, int blocks);
};

template <class T>
void filter_in_strips(CudaExecutor& executor, const FilterImages<const T, Space::kDevice>& images,
                      const PlannedFilter& filter, const StripsPlan& plan,
                      const FilterImages<T, Space::kDevice>& filtered);

}  // namespace cumulus::recursive_filter
