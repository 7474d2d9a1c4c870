#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "kernels/core/views.h"

// What operations on images refuse alike, before anything runs.

namespace cumulus {

/// "480 x 640 x 3", for messages.
template <class T, Space S>
std::string extents_of(const ImageView<T, S>& view) {
  return std::to_string(view.height) + " x " + std::to_string(view.width) + " x " +
         std::to_string(view.channels);
}

/// Throws std::invalid_argument, which begins with `operation`, unless the image has pixels, 1 to 4 channels
/// and rows that do not overlap.
template <class T, Space S>
void check_image(std::string_view operation, const ImageView<T, S>& image) {
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument(std::string(operation) + ": " + what);
  };
  if (image.height < 1 || image.width < 1 || image.channels < 1 || image.channels > 4) {
    refuse("the image is " + extents_of(image) + "; it must have at least one pixel and 1 to 4 channels");
  }
  if (image.row_stride < image.width * image.channels) {
    refuse("the image's rows are " + std::to_string(image.row_stride) + " elements apart; a row alone has " +
           std::to_string(image.width * image.channels));
  }
}

}  // namespace cumulus
