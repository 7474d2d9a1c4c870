#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/core/float16.h"

// Summed-area tables: shapes, generator, oracle, verifier, bytes moved. For tests and benchmarks.

namespace cumulus::testing {

struct ImageShape {
  std::int64_t height;
  std::int64_t width;
};

/// One pixel, one row, one column, primes, one more and one less than the tiles of either backend, several
/// tiles.
inline const std::vector<ImageShape> kSummedAreaTableShapes = {
    {1, 1},     {1, 2},     {2, 1},     {1, 517},   {517, 1},  {3, 5},    {31, 37},   {47, 127},
    {48, 128},  {49, 129},  {63, 129},  {64, 128},  {65, 127}, {64, 256}, {65, 257},  {127, 63},
    {128, 128}, {129, 129}, {127, 131}, {257, 263}, {70, 901}, {901, 70}, {389, 1021}};

enum class ImagePattern {
  kRandom,      // uniform: 0..255, or [0, 1)
  kConstant,    // 255, or 0.1
  kSpikes,      // zero but for one pixel in 97, which is 255 or 1e4
  kIntegers,    // floats with small integer values: sums are exact in any order
  kCancelling,  // floats of both signs and magnitudes from 1e-20 to 1e20
};

inline const char* name_of(ImagePattern pattern) {
  switch (pattern) {
    case ImagePattern::kRandom:
      return "random";
    case ImagePattern::kConstant:
      return "constant";
    case ImagePattern::kSpikes:
      return "spikes";
    case ImagePattern::kIntegers:
      return "integers";
    case ImagePattern::kCancelling:
      return "cancelling";
  }
  return "?";
}

template <class T>
inline constexpr bool kIsFloating = !std::is_integral_v<T>;

/// The patterns that make sense for pixels of type T.
template <class T>
std::vector<ImagePattern> image_patterns() {
  if constexpr (kIsFloating<T>) {
    return {ImagePattern::kRandom, ImagePattern::kConstant, ImagePattern::kSpikes, ImagePattern::kIntegers,
            ImagePattern::kCancelling};
  } else {
    return {ImagePattern::kRandom, ImagePattern::kConstant, ImagePattern::kSpikes};
  }
}

/// An image on the host. The last row is not padded: its last pixel is the allocation's end.
template <class T>
struct TestImage {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 1;
  std::int64_t row_stride = 0;
  std::vector<T> elements;

  TestImage(ImageShape shape, std::int64_t channel_count, std::int64_t padding = 0)
      : height(shape.height),
        width(shape.width),
        channels(channel_count),
        row_stride(shape.width * channel_count + padding),
        elements(static_cast<std::size_t>((height - 1) * row_stride + width * channels)) {}

