#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/summed_area_table/summed_area_table.h"

#ifdef __CUDACC__
#define CUMULUS_HOST_DEVICE __host__ __device__
#else
#define CUMULUS_HOST_DEVICE
#endif

// What both backends do with a table and a rectangle.

namespace cumulus::summed_area_table {

/// What is left of a rectangle inside an image.
struct ClippedRectangle {
  std::int64_t top;
  std::int64_t left;
  std::int64_t bottom;
  std::int64_t right;

  CUMULUS_HOST_DEVICE std::int64_t pixels() const {
    return bottom > top && right > left ? (bottom - top) * (right - left) : 0;
  }
};

CUMULUS_HOST_DEVICE inline ClippedRectangle clip(const Rectangle& rectangle, std::int64_t height,
                                                 std::int64_t width) {
  const auto first = [](std::int64_t edge) { return edge < 0 ? 0 : edge; };
  const auto last = [](std::int64_t edge, std::int64_t extent) { return edge > extent ? extent : edge; };
  return {first(rectangle.top), first(rectangle.left), last(rectangle.bottom, height),
          last(rectangle.right, width)};
}

/// The sum of one channel over a clipped rectangle that has pixels, from four elements of the dense
/// table `sums`, whose rows have `row_elements` elements.
template <class Sum>
CUMULUS_HOST_DEVICE Sum sum_of(const Sum* sums, std::int64_t row_elements, std::int64_t channels,
                               std::int64_t channel, const ClippedRectangle& r) {
  const auto up_to = [=](std::int64_t row, std::int64_t column) {
    return sums[row * row_elements + column * channels + channel];
  };
  const auto strip = [&](std::int64_t column) -> Sum {
    const Sum bottom = up_to(r.bottom - 1, column);
    return r.top == 0 ? bottom : bottom - up_to(r.top - 1, column);
  };
  const Sum to_right = strip(r.right - 1);
  return r.left == 0 ? to_right : to_right - strip(r.left - 1);
}

/// The sum, or the mean, of one channel over the part of a rectangle that lies inside the dense table's
/// image.
template <bool kMean, class Result, class Sum, Space S>
CUMULUS_HOST_DEVICE Result rectangle_result(const ImageView<const Sum, S>& table, const Rectangle& rectangle,
                                            std::int64_t channel) {
  const ClippedRectangle clipped = clip(rectangle, table.height, table.width);
  const std::int64_t pixels = clipped.pixels();
  if (pixels == 0) {
    if constexpr (kMean) return NAN;
    return Result{0};
  }
  const Sum sum = sum_of(table.data, table.row_stride, table.channels, channel, clipped);
  if constexpr (kMean) return static_cast<Result>(static_cast<double>(sum) / static_cast<double>(pixels));
  return static_cast<Result>(sum);
}

}  // namespace cumulus::summed_area_table
