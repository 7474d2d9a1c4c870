#pragma once

#include <cstdint>

#include "kernels/recursive_filter/gpu/carries.cuh"

namespace cumulus::recursive_filter {

/// And to find out what lies before and after it.
template <int Order>
struct WindowMoves {
  TileMoves<Order, float> over;
  int tiles;
  int window;  // tiles on either side

  /// `tiles_seen` of kTile pixels, whatever the tiles' side.
  WindowMoves(const AxisPlan& plan, std::int64_t tiles_seen, std::int64_t side = kTile)
      : over(plan, side),
        tiles(static_cast<int>(over.tiles)),
        window(static_cast<int>((tiles_seen * kTile + side - 1) / side)) {}
  __host__ __device__ bool sees_all() const { return window >= tiles - 1; }
};
constexpr int kAlongY = 0;
constexpr int kAlongX = 1;

}  // namespace cumulus::recursive_filter
