#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/core/float16.h"
#include "kernels/core/scratch_arena.h"
#include "kernels/recursive_filter/recursive_filter_design.h"
#include "kernels/recursive_filter/recursive_filter_images.h"
#include "kernels/recursive_filter/recursive_filter_plan.h"
#include "kernels/recursive_filter/recursive_filter_tuning.h"

namespace cumulus {

/// How a GPU filters; the CPU has one way, kLines.
enum class RecursiveFilterMethod {
  kAutomatic,  // the fastest that can do it
  kTiled,      // reads the image twice, writes it once; not for images of double, nor for filters whose
               // directions have different poles while a boundary is kReflect or kMirror
  kLines,      // a thread for each column, then for each row
};

}  // namespace cumulus

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
      : rows((height + kTile - 1) / kTile), columns((width + kTile - 1) / kTile), channels(channel_count) {}

  std::int64_t count() const { return rows * columns * channels; }
  std::size_t border_carries(int order) const {
    return static_cast<std::size_t>((rows + columns - 1) * channels * 4 * order * kTile);
  }
  /// Of the first column, or of the last.
  std::size_t border_pixels() const { return static_cast<std::size_t>(rows * kTile * channels); }
};

/// True where the tiled method can do it: a boundary that folds the image back needs runs of both filters in
/// both directions, which the tiles hold only where these are the same.
bool tiles_serve(const RecursiveFilter& filter);

/// Whether images of T go by tiles on a GPU.
template <class T>
bool uses_tiles(const RecursiveFilter& filter, RecursiveFilterMethod method) {
  return !std::is_same_v<T, double> && method != RecursiveFilterMethod::kLines && tiles_serve(filter);
}

}  // namespace cumulus::recursive_filter

namespace cumulus {

/// Scratch bytes of apply_recursive_filter for these images: exact, a function of their extents, the filter
/// and the method only (pointers may be null).
template <class T, Space S>
std::size_t apply_recursive_filter_scratch_bytes(
    const FilterImages<const T, S>& images, const RecursiveFilter& filter,
    RecursiveFilterMethod method = RecursiveFilterMethod::kAutomatic) {
  constexpr bool kHalf = std::is_same_v<T, Float16>;
  const ImageView<const T, S>& image = images.first;
  if constexpr (S == Space::kHost) {
    // An image as floats.
    return kHalf ? ScratchSize().add<float>(static_cast<std::size_t>(image.elements())).bytes() : 0;
  }
  const auto count = static_cast<std::size_t>(images.count);
  if (!recursive_filter::uses_tiles<T>(filter, method)) {
    return kHalf ? ScratchSize().add<float>(count * static_cast<std::size_t>(image.elements())).bytes() : 0;
  }
  const recursive_filter::FilterTiles tiles(image.height, image.width, image.channels);
  return ScratchSize()
      .add<float>(count * tiles.border_carries(recursive_filter::kernel_order(filter)))
      .add<float>(count * tiles.border_pixels())
      .add<float>(count * tiles.border_pixels())
      .bytes();
}

}  // namespace cumulus
