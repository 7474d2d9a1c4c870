#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/div.h"
#include "kernels/core/scratch_arena.h"
#include "kernels/core/views.h"
#include "kernels/summed_area_table/build_shape.h"
#include "kernels/summed_area_table/tuning.h"

namespace cumulus {
class CudaExecutor;
template <class Input, class Sum, Space S>
struct TableJob;
}  // namespace cumulus

// Tables by decoupled look-back over tiles (look_back/build.cuh), of every image.

namespace cumulus::summed_area_table {

/// What one build sums: the pixels; the pixels and, from the same reading, their squares; or the pixels less
/// their offsets.
enum class Terms { kValues, kValuesAndSquares, kOffsets };

/// How the images and their tables lie. What a layout does not need costs its kernels nothing.
enum class Layout {
  kOne,      // one image and its inclusive table
  kPlanes,   // one or more, inclusive or exclusive
  kStrided,  // likewise; an image's channels may be planes of their own, a stride from element to element
};

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

struct LookBackPlan {
  Terms terms;
  Layout layout;
  std::int64_t channels;  // that are summed together: the image's, or 1, where each is a plane of its own
  std::int64_t planes;    // that the kernel sees
  TileGrid grid;

  std::size_t scratch_bytes() const { return ScratchSize().add<std::byte>(grid.scratch_bytes()).bytes(); }
};

constexpr LookBackPlan plan_look_back(const BuildShape& shape) {
  const bool together = summed_interleaved(shape.types.image) && !shape.squares && !shape.offsets;
  const std::int64_t channels = together ? shape.channels : 1;
  const std::int64_t planes = together ? shape.planes : shape.planes * shape.channels;
  const bool one = shape.channels == 1 && shape.planes == 1 && !shape.exclusive;
  const std::size_t sum_bytes = element_bytes(shape.types.sum);
  const TileShape tile = tile_shape(element_bytes(shape.types.image), sum_bytes, static_cast<int>(channels));
  return {
      shape.offsets   ? Terms::kOffsets
      : shape.squares ? Terms::kValuesAndSquares
                      : Terms::kValues,
      !together ? Layout::kStrided
      : one     ? Layout::kOne
                : Layout::kPlanes,
      channels, planes,
      tile_grid(tile, sum_bytes, shape.height, shape.width, channels, shape.squares ? 2 * planes : planes)};
}

template <class Input, class Sum>
void build_by_look_back(CudaExecutor& executor, const TableJob<Input, Sum, Space::kDevice>& job,
                        const LookBackPlan& plan, DeviceSpan<std::byte> scratch);

}  // namespace cumulus::summed_area_table
