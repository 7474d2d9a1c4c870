#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include "kernels/recursive_filter/fir/stage.h"

// The arithmetic of a stage: a thread's run of results, whose values slide through registers.

namespace cumulus::recursive_filter {

template <class Real>
struct alignas(16) FirFour {
  Real values[kFirTaps];
};

/// sums[i] += the sum over tap t of weights[t] values[i + t], of `chunks` times kFirTaps taps. The value
/// after those may be read. Values lie `kStride` apart, in groups of kFirTaps; where a group would begin at
/// `end`, it is `ring` before.
template <int kStride, bool kWraps, class Real>
__device__ __forceinline__ void add_taps(const Real* at, const Real* end, int ring,
                                         const FirFour<Real>* weights, int chunks, Real (&sums)[kFirRun]) {
  constexpr int kWindow = kFirRun + kFirTaps;
  Real window[kWindow];
  const auto load = [&](int to) {
    if constexpr (kStride == 1) {
      const auto four = *reinterpret_cast<const FirFour<Real>*>(at);
#pragma unroll
      for (int i = 0; i < kFirTaps; ++i) window[to + i] = four.values[i];
    } else {
#pragma unroll
      for (int i = 0; i < kFirTaps; ++i) window[to + i] = at[i * kStride];
    }
    at += kFirTaps * kStride;
    if (kWraps && at >= end) at -= ring;
  };
  load(0);
  load(kFirTaps);
  while (true) {
#pragma unroll
    for (int first = 0; first < kWindow; first += kFirTaps) {
      load((first + kFirRun) % kWindow);
      const FirFour<Real> weight = *weights++;
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

/// The results of all phases of a run, which read the same values: load(i) gives the i-th four of these,
/// take(phase, results) gets what comes of them.
template <int kChunks, class Real, class Load, class Take>
__device__ __forceinline__ void interpolate_run(const FirFour<Real>* weights, int phases, const Load& load,
                                                const Take& take) {
  Real values[kFirRun + kFirTaps * kChunks];
#pragma unroll
  for (int i = 0; i < kFirRun / kFirTaps + kChunks; ++i) {
    const FirFour<Real> four = load(i);
#pragma unroll
    for (int k = 0; k < kFirTaps; ++k) values[i * kFirTaps + k] = four.values[k];
  }
  for (int phase = 0; phase < phases; ++phase) {
    Real sums[kFirRun] = {};
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      const FirFour<Real> weight = *weights++;
#pragma unroll
      for (int tap = 0; tap < kFirTaps; ++tap) {
#pragma unroll
        for (int i = 0; i < kFirRun; ++i) {
          sums[i] += weight.values[tap] * values[chunk * kFirTaps + tap + i];
        }
      }
    }
    take(phase, sums);
  }
}

/// Calls body with the chunks of an interpolation as a constant.
template <class Body>
__device__ __forceinline__ void with_interpolation_chunks(int chunks, const Body& body) {
  static_assert(kFirMinInterpolationChunks == 2 && kFirMaxInterpolationChunks == 5);
  if (chunks == 2) return body(std::integral_constant<int, 2>());
  if (chunks == 3) return body(std::integral_constant<int, 3>());
  if (chunks == 4) return body(std::integral_constant<int, 4>());
  body(std::integral_constant<int, 5>());
}

}  // namespace cumulus::recursive_filter
