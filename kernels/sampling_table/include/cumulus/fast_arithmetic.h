#pragma once

// Single-precision arithmetic of cumulus/sampling.h, which a GPU does in few instructions: without the
// branches that serve operands which do not occur here. C++17, host and CUDA device, no dependency.

#include <cmath>
#include <cstdint>
#include <cstring>

#include "cumulus/host_device.h"

namespace cumulus::sampling::detail {

/// 1 / x to about half an ulp, for an x between 2^-100 and 2^100.
CUMULUS_HOST_DEVICE inline float reciprocal(float x) {
#if defined(__CUDA_ARCH__)
  float estimate = 0;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(estimate) : "f"(x));
  return __fmaf_rn(estimate, __fmaf_rn(-x, estimate, 1.0F), estimate);
#else
  return 1.0F / x;
#endif
}

/// dividend / divisor, to about half an ulp, for a divisor between 2^-100 and 2^100, of which `inverse` is
/// the reciprocal, and a dividend that is 0 or neither tiny nor huge.
CUMULUS_HOST_DEVICE inline float quotient(float dividend, float divisor, [[maybe_unused]] float inverse) {
#if defined(__CUDA_ARCH__)
  const float estimate = dividend * inverse;
  return __fmaf_rn(__fmaf_rn(-estimate, divisor, dividend), inverse, estimate);
#else
  return dividend / divisor;
#endif
}
CUMULUS_HOST_DEVICE inline float quotient(float dividend, float divisor) {
  return quotient(dividend, divisor, reciprocal(divisor));
}

/// The same to about two ulps.
CUMULUS_HOST_DEVICE inline float rough_quotient(float dividend, float divisor) {
#if defined(__CUDA_ARCH__)
  float inverse = 0;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(divisor));
  return dividend * inverse;
#else
  return dividend / divisor;
#endif
}

/// To about an ulp, for an x that is 0 or not tiny.
CUMULUS_HOST_DEVICE inline float rough_root(float x) {
#if defined(__CUDA_ARCH__)
  float root = 0;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(x));
  return root;
#else
  return std::sqrt(x);
#endif
}

/// A mass, of at most 2^32.
CUMULUS_HOST_DEVICE inline float float_of_mass(std::uint64_t mass) {
#if defined(__CUDA_ARCH__)  // conversions from 64 bits are slow there
  return mass >> 32 != 0 ? 4294967296.0F : static_cast<float>(static_cast<std::uint32_t>(mass));
#else
  return static_cast<float>(mass);
#endif
}

/// sin(pi x) for x in [0, 2], with a small relative error also where x is small.
CUMULUS_HOST_DEVICE inline float sin_pi(float x) {
#if defined(__CUDA_ARCH__)
  return sinpif(x);
#else
  return static_cast<float>(std::sin(3.14159265358979323846 * static_cast<double>(x)));
#endif
}

CUMULUS_HOST_DEVICE inline float cos_pi(float x) {
#if defined(__CUDA_ARCH__)
  return cospif(x);
#else
  return static_cast<float>(std::cos(3.14159265358979323846 * static_cast<double>(x)));
#endif
}

/// Both, for x in [0, 2].
CUMULUS_HOST_DEVICE inline void sin_cos_pi(float x, float& sine, float& cosine) {
#if defined(__CUDA_ARCH__)
  // x = quarter / 2 + rest, the rest at most 1/4; a float of 1.5 * 2^23 and more has no places after the
  // point.
  const float shifted = __fmaf_rn(x, 2.0F, 12582912.0F);
  const auto quarter = static_cast<std::uint32_t>(__float_as_int(shifted));
  const float rest = __fmaf_rn(shifted - 12582912.0F, -0.5F, x);
  const float square = rest * rest;
  // Minimax polynomials, of an odd and an even function: within 1.2 ulps of the sine, 1e-7 of the cosine.
  float of_sine = __fmaf_rn(-0.591610551F, square, 2.54998493F);
  of_sine = __fmaf_rn(of_sine, square, -5.16771221F);
  of_sine = __fmaf_rn(rest, 3.14159265F, of_sine * (rest * square));
  float of_cosine = __fmaf_rn(0.23212491F, square, -1.33513772F);
  of_cosine = __fmaf_rn(of_cosine, square, 4.05871058F);
  of_cosine = __fmaf_rn(of_cosine, square, -4.93480206F);
  of_cosine = __fmaf_rn(of_cosine, square, 1.0F);
  const bool odd = (quarter & 1) != 0;
  const std::uint32_t sine_sign = quarter << 30 & 0x80000000u;
  const std::uint32_t cosine_sign = (quarter + 1) << 30 & 0x80000000u;
  sine = __uint_as_float(__float_as_uint(odd ? of_cosine : of_sine) ^ sine_sign);
  cosine = __uint_as_float(__float_as_uint(odd ? of_sine : of_cosine) ^ cosine_sign);
#else
  sine = sin_pi(x);
  cosine = cos_pi(x);
#endif
}

}  // namespace cumulus::sampling::detail
