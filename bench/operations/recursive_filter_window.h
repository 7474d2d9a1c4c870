#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/parallel.h"
#include "tests/cases/recursive_filter_case.h"

// Large filtered images beside the serial filter, which takes minutes for a whole one.

namespace cumulus::bench {

/// Of a line, kSide pixels in its middle, and the stretch around them beyond which nothing matters to them.
struct LineWindow {
  static constexpr std::int64_t kSide = 48;

  std::int64_t first;  // of the kSide
  std::int64_t from;
  std::int64_t to;

  LineWindow(std::int64_t length, const AxisFilter& filter)
      : first(length / 2),
        from(std::max<std::int64_t>(0, first - testing::SerialFilter(filter.causal).memory())),
        to(std::min(length, first + kSide + testing::SerialFilter(filter.causal).memory())) {}

  /// The kSide pixels, filtered; pixel(i) is one of the stretch.
  template <class Pixel>
  std::vector<long double> filtered(const AxisFilter& filter, const Pixel& pixel) const {
    std::vector<long double> line;
    for (std::int64_t i = from; i < to; ++i) line.push_back(pixel(i));
    line = testing::filter_line_serially(line, filter);
    const auto begin = line.begin() + (first - from);
    return {begin, begin + kSide};
  }
};

/// The middle of an image, [channel, column, row], filtered serially, by all the machine's threads.
inline std::vector<long double> filter_middle(const testing::FilterImage& image,
                                              const RecursiveFilter& filter, const LineWindow& rows,
                                              const LineWindow& columns) {
  const std::int64_t channels = image.shape.channels;
  const std::int64_t narrow_row = channels * LineWindow::kSide;
  std::vector<long double> narrow(static_cast<std::size_t>((rows.to - rows.from) * narrow_row));
  CpuExecutor workers;
  parallel_ranges(workers, rows.to - rows.from, 1, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t y = first; y < end; ++y) {
      for (std::int64_t c = 0; c < channels; ++c) {
        const auto part = columns.filtered(
            filter.x, [&](std::int64_t x) { return image.row(rows.from + y)[x * channels + c]; });
        std::copy(part.begin(), part.end(), narrow.begin() + y * narrow_row + c * LineWindow::kSide);
      }
    }
  });
  std::vector<long double> middle(static_cast<std::size_t>(narrow_row * LineWindow::kSide));
  parallel_ranges(workers, narrow_row, 1, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) {
      const auto part = rows.filtered(filter.y, [&](std::int64_t y) {
        return narrow[static_cast<std::size_t>((y - rows.from) * narrow_row + i)];
      });
      std::copy(part.begin(), part.end(), middle.begin() + i * LineWindow::kSide);
    }
  });
  return middle;
}

/// Empty where a window in the middle is right, or all of a small image; else what is wrong.
template <class T>
std::string verify_window(const testing::FilterImage& image, const RecursiveFilter& filter,
                          const std::vector<T>& result, double truncation_bound) {
  const auto [height, width, channels] = image.shape;
  if (height * width <= 512 * 512 && truncation_bound <= kNegligibleTruncation) {
    return verify_recursive_filter(image, filter, result.data());
  }
  const LineWindow rows(height, filter.y);
  const LineWindow columns(width, filter.x);
  const std::vector<long double> expected = filter_middle(image, filter, rows, columns);
  const double tolerance = testing::recursive_filter_tolerance<T>(filter) + truncation_bound;
  auto want = expected.begin();
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t x = columns.first; x < columns.first + LineWindow::kSide; ++x) {
      for (std::int64_t y = rows.first; y < rows.first + LineWindow::kSide; ++y, ++want) {
        const auto at = static_cast<std::size_t>(y * image.row_elements() + x * channels + c);
        const double error = std::abs(static_cast<double>(result[at]) - static_cast<double>(*want));
        if (error <= tolerance) continue;
        return "row " + std::to_string(y) + ", column " + std::to_string(x) + ", channel " +
               std::to_string(c) + ": off by " + std::to_string(error);
      }
    }
  }
  return "";
}

}  // namespace cumulus::bench
