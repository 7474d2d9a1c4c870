#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/primitives/await_all.cuh"
#include "kernels/primitives/status_word.cuh"
#include "kernels/sampling_table/format/records.h"

// The masses of rows, from the kernel that publishes them to one that runs at the same time: a mass is a
// status word, whose status stands in RowMass::padding, so that neither kernel needs a fence, which all warps
// of a multiprocessor would wait for.

namespace cumulus::sampling_table {

/// RowMass::padding of a mass that is published. Before, all bits are set.
inline constexpr std::uint32_t kPublished = 0;

/// RowMass but for its padding.
struct MassBits {
  std::uint32_t mass[2];
  std::uint32_t exponent;
};
using MassWord = StatusWord<MassBits>;
static_assert(sizeof(RowMass) == sizeof(MassWord::Bits) && offsetof(RowMass, padding) == sizeof(MassBits));

__device__ inline void publish_mass(RowMass& to, const RowMass& mass) {
  MassBits bits;
  memcpy(&bits, &mass, sizeof(bits));
  MassWord(kPublished, bits).store(reinterpret_cast<MassWord::Bits*>(&to));
}

/// Of masses that are mostly there, or are not for long.
struct MassPollDelay {
  __device__ void operator()() const { __nanosleep(100); }
};

/// Waits for the masses of neighbouring rows. No deadlock: each block of the kernel that publishes them has
/// begun before any block that waits here, and waits for no other block.
template <int kRows>
__device__ void wait_for_masses(const RowMass* from, RowMass (&masses)[kRows]) {
  const auto* const places = reinterpret_cast<const MassWord::Bits*>(from);
  MassWord words[kRows];
  await_all<kRows>([&](int k) { words[k].load(places + k); }, [&](int k) { return words[k].has(kPublished); },
                   MassPollDelay{});
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    const MassBits bits = words[k].value();
    memcpy(&masses[k], &bits, sizeof(bits));
    masses[k].padding = kPublished;
  }
}

}  // namespace cumulus::sampling_table
