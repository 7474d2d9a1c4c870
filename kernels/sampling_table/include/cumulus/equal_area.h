#pragma once

// The equal-area octahedral map between the unit square and the sphere (P. Clarberg, "Fast equal-area mapping
// of the (hemi)sphere using SIMD", Journal of Graphics Tools 13(3), 2008), oriented as pbrt-v4's
// EqualAreaSquareToSphere: the square's middle is +Z, the middles of its right and lower edges are +X and +Y,
// its corners -Z. Equal areas of the square are equal solid angles. C++17, host and CUDA device, no
// dependency.

#include <cmath>

#include "cumulus/fast_arithmetic.h"
#include "cumulus/host_device.h"

namespace cumulus::sampling {

/// The unit vector of a position; u to the right, v down, both in [0, 1].
CUMULUS_HOST_DEVICE inline void equal_area_direction(float u, float v, float direction[3]) {
  const float right = 2.0F * u - 1.0F;
  const float down = 2.0F * v - 1.0F;
  const float a = fabsf(right);
  const float b = fabsf(down);
  const bool upper = a + b <= 1.0F;  // within the diamond: z is not negative
  // Distance from the pole in the norm |a| + |b|, in which the outer triangles are folded over the diamond's
  // edges. Without cancellation: 1 - a and 1 - b are exact where they are needed.
  const float from_pole = upper ? a + b : (1.0F - a) + (1.0F - b);
  const float along = upper ? b - a : (1.0F - a) - (1.0F - b);
  const float turn = from_pole > 0.0F ? along / from_pole + 1.0F : 1.0F;
  const float ring = from_pole * sqrtf(2.0F - from_pole * from_pole);
  const float height = 1.0F - from_pole * from_pole;
  float sine = 0;
  float cosine = 0;
  detail::sin_cos_pi(0.25F * turn, sine, cosine);
  direction[0] = copysignf(ring * cosine, right);
  direction[1] = copysignf(ring * sine, down);
  direction[2] = upper ? height : -height;
}

/// The position of a direction, which need not be of unit length; both coordinates in [0, 1).
CUMULUS_HOST_DEVICE inline void equal_area_position(const float direction[3], float& u, float& v) {
  constexpr float kBelowOne = 0.99999994F;
  constexpr float kTwoOverPi = 0.636619772F;
  const float x = fabsf(direction[0]);
  const float y = fabsf(direction[1]);
  const float z = fabsf(direction[2]);
  const float ring = sqrtf(x * x + y * y);
  const float length = sqrtf(ring * ring + z * z);
  // sqrt(1 - z / length), without cancellation where z is nearly the length
  const float from_pole = ring > 0.0F ? ring / sqrtf(length * (length + z)) : 0.0F;
  const float turn = ring > 0.0F ? atan2f(y, x) * kTwoOverPi : 0.0F;
  const float near = from_pole * turn;
  const float far = from_pole - near;
  const bool upper = direction[2] >= 0.0F;
  const float a = upper ? far : 1.0F - near;
  const float b = upper ? near : 1.0F - far;
  u = 0.5F + copysignf(0.5F * a, direction[0]);
  v = 0.5F + copysignf(0.5F * b, direction[1]);
  if (u > kBelowOne) u = kBelowOne;
  if (v > kBelowOne) v = kBelowOne;
}

}  // namespace cumulus::sampling
