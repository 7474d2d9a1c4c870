#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/summed_area_table/look_back/look_back.h"

// Tables of small images, all of whose tiles are on the GPU at once (resident/build.cuh): one inclusive table
// of one channel.

namespace cumulus::summed_area_table {

/// Pairs that the kernels are compiled for.
constexpr bool has_resident_tiles(ElementPair types) {
  return element_bytes(types.image) <= 2 || types.image == ElementType::kFloat32;
}

/// Values that a tile publishes: the sums of its columns, those of its rows, and their total. Three places
/// are left free, so that a tile's values begin at a multiple of 32 bytes.
constexpr int published_values(const TileShape& tile) { return tile.columns() + tile.rows() + 4; }

struct ResidentPlan {
  TileShape tile;  // kLowResidentShape or kTallResidentShape
  std::int64_t tile_rows;
  std::int64_t tile_columns;
  bool whole;  // all tiles are, and rows begin at multiples of 16 bytes

  std::int64_t tiles() const { return tile_rows * tile_columns; }
  bool tall() const { return tile.rows() == kTallResidentShape.rows(); }
  static std::size_t scratch_bytes() { return 0; }
};

constexpr ResidentPlan plan_resident(const BuildShape& shape, const TileShape& tile) {
  return {tile, divide_up(shape.height, tile.rows()), divide_up(shape.width, tile.columns()),
          shape.aligned && shape.height % tile.rows() == 0 && shape.width % tile.columns() == 0};
}

template <class Input, class Sum>
void build_resident(CudaExecutor& executor, const TableJob<Input, Sum, Space::kDevice>& job,
                    const ResidentPlan& plan);

}  // namespace cumulus::summed_area_table
