#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/primitives/mbarrier.cuh"

// TMA tiles of an array, between device and shared memory, under an L2 eviction policy: one thread issues a
// copy, and what of the tile lies beyond the array comes in as zero, or is not written. Compute
// capability 9.0 and later.

namespace cumulus {

/// Begins to bring a tile in, whose first element is number `x` of row `y`. `loaded` counts its bytes.
__device__ inline void tma_load_tile(void* to, const CUtensorMap& from, int x, int y, const Mbarrier& loaded,
                                     std::uint64_t policy) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
      "l"(&from), "r"(x), "r"(y), "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(&loaded))),
      "l"(policy)
      : "memory");
#endif
}

/// Begins to write a tile, in the thread's current group of stores.
__device__ inline void tma_store_tile(const CUtensorMap& to, int x, int y, const void* from,
                                      std::uint64_t policy) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.L2::cache_hint [%0, {%1, %2}], [%3], %4;" ::"l"(
          &to),
      "r"(x), "r"(y), "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(from))), "l"(policy)
      : "memory");
#endif
}
/// Ends the thread's current group of stores.
__device__ inline void tma_commit_stores() {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#endif
}
/// Waits until all of the thread's groups have been read from shared memory.
__device__ inline void tma_wait_for_store_reads() {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
}

/// Orders what the thread wrote to shared memory before, initialised mbarriers too, ahead of TMA's accesses
/// that a thread issues once it knows of this.
__device__ inline void fence_async_proxy() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

}  // namespace cumulus
