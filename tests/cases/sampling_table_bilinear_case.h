#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/cases/sampling_table_oracle.h"
#include "tests/cases/sampling_table_samples.h"

// A bilinear table the slow way, after docs/operations/sampling_table_format.md alone. It shares no code with
// the kernels or with cumulus/sampling.h.

namespace cumulus::testing {

struct BilinearShape {
  std::uint32_t height;
  std::uint32_t width;
  int projection = 1;  // by the numbers of the .cst layout
  int method = 5;
  std::uint32_t layers = 1;
};

/// A point of the unit square.
struct WidePoint {
  long double u;
  long double v;
};

class BilinearOracle {
 public:
  /// `weights` of the map's texels, all layers after each other.
  BilinearOracle(std::vector<float> weights, const BilinearShape& shape)
      : weights_(std::move(weights)),
        shape_(shape),
        rows_(shape.height == 1 ? 1 : shape.height + 1),
        columns_(shape.width + 1),
        vertices_(all_vertices()),
        cells_(cell_weights(), rows_, columns_, options()) {}

  const OracleTable& cells() const { return cells_; }
  std::uint32_t rows() const { return rows_; }
  std::uint32_t columns() const { return columns_; }
  std::vector<unsigned char> bytes() const {
    std::vector<unsigned char> table = cells_.bytes();
    table[36] = static_cast<unsigned char>(shape_.projection);
    return table;
  }

  /// The cell that holds a coordinate.
  static std::uint32_t cell_of(long double position, std::uint32_t cells) {
    std::uint32_t k = 0;
    while (k + 1 < cells && edge(k + 1, cells) <= position) ++k;
    return k;
  }
  /// Where cell k of a side begins.
  static long double edge(std::uint32_t k, std::uint32_t cells) {
    if (k == 0) return 0;
    return k == cells ? 1.0L : (static_cast<long double>(k) - 0.5L) / static_cast<long double>(cells - 1);
  }

  /// Which share of a row's area lies above v, and of a column's to the left of u.
  long double down(std::uint32_t y, long double v) const {
    return (height_above(v) - height_above(edge(y, rows_))) / row_size(y);
  }
  long double across(std::uint32_t x, long double u) const {
    return (u - edge(x, columns_)) / (edge(x + 1, columns_) - edge(x, columns_));
  }
  /// The v above which that share of the row's area lies.
  long double position_down(std::uint32_t y, long double share) const {
    const long double above = height_above(edge(y, rows_)) + share * row_size(y);
    return shape_.projection == 1 ? 2 * std::asin(std::sqrt(std::min(above, 1.0L))) / kPi : above;
  }

  /// Bilinear in the cell's shares.
  long double interpolated(std::uint32_t y, std::uint32_t x, long double s, long double t,
                           std::uint32_t layer = 0) const {
    return (vertex(y, x, layer) * (1 - s) + vertex(y, x + 1, layer) * s) * (1 - t) +
           (vertex(y + 1, x, layer) * (1 - s) + vertex(y + 1, x + 1, layer) * s) * t;
  }
  long double mean(std::uint32_t y, std::uint32_t x, std::uint32_t layer = 0) const {
    return interpolated(y, x, 0.5L, 0.5L, layer);
  }

  /// Of the unit square, or of the sphere.
  long double cell_size(std::uint32_t y, std::uint32_t x) const {
    const long double whole = shape_.projection == 2 ? 1.0L : 4 * kPi;
    return whole * row_size(y) * (edge(x + 1, columns_) - edge(x, columns_));
  }
  long double probability(std::uint32_t y, std::uint32_t x, std::uint32_t layer = 0) const {
    return std::ldexp(static_cast<long double>(cells_.marginal(layer).mass(y)), -32) *
           std::ldexp(static_cast<long double>(cells_.row(y, layer).mass(x)), -32);
  }
  /// The density of the table's integers.
  long double density(WidePoint at, std::uint32_t layer = 0) const {
    const std::uint32_t y = cell_of(at.v, rows_);
    const std::uint32_t x = cell_of(at.u, columns_);
    if (probability(y, x, layer) == 0) return 0;
    return probability(y, x, layer) / cell_size(y, x) *
           interpolated(y, x, across(x, at.u), down(y, at.v), layer) / mean(y, x, layer);
  }
  /// The integral of the interpolated weights: what a table approximates is these over it.
  long double integral(std::uint32_t layer = 0) const {
    long double sum = 0;
    for (std::uint32_t y = 0; y < rows_; ++y) {
      for (std::uint32_t x = 0; x < columns_; ++x) sum += mean(y, x, layer) * cell_size(y, x);
    }
    return sum;
  }

