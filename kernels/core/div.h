#pragma once

#include <type_traits>

#include "kernels/core/host_device.h"

namespace cumulus {

/// The least number of groups of `by` that hold `count`: count / by, rounded up, for count >= 0 and by >= 1.
template <class Count, class By>
CUMULUS_HOST_DEVICE constexpr std::common_type_t<Count, By> divide_up(Count count, By by) {
  static_assert(std::is_integral_v<Count> && std::is_integral_v<By>);
  return (count + by - 1) / by;
}

}  // namespace cumulus