  std::int64_t row_elements() const { return width * channels; }
  T* row(std::int64_t y) { return elements.data() + y * row_stride; }
  const T* row(std::int64_t y) const { return elements.data() + y * row_stride; }
};

inline Float16 make_half_pixel(ImagePattern pattern, std::uint32_t bits) {
  constexpr std::array<std::uint16_t, 8> kSmallIntegers = {0,      0x3C00, 0x4000, 0x4200,
                                                           0x4400, 0x4500, 0x4600, 0x4700};
  switch (pattern) {
    case ImagePattern::kRandom:
      return {static_cast<std::uint16_t>(0x3800 | (bits & 0x3FF))};  // [0.5, 1)
    case ImagePattern::kConstant:
      return {0x2E66};
    case ImagePattern::kSpikes:
      return {static_cast<std::uint16_t>(bits % 97 != 0 ? 0 : 0x70E2)};
    case ImagePattern::kIntegers:
      return {kSmallIntegers[bits % 8]};
    case ImagePattern::kCancelling:  // every finite number, subnormal ones too
      return {static_cast<std::uint16_t>((bits & 0x83FF) | ((bits >> 16) % 31) << 10)};
  }
  return {0};
}

template <class T>
T make_pixel(ImagePattern pattern, std::mt19937& random) {
  const auto bits = static_cast<std::uint32_t>(random());
  if constexpr (std::is_same_v<T, Float16>) {
    return make_half_pixel(pattern, bits);
  } else {
    constexpr bool kFloat = kIsFloating<T>;
    constexpr int kUnusedBits = kFloat ? 0 : 32 - static_cast<int>(8 * sizeof(T));
    switch (pattern) {
      case ImagePattern::kRandom:
        return kFloat ? static_cast<T>(std::ldexp(static_cast<float>(bits >> 8), -24))
                      : static_cast<T>(bits >> kUnusedBits);
      case ImagePattern::kConstant:
        return kFloat ? static_cast<T>(0.1) : std::numeric_limits<T>::max();
      case ImagePattern::kSpikes:
        return bits % 97 != 0 ? T{0} : kFloat ? static_cast<T>(1e4) : std::numeric_limits<T>::max();
      case ImagePattern::kIntegers:
        return static_cast<T>(bits % 8);
      case ImagePattern::kCancelling: {
        const float magnitude = std::pow(10.0f, static_cast<float>(bits % 4096) / 4096.0f * 40.0f - 20.0f);
        return static_cast<T>((bits & 4096) != 0 ? magnitude : -magnitude);
      }
    }
    return T{0};
  }
}

/// What lies between rows: a sum that includes it is wrong.
template <class T>
T padding_pixel() {
  if constexpr (std::is_same_v<T, Float16>) {
    return Float16{0x7E00};
  } else if constexpr (kIsFloating<T>) {
    return std::numeric_limits<T>::quiet_NaN();
  } else {
    return static_cast<T>(0x6E6E6EEE);
  }
}

template <class T>
TestImage<T> make_image(ImageShape shape, std::int64_t channels, std::int64_t padding, ImagePattern pattern,
                        std::uint32_t seed = 1) {
  TestImage<T> image(shape, channels, padding);
  std::fill(image.elements.begin(), image.elements.end(), padding_pixel<T>());
  std::mt19937 random(seed);
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t i = 0; i < image.row_elements(); ++i) image.row(y)[i] = make_pixel<T>(pattern, random);
  }
  return image;
}

/// The image whose pixels are f(pixel, channel), without padding.
template <class To, class From, class F>
TestImage<To> map_image(const TestImage<From>& image, const F& f) {
  TestImage<To> mapped({image.height, image.width}, image.channels);
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t i = 0; i < image.row_elements(); ++i)
      mapped.row(y)[i] = f(image.row(y)[i], i % image.channels);
  }
  return mapped;
}

/// The squares of an image, exactly, but for doubles' last bits.
template <class T>
auto squares_of(const TestImage<T>& image) {
  using Wide = std::conditional_t<std::is_integral_v<T>, std::uint64_t, long double>;
  return map_image<Wide>(image, [](T pixel, std::int64_t) {
    const auto value = static_cast<Wide>(pixel);
    return value * value;
  });
}

/// Bytes that any method must move: the image read once, the table written once.
template <class Input, class Sum>
std::size_t summed_area_table_bytes(std::int64_t elements) {
  return static_cast<std::size_t>(elements) * (sizeof(Input) + sizeof(Sum));
}

/// The serial oracle, one row after the other: column sums so far, then their prefix, in wider arithmetic:
/// u64 for integers, long double for floats.
template <class Input>
class SummedAreaTableOracle {
 public:
  using Wide = std::conditional_t<std::is_integral_v<Input>, std::uint64_t, long double>;

  explicit SummedAreaTableOracle(const TestImage<Input>& image)
      : image_(image),
        columns_(static_cast<std::size_t>(image.row_elements())),
        column_magnitudes_(columns_.size()),
        sums_(columns_.size()),
        magnitudes_(columns_.size()) {}

