#pragma once

#include <optional>

#include "cumulus/operation.h"

/// Summed-area tables: S(y, x) is the sum of all pixels in rows 0..y and columns 0..x, inclusive.
namespace cumulus {

struct SummedAreaTableOptions {
  /// uint8 images: kUint32 (default; 255 * height * width has to fit) or kUint64.
  /// float32 images: kFloat64 (default) or kFloat32.
  std::optional<ElementType> accumulator;
};

/// Of `image`, [height, width] or [height, width, channels], 1 to 4 channels, uint8 or float32.
/// Result: `sums`, of the image's shape and the accumulator's type.
Operation build_summed_area_table(const Source& image, const SummedAreaTableOptions& options = {});

struct BoxFilterOptions {
  /// The box covers 2 * radius + 1 pixels a side; 0 to the larger of the image's width and height.
  int radius = 1;
};

/// Of `image`, as in build_summed_area_table. Result: `image`, float32, of the image's shape: the mean
/// over the box of the pixels that lie inside the image.
Operation filter_box(const Source& image, const BoxFilterOptions& options);

}  // namespace cumulus
