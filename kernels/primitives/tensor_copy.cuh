#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/primitives/shared_barrier.cuh"

// Boxes of an array that the copy engine moves between device and shared memory: one thread asks for a box,
// and what of it lies beyond the array is zero, or is not written. Compute capability 9.0 and later.

namespace cumulus {

/// Begins to bring a box in, whose first element is number `x` of row `y`. `over` counts its bytes.
__device__ inline void load_box(void* to, const CUtensorMap& from, int x, int y, const SharedBarrier& over,
                                std::uint64_t lines) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
      "l"(&from), "r"(x), "r"(y), "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(&over))), "l"(lines)
      : "memory");
#endif
}

/// Begins to write a box, of the thread's current group.
__device__ inline void store_box(const CUtensorMap& to, int x, int y, const void* from, std::uint64_t lines) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.L2::cache_hint [%0, {%1, %2}], [%3], %4;" ::"l"(
          &to),
      "r"(x), "r"(y), "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(from))), "l"(lines)
      : "memory");
#endif
}
__device__ inline void end_group_of_stores() {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#endif
}
/// Until all of the thread's groups have been read from shared memory.
__device__ inline void await_reads_of_stores() {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
}

/// What the thread has written to shared memory before is there for the copy engine, once another thread
/// knows of it. Barriers, too, once initialized.
__device__ inline void show_to_copy_engine() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

}  // namespace cumulus
