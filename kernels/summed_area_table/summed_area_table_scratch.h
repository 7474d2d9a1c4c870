#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/core/scratch_arena.h"
#include "kernels/core/views.h"
#include "kernels/summed_area_table/summed_area_table_tuning.h"

namespace cumulus::summed_area_table {

/// The tiles of an image on the GPU, and what each of them publishes.
struct TileGrid {
  TileShape shape;
  std::int64_t tile_rows;
  std::int64_t tile_columns;
  std::int64_t words_per_tile;  // one per column, group of rows and row (times channels), rounded up to whole
                                // 128 bytes
  std::int64_t word_bytes;      // a state and a value

  constexpr std::int64_t tiles() const { return tile_rows * tile_columns; }
  /// The ticket counter has kBlockAlignment bytes of its own, before the words.
  constexpr std::size_t scratch_bytes() const {
    return kBlockAlignment + static_cast<std::size_t>(tiles() * words_per_tile * word_bytes);
  }
};

constexpr std::int64_t divide_up(std::int64_t count, std::int64_t by) { return (count + by - 1) / by; }

constexpr TileGrid tile_grid(std::size_t input_bytes, std::size_t sum_bytes, std::int64_t height,
                             std::int64_t width, std::int64_t channels) {
  const TileShape shape = tile_shape(input_bytes, sum_bytes, static_cast<int>(channels));
  const std::int64_t words = shape.columns() + (row_groups(shape) + shape.rows()) * channels;
  return {shape, divide_up(height, shape.rows()), divide_up(width * channels, shape.columns()),
          divide_up(words, 16) * 16, sum_bytes <= 4 ? 8 : 16};
}

/// True where no box of the filter sums to more than 32 bits hold: differences of sums modulo 2^32
/// are then exact.
constexpr bool box_sums_fit_32_bits(std::int64_t height, std::int64_t width, std::int64_t radius) {
  const auto covered = [radius](std::int64_t extent) {
    return radius >= extent ? extent : std::min(2 * radius + 1, extent);
  };
  constexpr std::int64_t kMostPixels = std::numeric_limits<std::uint32_t>::max() / 255;
  return covered(height) <= kMostPixels / covered(width);
}

}  // namespace cumulus::summed_area_table

namespace cumulus {

/// Scratch bytes of build_summed_area_table for these views: exact, a function of their types and
/// extents only (their pointers may be null).
template <class Input, class Sum, Space S>
std::size_t build_summed_area_table_scratch_bytes(const ImageView<Input, S>& image,
                                                  const ImageView<Sum, S>& /*sums*/) {
  if constexpr (S == Space::kHost) {
    return 0;
  } else {
    const auto grid =
        summed_area_table::tile_grid(sizeof(Input), sizeof(Sum), image.height, image.width, image.channels);
    return ScratchSize().add<std::byte>(grid.scratch_bytes()).bytes();
  }
}

/// Scratch bytes of filter_box, likewise: its table, and what building that takes.
template <class Input, Space S>
std::size_t filter_box_scratch_bytes(const ImageView<Input, S>& image, std::int64_t radius,
                                     const ImageView<float, S>& /*filtered*/) {
  const auto with_table_of = [&image]<class Sum>(Sum*) {
    const ImageView<Sum, S> sums(nullptr, image.height, image.width, image.channels);
    return ScratchSize().add<Sum>(static_cast<std::size_t>(image.elements())).bytes() +
           build_summed_area_table_scratch_bytes(image, sums);
  };
  if constexpr (std::is_same_v<std::remove_const_t<Input>, float>)
    return with_table_of(static_cast<double*>(nullptr));
  return summed_area_table::box_sums_fit_32_bits(image.height, image.width, radius)
             ? with_table_of(static_cast<std::uint32_t*>(nullptr))
             : with_table_of(static_cast<std::uint64_t*>(nullptr));
}

}  // namespace cumulus
