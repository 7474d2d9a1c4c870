#pragma once

#include <cstdint>

#include "kernels/core/views.h"

namespace cumulus {

/// `count` images of the same extents, the first elements of neighbours `image_stride` elements apart.
template <class T, Space S>
struct FilterImages {
  ImageView<T, S> first;
  std::int64_t count = 1;
  std::int64_t image_stride = 0;

  constexpr FilterImages() = default;
  /// One image.
  constexpr FilterImages(const ImageView<T, S>& image)  // NOLINT(google-explicit-constructor)
      : FilterImages(image, 1) {}
  /// Image after image, without gaps beyond those between rows.
  constexpr FilterImages(const ImageView<T, S>& image, std::int64_t images)
      : first(image), count(images), image_stride(image.height * image.row_stride) {}

  constexpr ImageView<T, S> operator[](std::int64_t i) const {
    return {first.data + i * image_stride, first.height, first.width, first.channels, first.row_stride};
  }
};

}  // namespace cumulus

namespace cumulus::recursive_filter {

/// Whether rows are of one channel and each begins at a multiple of four elements.
template <class T, Space S>
bool rows_are_aligned(const FilterImages<T, S>& images) {
  return images.first.channels == 1 && images.first.row_stride % 4 == 0 && images.image_stride % 4 == 0 &&
         reinterpret_cast<std::uintptr_t>(images.first.data) % (4 * sizeof(T)) == 0;
}

}  // namespace cumulus::recursive_filter
