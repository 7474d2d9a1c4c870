#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/core/scratch_arena.h"
#include "kernels/core/views.h"
#include "kernels/summed_area_table/tuning.h"

namespace cumulus::summed_area_table {

/// The tiles of an image on the GPU, and what each of them publishes.
struct TileGrid {
  TileShape shape;
  std::int64_t tile_rows;
  std::int64_t tile_columns;
  std::int64_t words_per_tile;  // one per column, group of rows and row (times channels), rounded up to whole
                                // 128 bytes
  std::int64_t word_bytes;      // a state and a value
  std::int64_t tables;          // planes, twice where squares are summed too

  constexpr std::int64_t tiles_per_plane() const { return tile_rows * tile_columns; }
  /// The ticket counter has kBlockAlignment bytes of its own, before the words.
  constexpr std::size_t scratch_bytes() const {
    return kBlockAlignment +
           static_cast<std::size_t>(tables * tiles_per_plane() * words_per_tile * word_bytes);
  }
};

constexpr std::int64_t divide_up(std::int64_t count, std::int64_t by) { return (count + by - 1) / by; }

constexpr TileGrid tile_grid(const TileShape& shape, std::size_t sum_bytes, std::int64_t height,
                             std::int64_t width, std::int64_t channels, std::int64_t tables) {
  const std::int64_t words = shape.columns() + (row_groups(shape) + shape.rows()) * channels;
  return {shape,
          divide_up(height, shape.rows()),
          divide_up(width * channels, shape.columns()),
          divide_up(words, 16) * 16,
          sum_bytes <= 4 ? 8 : 16,
          tables};
}

}  // namespace cumulus::summed_area_table
