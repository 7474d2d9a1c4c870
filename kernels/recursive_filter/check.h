#pragma once

#include <stdexcept>
#include <string>

#include "kernels/primitives/image_check.h"
#include "kernels/recursive_filter/images.h"

namespace cumulus::recursive_filter {

/// Throws std::invalid_argument unless `images` and `results` are as recursive_filter.h asks.
template <class T, Space S>
void check_views(const FilterImages<const T, S>& images, const FilterImages<T, S>& results) {
  const ImageView<const T, S>& image = images.first;
  const ImageView<T, S>& filtered = results.first;
  const auto refuse = [](const std::string& what) {
    throw std::invalid_argument("recursive_filter: " + what);
  };
  check_image("recursive_filter", image);
  if (filtered.height != image.height || filtered.width != image.width ||
      filtered.channels != image.channels || !filtered.dense()) {
    refuse("the output is " + extents_of(filtered) + ", its rows " + std::to_string(filtered.row_stride) +
           " elements apart; it must be " + extents_of(image) + " and dense");
  }
  if (images.count < 1 || results.count != images.count) {
    refuse("there are " + std::to_string(images.count) + " images and " + std::to_string(results.count) +
           " outputs; as many of both, and at least one, are right");
  }
}

/// Throws std::invalid_argument unless both are dense and of the same extents.
template <class From, class To, Space S>
void check_normalized(const FilterImages<const From, S>& images, const FilterImages<To, S>& normalized) {
  const ImageView<const From, S>& image = images.first;
  const ImageView<To, S>& result = normalized.first;
  check_image("normalize", image);
  if (image.height == result.height && image.width == result.width && image.channels == result.channels &&
      images.count == normalized.count && image.dense() && result.dense()) {
    return;
  }
  throw std::invalid_argument("normalize: " + std::to_string(normalized.count) + " outputs of " +
                              extents_of(result) + " for " + std::to_string(images.count) + " images of " +
                              extents_of(image) + "; as many, of the same extents, both dense, are right");
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
