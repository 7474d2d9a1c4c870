#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/core/float16.h"
#include "kernels/recursive_filter/cpu/nearest_float16.h"
#include "kernels/recursive_filter/design.h"

// Recursive filters: shapes, generator, oracle, verifier, bytes moved. For tests and benchmarks.

namespace cumulus::testing {

struct FilterShape {
  std::int64_t height;
  std::int64_t width;
  std::int64_t channels = 1;
};

inline std::string describe(FilterShape shape) {
  return std::to_string(shape.height) + " x " + std::to_string(shape.width) + " x " +
         std::to_string(shape.channels);
}

/// One pixel, one row, one column, primes, one more and one less than the tiles of either backend, several
/// tiles, more tiles than are completed at once.
inline const std::vector<FilterShape> kFilterShapes = {
    {1, 1},      {1, 2},      {2, 1},       {3, 5},     {1, 517},   {517, 1},  {15, 17},
    {63, 64},    {64, 63},    {64, 64},     {65, 65},   {127, 131}, {66, 257}, {129, 63},
    {31, 37, 2}, {65, 63, 3}, {70, 130, 4}, {200, 900}, {900, 200}};

inline constexpr FilterBoundary kFilterBoundaries[] = {FilterBoundary::kZero, FilterBoundary::kClamp,
                                                       FilterBoundary::kRepeat, FilterBoundary::kReflect,
                                                       FilterBoundary::kMirror};

inline const char* name_of(FilterBoundary boundary) {
  constexpr const char* kNames[] = {"zero", "clamp", "repeat", "reflect", "mirror"};
  return kNames[static_cast<int>(boundary)];
}

/// A float image on the host; padding between rows is NaN, and the last row has none.
struct FilterImage {
  FilterShape shape;
  std::int64_t row_stride;
  std::vector<float> elements;

  std::int64_t row_elements() const { return shape.width * shape.channels; }
  std::int64_t count() const { return shape.height * row_elements(); }
  float* row(std::int64_t y) { return elements.data() + y * row_stride; }
  const float* row(std::int64_t y) const { return elements.data() + y * row_stride; }
};

enum class FilterPattern {
  kRandom,    // uniform in [-1, 1)
  kConstant,  // 0.7
  kSpikes,    // zero but for one pixel in 97, which is 1e4
};

inline FilterImage make_filter_image(FilterShape shape, FilterPattern pattern, std::int64_t padding = 0,
                                     std::uint32_t seed = 1) {
  FilterImage image{shape, shape.width * shape.channels + padding, {}};
  image.elements.assign(
      static_cast<std::size_t>((shape.height - 1) * image.row_stride + image.row_elements()),
      std::numeric_limits<float>::quiet_NaN());
  std::mt19937 random(seed);
  for (std::int64_t y = 0; y < shape.height; ++y) {
    for (std::int64_t i = 0; i < image.row_elements(); ++i) {
      const auto bits = static_cast<std::uint32_t>(random());
      image.row(y)[i] = pattern == FilterPattern::kConstant ? 0.7f
                        : pattern == FilterPattern::kSpikes
                            ? (bits % 97 == 0 ? 1e4f : 0.0f)
                            : std::ldexp(static_cast<float>(bits >> 8), -23) - 1.0f;
    }
  }
  return image;
}

/// Bytes that any method must move: the image read once, written once.
template <class T = float>
std::size_t recursive_filter_bytes(FilterShape shape) {
  return static_cast<std::size_t>(shape.height * shape.width * shape.channels) * 2 * sizeof(T);
}

/// The image's elements as T; rounds the image itself to numbers that T holds.
template <class T>
std::vector<T> elements_as(FilterImage& image) {
  std::vector<T> elements;
  for (float& value : image.elements) {
    if constexpr (std::is_same_v<T, Float16>) {
      elements.push_back(recursive_filter::nearest_float16(value));
    } else {
      elements.push_back(value);
    }
    value = static_cast<float>(elements.back());
  }
  return elements;
}

/// One direction as textbooks write it, in long double:
/// y[i] = gain sum_(k >= 0) forward[k] x[i - k] - sum_(k >= 1) feedback[k] y[i - k].
class SerialFilter {
 public:
  explicit SerialFilter(const OneWayFilter& filter) : gain_(static_cast<long double>(filter.gain)) {
    feedback_ = coefficients_of({filter.poles.data(), static_cast<std::size_t>(filter.order)}, 0);
    forward_ =
        coefficients_of({filter.zeros.data(), static_cast<std::size_t>(filter.zero_count)}, filter.delay);
    for (int k = 0; k < filter.order; ++k) {
      radius_ =
          std::max(radius_, std::abs(std::complex<long double>(filter.poles[static_cast<std::size_t>(k)])));
    }
  }