  long double vertex(std::uint32_t y, std::uint32_t x, std::uint32_t layer = 0) const {
    const std::uint32_t stored = shape_.height == 1 ? 0 : y;
    return static_cast<long double>(stored_vertex(layer, stored, x));
  }

 private:
  static constexpr long double kPi = 3.14159265358979323846264338327950288L;

  /// Grows evenly with area from 0 at v = 0 to 1 at v = 1.
  long double height_above(long double v) const {
    if (shape_.projection != 1) return v;
    const long double sine = std::sin(kPi * v / 2);
    return sine * sine;
  }
  long double row_size(std::uint32_t y) const {
    return height_above(edge(y + 1, rows_)) - height_above(edge(y, rows_));
  }

  float stored_vertex(std::uint32_t layer, std::uint32_t y, std::uint32_t x) const {
    const std::size_t stored_rows = shape_.height == 1 ? 1 : rows_ + 1;
    return vertices_[(layer * stored_rows + y) * (columns_ + 1) + x];
  }

  /// The texel at (x, y), which may lie one beyond each edge.
  float texel(std::int64_t layer, std::int64_t y, std::int64_t x) const {
    const std::int64_t height = shape_.height;
    const std::int64_t width = shape_.width;
    if (shape_.projection == 1) x = (x + width) % width;
    if (shape_.projection == 3 && (x < 0 || x >= width)) {
      x = x < 0 ? 0 : width - 1;
      y = height - 1 - y;
    }
    if (shape_.projection == 3 && (y < 0 || y >= height)) x = width - 1 - x;
    x = std::clamp<std::int64_t>(x, 0, width - 1);
    y = std::clamp<std::int64_t>(y, 0, height - 1);
    return weights_[static_cast<std::size_t>((layer * height + y) * width + x)];
  }

  static float nearest(double value) {
    const auto rounded = static_cast<float>(value);
    return value > 0 && rounded == 0.0F ? std::numeric_limits<float>::denorm_min() : rounded;
  }

  /// The texels around vertex k of a side: one, or at an edge the last one and the one beyond.
  static std::vector<std::int64_t> around(std::int64_t k, std::int64_t texels) {
    if (k == 0) return {0, -1};
    if (k > texels) return {texels - 1, texels};
    return {k - 1};
  }

  std::vector<float> all_vertices() const {
    std::vector<float> vertices;
    const std::int64_t first_row = shape_.height == 1 ? 1 : 0;
    const std::int64_t last_row = shape_.height == 1 ? 1 : shape_.height + 1;
    for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
      for (std::int64_t y = first_row; y <= last_row; ++y) {
        for (std::int64_t x = 0; x <= columns_; ++x) {
          double sum = 0;
          double count = 0;
          for (const std::int64_t row : around(y, shape_.height)) {
            for (const std::int64_t column : around(x, shape_.width)) {
              sum += static_cast<double>(texel(layer, row, column));
              count += 1;
            }
          }
          vertices.push_back(nearest(sum / count));
        }
      }
    }
    return vertices;
  }

  std::vector<float> cell_weights() const {
    std::vector<float> weights;
    for (std::uint32_t layer = 0; layer < shape_.layers; ++layer) {
      for (std::uint32_t y = 0; y < rows_; ++y) {
        for (std::uint32_t x = 0; x < columns_; ++x) {
          const double above =
              static_cast<double>(vertex(y, x, layer)) + static_cast<double>(vertex(y, x + 1, layer));
          const double below =
              static_cast<double>(vertex(y + 1, x, layer)) + static_cast<double>(vertex(y + 1, x + 1, layer));
          const bool outermost = x == 0 || x + 1 == columns_;
          weights.push_back(nearest((above + below) / 4 / (outermost ? 2 : 1)));
        }
      }
    }
    return weights;
  }

