#pragma once

#include <cstdint>

#include "kernels/primitives/status_word.cuh"
#include "kernels/recursive_filter/tuning.h"

// States that blocks of one kernel publish to each other: in words of 16 bytes, each written and read
// whole, of three numbers and a tag. A load that has the tag has the numbers, and nothing needs to be
// ordered. Where a word holds fewer numbers the tag stands in their place and is compared there: of a word
// that is not looked at whole, the assembler loads the parts one by one.

namespace cumulus::recursive_filter {

template <int Order>
struct TaggedState {
  static constexpr int kWords = tagged_words(Order);

  uint4 words[kWords];

  /// Of a state whose words lie `stride` apart.
  __device__ void load(const uint4* from, int stride) {
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = load_relaxed(from + i * stride);
  }
  __device__ bool has(std::uint32_t tag) const {
    bool all = true;
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      all = all && words[i].w == tag;
      if (i * kTaggedNumbers + 1 >= Order) all = all && words[i].y == tag;
      if (i * kTaggedNumbers + 2 >= Order) all = all && words[i].z == tag;
    }
    return all;
  }
  __device__ void get(float (&state)[Order]) const {
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      const uint4& word = words[k / kTaggedNumbers];
      state[k] = __uint_as_float(k % kTaggedNumbers == 0   ? word.x
                                 : k % kTaggedNumbers == 1 ? word.y
                                                           : word.z);
    }
  }
};

template <int Order>
__device__ void publish_tagged(uint4* to, int stride, std::uint32_t tag, const float (&state)[Order]) {
#pragma unroll
  for (int i = 0; i < TaggedState<Order>::kWords; ++i) {
    const auto bits = [&](int k) { return k < Order ? __float_as_uint(state[k < Order ? k : 0]) : tag; };
    constexpr int kNumbers = kTaggedNumbers;
    store_relaxed(to + i * stride,
                  make_uint4(bits(i * kNumbers), bits(i * kNumbers + 1), bits(i * kNumbers + 2), tag));
  }
}

}  // namespace cumulus::recursive_filter
