#pragma once

#include <cstdint>

#include "kernels/sampling_table/layout.h"

// The masses of rows, from the kernel that finds them to one that runs at the same time: each word says by
// itself whether it is there, so that neither kernel needs a fence, which all warps of a multiprocessor wait
// for.

namespace cumulus::sampling_rows {

/// No word of a mass has all its bits set: before it is known, each has.
inline constexpr std::uint64_t kNotYet = ~std::uint64_t{0};

__device__ inline void tell_mass(RowMass& to, const RowMass& mass) {
  auto* const words = reinterpret_cast<volatile unsigned long long*>(&to);
  words[0] = static_cast<unsigned long long>(__double_as_longlong(mass.mass));
  words[1] = mass.exponent;
}

/// Masses of neighbouring rows, when all of them are known. The kernel that tells them has begun, and waits
/// for nothing.
template <std::uint32_t kRows>
__device__ void wait_for_masses(const RowMass* from, RowMass (&masses)[kRows]) {
  const auto* const words = reinterpret_cast<const volatile unsigned long long*>(from);
  for (bool known = false; !known;) {
    known = true;
#pragma unroll
    for (std::uint32_t k = 0; k < kRows; ++k) {
      const std::uint64_t mass = words[2 * k];
      const std::uint64_t exponent = words[2 * k + 1];
      known = known && mass != kNotYet && exponent != kNotYet;
      masses[k] = {__longlong_as_double(static_cast<long long>(mass)), static_cast<std::uint32_t>(exponent),
                   0};
    }
    if (!known) __nanosleep(100);
  }
}

}  // namespace cumulus::sampling_rows
