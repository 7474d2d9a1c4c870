#pragma once

#include <cstdint>

#include "kernels/sampling_table/format/records.h"

// The masses of rows, from the kernel that publishes them to one that runs at the same time: each word has
// its state in itself, so that neither kernel needs a fence, which all warps of a multiprocessor would wait
// for.

namespace cumulus::sampling_table {

/// No published word of a mass has all its bits set; before it is published, each has.
inline constexpr std::uint64_t kNotPublished = ~std::uint64_t{0};

__device__ inline void publish_mass(RowMass& to, const RowMass& mass) {
  auto* const words = reinterpret_cast<volatile unsigned long long*>(&to);
  words[0] = static_cast<unsigned long long>(__double_as_longlong(mass.mass));
  words[1] = mass.exponent;
}

/// Waits for the masses of neighbouring rows. No deadlock: each block of the kernel that publishes them has
/// begun before any block that waits here, and waits for no other block.
template <std::uint32_t kRows>
__device__ void wait_for_masses(const RowMass* from, RowMass (&masses)[kRows]) {
  const auto* const words = reinterpret_cast<const volatile unsigned long long*>(from);
  for (bool published = false; !published;) {
    published = true;
#pragma unroll
    for (std::uint32_t k = 0; k < kRows; ++k) {
      const std::uint64_t mass = words[2 * k];
      const std::uint64_t exponent = words[2 * k + 1];
      published = published && mass != kNotPublished && exponent != kNotPublished;
      masses[k] = {__longlong_as_double(static_cast<long long>(mass)), static_cast<std::uint32_t>(exponent),
                   0};
    }
    if (!published) __nanosleep(100);
  }
}

}  // namespace cumulus::sampling_table