  long double advance(long double pixel) {
    remember(past_pixels_, pixel);
    long double value = 0;
    for (std::size_t k = 0; k < kTerms; ++k) value += forward_[k] * past_pixels_[k];
    value *= gain_;
    for (std::size_t k = 1; k < kTerms; ++k) value -= feedback_[k] * past_[k - 1];
    remember(past_, value);
    return value;
  }

  long double radius() const { return radius_; }
  /// Pixels after which less than 1e-17 of a response is left: radius^n n^4 bounds what poles of any
  /// multiplicity do.
  std::int64_t memory() const {
    if (radius_ == 0) return static_cast<std::int64_t>(kTerms);
    std::int64_t pixels = 8;
    while (static_cast<long double>(pixels) * std::log(radius_) +
               4 * std::log(static_cast<long double>(pixels)) >
           -39) {
      pixels += pixels / 8;
    }
    return pixels;
  }
  /// The sum of |impulse response|.
  long double sum_of_magnitudes() const {
    SerialFilter fresh = *this;
    fresh.past_ = fresh.past_pixels_ = {};
    long double sum = 0;
    const std::int64_t end = memory();
    for (std::int64_t i = 0; i < end; ++i) sum += std::abs(fresh.advance(i == 0 ? 1 : 0));
    return sum;
  }

 private:
  static constexpr std::size_t kTerms = kMaxFilterOrder + 1;
  using Terms = std::array<long double, kTerms>;

  /// Of z^-0, z^-1, ... in z^-delay times the product of (1 - root z^-1).
  static Terms coefficients_of(std::span<const std::complex<double>> roots, int delay) {
    std::array<std::complex<long double>, kTerms> polynomial{};
    polynomial[static_cast<std::size_t>(delay)] = 1;
    for (const std::complex<double> root : roots) {
      for (std::size_t i = kTerms - 1; i > 0; --i) {
        polynomial[i] -= std::complex<long double>(root) * polynomial[i - 1];
      }
    }
    Terms coefficients{};
    for (std::size_t i = 0; i < kTerms; ++i) coefficients[i] = polynomial[i].real();
    return coefficients;
  }
  static void remember(Terms& past, long double value) {
    for (std::size_t i = kTerms - 1; i > 0; --i) past[i] = past[i - 1];
    past[0] = value;
  }

