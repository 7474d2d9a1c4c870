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

/// The patterns that make sense for pixels of type T.
template <class T>
std::vector<ImagePattern> image_patterns() {
  if constexpr (std::is_same_v<T, float>) {
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

template <class T>
T make_pixel(ImagePattern pattern, std::mt19937& random) {
  constexpr bool kFloat = std::is_same_v<T, float>;
  const auto bits = static_cast<std::uint32_t>(random());
  switch (pattern) {
    case ImagePattern::kRandom:
      return kFloat ? static_cast<T>(std::ldexp(static_cast<float>(bits >> 8), -24))
                    : static_cast<T>(bits >> 24);
    case ImagePattern::kConstant:
      return kFloat ? static_cast<T>(0.1f) : static_cast<T>(255);
    case ImagePattern::kSpikes:
      return bits % 97 != 0 ? T{0} : kFloat ? static_cast<T>(1e4f) : static_cast<T>(255);
    case ImagePattern::kIntegers:
      return static_cast<T>(bits % 8);
    case ImagePattern::kCancelling: {
      const float magnitude = std::pow(10.0f, static_cast<float>(bits % 4096) / 4096.0f * 40.0f - 20.0f);
      return static_cast<T>((bits & 4096) != 0 ? magnitude : -magnitude);
    }
  }
  return T{0};
}

/// Padding between rows holds NaN or 0xEE: a sum that includes it is wrong.
template <class T>
TestImage<T> make_image(ImageShape shape, std::int64_t channels, std::int64_t padding, ImagePattern pattern,
                        std::uint32_t seed = 1) {
  TestImage<T> image(shape, channels, padding);
  std::fill(image.elements.begin(), image.elements.end(),
            std::is_same_v<T, float> ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(0xEE));
  std::mt19937 random(seed);
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t i = 0; i < image.row_elements(); ++i) image.row(y)[i] = make_pixel<T>(pattern, random);
  }
  return image;
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
      column_magnitudes_[i] += std::abs(static_cast<double>(row[i]));
      integral_ = integral_ && static_cast<float>(row[i]) == std::trunc(static_cast<float>(row[i]));
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
/// within the tolerance. Empty if they agree, otherwise the first difference in words.
template <class Input, class Sum>
std::string verify_summed_area_table(const TestImage<Input>& image, const Sum* table) {
  SummedAreaTableOracle<Input> oracle(image);
  for (std::int64_t y = 0; y < image.height; ++y) {
    oracle.advance();
    for (std::size_t i = 0; i < oracle.sums().size(); ++i) {
      const Sum got = table[y * image.row_elements() + static_cast<std::int64_t>(i)];
      bool good = false;
      if constexpr (std::is_integral_v<Input>) {
        good = got == static_cast<Sum>(oracle.sums()[i]);
      } else {
        const double tolerance =
            summed_area_table_tolerance<Sum>(oracle.magnitudes()[i], oracle.integral(), y + 1, image.width);
        good =
            std::abs(static_cast<long double>(got) - oracle.sums()[i]) <= static_cast<long double>(tolerance);
      }
      if (!good) {
        std::ostringstream text;
        text.precision(20);
        text << "row " << y << ", element " << i << " of the row: " << +got << ", not " << oracle.sums()[i];
        return text.str();
      }
    }
  }
  return "";
}

/// Means over boxes, and the magnitude that the tolerance grows with, from loops over the box: columns first.
struct BoxMean {
  long double sum = 0;
  std::int64_t pixels = 0;
};

template <class Input>
std::vector<BoxMean> naive_box_means(const TestImage<Input>& image, std::int64_t radius) {
  std::vector<BoxMean> means;
  std::vector<long double> columns(static_cast<std::size_t>(image.row_elements()));
  for (std::int64_t y = 0; y < image.height; ++y) {
    const std::int64_t top = std::max<std::int64_t>(0, y - radius);
    const std::int64_t bottom = std::min(image.height - 1, y + radius);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      columns[i] = 0;
      for (std::int64_t v = top; v <= bottom; ++v) columns[i] += static_cast<long double>(image.row(v)[i]);
    }
    for (std::int64_t i = 0; i < image.row_elements(); ++i) {
      const std::int64_t x = i / image.channels;
      const std::int64_t left = std::max<std::int64_t>(0, x - radius);
      const std::int64_t right = std::min(image.width - 1, x + radius);
      BoxMean mean;
      for (std::int64_t u = left; u <= right; ++u) {
        mean.sum += columns[static_cast<std::size_t>(u * image.channels + i % image.channels)];
      }
      mean.pixels = (bottom - top + 1) * (right - left + 1);
      means.push_back(mean);
    }
  }
  return means;
}

/// Compares a dense filtered image with the naive means. 8-bit images: exactly, the quotient of exact
/// integers rounded to double, then to float. Float images: each of the table's four elements is
/// off by at most (height + width) u times the image's sum of |pixel|, u = 2^-53; three subtractions and one
/// division add 4 u of it at most; then comes the rounding to float. Empty if they agree.
template <class Input>
std::string verify_box_filter(const TestImage<Input>& image, std::int64_t radius, const float* filtered) {
  const std::vector<BoxMean> means = naive_box_means(image, radius);
  double magnitude = 0;
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t i = 0; i < image.row_elements(); ++i)
      magnitude += std::abs(static_cast<double>(image.row(y)[i]));
  }
  for (std::size_t i = 0; i < means.size(); ++i) {
    const auto sum = static_cast<double>(means[i].sum);
    const auto pixels = static_cast<double>(means[i].pixels);
    const double right = sum / pixels;
    double tolerance = 0;
    if constexpr (std::is_same_v<Input, float>) {
      const auto steps = static_cast<double>(4 * (image.height + image.width) + 4);
      tolerance = 1.001 * (steps * 0x1p-53 * magnitude / pixels + 0x1p-24 * std::abs(right)) + 0x1p-149;
    }
    const double error = std::abs(static_cast<double>(filtered[i]) -
                                  (tolerance > 0 ? right : static_cast<double>(static_cast<float>(right))));
    if (!(error <= tolerance)) {
      std::ostringstream text;
      text.precision(12);
      text << "element " << i << ": " << filtered[i] << ", not " << right << " (tolerance " << tolerance
           << ")";
      return text.str();
    }
  }
  return "";
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

/// The sum over a rectangle and its number of pixels inside the image, pixel by pixel.
template <class Input>
BoxMean naive_rectangle(const TestImage<Input>& image, const std::array<std::int32_t, 4>& rectangle,
                        std::int64_t channel) {
  BoxMean box;
  for (std::int64_t y = std::max(0, rectangle[0]); y < std::min<std::int64_t>(rectangle[2], image.height);
       ++y) {
    for (std::int64_t x = std::max(0, rectangle[1]); x < std::min<std::int64_t>(rectangle[3], image.width);
         ++x) {
      box.sum += static_cast<long double>(image.row(y)[x * image.channels + channel]);
      ++box.pixels;
    }
  }
  return box;
}

}  // namespace cumulus::testing
