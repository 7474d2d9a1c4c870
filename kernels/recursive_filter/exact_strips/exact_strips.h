#pragma once

#include <cstdint>

#include "kernels/core/cuda_executor.h"
#include "kernels/recursive_filter/images.h"

// The tiled method in two kernels, for large images of floats of one channel: the first reads the image
// and writes the column suffix state of each tile (exact_strips/column_suffixes.cuh), the second filters
// (exact_strips/filter.cuh).

namespace cumulus::recursive_filter {

class PlannedFilter;
struct ExactStripsPlan;
struct FilterAxes;

/// How an image is divided among strip_blocks.
struct ExactStripDivision {
  int tile_rows, strips;
  int strips_of_block;  // neighbouring
  int state_rows;       // rows of tiles whose published states are kept

  ExactStripDivision(std::int64_t height, std::int64_t width, int strip_blocks);
  int blocks() const { return (strips + strips_of_block - 1) / strips_of_block; }
};

/// Whether they can filter images that tma_serves (images.h), and faster than tiles. In single precision.
bool exact_strips_serve(const FilterAxes& axes, const ExactStripDivision& division, int strip_blocks);

/// Throws std::invalid_argument where images begin elsewhere than at
/// a multiple of 16 bytes.
void filter_in_exact_strips(CudaExecutor& executor, const FilterImages<const float, Space::kDevice>& images,
                            const PlannedFilter& filter, const ExactStripsPlan& plan,
                            const FilterImages<float, Space::kDevice>& filtered);

}  // namespace cumulus::recursive_filter
