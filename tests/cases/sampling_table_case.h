#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/cases/sampling_table_oracle.h"

// Sampling tables: shapes, generator, verifier, bytes moved. For tests and benchmarks.

namespace cumulus::testing {

struct MapShape {
  std::int64_t height;
  std::int64_t width;
};

/// One texel, one row, one column, two rows, primes, around the threads of a block and the words of a bank.
inline const std::vector<MapShape> kSamplingTableShapes = {
    {1, 1},    {1, 2},    {2, 1},    {1, 517},   {517, 1},  {2, 331},   {3, 5},     {31, 37},
    {32, 64},  {33, 31},  {64, 127}, {63, 128},  {5, 129},  {127, 255}, {128, 256}, {61, 1021},
    {7, 1024}, {6, 1025}, {1025, 6}, {1031, 13}, {3, 4099}, {3, 8192},  {2, 8193}};

/// The widest and the highest, few cells the other way.
inline const std::vector<MapShape> kExtremeShapes = {{3, 32768}, {2, 24577}, {32768, 3}, {1, 32767}};

/// Every method, by its number in the .cst layout, and those that keep the order of points.
inline constexpr int kSamplingMethods[] = {1, 2, 5, 6, 9};
inline constexpr int kMonotoneMethods[] = {1, 2, 5, 6};
inline constexpr int kAliasMethod = 9;

enum class MapPattern {
  kRandom,     // [0, 1), or 0..255
  kConstant,   // 0.1, or 255
  kOneBright,  // zero but for one texel
  kContrast,   // 1e9 : 1
  kZeroBands,  // whole rows, and the beginnings and ends of the others, are zero
  kDenormal,   // denormal floats
  kSun,        // a small disc a million times brighter than the rest
  kAllScales,  // 2^-120 to 2^120
  kPowers,     // halved from texel to texel, again and again: the deepest trees
  kNearLimit,  // up to the largest float
};

inline const char* name_of(MapPattern pattern) {
  switch (pattern) {
    case MapPattern::kRandom:
      return "random";
    case MapPattern::kConstant:
      return "constant";
    case MapPattern::kOneBright:
      return "one bright texel";
    case MapPattern::kContrast:
      return "1e9:1";
    case MapPattern::kZeroBands:
      return "zero bands";
    case MapPattern::kDenormal:
      return "denormal";
    case MapPattern::kSun:
      return "sun";
    case MapPattern::kAllScales:
      return "all scales";
    case MapPattern::kPowers:
      return "powers of two";
    case MapPattern::kNearLimit:
      return "near the largest float";
  }
  return "?";
}

/// The patterns that make sense for weights of type T.
template <class T>
std::vector<MapPattern> map_patterns() {
  std::vector<MapPattern> patterns = {MapPattern::kRandom, MapPattern::kConstant, MapPattern::kOneBright,
                                      MapPattern::kZeroBands};
  if constexpr (std::is_same_v<T, float>) {
    patterns.insert(patterns.end(), {MapPattern::kContrast, MapPattern::kDenormal, MapPattern::kSun,
                                     MapPattern::kAllScales, MapPattern::kPowers, MapPattern::kNearLimit});
  }
  return patterns;
}

/// Weights whose last row ends where the memory ends; the padding between rows holds NaN, or 255.
template <class T>
struct TestMap {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 1;
  std::int64_t row_stride = 0;
  std::vector<T> elements;

