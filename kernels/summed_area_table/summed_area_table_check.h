#pragma once

#include <stdexcept>
#include <string>

#include "kernels/core/views.h"

namespace cumulus::summed_area_table {

/// Throws std::invalid_argument unless `image` and `output` are as summed_area_table.h asks.
template <class Input, class Output, Space S>
void check_views(const ImageView<const Input, S>& image, const ImageView<Output, S>& output) {
  const auto refuse = [](const std::string& what) {
    throw std::invalid_argument("summed_area_table: " + what);
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
  if (output.height != image.height || output.width != image.width || output.channels != image.channels) {
    refuse("the output is " + extents(output) + "; the image is " + extents(image));
  }
  if (!output.dense()) {
    refuse("the output's rows are " + std::to_string(output.row_stride) +
           " elements apart; they must be dense, " + std::to_string(output.width * output.channels) +
           " apart");
  }
}

/// Throws std::invalid_argument unless a table and its results are as sum_rectangles asks.
template <class Sum, Space S>
void check_rectangles(const ImageView<const Sum, S>& table, std::size_t rectangles, std::size_t results) {
  check_views(table, ImageView<Sum, S>(nullptr, table.height, table.width, table.channels));
  if (!table.dense())
    throw std::invalid_argument("sum_rectangles: the table's rows are padded; they must be dense");
  if (results != rectangles * static_cast<std::size_t>(table.channels)) {
    throw std::invalid_argument("sum_rectangles: " + std::to_string(results) + " results for " +
                                std::to_string(rectangles) + " rectangles of " +
                                std::to_string(table.channels) + " channels; there must be one each");
  }
}

inline void check_radius(std::int64_t radius) {
  if (radius < 0) {
    throw std::invalid_argument("filter_box: the radius is " + std::to_string(radius) +
                                "; it must be at least 0");
  }
}

}  // namespace cumulus::summed_area_table
