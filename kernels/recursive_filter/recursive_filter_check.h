#pragma once

#include <stdexcept>
#include <string>

#include "kernels/core/views.h"
#include "kernels/recursive_filter/recursive_filter_scratch.h"

namespace cumulus::recursive_filter {

/// Throws std::invalid_argument unless `image` and `filtered` are as recursive_filter.h asks.
template <Space S>
void check_views(const ImageView<const float, S>& image, const ImageView<float, S>& filtered) {
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
}

}  // namespace cumulus::recursive_filter
