#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cases/summed_area_table_case.h"

// Box filters and rectangles: naive loops over their pixels, and verifiers. For tests and benchmarks.

namespace cumulus::testing {

/// Where position i of an axis of `extent` pixels takes its pixel from; -1 where it is zero. The boundaries
/// by their names: "exact" (inside only), "zero", "clamp", "repeat", "reflect", "mirror".
inline std::int64_t position_beyond(std::int64_t i, std::int64_t extent, const std::string& boundary) {
  if (i >= 0 && i < extent) return i;
  if (boundary == "zero") return -1;
  if (boundary == "clamp") return i < 0 ? 0 : extent - 1;
  if (boundary == "mirror" && extent == 1) return 0;
  const std::int64_t turn = boundary == "mirror" ? 2 * extent - 2 : 2 * extent;
  const std::int64_t period = boundary == "repeat" ? extent : turn;
  const std::int64_t rest = (i % period + period) % period;
  if (rest < extent) return rest;
  return boundary == "mirror" ? turn - rest : turn - 1 - rest;
}

struct NaiveBox {
  std::int64_t radius_y;
  std::int64_t radius_x;
  std::string boundary_y = "exact";
  std::string boundary_x = "exact";
};

struct BoxMoments {
  long double sum = 0;
  long double squares = 0;
  std::int64_t pixels = 0;
};

/// One channel of the box around a pixel, from a loop over its pixels.
template <class Input>
BoxMoments naive_box(const TestImage<Input>& image, const NaiveBox& box, std::int64_t y, std::int64_t x,
                     std::int64_t channel) {
  BoxMoments moments;
  const auto stretch = [](std::int64_t center, std::int64_t radius, std::int64_t extent, bool inside_only) {
    if (!inside_only) return std::array{center - radius, center + radius};
    return std::array{std::max<std::int64_t>(center - radius, 0), std::min(center + radius, extent - 1)};
  };
  const auto rows = stretch(y, box.radius_y, image.height, box.boundary_y == "exact");
  const auto columns = stretch(x, box.radius_x, image.width, box.boundary_x == "exact");
  for (std::int64_t v = rows[0]; v <= rows[1]; ++v) {
    const std::int64_t row = position_beyond(v, image.height, box.boundary_y);
    for (std::int64_t u = columns[0]; u <= columns[1]; ++u) {
      const std::int64_t column = position_beyond(u, image.width, box.boundary_x);
      ++moments.pixels;
      if (row == -1 || column == -1) continue;
      const auto pixel = static_cast<long double>(image.row(row)[column * image.channels + channel]);
      moments.sum += pixel;
      moments.squares += pixel * pixel;
    }
  }
  return moments;
}

/// How often the table's elements are taken for one box at most, all signs and multiples counted.
inline double most_elements(const NaiveBox& box) {
  const auto of_axis = [](const std::string& boundary, std::int64_t radius) {
    return boundary == "exact" || boundary == "zero" ? 2.0 : 2.0 * static_cast<double>(2 * radius + 1) + 4;
  };
  return of_axis(box.boundary_y, box.radius_y) * of_axis(box.boundary_x, box.radius_x);
}

/// The sum of |pixel| over an image, or of its squares.
template <class Input>
double magnitude_of(const TestImage<Input>& image, bool squared) {
  double magnitude = 0;
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t i = 0; i < image.row_elements(); ++i) {
      const double pixel = std::abs(static_cast<double>(image.row(y)[i]));
      magnitude += squared ? pixel * pixel : pixel;
    }
  }
  return magnitude;
}

