#pragma once

#include <cuda_runtime.h>

#include <cstdint>

// Copies of an image to shared memory, and what they leave in the L2 cache.

namespace cumulus {

// The operand has to be part of the instruction's text.
#if __CUDA_ARCH__ >= 800
#define CUMULUS_MAKE_CACHE_POLICY(policy, lines, share) \
  asm("createpolicy.fractional.L2::" lines ".b64 %0, " share ";" : "=l"(policy))
#else
#define CUMULUS_MAKE_CACHE_POLICY(policy, lines, share)
#endif

/// What the L2 cache does with the lines of an image that it cannot hold. Three of four are the first to
/// leave, so that what blocks tell each other stays there. But such lines make room for each other only: all
/// that other kernels left in the cache would stay beside them. So the fourth is one like any other.
__device__ inline std::uint64_t passing_lines() {
  std::uint64_t policy = 0;
  CUMULUS_MAKE_CACHE_POLICY(policy, "evict_first", "0.75");
  return policy;
}
/// All of them leave first, for what is to be in the cache later.
__device__ inline std::uint64_t leaving_lines() {
  std::uint64_t policy = 0;
  CUMULUS_MAKE_CACHE_POLICY(policy, "evict_first", "1.0");
  return policy;
}
/// And of one that it can hold.
__device__ inline std::uint64_t staying_lines() {
  std::uint64_t policy = 0;
  CUMULUS_MAKE_CACHE_POLICY(policy, "evict_normal", "1.0");
  return policy;
}
#undef CUMULUS_MAKE_CACHE_POLICY

/// Starts to copy 16 bytes to shared memory.
__device__ inline void copy_async(void* to, const void* from, std::uint64_t lines) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(
                   static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from), "l"(lines)
               : "memory");
#else
  *static_cast<uint4*>(to) = __ldcs(static_cast<const uint4*>(from));
#endif
}

}  // namespace cumulus
