#pragma once

#include <cuda_runtime.h>

#include <cstdint>

// Asynchronous copies of 16 and 4 bytes from device to shared memory, and the L2 eviction policies that
// they take.

namespace cumulus {

// The operand has to be part of the instruction's text.
#if __CUDA_ARCH__ >= 800
#define CUMULUS_MAKE_L2_POLICY(policy, priority, fraction) \
  asm("createpolicy.fractional.L2::" priority ".b64 %0, " fraction ";" : "=l"(policy))
#else
#define CUMULUS_MAKE_L2_POLICY(policy, priority, fraction)
#endif

/// For an image that the L2 cache cannot hold: three of four lines are the first to be evicted, so that the
/// status words stay. But such lines make room for each other only: all that other kernels left in the cache
/// would stay beside them. So the fourth is one like any other.
__device__ inline std::uint64_t evict_first_three_quarters() {
  std::uint64_t policy = 0;
  CUMULUS_MAKE_L2_POLICY(policy, "evict_first", "0.75");
  return policy;
}
/// For what is read or written once, beside what is to be in the cache later.
__device__ inline std::uint64_t evict_first() {
  std::uint64_t policy = 0;
  CUMULUS_MAKE_L2_POLICY(policy, "evict_first", "1.0");
  return policy;
}
/// For an image that the L2 cache can hold.
__device__ inline std::uint64_t evict_normal() {
  std::uint64_t policy = 0;
  CUMULUS_MAKE_L2_POLICY(policy, "evict_normal", "1.0");
  return policy;
}
#undef CUMULUS_MAKE_L2_POLICY

/// Begins to copy 16 bytes to shared memory, under an L2 eviction policy.
__device__ inline void copy_async(void* to, const void* from, std::uint64_t policy) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(
                   static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from), "l"(policy)
               : "memory");
#else
  *static_cast<uint4*>(to) = __ldcs(static_cast<const uint4*>(from));
#endif
}

/// The same of the first `bytes` of 16, and zeros after them. At 0 bytes `from` is not read.
__device__ inline void copy_async_or_zero(void* to, const void* from, int bytes, std::uint64_t policy) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, %3;" ::"r"(
                   static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(bytes), "l"(policy)
               : "memory");
#else
  if (bytes == 16) {
    *static_cast<uint4*>(to) = __ldcs(static_cast<const uint4*>(from));
    return;
  }
  for (int i = 0; i < 16; ++i)
    static_cast<char*>(to)[i] = i < bytes ? static_cast<const char*>(from)[i] : char{0};
#endif
}

/// The same of 4 bytes.
__device__ inline void copy_async_word(float* to, const float* from, std::uint64_t policy) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global.L2::cache_hint [%0], [%1], 4, %2;" ::"r"(
                   static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from), "l"(policy)
               : "memory");
#else
  *to = __ldcs(from);
#endif
}

/// The same without a policy; where `is_there` is false, nothing is read and zeros are written.
__device__ inline void copy_async_word_or_zero(float* to, const float* from, bool is_there) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(
                   static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(is_there ? 4 : 0)
               : "memory");
#else
  *to = is_there ? __ldcs(from) : 0;
#endif
}

}  // namespace cumulus