  /// Goes on to the next row.
  void advance() {
    const Input* row = image_.row(next_row_++);
    const auto channels = static_cast<std::size_t>(image_.channels);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      columns_[i] += static_cast<Wide>(row[i]);
      const auto pixel = static_cast<double>(row[i]);
      column_magnitudes_[i] += std::abs(pixel);
      integral_ = integral_ && pixel == std::trunc(pixel);
      sums_[i] = columns_[i] + (i >= channels ? sums_[i - channels] : Wide{0});
      magnitudes_[i] = column_magnitudes_[i] + (i >= channels ? magnitudes_[i - channels] : 0.0);
    }
  }

  /// The table's row.
  const std::vector<Wide>& sums() const { return sums_; }
  /// For each element the sum of |pixel| over its rectangle.
  const std::vector<double>& magnitudes() const { return magnitudes_; }
  /// True if all pixels so far are whole numbers.
  bool integral() const { return integral_; }

 private:
  const TestImage<Input>& image_;
  std::int64_t next_row_ = 0;
  std::vector<Wide> columns_;
  std::vector<double> column_magnitudes_;
  std::vector<Wide> sums_;
  std::vector<double> magnitudes_;
  bool integral_ = true;
};

/// How far a float sum may be from the truth.
///
/// Whichever way the rectangle's pixels are summed, by rows and by columns, each addition joins two
/// sets of columns or two sets of rows, so that a pixel goes through at most (height - 1) + (width - 1)
/// of them, each off by a factor of at most 1 + u. Hence |error| <= ((1 + u)^n - 1) * sum |pixel| with
/// n = height + width - 2 <= n u / (1 - n u) * sum |pixel| (Higham, "Accuracy and Stability of Numerical
/// Algorithms", section 4.2). Whole numbers that add up to less than 1 / u are exact.
template <class Sum>
double summed_area_table_tolerance(double magnitude, bool integral, std::int64_t height, std::int64_t width) {
  constexpr double kUnit = std::is_same_v<Sum, float> ? 0x1p-24 : 0x1p-53;
  if (integral && magnitude < 1 / kUnit) return 0;
  const double steps = static_cast<double>(height + width) * kUnit;
  const double oracle = 1e-18 * static_cast<double>(height + width);  // of long double, and of the magnitudes
  return (steps / (1 - steps) + oracle) * magnitude;
}

/// Compares a dense table with the oracle: integers exactly (modulo 2^32 for 32-bit sums), floats
/// within the tolerance; of an exclusive table also the zeros. Empty if they agree, otherwise the first
/// difference in words.
template <class Input, class Sum>
std::string verify_summed_area_table(const TestImage<Input>& image, const Sum* table,
                                     bool exclusive = false) {
  SummedAreaTableOracle<Input> oracle(image);
  const std::int64_t border = exclusive ? image.channels : 0;
  const std::int64_t row_elements = image.row_elements() + border;
  const auto differs = [](std::int64_t y, std::int64_t i, Sum got, auto right) {
    std::ostringstream text;
    text.precision(20);
    text << "row " << y << ", element " << i << " of the row: " << +got << ", not " << right;
    return text.str();
  };
  for (std::int64_t i = 0; exclusive && i < row_elements; ++i) {
    if (table[i] != Sum{0}) return differs(-1, i, table[i], 0);
  }
  for (std::int64_t y = 0; y < image.height; ++y) {
    oracle.advance();
    const Sum* row = table + (y + (exclusive ? 1 : 0)) * row_elements;
    for (std::int64_t i = 0; i < border; ++i) {
      if (row[i] != Sum{0}) return differs(y, i - border, row[i], 0);
    }
    for (std::size_t i = 0; i < oracle.sums().size(); ++i) {
      const Sum got = row[static_cast<std::size_t>(border) + i];
      bool good = false;
      if constexpr (std::is_integral_v<Input>) {
        good = got == static_cast<Sum>(oracle.sums()[i]);
      } else {
        const double tolerance =
            summed_area_table_tolerance<Sum>(oracle.magnitudes()[i], oracle.integral(), y + 1, image.width);
        good =
            std::abs(static_cast<long double>(got) - oracle.sums()[i]) <= static_cast<long double>(tolerance);
      }
      if (!good) return differs(y, static_cast<std::int64_t>(i), got, oracle.sums()[i]);
    }
  }
  return "";
}

}  // namespace cumulus::testing
