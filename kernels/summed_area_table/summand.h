#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/core/float16.h"

namespace cumulus::summed_area_table {

/// What sums are computed in: signed ones as unsigned, which may wrap around.
template <class Sum>
using Accumulator = std::conditional_t<std::is_same_v<Sum, std::int64_t>, std::uint64_t, Sum>;

/// What is summed of a pixel.
enum class Term {
  kValue,   // the pixel
  kSquare,  // its square
  kOffset,  // the pixel less its channel's offset
};

template <Term kTerm, class Sum, class Input>
CUMULUS_HOST_DEVICE Sum summand(Input pixel, Sum offset) {
  const Sum value = static_cast<Sum>(pixel);
  if constexpr (kTerm == Term::kSquare) return value * value;
  if constexpr (kTerm == Term::kOffset) return value - offset;
  return value;
}

}  // namespace cumulus::summed_area_table
