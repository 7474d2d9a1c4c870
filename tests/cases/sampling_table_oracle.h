#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

// A sampling table the slow way, after docs/operations/sampling_table.md alone: one cell after another,
// in 128-bit integers and long double. It shares no code with the kernels or with cumulus/sampling.h.

namespace cumulus::testing {

__extension__ typedef unsigned __int128 WideInteger;

inline float oracle_luminance(float red, float green, float blue) {
  const long double sum = static_cast<long double>(0.2126F) * static_cast<long double>(red) +
                          static_cast<long double>(0.7152F) * static_cast<long double>(green) +
                          static_cast<long double>(0.0722F) * static_cast<long double>(blue);
  const auto largest = std::numeric_limits<float>::max();
  if (sum > static_cast<long double>(largest)) return largest;
  const auto rounded = static_cast<float>(sum);
  return sum > 0 && rounded == 0.0F ? std::numeric_limits<float>::denorm_min() : rounded;
}

/// One inverted distribution: where each cell begins in [0, 2^32], and where it ends.
struct OracleCells {
  std::vector<std::uint64_t> begin;
  std::vector<std::uint64_t> end;

  std::size_t count() const { return begin.size(); }
  std::uint64_t mass(std::size_t i) const { return end[i] - begin[i]; }
  bool has_mass() const { return end.back() > 0; }

  /// The cell of x, by walking.
  std::size_t find(std::uint64_t x) const {
    for (std::size_t i = 0; i < count(); ++i) {
      if (begin[i] <= x && x < end[i]) return i;
    }
    return 0;  // there is no mass
  }

  /// As the table stores it: cells behind the last mass are marked.
  std::uint32_t stored(std::size_t i) const {
    return !has_mass() || begin[i] == std::uint64_t{1} << 32 ? 0xFFFFFFFFu
                                                             : static_cast<std::uint32_t>(begin[i]);
  }
};

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

class OracleTable {
 public:
  /// Guide sizes 0: as many as cells.
  OracleTable(const std::vector<float>& weights, std::uint32_t height, std::uint32_t width, bool lat_long,
              std::uint32_t row_guide_size, std::uint32_t marginal_guide_size)
      : height_(height),
        width_(width),
        lat_long_(lat_long),
        row_guide_size_(row_guide_size > 0 ? row_guide_size : width),
        marginal_guide_size_(marginal_guide_size > 0 ? marginal_guide_size : height) {
    std::vector<double> row_mass;
    std::vector<int> exponent;
    for (std::uint32_t y = 0; y < height; ++y) {
      const float* row = weights.data() + static_cast<std::size_t>(y) * width;
      add_row(row, y, row_mass, exponent);
    }
    marginal_ = oracle_cells(marginal_masses(row_mass, exponent));
  }

  std::uint32_t height() const { return height_; }
  std::uint32_t width() const { return width_; }
  bool lat_long() const { return lat_long_; }
  const OracleCells& marginal() const { return marginal_; }
  const OracleCells& row(std::size_t y) const { return rows_[y]; }

  /// Solid angle of a texel of row y, or its area in the unit square.
  long double texel_size(std::size_t y) const {
    if (!lat_long_) return 1.0L / (static_cast<long double>(width_) * height_);
    const long double step = kPi / height_;
    // cos(a) - cos(b) = 2 sin((a + b) / 2) sin((b - a) / 2)
    const long double band = 2 * std::sin(step * (static_cast<long double>(y) + 0.5L)) * std::sin(step / 2);
    return 2 * kPi / width_ * band;
  }
  long double density(std::size_t y, std::size_t x) const {
    const long double unit = std::ldexp(1.0L, -32);
    return static_cast<long double>(marginal_.mass(y)) * unit * static_cast<long double>(rows_[y].mass(x)) *
           unit / texel_size(y);
  }

