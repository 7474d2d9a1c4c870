#pragma once

#include <cuda_runtime.h>

#include "kernels/recursive_filter/fir/stage.h"

// The arithmetic of a stage: a thread's run of results, whose values slide through registers.

namespace cumulus::recursive_filter {

struct alignas(16) FirFour {
  float values[kFirTaps];
};

/// sums[i] += the sum over tap t of weights[t] values[i + t], of `chunks` times kFirTaps taps. The value
/// after those may be read. Values lie in groups of kFirTaps; where a group would begin at `end`, it is
/// `ring` before.
template <bool kWraps>
__device__ __forceinline__ void add_taps(const float* at, const float* end, int ring, const FirFour* weights,
                                         int chunks, float (&sums)[kFirRun]) {
  constexpr int kWindow = kFirRun + kFirTaps;
  float window[kWindow];
  const auto load = [&](int to) {
    const auto four = *reinterpret_cast<const FirFour*>(at);
#pragma unroll
    for (int i = 0; i < kFirTaps; ++i) window[to + i] = four.values[i];
    at += kFirTaps;
    if (kWraps && at >= end) at -= ring;
  };
  load(0);
  load(kFirTaps);
  while (true) {
#pragma unroll
    for (int first = 0; first < kWindow; first += kFirTaps) {
      load((first + kFirRun) % kWindow);
      const FirFour weight = *weights++;
#pragma unroll
      for (int tap = 0; tap < kFirTaps; ++tap) {
#pragma unroll
        for (int i = 0; i < kFirRun; ++i) {
          sums[i] += weight.values[tap] * window[(first + tap + i) % kWindow];
        }
      }
      if (--chunks == 0) return;
    }
  }
}

}  // namespace cumulus::recursive_filter
