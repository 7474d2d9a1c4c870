#pragma once

// A barrier of all threads of a cluster in two parts, between which they do what needs no other block. It
// shows how barriers in shared memory were initialised, and nothing else.

namespace cumulus::summed_area_table {

/// To be called by whole warps; thereafter each waits for the cluster, too.
__device__ inline void arrive_at_cluster() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncwarp();
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ inline void wait_for_cluster() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

}  // namespace cumulus::summed_area_table
