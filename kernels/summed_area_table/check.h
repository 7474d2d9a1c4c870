#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>

#include "kernels/primitives/image_check.h"
#include "kernels/summed_area_table/queries.h"

namespace cumulus::summed_area_table {

[[noreturn]] inline void refuse(const std::string& what) {
  throw std::invalid_argument("summed_area_table: " + what);
}

/// Throws std::invalid_argument unless `output` is dense and of `image`'s extents, its height and width
/// larger by `border`.
template <class Input, class Output, Space S>
void check_output(const ImageView<Input, S>& image, const ImageView<Output, S>& output, std::int64_t border) {
  if (output.height != image.height + border || output.width != image.width + border ||
      output.channels != image.channels) {
    refuse("the output is " + extents_of(output) + "; the image is " + extents_of(image) +
           (border != 0 ? " and its table has a row and a column more" : ""));
  }
  if (!output.dense()) {
    refuse("the output's rows are " + std::to_string(output.row_stride) +
           " elements apart; they must be dense, " + std::to_string(output.width * output.channels) +
           " apart");
  }
}

template <class Input, class Sum, Space S>
void check_job(const TableJob<Input, Sum, S>& job) {
  check_image("summed_area_table", job.image);
  check_output(job.image, job.sums, job.exclusive ? 1 : 0);
  if (job.planes < 1) refuse("there are " + std::to_string(job.planes) + " images; there must be one");
  if (!kSumsSquares<Input, Sum> && job.squares != nullptr) refuse("these sums have no room for squares");
  if (!std::is_same_v<Sum, float> && job.offsets != nullptr) refuse("offsets are for float sums");
}

template <class Sum, Space S>
void check_query(const TableView<Sum, S>& table, const RectangleResults<Sum, S>& results) {
  const auto& [height, width, channels, exclusive] = table.shape;
  check_image("summed_area_table", ImageView<const Sum, S>(nullptr, height, width, channels));
  if (results.variances != nullptr && table.squares == nullptr) refuse("variances need the table of squares");
}

template <class Input, Space S>
void check_filter(const BoxFilterJob<Input, S>& job) {
  check_image("summed_area_table", job.image);
  check_output(job.image, job.means, 0);
  if (job.box.radius_y < 0 || job.box.radius_x < 0) {
    refuse("the radii are " + std::to_string(job.box.radius_y) + " and " + std::to_string(job.box.radius_x) +
           "; they must be at least 0");
  }
  if (job.deviations != nullptr && std::is_integral_v<Input> && sizeof(Input) == 4)
    refuse("deviations of 32-bit integers: their squares do not fit");
}

/// Where a box ends at the image's edges anyway, a radius beyond the image's extent is as good as that. The
/// mirror image of one pixel is that pixel.
inline void simplify_axis(std::int64_t extent, std::int64_t& radius, Boundary& boundary) {
  if (boundary == Boundary::kExact) radius = std::min(radius, extent);
  if (boundary == Boundary::kMirror && extent == 1) boundary = Boundary::kClamp;
}

template <class Input, Space S>
BoxFilterJob<Input, S> simplified(BoxFilterJob<Input, S> job) {
  simplify_axis(job.image.height, job.box.radius_y, job.box.boundary_y);
  simplify_axis(job.image.width, job.box.radius_x, job.box.boundary_x);
  return job;
}

}  // namespace cumulus::summed_area_table
