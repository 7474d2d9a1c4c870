#pragma once

#include <stdexcept>
#include <string>

#include "kernels/core/views.h"
#include "kernels/primitives/image_check.h"

namespace cumulus::summed_area_table {

/// Throws std::invalid_argument unless `image` and `output` are as summed_area_table.h asks.
template <class Input, class Output, Space S>
void check_views(const ImageView<const Input, S>& image, const ImageView<Output, S>& output) {
  const auto refuse = [](const std::string& what) {
    throw std::invalid_argument("summed_area_table: " + what);
  };
  check_image("summed_area_table", image);
  if (output.height != image.height || output.width != image.width || output.channels != image.channels) {
    refuse("the output is " + extents_of(output) + "; the image is " + extents_of(image));
  }
  if (!output.dense()) {
    refuse("the output's rows are " + std::to_string(output.row_stride) +
           " elements apart; they must be dense, " + std::to_string(output.width * output.channels) +
           " apart");
  }
}

inline void check_radius(std::int64_t radius) {
  if (radius < 0) {
    throw std::invalid_argument("filter_box: the radius is " + std::to_string(radius) +
                                "; it must be at least 0");
  }
}

}  // namespace cumulus::summed_area_table
