#pragma once

// Point sequences in the unit square as pairs of 32-bit fixed-point numbers: x stands for x / 2^32.
// C++17, host and CUDA device, no dependency. Every point is a function of its index alone.

#include <cstdint>

#include "cumulus/host_device.h"

namespace cumulus::sampling {

struct FixedPoint2 {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
};

CUMULUS_HOST_DEVICE inline std::uint32_t reverse_bits(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __brev(bits);
#else
  bits = (bits >> 1 & 0x55555555u) | (bits & 0x55555555u) << 1;
  bits = (bits >> 2 & 0x33333333u) | (bits & 0x33333333u) << 2;
  bits = (bits >> 4 & 0x0F0F0F0Fu) | (bits & 0x0F0F0F0Fu) << 4;
  bits = (bits >> 8 & 0x00FF00FFu) | (bits & 0x00FF00FFu) << 8;
  return bits >> 16 | bits << 16;
#endif
}

/// The first two dimensions of Sobol's sequence: a (0, 2)-sequence in base 2. The second
/// dimension's generator matrix is Pascal's triangle modulo 2, which by Lucas' theorem has a one at
/// (digit j, index bit c) exactly where j is a subset of c: five butterfly steps instead of 32.
CUMULUS_HOST_DEVICE inline FixedPoint2 sobol_point(std::uint32_t index) {
  std::uint32_t digits = index;
  digits ^= digits >> 1 & 0x55555555u;
  digits ^= digits >> 2 & 0x33333333u;
  digits ^= digits >> 4 & 0x0F0F0F0Fu;
  digits ^= digits >> 8 & 0x00FF00FFu;
  digits ^= digits >> 16;
  return {reverse_bits(index), reverse_bits(digits)};
}

/// (index / total, radical inverse of index in base 2), for index < total <= 2^32.
CUMULUS_HOST_DEVICE inline FixedPoint2 hammersley_point(std::uint32_t index, std::uint64_t total) {
  return {static_cast<std::uint32_t>((static_cast<std::uint64_t>(index) << 32) / total), reverse_bits(index)};
}

namespace detail {

/// Philox-4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): the first
/// two of the four words for the counter (index, 0, purpose, 0).
CUMULUS_HOST_DEVICE inline FixedPoint2 philox(std::uint32_t index, std::uint32_t purpose, std::uint64_t key) {
  std::uint32_t counter[4] = {index, 0, purpose, 0};
  auto key_low = static_cast<std::uint32_t>(key);
  auto key_high = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t even = static_cast<std::uint64_t>(counter[0]) * 0xD2511F53u;
    const std::uint64_t odd = static_cast<std::uint64_t>(counter[2]) * 0xCD9E8D57u;
    counter[0] = static_cast<std::uint32_t>(odd >> 32) ^ counter[1] ^ key_low;
    counter[1] = static_cast<std::uint32_t>(odd);
    counter[2] = static_cast<std::uint32_t>(even >> 32) ^ counter[3] ^ key_high;
    counter[3] = static_cast<std::uint32_t>(even);
    key_low += 0x9E3779B9u;
    key_high += 0xBB67AE85u;
  }
  return {counter[0], counter[1]};
}

}  // namespace detail

/// Independent uniform points; `key` chooses one of 2^64 streams.
CUMULUS_HOST_DEVICE inline FixedPoint2 random_point(std::uint32_t index, std::uint64_t key) {
  return detail::philox(index, 0, key);
}

/// The digital shift that belongs to `seed`; of seed 0 none. XOR it onto every point of a set
/// (shifted_point): each point becomes uniform, the set keeps its net structure.
CUMULUS_HOST_DEVICE inline FixedPoint2 digital_shift(std::uint64_t seed) {
  return seed == 0 ? FixedPoint2{} : detail::philox(0, 1, seed);
}

CUMULUS_HOST_DEVICE inline FixedPoint2 shifted_point(FixedPoint2 point, FixedPoint2 shift) {
  return {point.x ^ shift.x, point.y ^ shift.y};
}

/// `x` in [0, 1) as fixed point, for callers whose random numbers are floats. Below 0 and NaN count
/// as 0, above as the largest.
CUMULUS_HOST_DEVICE inline std::uint32_t fixed_point(float x) {
  if (!(x > 0.0F)) return 0;
  return x < 1.0F ? static_cast<std::uint32_t>(x * 4294967296.0F) : 0xFFFFFFFFu;
}

}  // namespace cumulus::sampling
