#pragma once

#include <cstdint>

// Waiting for a batch of status words that other blocks publish. All are under way at once: several take as
// long as one.
//
// Why it makes progress: a wait ends when the publishers have stored; the kernel that waits says why they
// run. Why nothing is overwritten while it is read: a word that has come is not stored again before its
// readers have shown that they have it (status_word.cuh); await_all loads words again that have come, the
// others do not.

namespace cumulus {

/// For waits of less than the time of a poll.
struct PollAtOnce {
  __device__ void operator()() const {}
};

/// Loads words 0 to kCount - 1 by load(i), again and again, until has(i) is true of all.
template <int kCount, class Load, class Has, class Delay = PollAtOnce>
__device__ __forceinline__ void await_all(const Load& load, const Has& has, const Delay& delay = {}) {
  for (bool all = false; !all;) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) load(i);
    all = true;
#pragma unroll
    for (int i = 0; i < kCount; ++i) all = all && has(i);
    if (!all) delay();
  }
}

/// The same of the words whose bits are set in `missing`; each is loaded until it has come.
template <int kCount, class Load, class Has, class Delay = PollAtOnce>
__device__ __forceinline__ void await_missing(std::uint32_t missing, const Load& load, const Has& has,
                                              const Delay& delay = {}) {
  static_assert(kCount <= 32);
  while (missing != 0) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if ((missing >> i & 1) != 0) load(i);
    }
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if ((missing >> i & 1) != 0 && has(i)) missing &= ~(1U << i);
    }
    if (missing != 0) delay();
  }
}

/// The same of several batches: poll() loads what of one has not come once more, and is true where all has.
template <class First, class... Others>
__device__ __forceinline__ void await_together(First& first, Others&... others) {
  for (bool all = false; !all;) {
    all = first.poll();
    ((all = others.poll() && all), ...);
  }
}

}  // namespace cumulus
