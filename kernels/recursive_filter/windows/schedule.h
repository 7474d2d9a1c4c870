#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/recursive_filter/math/line.h"
#include "kernels/recursive_filter/math/tile_grid.h"
#include "kernels/recursive_filter/math/truncation.h"
#include "kernels/recursive_filter/tuning.h"

// What the two-pass windows keep of each tile, and where.

namespace cumulus::recursive_filter {

/// What a tile publishes: lines of kTile floats, then its cross-axis coupling.
template <int Order>
struct StateLayout {
  // Lines: the columns' states (causal, then anticausal), the rows', the first and the last pixel of each row
  // (of tiles at the image's sides).
  static constexpr int kRows = 2 * Order;
  static constexpr int kBorder = 4 * Order;
  /// Where the coupling begins. For each of the columns' states, and for the tile's first and last row of
  /// pixels, taken as a row of pixels: its causal states, its anticausal states, its first and its last
  /// pixel.
  static constexpr int kCoupling = (4 * Order + 2) * kTile;
  static constexpr int kFunctionals = 2 * Order + 2;
  static constexpr int kFloats = kCoupling + kFunctionals * kFunctionals;
};

/// Where the rows of tiles have their states: those from `first` to before `end` in the part of the output
/// that the rows of tiles from `last_filtered` on fill, the others in scratch memory. When those rows
/// are filtered, the states in the output are not needed any more.
struct StateRows {
  std::int64_t rows = 0;
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::int64_t last_filtered = 0;  // rows of tiles from here on are filtered after the others

  CUMULUS_FILTER_FUNCTION bool all_in_scratch() const { return first == end; }
  CUMULUS_FILTER_FUNCTION std::int64_t in_scratch() const { return rows - (end - first); }
};

/// How the windowed methods go through the images.
struct WindowSchedule {
  std::int64_t images_at_once;
  StateRows rows;  // of each image

  template <int Order>
  std::size_t scratch_floats(std::int64_t tile_columns, std::int64_t channels) const {
    return static_cast<std::size_t>(images_at_once * rows.in_scratch() * tile_columns * channels *
                                    StateLayout<Order>::kFloats);
  }
};

/// For images whose rows take `row_bytes`, and the states of a row of tiles `state_bytes`.
WindowSchedule plan_schedule(std::int64_t height, std::int64_t row_bytes, std::int64_t state_bytes,
                             std::int64_t images, const AxisPlan& y, const Windows& windows);

struct WindowImages {
  std::int64_t row_bytes;  // of the output
  std::int64_t count;
};

template <int Order>
WindowSchedule window_schedule(const FilterTiles& tiles, const WindowImages& images, const AxisPlan& y,
                               const Windows& windows) {
  return plan_schedule(
      y.length, images.row_bytes,
      tiles.columns * tiles.channels * StateLayout<Order>::kFloats * static_cast<std::int64_t>(sizeof(float)),
      images.count, y, windows);
}

}  // namespace cumulus::recursive_filter
