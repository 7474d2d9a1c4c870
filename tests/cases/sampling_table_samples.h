#pragma once

#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>

#include "tests/cases/sampling_table_oracle.h"

// What a drawn sample must be, in long double from the oracle's table. For tests and benchmarks.

namespace cumulus::testing {

/// A point of the unit square in units of 2^-32.
struct UnitPoint {
  std::uint32_t x;
  std::uint32_t y;
};

/// The first two dimensions of Sobol's sequence by direction numbers: (1, 0, 0, ...) and the primitive
/// polynomial x + 1, whose numbers follow from v_c = v_(c-1) xor (v_(c-1) >> 1).
inline UnitPoint oracle_sobol_point(std::uint32_t index) {
  UnitPoint point{0, 0};
  std::uint32_t first = 0x80000000u;
  std::uint32_t second = 0x80000000u;
  for (int c = 0; c < 32; ++c) {
    if ((index >> c & 1u) != 0) {
      point.x ^= first;
      point.y ^= second;
    }
    first >>= 1;
    second ^= second >> 1;
  }
  return point;
}

inline UnitPoint oracle_hammersley_point(std::uint32_t index, std::uint64_t total) {
  const auto first =
      static_cast<std::uint32_t>(static_cast<WideInteger>(index) * (std::uint64_t{1} << 32) / total);
  return {first, oracle_sobol_point(index).x};
}

struct ExpectedSample {
  std::uint32_t x;
  std::uint32_t y;
  long double u;
  long double v;
  long double direction[3];
  long double pdf;
};

/// A cell, and where within it.
struct OraclePlace {
  std::size_t cell;
  long double fraction;
};

inline OraclePlace oracle_place(const OracleCells& cells, int method, std::uint32_t x) {
  constexpr int kAlias = 9;
  constexpr long double kWhole = 4294967296.0L;
  if (method != kAlias) {
    const std::size_t cell = cells.find(x);
    return {cell, (static_cast<long double>(x - cells.begin[cell]) + 0.5L) /
                      static_cast<long double>(cells.mass(cell))};
  }
  const OracleAliasTable table = oracle_alias_table(cells);
  const std::uint64_t n = cells.count();
  const auto column = static_cast<std::size_t>(n * x >> 32);
  const auto middle = static_cast<long double>(n * x & 0xFFFFFFFFu) + 0.5L * static_cast<long double>(n);
  const auto split = static_cast<long double>(n * table.split[column] & 0xFFFFFFFFu);
  if (x < table.split[column]) return {column, std::min(middle / split, 1.0L)};
  return {table.alias[column], std::min((middle - split) / (kWhole - split), 1.0L)};
}

inline ExpectedSample expected_sample(const OracleTable& table, UnitPoint point, std::size_t layer) {
  constexpr long double kPi = 3.14159265358979323846264338327950288L;
  ExpectedSample expected{};
  const OraclePlace row = oracle_place(table.marginal(layer), table.method(), point.y);
  const std::size_t y = row.cell;
  const OraclePlace column = oracle_place(table.row(y, layer), table.method(), point.x);
  const std::size_t x = column.cell;
  expected.y = static_cast<std::uint32_t>(y);
  expected.x = static_cast<std::uint32_t>(x);
  expected.u = (static_cast<long double>(x) + column.fraction) / table.width();
  expected.pdf = table.density(y, x, layer);
  const long double down = row.fraction;
  if (!table.lat_long()) {
    expected.v = (static_cast<long double>(y) + down) / table.height();
    return expected;
  }
  // (1 - cos theta) / 2 grows evenly with solid angle
  const long double top = std::sin(kPi * static_cast<long double>(y) / table.height() / 2);
  const long double bottom = std::sin(kPi * static_cast<long double>(y + 1) / table.height() / 2);
  const long double theta = 2 * std::asin(std::sqrt(top * top + down * (bottom * bottom - top * top)));
  expected.v = theta / kPi;
  expected.direction[0] = std::sin(theta) * std::sin(2 * kPi * expected.u);
  expected.direction[1] = std::cos(theta);
  expected.direction[2] = -std::sin(theta) * std::cos(2 * kPi * expected.u);
  return expected;
}

/// Empty where the sample is right: in the right texel, (u, v) within 3e-7, the direction within
/// 1.5e-6 (float's rounding of u times 2 pi), the density within 1e-6 of itself. `direction` may be null.
inline std::string verify_sample(const OracleTable& table, UnitPoint point, const float* position, float pdf,
                                 const float* direction, std::size_t layer = 0) {
  const ExpectedSample expected = expected_sample(table, point, layer);
  const auto near = [](float value, long double right, long double bound) {
    return std::abs(static_cast<long double>(value) - right) <= bound;
  };
  const auto cell = [](float x, std::uint32_t count) {
    return static_cast<std::uint32_t>(x * static_cast<float>(count));
  };
  bool right = position[0] >= 0.0F && position[0] < 1.0F && position[1] >= 0.0F && position[1] < 1.0F;
  right = right && cell(position[0], table.width()) == expected.x &&
          cell(position[1], table.height()) == expected.y;
  right = right && near(position[0], expected.u, 3e-7L) && near(position[1], expected.v, 3e-7L);
  right = right && near(pdf, expected.pdf, 1e-6L * expected.pdf);
  for (int axis = 0; direction != nullptr && axis < 3; ++axis) {
    right = right && near(direction[axis], expected.direction[axis], 1.5e-6L);
  }
  if (right) return "";
  std::ostringstream text;
  text.precision(10);
  text << "point (" << point.x << ", " << point.y << ") / 2^32 gave (" << position[0] << ", " << position[1]
       << "), pdf " << pdf;
  if (direction != nullptr)
    text << ", direction " << direction[0] << " " << direction[1] << " " << direction[2];
  text << "; right is texel (" << expected.x << ", " << expected.y << "), (" << expected.u << ", "
       << expected.v << "), pdf " << expected.pdf << ", direction " << expected.direction[0] << " "
       << expected.direction[1] << " " << expected.direction[2];
  return text.str();
}

}  // namespace cumulus::testing
