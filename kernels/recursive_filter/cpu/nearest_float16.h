#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/core/float16.h"

namespace cumulus::recursive_filter {

/// The nearest binary16 number, of two the even one.
inline Float16 nearest_float16(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  const auto with_sign = [sign](std::uint32_t half) {
    return Float16{static_cast<std::uint16_t>(sign | half)};
  };
  if (magnitude > 0x7F800000u) return with_sign(0x7E00u);   // NaN
  if (magnitude >= 0x477FF000u) return with_sign(0x7C00u);  // 65520 and more round to infinity
  if (magnitude < 0x38800000u) {
    // Below the smallest normal number, multiples of 2^-24: the last place of floats from 0.5.
    float shifted = 0;
    std::memcpy(&shifted, &magnitude, sizeof(shifted));
    shifted += 0.5F;
    std::uint32_t rounded = 0;
    std::memcpy(&rounded, &shifted, sizeof(rounded));
    return with_sign(rounded - 0x3F000000u);
  }
  return with_sign((magnitude + 0xFFFu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13);
}

}  // namespace cumulus::recursive_filter
