#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "kernels/core/cuda_executor.h"
#include "kernels/recursive_filter/design.h"
#include "kernels/recursive_filter/images.h"
#include "kernels/recursive_filter/math/axis_plan.h"

// The tiled method in two kernels, for large images of floats of one channel: the first reads the image
// and writes the column suffix state of each tile (exact_strips/column_suffixes.cuh), the second filters
// (exact_strips/filter.cuh).

namespace cumulus::recursive_filter {

struct RecursiveFilterPlan;

/// How an image is divided among strip_blocks().
struct ExactStripDivision {
  int tile_rows, strips;
  int strips_of_block;  // neighbouring
  int state_rows;       // rows of tiles whose published states are kept

  ExactStripDivision(std::int64_t height, std::int64_t width);
  int blocks() const { return (strips + strips_of_block - 1) / strips_of_block; }
};

/// A plan of its own for such images; null where tiles are faster, or where it cannot be done. Of a plan in
/// single precision.
std::shared_ptr<const RecursiveFilterPlan> plan_exact_strips(const RecursiveFilter& filter,
                                                             const RecursiveFilterPlan& plan);

/// Whether TMA can copy images of T, if they begin at a multiple of 16 bytes, as all that the device
/// allocates does.
template <class T, Space S>
bool tma_serves(const FilterImages<T, S>& images) {
  if constexpr (std::is_same_v<std::remove_const_t<T>, float>) {
    constexpr std::int64_t kFloats = 4;  // 16 bytes
    return images.first.channels == 1 && images.first.width % kFloats == 0 &&
           images.first.row_stride % kFloats == 0 && images.image_stride % kFloats == 0;
  } else {
    return false;
  }
}

/// Filters by a plan of plan_exact_strips. Throws std::invalid_argument where images begin elsewhere than at
/// a multiple of 16 bytes.
void filter_in_exact_strips(CudaExecutor& executor, const FilterImages<const float, Space::kDevice>& images,
                            const RecursiveFilterPlan& plan,
                            const FilterImages<float, Space::kDevice>& filtered);

}  // namespace cumulus::recursive_filter
