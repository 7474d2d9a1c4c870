#pragma once

#include <cstdint>
#include <optional>

#include "kernels/recursive_filter/math/axis_plan.h"

// How many tiles' states suffice where the others add less than a given error.

namespace cumulus::recursive_filter {

/// Truncated windows: the tiles on either side of a tile whose responses make its carries, along each
/// axis, and a bound for what the others could add to a filtered pixel, relative to the image's largest
/// magnitude; 0: the windows hold the whole image.
struct Windows {
  std::int64_t y = 0;
  std::int64_t x = 0;
  double truncation_bound = 0;
  /// The same for strips (strips/strips.h), where they serve.
  struct OfStrips {
    std::int64_t y, x;
    double truncation_bound;
  };
  std::optional<OfStrips> of_strips;
};

/// The smallest windows with a bound of at most `max_truncation_error`; none where the decay length is more
/// than kMaxWindow tiles of an axis that has more than kMaxWholeAxis.
std::optional<Windows> plan_windows(const AxisPlan& y, const AxisPlan& x, double max_truncation_error);

}  // namespace cumulus::recursive_filter
