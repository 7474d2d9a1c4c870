#pragma once

// From texels to weights, as both backends do it.

#include <cfloat>
#include <cstdint>
#include <cstring>

#include "kernels/core/float16.h"
#include "kernels/sampling_table/format/records.h"

namespace cumulus::sampling_table {

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

/// In double the products are exact, so that contraction changes nothing. A positive luminance stays positive
/// and finite in float.
CUMULUS_HOST_DEVICE inline float luminance(const LuminanceCoefficients& of, float red, float green,
                                           float blue) {
  double sum = static_cast<double>(of.red) * static_cast<double>(red);
  sum += static_cast<double>(of.green) * static_cast<double>(green);
  sum += static_cast<double>(of.blue) * static_cast<double>(blue);
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
  LuminanceCoefficients luminance;
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

inline WeightRule weight_rule(const SamplingTableParams& params, std::int64_t channels) {
  return {counted_channels(channels), params.invalid_weights == InvalidWeights::kClamp, params.luminance};
}

template <class T>
CUMULUS_HOST_DEVICE Weight load_weight(const T* texel, const WeightRule& rule) {
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
    bits = float_bits(luminance(rule.luminance, first, second, third));
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

/// The bits of a weight, adjusted.
CUMULUS_HOST_DEVICE inline std::uint32_t adjusted(std::uint32_t bits, const WeightAdjustment& adjustment) {
  float weight = 0;
  std::memcpy(&weight, &bits, sizeof(weight));
  return float_bits(weight > adjustment.taken_off ? weight - adjustment.taken_off : adjustment.otherwise);
}

}  // namespace cumulus::sampling_table
