#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/core/float16.h"
#include "tests/cases/sampling_table_case.h"

// How texels become weights, the slow way: half floats, coefficients, compensation.

namespace cumulus::testing {

/// A binary16 number, by its definition.
inline float oracle_half(std::uint16_t bits) {
  const float sign = (bits & 0x8000u) != 0 ? -1.0F : 1.0F;
  const int exponent = bits >> 10 & 31;
  const auto fraction = static_cast<float>(bits & 1023u);
  if (exponent == 31) {
    return fraction > 0 ? std::numeric_limits<float>::quiet_NaN()
                        : sign * std::numeric_limits<float>::infinity();
  }
  return exponent == 0 ? sign * std::ldexp(fraction, -24)
                       : sign * std::ldexp(1024.0F + fraction, exponent - 25);
}

/// Half floats of every size, subnormal ones too; a third of them are zero.
inline TestMap<Float16> make_half_map(MapShape shape, std::int64_t channels, std::int64_t padding) {
  TestMap<Float16> map{shape.height, shape.width, channels, shape.width * channels + padding, {}};
  constexpr Float16 kNan{0x7E00};
  map.elements.assign(static_cast<std::size_t>(shape.height * map.row_stride - padding), kNan);
  std::mt19937 random(static_cast<unsigned>(shape.height * 7919 + shape.width * 31 + channels));
  for (std::int64_t y = 0; y < shape.height; ++y) {
    for (std::int64_t i = 0; i < shape.width * channels; ++i) {
      const auto bits = static_cast<std::uint16_t>(random() % 0x7C00u);
      map.elements[static_cast<std::size_t>(y * map.row_stride + i)] =
          random() % 3 == 0 ? Float16{0} : Float16{bits};
    }
  }
  return map;
}

/// Numbers from 0 to below 65520, cut to half floats; to 0 below 2^-14.
inline TestMap<Float16> narrowed(const TestMap<float>& map) {
  TestMap<Float16> narrow{map.height, map.width, map.channels, map.row_stride, {}};
  narrow.elements.reserve(map.elements.size());
  for (const float value : map.elements) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    constexpr std::uint32_t kBias = 112;  // of a float's exponent over that of a half float
    narrow.elements.push_back(
        Float16{static_cast<std::uint16_t>(bits >> 23 > kBias ? (bits >> 13) - (kBias << 10) : 0)});
  }
  return narrow;
}

inline TestMap<float> widened(const TestMap<Float16>& map) {
  TestMap<float> wide{map.height, map.width, map.channels, map.row_stride, {}};
  for (const Float16 half : map.elements) wide.elements.push_back(oracle_half(half.bits));
  return wide;
}

/// The weights of a map of three or four channels.
template <class T>
std::vector<float> oracle_weights(const TestMap<T>& map, float red, float green, float blue) {
  std::vector<float> weights;
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (std::int64_t y = 0; y < map.height; ++y) {
    for (std::int64_t x = 0; x < map.width; ++x) {
      const long double sum = static_cast<long double>(red) * static_cast<long double>(map.at(y, x, 0)) +
                              static_cast<long double>(green) * static_cast<long double>(map.at(y, x, 1)) +
                              static_cast<long double>(blue) * static_cast<long double>(map.at(y, x, 2));
      const float rounded = sum > static_cast<long double>(kLargest) ? kLargest : static_cast<float>(sum);
      weights.push_back(sum > 0 && rounded == 0 ? std::numeric_limits<float>::denorm_min() : rounded);
    }
  }
  return weights;
}

/// The mean of the weights, a texel of the sphere counted with its solid angle: as
/// docs/operations/sampling_table_format.md has it, to the bit.
inline float oracle_mean(const std::vector<float>& weights, std::uint32_t height, std::uint32_t width,
                         bool lat_long) {
  constexpr long double kPi = 3.14159265358979323846264338327950288L;
  std::vector<double> mass(height);
  std::vector<int> scale(height);
  long double shares = 0;
  for (std::uint32_t y = 0; y < height; ++y) {
    const float* row = weights.data() + static_cast<std::size_t>(y) * width;
    const float largest = *std::max_element(row, row + width);
    scale[y] = largest > 0 ? std::max(std::ilogb(largest), -126) : -126;
    WideInteger sum = 0;
    for (std::uint32_t x = 0; x < width; ++x) {
      const long double whole = std::floor(std::ldexp(static_cast<long double>(row[x]), 47 - scale[y]));
      sum += row[x] > 0 ? std::max<std::uint64_t>(static_cast<std::uint64_t>(whole), 1) : 0;
    }
    const auto share =
        lat_long ? static_cast<float>(std::sin(kPi * (2 * static_cast<long double>(y) + 1) / (2.0L * height)))
                 : 1.0F;
    mass[y] = static_cast<double>(sum) * static_cast<double>(share);
    shares += static_cast<long double>(share);
  }
  int heaviest = std::numeric_limits<int>::min();
  for (std::uint32_t y = 0; y < height; ++y) {
    if (mass[y] > 0) heaviest = std::max(heaviest, std::ilogb(mass[y]) + scale[y]);
  }
  if (heaviest == std::numeric_limits<int>::min()) return 0;
  WideInteger all = 0;
  for (std::uint32_t y = 0; y < height; ++y) {
    if (mass[y] == 0) continue;
    const long double scaled = std::ldexp(static_cast<long double>(mass[y]), scale[y] - heaviest + 47);
    all += std::max<std::uint64_t>(static_cast<std::uint64_t>(scaled), 1);
  }
  const double texels = static_cast<double>(width) * static_cast<double>(shares);
  return static_cast<float>(std::ldexp(static_cast<double>(all) / texels, heaviest - 94));
}

inline std::vector<float> oracle_compensated(std::vector<float> weights, std::uint32_t height,
                                             std::uint32_t width, bool lat_long) {
  const float mean = oracle_mean(weights, height, width, lat_long);
  if (!(*std::max_element(weights.begin(), weights.end()) > mean)) return weights;
  for (float& weight : weights) weight = weight > mean ? weight - mean : 0.0F;
  return weights;
}

}  // namespace cumulus::testing
