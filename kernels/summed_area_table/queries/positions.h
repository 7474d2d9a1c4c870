#pragma once

#include "kernels/core/host_device.h"
#include "kernels/summed_area_table/queries.h"

// Of boxes that slide, on both backends: which pixels an axis shows beyond its ends.

namespace cumulus::summed_area_table {

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

}  // namespace cumulus::summed_area_table