/// Compares a dense filtered image, and deviations if not null, with the naive boxes. `box_at(y, x)` is the
/// box around a pixel; of large images only every `step`th element is looked at.
///
/// Means of integers: exactly, the quotient of exact integers rounded to double, then to float. Of floats:
/// each element of the table is off by at most (height + width) u times the image's sum of |pixel|, u =
/// 2^-53; the additions and the division add u of it for each element; then comes the rounding to float.
/// Deviations: the error of the mean square and of the squared mean, in the same way, against the variance.
/// Empty if they agree.
template <class Input, class BoxAt>
std::string verify_box_filter(const TestImage<Input>& image, const BoxAt& box_at, const float* filtered,
                              const float* deviations = nullptr, std::int64_t step = 1) {
  const bool floating = kIsFloating<Input>;
  const auto steps = static_cast<double>(image.height + image.width + 4);
  const double magnitude = floating ? magnitude_of(image, false) : 0;
  const double squared_magnitude = floating ? magnitude_of(image, true) : 0;
  for (std::int64_t element = 0; element < image.height * image.row_elements(); element += step) {
    const std::int64_t y = element / image.row_elements();
    const std::int64_t x = element % image.row_elements() / image.channels;
    const NaiveBox box = box_at(y, x);
    const BoxMoments right = naive_box(image, box, y, x, element % image.channels);
    const auto pixels = static_cast<double>(right.pixels);
    const double mean = static_cast<double>(right.sum) / pixels;
    const double table_error = 1.001 * steps * most_elements(box) * 0x1p-53 / pixels;
    const double mean_error = table_error * magnitude;
    const double tolerance = floating ? mean_error + 1.001 * 0x1p-24 * std::abs(mean) + 0x1p-149 : 0;
    const double expected = floating ? mean : static_cast<double>(static_cast<float>(mean));
    std::ostringstream text;
    text.precision(12);
    text << "element " << element << ": ";
    if (!(std::abs(static_cast<double>(filtered[element]) - expected) <= tolerance)) {
      text << filtered[element] << ", not " << mean << " (tolerance " << tolerance << ")";
      return text.str();
    }
    if (deviations == nullptr) continue;
    const double mean_square = static_cast<double>(right.squares) / pixels;
    const double variance = static_cast<double>(right.squares / static_cast<long double>(right.pixels) -
                                                (right.sum / static_cast<long double>(right.pixels)) *
                                                    (right.sum / static_cast<long double>(right.pixels)));
    const double variance_error = table_error * squared_magnitude + 2 * std::abs(mean) * mean_error +
                                  mean_error * mean_error + 8 * 0x1p-53 * mean_square;
    const auto deviation = static_cast<double>(deviations[element]);
    const double deviation_error = variance_error + 4 * 0x1p-24 * std::abs(variance) + 0x1p-149;
    if (!(deviation >= 0 && std::abs(deviation * deviation - variance) <= deviation_error)) {
      text << "variance " << deviation * deviation << ", not " << variance << " (tolerance "
           << deviation_error << ")";
      return text.str();
    }
  }
  return "";
}

/// The same box everywhere.
template <class Input>
std::string verify_square_filter(const TestImage<Input>& image, std::int64_t radius, const float* filtered,
                                 std::int64_t step = 1) {
  const NaiveBox box{radius, radius};
  return verify_box_filter(
      image, [&](std::int64_t, std::int64_t) { return box; }, filtered, nullptr, step);
}

/// Rectangles of all kinds for an image: one pixel, everything, edges, random ones, partly and wholly
/// outside, empty and turned round. {top, left, bottom, right}, half open.
inline std::vector<std::array<std::int32_t, 4>> make_rectangles(ImageShape shape, std::size_t random_count) {
  const auto height = static_cast<std::int32_t>(shape.height);
  const auto width = static_cast<std::int32_t>(shape.width);
  std::vector<std::array<std::int32_t, 4>> rectangles = {
      {0, 0, 1, 1},
      {0, 0, height, width},
      {height - 1, width - 1, height, width},
      {-5, -7, height, width},
      {0, 0, height + 9, width + 4},
      {-2, -2, 0, 3},
      {height, 0, height + 1, width},
      {1, 1, 1, 4},
      {3, 3, 1, 1},
      {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::min(),
       std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::max()}};
  std::mt19937 random(7);
  for (std::size_t i = 0; i < random_count; ++i) {
    const auto edge = [&random](std::int32_t extent) {
      return static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(extent + 6)) - 3;
    };
    rectangles.push_back({edge(height), edge(width), edge(height), edge(width)});
  }
  return rectangles;
}

/// One channel of a rectangle: those of its pixels that lie inside the image, one by one.
template <class Input>
BoxMoments naive_rectangle(const TestImage<Input>& image, const std::array<std::int32_t, 4>& rectangle,
                           std::int64_t channel) {
  BoxMoments moments;
  for (std::int64_t y = std::max(0, rectangle[0]); y < std::min<std::int64_t>(rectangle[2], image.height);
       ++y) {
    for (std::int64_t x = std::max(0, rectangle[1]); x < std::min<std::int64_t>(rectangle[3], image.width);
         ++x) {
      const auto pixel = static_cast<long double>(image.row(y)[x * image.channels + channel]);
      moments.sum += pixel;
      moments.squares += pixel * pixel;
      ++moments.pixels;
    }
  }
  return moments;
}

}  // namespace cumulus::testing
