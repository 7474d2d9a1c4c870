#pragma once

// The arithmetic of a build, shared by both backends so that their tables are the same bytes. Every
// floating-point step is a single correctly rounded operation that no compiler can contract.

#include <cmath>
#include <cstdint>
#include <cstring>

#include "cumulus/sampling.h"
#include "kernels/sampling_table/weights/weights.h"

namespace cumulus::sampling_table {

/// The exponent of a weight or of a row whose largest weight has these bits.
CUMULUS_HOST_DEVICE inline std::uint32_t weight_exponent(std::uint32_t bits) {
  const std::uint32_t exponent = bits >> 23;
  return exponent > 0 ? exponent : 1;
}

/// The same for a row of `width`: a row of more than 2^15 weights has room for fewer bits of each.
CUMULUS_HOST_DEVICE inline std::uint32_t row_exponent(std::uint32_t largest_bits, std::uint32_t width) {
  std::uint32_t doublings = 0;
  while (sampling::kMaxExtent << doublings < width) ++doublings;
  return weight_exponent(largest_bits) + doublings;
}

/// floor(weight * 2^(174 - exponent)), below 2^48; at least 1 where the weight is positive. A row
/// of such weights adds up to less than 2^63.
CUMULUS_HOST_DEVICE inline std::uint64_t integer_weight(std::uint32_t bits, std::uint32_t exponent) {
  const std::uint32_t own = weight_exponent(bits);
  const std::uint32_t mantissa = bits - ((own - 1) << 23);
  const std::uint32_t down = exponent - own;
  const std::uint64_t weight = static_cast<std::uint64_t>(mantissa) << 24 >> (down < 63 ? down : 63);
  return weight > 0 ? weight : std::uint64_t{bits > 0};
}

/// sin(pi * x) for x in (0, 1/2], to about 1e-16: Taylor's series, its steps fused on host and device.
CUMULUS_HOST_DEVICE inline double sine_of_half_turns(double x) {
  const double angle = 3.14159265358979323846 * x;
  const double square = angle * angle;
  double series = 1.0;
  for (int k = 23; k >= 3; k -= 2) {
    series = std::fma(-square / static_cast<double>(k * (k - 1)), series, 1.0);
  }
  return angle * series;
}

/// A row's share of the sphere, up to a factor that all rows share: cos(top) - cos(bottom) is
/// 2 sin(pi / 2H) times the sine at the row's middle. Rounded to float. 1 where texels are of equal size.
CUMULUS_HOST_DEVICE inline float row_weight(sampling::Projection projection, std::uint32_t y,
                                            std::uint32_t height) {
  if (projection != sampling::Projection::kLatLong) return 1.0F;
  const std::uint32_t rank = y < height - 1 - y ? y : height - 1 - y;
  return static_cast<float>(
      sine_of_half_turns(static_cast<double>(2 * rank + 1) / static_cast<double>(2 * height)));
}

/// The same of a row of a bilinear table's cells, which ends where texels have their centres. The first and
/// the last row have half the height; sin^2(pi / 4H) of the sphere over sin(pi / 2H) is their share.
CUMULUS_HOST_DEVICE inline float bilinear_row_weight(sampling::Projection projection, std::uint32_t y,
                                                     std::uint32_t rows) {
  if (rows == 1) return 1.0F;
  const bool outermost = y == 0 || y + 1 == rows;
  if (projection != sampling::Projection::kLatLong) return outermost ? 0.5F : 1.0F;
  const double height = static_cast<double>(rows - 1);
  if (outermost) {
    const double half = sine_of_half_turns(0.25 / height);
    return static_cast<float>(half * half / sine_of_half_turns(0.5 / height));
  }
  const std::uint32_t rank = y < rows - 1 - y ? y : rows - 1 - y;
  return static_cast<float>(sine_of_half_turns(static_cast<double>(rank) / height));
}

CUMULUS_HOST_DEVICE inline float row_weight(const sampling::TableHeader& header, std::uint32_t y) {
  return header.interpolation == sampling::Interpolation::kBilinear
             ? bilinear_row_weight(header.projection, y, header.height)
             : row_weight(header.projection, y, header.height);
}

/// `mass` of a RowMass of a row with this share of the sphere: one rounding in the conversion, one in the
/// product.
CUMULUS_HOST_DEVICE inline double row_mass(std::uint64_t sum, float row_share) {
  return static_cast<double>(static_cast<std::int64_t>(sum)) * static_cast<double>(row_share);
}

/// A row's mass as integer on the scale on which the heaviest row lies in [2^47, 2^48); at least 1
/// where it is positive. `heaviest` is the largest mass_exponent of any row.
CUMULUS_HOST_DEVICE inline std::uint32_t mass_exponent(double mass, std::uint32_t exponent) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &mass, sizeof(bits));
  return mass > 0.0 ? static_cast<std::uint32_t>(bits >> 52) + exponent : 0;
}
CUMULUS_HOST_DEVICE inline std::uint64_t integer_mass(double mass, std::uint32_t exponent,
                                                      std::uint32_t heaviest) {
  if (!(mass > 0.0)) return 0;
  std::uint64_t bits = 0;
  std::memcpy(&bits, &mass, sizeof(bits));
  const std::uint64_t mantissa = (bits & 0x000FFFFFFFFFFFFFu) | 0x0010000000000000u;
  const std::uint32_t down = 5 + heaviest - mass_exponent(mass, exponent);
  const std::uint64_t scaled = down < 64 ? mantissa >> down : 0;
  return scaled > 0 ? scaled : 1;
}

/// Sum of integer weights and how many of them are positive.
struct Tally {
  std::uint64_t sum = 0;
  std::uint32_t positive = 0;

  CUMULUS_HOST_DEVICE void add(std::uint64_t weight) {
    sum += weight;
    positive += weight > 0 ? 1 : 0;
  }
};

/// Turns tallies of what lies before a cell into the cell's lower bound: one unit for every positive
/// cell, the rest in proportion. So no positive cell is empty, and the last has two units, which
/// keeps its lower bound below kEmptyTail.
class BoundScale {
 public:
  CUMULUS_HOST_DEVICE explicit BoundScale(const Tally& all)
      : positive_(all.positive),
        share_(sampling::kEmptyTail - all.positive),
        factor_(all.sum > 0
                    ? static_cast<double>(share_) / static_cast<double>(static_cast<std::int64_t>(all.sum))
                    : 0.0) {}

  CUMULUS_HOST_DEVICE std::uint32_t lower_bound(const Tally& before) const {
    if (before.positive == positive_) return sampling::kEmptyTail;
    const double exact = static_cast<double>(static_cast<std::int64_t>(before.sum)) * factor_;
    return before.positive +
           (exact < static_cast<double>(share_) ? static_cast<std::uint32_t>(exact) : share_);
  }

 private:
  std::uint32_t positive_;
  std::uint32_t share_;
  double factor_;
};

}  // namespace cumulus::sampling_table