  long double gain_;
  long double radius_ = 0;
  Terms feedback_{};  // the first is 1
  Terms forward_{};
  Terms past_{};
  Terms past_pixels_{};
};

/// The pixel that stands at `i` of the signal without end; -1: a zero.
inline std::int64_t source_of(std::int64_t i, std::int64_t length, FilterBoundary boundary) {
  const auto modulo = [](std::int64_t a, std::int64_t n) { return (a % n + n) % n; };
  switch (boundary) {
    case FilterBoundary::kZero:
      return i >= 0 && i < length ? i : -1;
    case FilterBoundary::kClamp:
      return std::clamp<std::int64_t>(i, 0, length - 1);
    case FilterBoundary::kRepeat:
      return modulo(i, length);
    case FilterBoundary::kReflect: {
      const std::int64_t at = modulo(i, 2 * length);
      return at < length ? at : 2 * length - 1 - at;
    }
    case FilterBoundary::kMirror: {
      if (length == 1) return 0;
      const std::int64_t at = modulo(i, 2 * length - 2);
      return at < length ? at : 2 * length - 2 - at;
    }
  }
  return -1;
}

/// The oracle for one line: the signal is written out on both sides until both filters have forgotten what
/// lies beyond, then filtered serially.
inline std::vector<long double> filter_line_serially(const std::vector<long double>& line,
                                                     const AxisFilter& filter) {
  SerialFilter causal(filter.causal);
  SerialFilter anticausal(filter.anticausal);
  const auto length = static_cast<std::int64_t>(line.size());
  const std::int64_t before = causal.memory();
  const std::int64_t after = anticausal.memory();
  std::vector<long double> signal;
  for (std::int64_t i = -before; i < length + after; ++i) {
    const std::int64_t at = source_of(i, length, filter.boundary);
    signal.push_back(causal.advance(at < 0 ? 0 : line[static_cast<std::size_t>(at)]));
  }
  std::vector<long double> filtered(line.size());
  for (std::int64_t i = length + after - 1; i >= 0; --i) {
    const long double value = anticausal.advance(signal[static_cast<std::size_t>(i + before)]);
    if (i < length) filtered[static_cast<std::size_t>(i)] = value;
  }
  return filtered;
}

/// The oracle: rows, then columns, dense.
inline std::vector<long double> filter_serially(const FilterImage& image, const RecursiveFilter& filter) {
  const FilterShape shape = image.shape;
  std::vector<long double> result(static_cast<std::size_t>(image.count()));
  const auto filter_lines = [](std::vector<long double>& values, std::int64_t first, std::int64_t step,
                               std::int64_t length, const AxisFilter& axis) {
    std::vector<long double> line;
    for (std::int64_t i = 0; i < length; ++i)
      line.push_back(values[static_cast<std::size_t>(first + i * step)]);
    line = filter_line_serially(line, axis);
    for (std::int64_t i = 0; i < length; ++i)
      values[static_cast<std::size_t>(first + i * step)] = line[static_cast<std::size_t>(i)];
  };
  for (std::int64_t y = 0; y < shape.height; ++y) {
    std::copy(image.row(y), image.row(y) + image.row_elements(), result.begin() + y * image.row_elements());
    for (std::int64_t channel = 0; channel < shape.channels; ++channel) {
      filter_lines(result, y * image.row_elements() + channel, shape.channels, shape.width, filter.x);
    }
  }
  for (std::int64_t i = 0; i < image.row_elements(); ++i) {
    filter_lines(result, i, image.row_elements(), shape.height, filter.y);
  }
  return result;
}

/// What recursive_filter.h promises, for images of magnitude 1 and of elements of T.
template <class T = float>
double recursive_filter_tolerance(const RecursiveFilter& filter) {
  long double gain = 1;
  long double radius = 0;
  int order = 0;
  double zeros = 1;
  for (const OneWayFilter* direction :
       {&filter.y.causal, &filter.y.anticausal, &filter.x.causal, &filter.x.anticausal}) {
    const SerialFilter serial(*direction);
    gain *= serial.sum_of_magnitudes();
    radius = std::max(radius, serial.radius());
    order = std::max(order, direction->order);
    if (direction->only_poles()) continue;
    for (int k = 0; k < direction->order; ++k) {
      zeros = std::max(zeros, std::abs(direction->poles[static_cast<std::size_t>(k)]) < 1.0 / 16 ? 4.0 : 2.0);
    }
  }
  constexpr bool kDouble = std::is_same_v<T, double>;
  const long double memory = kDouble || radius <= 15.0L / 16 ? 1 / (1 - radius) : 1;
  const long double unit = kDouble ? 0x1p-52L : 0x1p-23L;
  const long double arithmetic = (order + 1) * zeros * memory * unit * gain;
  const long double rounding = std::is_same_v<T, Float16> ? 0x1p-11L * gain + 0x1p-25L : 0;
  return static_cast<double>(arithmetic + rounding);
}

/// The largest |difference| between a dense result and the oracle's, as a multiple of max|image|.
template <class T>
double largest_filter_error(const FilterImage& image, const std::vector<long double>& right, const T* got) {
  long double magnitude = std::numeric_limits<float>::min();
  for (std::int64_t y = 0; y < image.shape.height; ++y) {
    for (std::int64_t i = 0; i < image.row_elements(); ++i) {
      magnitude = std::max(magnitude, std::abs(static_cast<long double>(image.row(y)[i])));
    }
  }
  long double largest = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    const long double error = std::abs(static_cast<long double>(got[i]) - right[i]);
    largest = std::isnan(error) ? std::numeric_limits<long double>::infinity() : std::max(largest, error);
  }
  return static_cast<double>(largest / magnitude);
}

/// Empty if the dense result `got` is within the bound of recursive_filter.h, otherwise the error in words.
template <class T>
std::string verify_recursive_filter(const FilterImage& image, const RecursiveFilter& filter, const T* got) {
  const double error = largest_filter_error(image, filter_serially(image, filter), got);
  const double tolerance = recursive_filter_tolerance<T>(filter);
  if (error <= tolerance) return "";
  std::ostringstream text;
  text << "the largest error is " << error << " of the image's largest magnitude; " << tolerance
       << " is the bound";
  return text.str();
}

}  // namespace cumulus::testing
