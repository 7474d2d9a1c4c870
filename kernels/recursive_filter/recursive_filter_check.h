#pragma once

#include <stdexcept>
#include <string>

#include "kernels/recursive_filter/recursive_filter_images.h"

namespace cumulus::recursive_filter {

/// Throws std::invalid_argument unless `images` and `results` are as recursive_filter.h asks.
template <class T, Space S>
void check_views(const FilterImages<const T, S>& images, const FilterImages<T, S>& results) {
  const ImageView<const T, S>& image = images.first;
  const ImageView<T, S>& filtered = results.first;
  const auto refuse = [](const std::string& what) {
    throw std::invalid_argument("recursive_filter: " + what);
  };
  const auto extents = [](const auto& view) {
    return std::to_string(view.height) + " x " + std::to_string(view.width) + " x " +
           std::to_string(view.channels);
  };
  if (image.height < 1 || image.width < 1 || image.channels < 1 || image.channels > 4) {
    refuse("the image is " + extents(image) + "; it must have at least one pixel and 1 to 4 channels");
  }
  if (image.row_stride < image.width * image.channels) {
    refuse("the image's rows are " + std::to_string(image.row_stride) + " elements apart; a row alone has " +
           std::to_string(image.width * image.channels));
  }
  if (filtered.height != image.height || filtered.width != image.width ||
      filtered.channels != image.channels || !filtered.dense()) {
    refuse("the output is " + extents(filtered) + ", its rows " + std::to_string(filtered.row_stride) +
           " elements apart; it must be " + extents(image) + " and dense");
  }
  if (images.count < 1 || results.count != images.count) {
    refuse("there are " + std::to_string(images.count) + " images and " + std::to_string(results.count) +
           " outputs; as many of both, and at least one, are right");
  }
}

/// Throws std::invalid_argument unless the two have the same size.
template <class T, Space S>
void check_addend(const Span<const T, S>& addend, const Span<T, S>& values) {
  if (addend.size() == values.size()) return;
  throw std::invalid_argument("add_scaled: " + std::to_string(addend.size()) +
                              " elements are to be added to " + std::to_string(values.size()) +
                              "; as many are right");
}

}  // namespace cumulus::recursive_filter
