#pragma once

// The arithmetic of a build, shared by both backends so that their tables are the same bytes. Every
// floating-point step is a single correctly rounded operation that no compiler can contract.

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "cumulus/sampling.h"

namespace cumulus::sampling_arithmetic {

/// Bits of the smallest float that is no weight. The bits of weights are ordered as their values.
inline constexpr std::uint32_t kInfinityBits = 0x7F800000u;

CUMULUS_HOST_DEVICE inline std::uint32_t float_bits(float x) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

/// Of a valid weight its float bits, below kInfinityBits; of NaN, Inf and negative values more. -0 is 0.
CUMULUS_HOST_DEVICE inline std::uint32_t weight_bits(float weight) {
  const std::uint32_t bits = float_bits(weight);
  return bits == 0x80000000u ? 0 : bits;
}

/// Rec. 709. In double the products are exact, so that contraction changes nothing. A positive
/// luminance stays positive and finite in float.
CUMULUS_HOST_DEVICE inline float luminance(float red, float green, float blue) {
  double sum = static_cast<double>(0.2126F) * static_cast<double>(red);
  sum += static_cast<double>(0.7152F) * static_cast<double>(green);
  sum += static_cast<double>(0.0722F) * static_cast<double>(blue);
  if (sum > static_cast<double>(FLT_MAX)) return FLT_MAX;
  const auto rounded = static_cast<float>(sum);
  return sum > 0.0 && rounded == 0.0F ? FLT_TRUE_MIN : rounded;
}

struct Weight {
  std::uint32_t bits;   ///< 0 where a channel is invalid.
  std::uint32_t guard;  ///< At least kInfinityBits where a channel is invalid.
};

/// Channels that make up the weight: the first, or the first three.
CUMULUS_HOST_DEVICE inline int counted_channels(std::int64_t channels) { return channels >= 3 ? 3 : 1; }

/// How texels become weights.
struct WeightRule {
  int counted;  ///< counted_channels of the image.
  bool clamp;
};

CUMULUS_HOST_DEVICE inline float clamped(float x) {
  if (!(x > 0.0F)) return 0.0F;
  return x < FLT_MAX ? x : FLT_MAX;
}

template <class T>
CUMULUS_HOST_DEVICE float load_channel(const T* texel, int channel, bool clamp) {
  const auto value = static_cast<float>(texel[channel]);
  return clamp ? clamped(value) : value;
}

template <class T>
CUMULUS_HOST_DEVICE Weight load_weight(const T* texel, WeightRule rule) {
  const float first = load_channel(texel, 0, rule.clamp);
  std::uint32_t guard = weight_bits(first);
  std::uint32_t bits = guard;
  if (rule.counted == 3) {
    const float second = load_channel(texel, 1, rule.clamp);
    const float third = load_channel(texel, 2, rule.clamp);
    const std::uint32_t second_guard = weight_bits(second);
    const std::uint32_t third_guard = weight_bits(third);
    guard = guard > second_guard ? guard : second_guard;
    guard = guard > third_guard ? guard : third_guard;
    bits = float_bits(luminance(first, second, third));
  }
  return {guard >= kInfinityBits ? 0 : bits, guard};
}

/// The first invalid channel of a texel that has one.
template <class T>
CUMULUS_HOST_DEVICE int first_invalid_channel(const T* texel, int counted) {
  int channel = 0;
  while (channel + 1 < counted && weight_bits(static_cast<float>(texel[channel])) < kInfinityBits) ++channel;
  return channel;
}

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
  if (bits == 0) return 0;
  const std::uint32_t own = weight_exponent(bits);
  const std::uint64_t mantissa = (bits & 0x007FFFFFu) | (bits >> 23 != 0 ? 0x00800000u : 0u);
  const std::uint32_t down = exponent - own;
  const std::uint64_t weight = down < 64 ? mantissa << 24 >> down : 0;
  return weight > 0 ? weight : 1;
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
/// 2 sin(pi / 2H) times the sine at the row's middle. Rounded to float. 1 in the plane.
CUMULUS_HOST_DEVICE inline float row_weight(sampling::Projection projection, std::uint32_t y,
                                            std::uint32_t height) {
  if (projection == sampling::Projection::kPlane) return 1.0F;
  const std::uint32_t rank = y < height - 1 - y ? y : height - 1 - y;
  return static_cast<float>(
      sine_of_half_turns(static_cast<double>(2 * rank + 1) / static_cast<double>(2 * height)));
}

/// `mass` of a RowMass: one rounding in the conversion, one in the product.
CUMULUS_HOST_DEVICE inline double row_mass(std::uint64_t sum, sampling::Projection projection,
                                           std::uint32_t y, std::uint32_t height) {
  return static_cast<double>(static_cast<std::int64_t>(sum)) *
         static_cast<double>(row_weight(projection, y, height));
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
    const auto whole = static_cast<std::int64_t>(exact);
    return before.positive + static_cast<std::uint32_t>(whole < share_ ? whole : share_);
  }

 private:
  std::uint32_t positive_;
  std::int64_t share_;
  double factor_;
};

}  // namespace cumulus::sampling_arithmetic
