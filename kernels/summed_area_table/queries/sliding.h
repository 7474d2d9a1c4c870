#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/core/host_device.h"
#include "kernels/summed_area_table/queries.h"

// What boxes that slide share on both backends: the type of their sums, which pixels an axis shows beyond its
// ends, and their means.

namespace cumulus::summed_area_table {

/// Room for the sum of a box that slides (takes_sliding_boxes), modulo 2^32 or 2^64 for integers.
template <class Input>
using SlidingSum = std::conditional_t<!std::is_integral_v<Input>, double,
                                      std::conditional_t<sizeof(Input) <= 2, std::uint32_t, std::uint64_t>>;

/// The position within the axis that is seen at `at`; -1: zero.
CUMULUS_HOST_DEVICE inline int seen_at(int at, int extent, Boundary boundary) {
  if (at >= 0 && at < extent) return at;
  switch (boundary) {
    case Boundary::kExact:
    case Boundary::kZero:
      return -1;
    case Boundary::kClamp:
      return at < 0 ? 0 : extent - 1;
    case Boundary::kRepeat:
      return (at % extent + extent) % extent;
    case Boundary::kReflect:
    case Boundary::kMirror:
      break;
  }
  const int twice = boundary == Boundary::kReflect ? 1 : 0;  // the edge's pixels
  const int period = 2 * (extent - 1 + twice);
  const int rest = (at % period + period) % period;
  return rest < extent ? rest : period - twice - rest;
}

/// Of the 2 * radius + 1 positions around `center`, those that count.
CUMULUS_HOST_DEVICE inline int positions_around(int center, int radius, int extent, Boundary boundary) {
  if (boundary != Boundary::kExact) return 2 * radius + 1;
  const int first = center < radius ? 0 : center - radius;
  const int last = center + radius < extent ? center + radius : extent - 1;
  return last - first + 1;
}

/// The quotient, rounded as IEEE 754 has it, by means of the divisor's reciprocal (P. Markstein, "Computation
/// of elementary functions on the IBM RISC System/6000 processor", 1990): 3
/// operations instead of 30 where there is one that multiplies and adds.
CUMULUS_HOST_DEVICE inline double divide_by(double sum, double pixels, double reciprocal) {
  const double quotient = sum * reciprocal;
  const double rest = fma(-quotient, pixels, sum);
  return std::isfinite(sum) ? fma(rest, reciprocal, quotient) : quotient;
}

}  // namespace cumulus::summed_area_table
