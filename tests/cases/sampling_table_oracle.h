#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "tests/cases/sampling_table_lookup_oracle.h"

// A sampling table the slow way, after docs/operations/sampling_table_format.md alone: one cell after
// another, in 128-bit integers and long double. It shares no code with the kernels or with
// cumulus/sampling.h.

namespace cumulus::testing {

inline float oracle_luminance(float red, float green, float blue) {
  const long double sum = static_cast<long double>(0.2126F) * static_cast<long double>(red) +
                          static_cast<long double>(0.7152F) * static_cast<long double>(green) +
                          static_cast<long double>(0.0722F) * static_cast<long double>(blue);
  const auto largest = std::numeric_limits<float>::max();
  if (sum > static_cast<long double>(largest)) return largest;
  const auto rounded = static_cast<float>(sum);
  return sum > 0 && rounded == 0.0F ? std::numeric_limits<float>::denorm_min() : rounded;
}

inline OracleCells oracle_cells(const std::vector<std::uint64_t>& masses) {
  WideInteger all = 0;
  std::uint64_t positive = 0;
  for (const std::uint64_t mass : masses) {
    all += mass;
    if (mass > 0) ++positive;
  }
  const std::uint64_t share = 0xFFFFFFFFu - positive;
  const double factor = all > 0 ? static_cast<double>(share) / static_cast<double>(all) : 0.0;
  const auto bound = [&](std::uint64_t before, WideInteger prefix) -> std::uint64_t {
    if (all == 0) return 0;
    if (before == positive) return std::uint64_t{1} << 32;
    const double product = static_cast<double>(prefix) * factor;
    return before + std::min(static_cast<std::uint64_t>(std::floor(product)), share);
  };
  OracleCells cells;
  std::uint64_t before = 0;
  WideInteger prefix = 0;
  for (const std::uint64_t mass : masses) {
    cells.begin.push_back(bound(before, prefix));
    prefix += mass;
    before += mass > 0 ? 1 : 0;
    cells.end.push_back(bound(before, prefix));
  }
  return cells;
}

/// What a table is asked to be. Methods by the numbers of the .cst layout; guide sizes 0: as many as cells.
struct OracleOptions {
  bool lat_long = true;
  int method = 5;
  std::uint32_t row_guide_size = 0;
  std::uint32_t marginal_guide_size = 0;
  std::uint32_t layers = 1;
  /// What each row counts, where that is not sin of a texel's middle, or 1.
  std::vector<float> row_shares{};
  /// Of a bilinear table, all layers after each other.
  std::vector<float> vertices{};
  /// A radix forest as versions 2 and 3 have it.
  bool early_forest = false;
};

class OracleTable {
 public:
  /// `height` rows of each layer.
  OracleTable(const std::vector<float>& weights, std::uint32_t height, std::uint32_t width,
              const OracleOptions& options)
      : height_(height), width_(width), options_(options) {
    if (OracleLookup::has_guide(options.method)) {
      if (options_.row_guide_size == 0) options_.row_guide_size = width;
      if (options_.marginal_guide_size == 0) options_.marginal_guide_size = height;
    }
    for (std::uint32_t layer = 0; layer < options.layers; ++layer) {
      std::vector<double> row_mass;
      std::vector<int> exponent;
      for (std::uint32_t y = 0; y < height; ++y) {
        const float* row = weights.data() + (std::size_t{layer} * height + y) * width;
        add_row(row, y, row_mass, exponent);
      }
      marginals_.push_back(oracle_cells(marginal_masses(row_mass, exponent)));
    }
  }

  std::uint32_t height() const { return height_; }
  std::uint32_t width() const { return width_; }
  bool lat_long() const { return options_.lat_long; }
  int method() const { return options_.method; }
  /// Bounds are the same for every method.
  void use_method(int method) { options_.method = method; }
  const OracleCells& marginal(std::size_t layer = 0) const { return marginals_[layer]; }
  const OracleCells& row(std::size_t y, std::size_t layer = 0) const { return rows_[layer * height_ + y]; }
  bool every_layer_has_mass() const {
    return std::all_of(marginals_.begin(), marginals_.end(),
                       [](const auto& cells) { return cells.has_mass(); });
  }

  /// Solid angle of a texel of row y, or its area in the unit square.
  long double texel_size(std::size_t y) const {
    if (!options_.lat_long) return 1.0L / (static_cast<long double>(width_) * height_);
    const long double step = kPi / height_;
    // cos(a) - cos(b) = 2 sin((a + b) / 2) sin((b - a) / 2)
    const long double band = 2 * std::sin(step * (static_cast<long double>(y) + 0.5L)) * std::sin(step / 2);
    return 2 * kPi / width_ * band;
  }
  long double density(std::size_t y, std::size_t x, std::size_t layer = 0) const {
    const long double unit = std::ldexp(1.0L, -32);
    return static_cast<long double>(marginal(layer).mass(y)) * unit *
           static_cast<long double>(row(y, layer).mass(x)) * unit / texel_size(y);
  }

  /// Lower bounds, guide and nodes of one row.
  OracleLookup::Bytes row_bytes(std::size_t y) const {
    return lookup_of(rows_[y], options_.row_guide_size).bytes();
  }

