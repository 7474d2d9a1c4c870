#pragma once

// Queries that come in an order in which a warp's are near each other, as along a space-filling curve, need
// no sorting.

#include <cstdint>

#include "kernels/kd_tree/query/faults.cuh"
#include "kernels/kd_tree/query/search.cuh"
#include "kernels/primitives/launch.cuh"
#include "kernels/primitives/warp.cuh"

namespace cumulus::kd_tree {

inline constexpr int kOrderThreads = 1024;

/// How many times as far a query is from one warp's length later as from one anywhere: log2 of the squares,
/// summed over the block in its first warp.
template <class T, int D>
__device__ float summed_log_of_nearness(const Search<T>& search) {
  constexpr unsigned kWarps = kOrderThreads / 32;
  constexpr float kNotZero = 1e-37f;
  __shared__ float sums[kWarps];
  const unsigned warp = threadIdx.x / 32;
  const unsigned lane = threadIdx.x % 32;
  const std::int64_t last = search.all_queries() - 64;
  const std::int64_t own = last * warp / (kWarps - 1) + lane;
  const std::int64_t elsewhere = last * ((warp + kWarps / 2 - 3) % kWarps) / (kWarps - 1) + lane;
  T near = 0;
  T far = 0;
  for (int axis = 0; axis < D; ++axis) {
    const T x = search.queries[own * D + axis];
    const T to_later = search.queries[(own + 32) * D + axis] - x;
    const T to_elsewhere = search.queries[elsewhere * D + axis] - x;
    near += to_later * to_later;
    far += to_elsewhere * to_elsewhere;
  }
  float sum = log2f(static_cast<float>(near) + kNotZero) - log2f(static_cast<float>(far) + kNotZero);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kFullWarp, sum, step);
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  sum = sums[lane];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(kFullWarp, sum, step);
  return sum;
}

/// Looks at 1024 queries, 32 neighbours each. In order are queries one of which is nearer to the one 32 later
/// than to one anywhere by half as many powers of two as the best order could make it. NaN is in no order.
/// Owns: one block has all.
/// Reads: 64 neighbouring queries for each of its warps; there are at least kMinSortedQueries.
/// Writes: whether they are in order, 1 or 0; the report of faults.
/// Waits for: the kernel in front; nothing of other blocks.
/// Cannot deadlock: all threads reach its barrier.
/// Source: this project's.
template <class T, int D>
__global__ void __launch_bounds__(kOrderThreads)
    look_at_order(Search<T> search, std::uint32_t* in_order, NeighborReport* report) {
  wait_for_primary_kernel();
  allow_secondary_kernel();
  const float nearness = summed_log_of_nearness<T, D>(search) / kOrderThreads;
  if (threadIdx.x == 0) *in_order = nearness <= -log2f(static_cast<float>(search.all_queries())) / D ? 1 : 0;
  if (threadIdx.x == 32) describe_fault(search, report);
}

}  // namespace cumulus::kd_tree
