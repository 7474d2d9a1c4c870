#pragma once

namespace cumulus {

/// Of the architecture that is compiled for.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
inline constexpr int kMaxThreadsPerMultiprocessor = 1024;
#elif defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900)
inline constexpr int kMaxThreadsPerMultiprocessor = 2048;
#else
inline constexpr int kMaxThreadsPerMultiprocessor = 1536;  // or more
#endif

/// `blocks`, or as many blocks of `threads` as a multiprocessor can hold: for __launch_bounds__, whose
/// registers are divided among so many.
constexpr int blocks_per_multiprocessor(int blocks, int threads) {
  return blocks * threads <= kMaxThreadsPerMultiprocessor ? blocks : kMaxThreadsPerMultiprocessor / threads;
}

}  // namespace cumulus
