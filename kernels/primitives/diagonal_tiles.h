#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/core/host_device.h"

// The order in which blocks take the tiles of a grid where each waits for the tiles above it and to its left
// (two-dimensional look-back): diagonal by diagonal.

namespace cumulus {

/// A tile of one of several grids, planes; a row of -1: none.
struct GridTile {
  std::int32_t row;
  std::int32_t column;
  std::uint32_t plane;
};

/// The largest d with d (d + 1) / 2 <= n.
CUMULUS_HOST_DEVICE inline std::uint32_t triangle_root(std::uint32_t n) {
  auto d = static_cast<std::uint64_t>((sqrtf(8.0f * static_cast<float>(n) + 1.0f) - 1.0f) * 0.5f);
  while (d * (d + 1) / 2 > n) --d;
  while ((d + 1) * (d + 2) / 2 <= n) ++d;
  return static_cast<std::uint32_t>(d);
}

/// The tile of a plane that has this ticket, below rows * columns < 2^32: in the order of the diagonals,
/// row + column, each from its uppermost tile on. Planes are taken one after the other.
///
/// Why it makes progress: the tiles above and to the left of a tile have lower tickets. A block that waits
/// for lower tickets only, and takes its own one after the other, never waits while it has the lowest one
/// under way, however few blocks are resident.
CUMULUS_HOST_DEVICE inline GridTile tile_of_ticket(std::uint32_t plane, std::uint32_t ticket,
                                                   std::uint32_t rows, std::uint32_t columns) {
  const std::uint32_t longest = rows < columns ? rows : columns;
  const std::uint32_t tiles = rows * columns;
  const auto growing =
      static_cast<std::uint32_t>(std::uint64_t{longest} * (longest - 1) / 2);  // the shorter diagonals
  std::uint32_t diagonal;
  std::uint32_t place;
  if (ticket < growing) {
    diagonal = triangle_root(ticket);
    place = ticket - static_cast<std::uint32_t>(std::uint64_t{diagonal} * (diagonal + 1) / 2);
  } else if (ticket < tiles - growing) {
    diagonal = longest - 1 + (ticket - growing) / longest;
    place = (ticket - growing) % longest;
  } else {
    const std::uint32_t from_end = tiles - 1 - ticket;
    const std::uint32_t mirrored = triangle_root(from_end);
    diagonal = rows + columns - 2 - mirrored;
    place = mirrored - (from_end - static_cast<std::uint32_t>(std::uint64_t{mirrored} * (mirrored + 1) / 2));
  }
  const std::uint32_t row = (diagonal >= columns ? diagonal - (columns - 1) : 0) + place;
  return {static_cast<std::int32_t>(row), static_cast<std::int32_t>(diagonal - row), plane};
}

}  // namespace cumulus
