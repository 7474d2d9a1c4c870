#pragma once

#include <cstdint>

#include "kernels/core/div.h"
#include "kernels/recursive_filter/gpu/carries.cuh"

namespace cumulus::recursive_filter {

/// Transition matrices over the tiles of a window.
template <int Order>
struct WindowTransitions {
  TileTransitions<Order, float> tile;
  int tiles;
  int window;  // tiles on either side

  /// `tiles_seen` of kTile pixels, whatever the tiles' side.
  WindowTransitions(const AxisPlan& plan, std::int64_t tiles_seen, std::int64_t side = kTile)
      : tile(plan, side),
        tiles(static_cast<int>(tile.tiles)),
        window(static_cast<int>(divide_up(tiles_seen * kTile, side))) {}
};

/// Indices of the axes.
constexpr int kAlongY = 0;
constexpr int kAlongX = 1;

}  // namespace cumulus::recursive_filter
