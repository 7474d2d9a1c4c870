#pragma once

#include <cstdint>

#include "kernels/core/host_device.h"
#include "kernels/recursive_filter/design.h"

namespace cumulus::recursive_filter {

/// The pixel that stands `at` in the signal without end; -1: zero.
CUMULUS_HOST_DEVICE inline std::int64_t source_pixel(std::int64_t at, std::int64_t length,
                                                     FilterBoundary boundary) {
  if (at >= 0 && at < length) return at;
  const bool mirrors = boundary == FilterBoundary::kMirror;
  if (boundary == FilterBoundary::kZero) return -1;
  if (boundary == FilterBoundary::kClamp) return at < 0 ? 0 : length - 1;
  if (mirrors && length == 1) return 0;
  const std::int64_t period = boundary == FilterBoundary::kRepeat ? length : 2 * length - (mirrors ? 2 : 0);
  const std::int64_t place = (at % period + period) % period;
  if (place < length) return place;
  return period - place - (mirrors ? 0 : 1);
}

}  // namespace cumulus::recursive_filter
