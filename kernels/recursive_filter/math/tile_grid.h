#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/div.h"
#include "kernels/recursive_filter/tuning.h"

namespace cumulus::recursive_filter {

/// The tiled method's division of an image. Tiles count pixels of one channel; each channel has its own.
///
/// Between the passes a tile keeps 4 * order lines of kTile carries: causal and anticausal ones of its
/// columns, then of its rows. They lie in the tile's own part of the output, which is written last (as
/// floats; where the output is Float16, as two lines of 16-bit halves each). Tiles in the last row and the
/// last column may be too small for that and keep theirs in scratch memory. There, too, lie the first and the
/// last pixel of each row, filtered along y.
struct FilterTiles {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t channels;

  FilterTiles(std::int64_t height, std::int64_t width, std::int64_t channel_count)
      : rows(divide_up(height, kTile)), columns(divide_up(width, kTile)), channels(channel_count) {}

  std::int64_t count() const { return rows * columns * channels; }
  std::size_t border_carries(int order) const {
    return static_cast<std::size_t>((rows + columns - 1) * channels * 4 * order * kTile);
  }
  /// Of the first column, or of the last.
  std::size_t border_pixels() const { return static_cast<std::size_t>(rows * kTile * channels); }
};

}  // namespace cumulus::recursive_filter
