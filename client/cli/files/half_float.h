#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace cumulus::cli {

/// The number that a half float's bits stand for, NaN and the infinities among them.
inline float float_from_half(std::uint16_t half) {
  const int exponent = half >> 10 & 31;
  const auto fraction = static_cast<float>(half & 1023u);
  float magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024.0F + fraction, exponent - 25);
  if (exponent == 31) {
    magnitude =
        fraction > 0 ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity();
  }
  return half >= 0x8000u ? -magnitude : magnitude;
}

}  // namespace cumulus::cli