  /// The whole .cst blob.
  std::vector<unsigned char> bytes() const {
    OracleLookup::Bytes marginal;
    OracleLookup::Bytes row;
    for (const OracleCells& cells : marginals_) {
      marginal += lookup_of(cells, options_.marginal_guide_size).bytes();
    }
    for (const OracleCells& cells : rows_) {
      row += lookup_of(cells, options_.row_guide_size).bytes();
    }
    std::vector<unsigned char> vertices(4 * options_.vertices.size());
    if (!vertices.empty()) std::memcpy(vertices.data(), options_.vertices.data(), vertices.size());
    const std::vector<unsigned char>* sections[] = {&marginal.lower, &marginal.guide, &row.lower, &row.guide,
                                                    &marginal.nodes, &row.nodes,      &vertices};
    std::vector<unsigned char> blob(256, 0);
    for (std::size_t i = 0; i < std::size(sections); ++i) {
      if (sections[i]->empty()) continue;
      oracle_put(blob, 64 + 8 * i, 8, blob.size());
      blob.insert(blob.end(), sections[i]->begin(), sections[i]->end());
      blob.resize((blob.size() + 255) / 256 * 256, 0);
    }
    std::memcpy(blob.data(), "CUMST\0\r\n", 8);
    const bool forest = options_.method == 6 && !options_.early_forest;
    oracle_put(blob, 8, 4, forest ? 4 : vertices.empty() ? 2 : 3);
    oracle_put(blob, 12, 4, 256);
    oracle_put(blob, 16, 8, blob.size());
    oracle_put(blob, 24, 4, width_);
    oracle_put(blob, 28, 4, height_);
    oracle_put(blob, 32, 4, options_.layers);
    oracle_put(blob, 36, 4, options_.lat_long ? 1 : 2);
    oracle_put(blob, 40, 4, static_cast<std::uint64_t>(options_.method));
    oracle_put(blob, 44, 4, vertices.empty() ? 0 : 1);
    oracle_put(blob, 56, 4, options_.marginal_guide_size);
    oracle_put(blob, 60, 4, options_.row_guide_size);
    return blob;
  }

  /// Where a byte lies, for messages.
  std::string section_at(std::size_t offset) const {
    const std::vector<unsigned char> blob = bytes();
    const char* names[] = {"marginal_cdf",   "marginal_guide", "row_cdf", "row_guide",
                           "marginal_nodes", "row_nodes",      "vertices"};
    std::string name = "header + " + std::to_string(offset);
    for (std::size_t i = 0; i < std::size(names); ++i) {
      std::uint64_t begin = 0;
      std::memcpy(&begin, blob.data() + 64 + 8 * i, sizeof(begin));
      if (begin > 0 && offset >= begin) name = std::string(names[i]) + " + " + std::to_string(offset - begin);
    }
    return name;
  }

 private:
  OracleLookup lookup_of(const OracleCells& cells, std::uint32_t guide_size) const {
    return {cells, options_.method, guide_size, options_.early_forest};
  }

  static constexpr long double kPi = 3.14159265358979323846264338327950288L;

  void add_row(const float* row, std::uint32_t y, std::vector<double>& row_mass, std::vector<int>& exponent) {
    float largest = 0;
    for (std::uint32_t x = 0; x < width_; ++x) largest = std::max(largest, row[x]);
    int scale = largest > 0 ? std::max(std::ilogb(largest), -126) : -126;
    for (std::uint32_t room = 32768; room < width_; room *= 2) ++scale;
    std::vector<std::uint64_t> masses;
    WideInteger sum = 0;
    for (std::uint32_t x = 0; x < width_; ++x) {
      const auto floor =
          static_cast<std::uint64_t>(std::floor(std::ldexp(static_cast<long double>(row[x]), 47 - scale)));
      masses.push_back(row[x] > 0 ? std::max<std::uint64_t>(floor, 1) : 0);
      sum += masses.back();
    }
    rows_.push_back(oracle_cells(masses));
    row_mass.push_back(static_cast<double>(sum) * static_cast<double>(share_of_row(y)));
    exponent.push_back(scale);
  }

  float share_of_row(std::uint32_t y) const {
    if (!options_.row_shares.empty()) return options_.row_shares[y];
    if (!options_.lat_long) return 1.0F;
    return static_cast<float>(std::sin(kPi * (2 * static_cast<long double>(y) + 1) / (2.0L * height_)));
  }

  static std::vector<std::uint64_t> marginal_masses(const std::vector<double>& mass,
                                                    const std::vector<int>& exponent) {
    int heaviest = std::numeric_limits<int>::min();
    for (std::size_t y = 0; y < mass.size(); ++y) {
      if (mass[y] > 0) heaviest = std::max(heaviest, std::ilogb(mass[y]) + exponent[y]);
    }
    std::vector<std::uint64_t> masses;
    for (std::size_t y = 0; y < mass.size(); ++y) {
      const long double scaled =
          mass[y] > 0 ? std::ldexp(static_cast<long double>(mass[y]), exponent[y] - heaviest + 47) : 0.0L;
      masses.push_back(
          mass[y] > 0 ? std::max<std::uint64_t>(static_cast<std::uint64_t>(std::floor(scaled)), 1) : 0);
    }
    return masses;
  }

  std::uint32_t height_;
  std::uint32_t width_;
  OracleOptions options_;
  std::vector<OracleCells> marginals_;
  std::vector<OracleCells> rows_;
};

}  // namespace cumulus::testing
