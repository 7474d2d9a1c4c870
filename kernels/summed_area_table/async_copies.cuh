#pragma once

// Groups of asynchronous copies to shared memory, which are waited for in their order.

namespace cumulus::summed_area_table {

__device__ inline void close_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/// Waits for the warp's copies but for those of the last kPending calls of close_copies.
template <int kPending>
__device__ void await_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
  __syncwarp();
}

}  // namespace cumulus::summed_area_table