  OracleOptions options() const {
    OracleOptions options{
        .lat_long = shape_.projection == 1, .method = shape_.method, .layers = shape_.layers};
    options.vertices = vertices_;
    for (std::uint32_t y = 0; y < rows_; ++y) {
      const bool outermost = rows_ > 1 && (y == 0 || y + 1 == rows_);
      long double share = outermost ? 0.5L : 1.0L;
      if (shape_.projection == 1 && rows_ > 1) {
        const auto height = static_cast<long double>(shape_.height);
        const long double half = std::sin(kPi / (4 * height));
        share = outermost ? half * half / std::sin(kPi / (2 * height))
                          : std::sin(kPi * static_cast<long double>(y) / height);
      }
      options.row_shares.push_back(static_cast<float>(share));
    }
    return options;
  }

  std::vector<float> weights_;
  BilinearShape shape_;
  std::uint32_t rows_;
  std::uint32_t columns_;
  std::vector<float> vertices_;
  OracleTable cells_;
};

/// Where the share `x` of a density ends that grows linearly from `first` to `last` over [0, 1].
inline long double oracle_invert_linear(long double first, long double last, long double x) {
  x = std::clamp(x, 0.0L, 1.0L);
  const long double root = std::sqrt(first * first * (1 - x) + last * last * x);
  return x == 0 ? 0 : x * (first + last) / (first + root);
}

/// Empty where the sample is right: in the right cell; where the shares of the point within its cell, which
/// are rounded to float, lead; with the density there, within 1e-6 of itself.
inline std::string verify_bilinear_sample(const BilinearOracle& oracle, UnitPoint point, int method,
                                          const float* position, float pdf, std::uint32_t layer = 0) {
  constexpr long double kShare = 1.3e-7L;     // of a fraction in float
  constexpr long double kPosition = 1.3e-7L;  // of a position, and by an ulp away from the edge
  const OraclePlace row = oracle_place(oracle.cells().marginal(layer), method, point.y);
  const auto y = static_cast<std::uint32_t>(row.cell);
  const OraclePlace column = oracle_place(oracle.cells().row(y, layer), method, point.x);
  const auto x = static_cast<std::uint32_t>(column.cell);
  const WidePoint at{static_cast<long double>(position[0]), static_cast<long double>(position[1])};
  const auto corner = [&](std::uint32_t down, std::uint32_t right) {
    return oracle.vertex(y + down, x + right, layer);
  };
  bool right = BilinearOracle::cell_of(at.u, oracle.columns()) == x &&
               BilinearOracle::cell_of(at.v, oracle.rows()) == y && at.u < 1 && at.v < 1 && at.u > 0 &&
               at.v > 0;
  long double least_u = 2;
  long double most_u = -1;
  long double v[2] = {};
  for (const int end : {0, 1}) {
    const long double t = oracle_invert_linear(corner(0, 0) + corner(0, 1), corner(1, 0) + corner(1, 1),
                                               row.fraction + (end == 0 ? -kShare : kShare));
    v[end] = oracle.position_down(y, t);
    for (const long double off : {-kShare, kShare}) {
      const long double s =
          oracle_invert_linear(corner(0, 0) * (1 - t) + corner(1, 0) * t,
                               corner(0, 1) * (1 - t) + corner(1, 1) * t, column.fraction + off);
      const long double begin = BilinearOracle::edge(x, oracle.columns());
      const long double u = begin + s * (BilinearOracle::edge(x + 1, oracle.columns()) - begin);
      least_u = std::min(least_u, u);
      most_u = std::max(most_u, u);
    }
  }
  const long double expected = oracle.density(at, layer);
  right = right && at.v >= v[0] - kPosition && at.v <= v[1] + kPosition;
  right = right && at.u >= least_u - kPosition && at.u <= most_u + kPosition;
  right = right && pdf > 0.0F && std::abs(static_cast<long double>(pdf) - expected) <= 1e-6L * expected;
  if (right) return "";
  std::ostringstream text;
  text.precision(10);
  text << "point (" << point.x << ", " << point.y << ") / 2^32 gave (" << position[0] << ", " << position[1]
       << "), pdf " << pdf << "; right is cell (" << x << ", " << y << "), u " << least_u << " to " << most_u
       << ", v " << v[0] << " to " << v[1] << ", pdf " << expected;
  return text.str();
}

}  // namespace cumulus::testing
