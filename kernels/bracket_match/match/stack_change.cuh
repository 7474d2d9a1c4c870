#pragma once

#include <cstdint>

#include "kernels/bracket_match/records.h"

// The bicyclic monoid on the device, and bits of a word.

namespace cumulus::bracket_match {

template <class Count>
__device__ StackChange<Count> compose(StackChange<Count> first, StackChange<Count> second) {
  const Count matched = min(first.opens, second.closes);
  return {first.closes + second.closes - matched, first.opens - matched + second.opens};
}

/// For scans (kernels/primitives/block_scan.cuh).
struct Compose {
  template <class Count>
  __device__ StackChange<Count> operator()(const StackChange<Count>& first,
                                           const StackChange<Count>& second) const {
    return compose(first, second);
  }
};

/// The stack's size after `change`.
template <class Count>
__device__ Count apply(StackChange<Count> change, Count depth) {
  return max(depth - change.closes, Count{0}) + change.opens;
}

inline __device__ int highest_bit(std::uint32_t bits) { return 31 - __clz(static_cast<int>(bits)); }
inline __device__ int lowest_bit(std::uint32_t bits) { return __ffs(static_cast<int>(bits)) - 1; }

/// The position of the set bit that has `rank` set bits below it; there must be one.
inline __device__ int select_bit(std::uint32_t bits, int rank) {
  int position = 0;
#pragma unroll
  for (int width = 16; width > 0; width /= 2) {
    const int below = __popc(bits & ((1u << width) - 1));
    if (rank >= below) {
      rank -= below;
      position += width;
      bits >>= width;
    }
  }
  return position;
}

/// The `count` lowest set bits; count may be all of them.
inline __device__ std::uint32_t lowest_set_bits(std::uint32_t bits, int count) {
  if (count >= __popc(bits)) return bits;
  return bits & ((1u << select_bit(bits, count)) - 1);
}

}  // namespace cumulus::bracket_match