  T& at(std::int64_t y, std::int64_t x, std::int64_t channel = 0) {
    return elements[static_cast<std::size_t>(y * row_stride + x * channels + channel)];
  }
  const T& at(std::int64_t y, std::int64_t x, std::int64_t channel = 0) const {
    return elements[static_cast<std::size_t>(y * row_stride + x * channels + channel)];
  }
};

namespace sampling_case_detail {

template <class T>
T draw_weight(MapPattern pattern, bool special, bool band, std::int64_t x, std::mt19937& bits) {
  constexpr bool kBytes = std::is_same_v<T, std::uint8_t>;
  const float uniform = static_cast<float>(bits() >> 8) / 16777216.0F;
  const auto random = static_cast<T>(kBytes ? std::floor(uniform * 256.0F) : uniform);
  const auto bright = static_cast<T>(kBytes ? 255.0F : 1e6F);
  switch (pattern) {
    case MapPattern::kRandom:
      return random;
    case MapPattern::kConstant:
      return static_cast<T>(kBytes ? 255.0F : 0.1F);
    case MapPattern::kOneBright:
      return special ? bright : T{0};
    case MapPattern::kZeroBands:
      return band ? T{0} : random;
    case MapPattern::kContrast:
      return static_cast<T>(bits() % 7 == 0 ? 1e9F : 1.0F);
    case MapPattern::kDenormal:
      return static_cast<T>(std::ldexp(std::floor(uniform * 512.0F), -149));
    case MapPattern::kSun:
      return static_cast<T>(uniform + (special ? 1e6F : 0.0F));
    case MapPattern::kAllScales:
      return static_cast<T>(std::ldexp(1.0F + uniform, static_cast<int>(bits() % 241) - 120));
    case MapPattern::kPowers:
      return static_cast<T>(std::ldexp(1.0F, static_cast<int>(-(x % 40))));
    case MapPattern::kNearLimit:
      return static_cast<T>(uniform * std::numeric_limits<float>::max());
  }
  return T{0};
}

}  // namespace sampling_case_detail

/// The same call gives the same map. `padding` elements follow each row but the last.
template <class T>
TestMap<T> make_map(MapShape shape, std::int64_t channels, std::int64_t padding, MapPattern pattern) {
  TestMap<T> map{shape.height, shape.width, channels, shape.width * channels + padding, {}};
  const T poison =
      std::is_same_v<T, float> ? std::numeric_limits<T>::quiet_NaN() : std::numeric_limits<T>::max();
  map.elements.assign(static_cast<std::size_t>(shape.height * map.row_stride - padding), poison);
  std::mt19937 bits(static_cast<unsigned>(shape.height * 65537 + shape.width * 31 + channels));
  const std::int64_t sun_y = shape.height / 3;
  const std::int64_t sun_x = 2 * shape.width / 3;
  for (std::int64_t y = 0; y < shape.height; ++y) {
    for (std::int64_t x = 0; x < shape.width; ++x) {
      const bool special = y == sun_y && x == sun_x;
      const bool band =
          !special && (y % 3 == 1 || x < shape.width / 4 || x > shape.width - 1 - shape.width / 5 ||
                       y > shape.height - 1 - shape.height / 4);
      for (std::int64_t channel = 0; channel < channels; ++channel) {
        map.at(y, x, channel) = sampling_case_detail::draw_weight<T>(pattern, special, band, x, bits);
      }
    }
  }
  return map;
}

/// The table of `map`, whose rows are those of all layers, by the oracle.
template <class T>
OracleTable oracle_table(const TestMap<T>& map, const OracleOptions& options) {
  std::vector<float> weights;
  weights.reserve(static_cast<std::size_t>(map.height * map.width));
  for (std::int64_t y = 0; y < map.height; ++y) {
    for (std::int64_t x = 0; x < map.width; ++x) {
      weights.push_back(map.channels < 3 ? static_cast<float>(map.at(y, x))
                                         : oracle_luminance(static_cast<float>(map.at(y, x, 0)),
                                                            static_cast<float>(map.at(y, x, 1)),
                                                            static_cast<float>(map.at(y, x, 2))));
    }
  }
  return OracleTable(weights, static_cast<std::uint32_t>(map.height) / options.layers,
                     static_cast<std::uint32_t>(map.width), options);
}

template <class T>
OracleTable oracle_table(const TestMap<T>& map, bool lat_long) {
  return oracle_table(map, OracleOptions{.lat_long = lat_long});
}

/// Compares a whole table; empty where every byte is right.
inline std::string verify_sampling_table(const OracleTable& oracle, const unsigned char* table) {
  const std::vector<unsigned char> expected = oracle.bytes();
  const auto difference = std::mismatch(expected.begin(), expected.end(), table);
  if (difference.first == expected.end()) return "";
  const auto offset = static_cast<std::size_t>(difference.first - expected.begin());
  std::ostringstream text;
  text << "byte " << offset << " (" << oracle.section_at(offset) << ") is "
       << static_cast<int>(*difference.second) << ", the oracle has " << static_cast<int>(*difference.first);
  return text.str();
}

/// Compares `count` rows (their lower bounds, guides and nodes), spread over a map too large to go through
/// whole.
template <class T>
std::string verify_sampling_table_rows(const TestMap<T>& map, const OracleOptions& options,
                                       const unsigned char* table, std::int64_t count) {
  const auto section = [table](std::size_t field) {
    std::uint64_t offset = 0;
    std::memcpy(&offset, table + field, sizeof(offset));
    return table + offset;
  };
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t y = count > 1 ? i * (map.height - 1) / (count - 1) : 0;
    TestMap<T> row{1, map.width, map.channels, map.row_stride, {}};
    const T* first = &map.at(y, 0);
    row.elements.assign(first, first + map.width * map.channels);
    const auto expected = oracle_table(row, options).row_bytes(0);
    const auto same = [&](const std::vector<unsigned char>& bytes, std::size_t field) {
      return std::memcmp(bytes.data(), section(field) + static_cast<std::size_t>(y) * bytes.size(),
                         bytes.size()) == 0;
    };
    if (!same(expected.lower, 80) || !same(expected.guide, 88) || !same(expected.nodes, 104)) {
      return "row " + std::to_string(y) + " is not the oracle's";
    }
  }
  return "";
}

/// Bytes that any method must move: the weights read once, the table written once.
template <class T>
std::size_t sampling_table_moved_bytes(const TestMap<T>& map, std::size_t table_bytes) {
  return static_cast<std::size_t>(map.height * map.width * map.channels) * sizeof(T) + table_bytes;
}

}  // namespace cumulus::testing
