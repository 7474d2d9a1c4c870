#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/cuda_executor.h"
#include "kernels/recursive_filter/images.h"
#include "kernels/recursive_filter/math/axis_plan.h"

// The decaying method in one pass (strips/filter.cuh): every block has a column of tiles, a strip, or a part
// of one, and walks down it. All blocks of a launch are on the device at once.

namespace cumulus::recursive_filter {

struct RecursiveFilterPlan;

/// Blocks that every GPU of this machine can hold at once, one on a multiprocessor; 0 where one of them has
/// too little shared memory for that, or too few multiprocessors for any image.
int strip_blocks();

/// Whether strips continue the image as its boundaries do: in a mirror or around the image, where tiles are
/// whole and no pixel is left out.
bool strips_serve(const AxisPlan& y, const AxisPlan& x);

/// Whether strips run the pair of three poles, along both axes of a plan in float, over its last two outputs:
/// where rounding then errs by no more than about a half of what recursive_filter.h promises.
bool runs_by_outputs(const AxisPlan& y, const AxisPlan& x);
/// Makes a plan of that filter do so.
void run_by_outputs(const RecursiveFilter& filter, RecursiveFilterPlan& plan);

/// How images are divided among launches and strip_blocks(): columns of tiles, in panels where they are too
/// many to be there at once, then parts of their height, then images.
struct StripDivision {
  int panel_columns;  // stored by one launch
  int segments;
  int segment_tiles;
  std::int64_t images_at_once;
  int state_slots;

  StripDivision(std::int64_t height, std::int64_t width, std::int64_t channels, std::int64_t images,
                const RecursiveFilterPlan& plan);
};

/// Filters by a plan for strips.
template <class T>
void filter_in_strips(CudaExecutor& executor, const FilterImages<const T, Space::kDevice>& images,
                      const RecursiveFilterPlan& plan, const FilterImages<T, Space::kDevice>& filtered);

}  // namespace cumulus::recursive_filter