  /// The whole .cst blob.
  std::vector<unsigned char> bytes() const {
    std::vector<unsigned char> blob(256, 0);
    const std::size_t marginal_cdf = blob.size();
    append_bounds(marginal_, blob);
    align(blob);
    const std::size_t marginal_guide = blob.size();
    append_guide(marginal_, marginal_guide_size_, blob);
    align(blob);
    const std::size_t row_cdf = blob.size();
    for (const OracleCells& row : rows_) append_bounds(row, blob);
    align(blob);
    const std::size_t row_guide = blob.size();
    for (const OracleCells& row : rows_) append_guide(row, row_guide_size_, blob);
    align(blob);

    std::memcpy(blob.data(), "CUMST\0\r\n", 8);
    put(blob, 8, 4, 1);
    put(blob, 12, 4, 256);
    put(blob, 16, 8, blob.size());
    put(blob, 24, 4, width_);
    put(blob, 28, 4, height_);
    put(blob, 32, 4, 1);
    put(blob, 36, 4, lat_long_ ? 1 : 2);
    put(blob, 40, 4, 1);
    put(blob, 56, 4, marginal_guide_size_);
    put(blob, 60, 4, row_guide_size_);
    put(blob, 64, 8, marginal_cdf);
    put(blob, 72, 8, marginal_guide);
    put(blob, 80, 8, row_cdf);
    put(blob, 88, 8, row_guide);
    return blob;
  }

  /// Where a byte lies, for messages.
  std::string section_at(std::size_t offset) const {
    const std::vector<unsigned char> blob = bytes();
    const char* names[] = {"marginal_cdf", "marginal_guide", "row_cdf", "row_guide"};
    std::string name = "header";
    for (std::size_t i = 0; i < 4; ++i) {
      std::uint64_t begin = 0;
      std::memcpy(&begin, blob.data() + 64 + 8 * i, sizeof(begin));
      if (offset >= begin) name = std::string(names[i]) + " + " + std::to_string(offset - begin);
    }
    return name;
  }

 private:
  static constexpr long double kPi = 3.14159265358979323846264338327950288L;

  void add_row(const float* row, std::uint32_t y, std::vector<double>& row_mass, std::vector<int>& exponent) {
    float largest = 0;
    for (std::uint32_t x = 0; x < width_; ++x) largest = std::max(largest, row[x]);
    const int scale = largest > 0 ? std::max(std::ilogb(largest), -126) : -126;
    std::vector<std::uint64_t> masses;
    WideInteger sum = 0;
    for (std::uint32_t x = 0; x < width_; ++x) {
      const auto floor =
          static_cast<std::uint64_t>(std::floor(std::ldexp(static_cast<long double>(row[x]), 47 - scale)));
      masses.push_back(row[x] > 0 ? std::max<std::uint64_t>(floor, 1) : 0);
      sum += masses.back();
    }
    rows_.push_back(oracle_cells(masses));
    const auto share =
        lat_long_
            ? static_cast<float>(std::sin(kPi * (2 * static_cast<long double>(y) + 1) / (2.0L * height_)))
            : 1.0F;
    row_mass.push_back(static_cast<double>(sum) * static_cast<double>(share));
    exponent.push_back(scale);
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

  static void put(std::vector<unsigned char>& blob, std::size_t offset, std::size_t bytes,
                  std::uint64_t value) {
    for (std::size_t i = 0; i < bytes; ++i) blob[offset + i] = static_cast<unsigned char>(value >> (8 * i));
  }
  static void append(std::vector<unsigned char>& blob, std::size_t bytes, std::uint64_t value) {
    blob.resize(blob.size() + bytes);
    put(blob, blob.size() - bytes, bytes, value);
  }
  static void align(std::vector<unsigned char>& blob) { blob.resize((blob.size() + 255) / 256 * 256, 0); }

  static void append_bounds(const OracleCells& cells, std::vector<unsigned char>& blob) {
    for (std::size_t i = 0; i < cells.count(); ++i) append(blob, 4, cells.stored(i));
  }
  static void append_guide(const OracleCells& cells, std::uint32_t size, std::vector<unsigned char>& blob) {
    std::size_t cell = 0;
    for (std::uint64_t g = 0; g < size; ++g) {
      const std::uint64_t first = ((g << 32) + size - 1) / size;  // the smallest x of guide cell g
      while (cells.has_mass() && !(first < cells.end[cell])) ++cell;
      append(blob, 2, cell);
    }
  }

  std::uint32_t height_;
  std::uint32_t width_;
  bool lat_long_;
  std::uint32_t row_guide_size_;
  std::uint32_t marginal_guide_size_;
  OracleCells marginal_;
  std::vector<OracleCells> rows_;
};

}  // namespace cumulus::testing
