#pragma once

#include <cmath>
#include <cstdint>

namespace cumulus::cli {

/// The number that a half float's bits stand for; NaN becomes 0, infinity 65536.
inline float float_from_half(std::uint16_t half) {
  const int exponent = half >> 10 & 31;
  const auto fraction = static_cast<float>(half & 1023u);
  if (exponent == 31) return fraction > 0 ? 0.0F : 65536.0F;
  const float magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024.0F + fraction, exponent - 25);
  return half >= 0x8000u ? -magnitude : magnitude;
}

}  // namespace cumulus::cli
