#pragma once

#include <cooperative_groups.h>

#include <cstdint>

#include "kernels/primitives/warp.cuh"
#include "kernels/primitives/warp_scan.cuh"
#include "kernels/run_length/encode/heads.cuh"
#include "kernels/run_length/tuning.h"

// The encoder of small arrays: one launch of one block, or of clusters of blocks that exchange their sums in
// shared memory. Clusters do not exchange: each counts the heads before its own elements itself, so that no
// status words have to be cleared first and none waits for another.

namespace cumulus::run_length {

/// The runs that begin in some elements, and where the last of them does.
struct HeadSum {
  std::int32_t runs;
  std::int32_t last;  // -1 where there is none

  __device__ HeadSum with(const HeadSum& other) const { return {runs + other.runs, max(last, other.last)}; }
  /// By a warp: of the lanes before each.
  __device__ HeadSum exclusive(int lane) const {
    HeadSum sum = *this;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const HeadSum lower{__shfl_up_sync(kFullWarp, sum.runs, step),
                          __shfl_up_sync(kFullWarp, sum.last, step)};
      if (lane >= step) sum = sum.with(lower);
    }
    const HeadSum before{__shfl_up_sync(kFullWarp, sum.runs, 1), __shfl_up_sync(kFullWarp, sum.last, 1)};
    return lane > 0 ? before : HeadSum{0, -1};
  }
  __device__ HeadSum of_lane(int lane) const {
    return {__shfl_sync(kFullWarp, runs, lane), __shfl_sync(kFullWarp, last, lane)};
  }
  /// By a warp: of all lanes, to each.
  __device__ HeadSum of_warp() const {
    return {static_cast<std::int32_t>(warp_sum(static_cast<std::uint32_t>(runs))),
            static_cast<std::int32_t>(warp_max(static_cast<std::uint32_t>(last + 1))) - 1};
  }
};

/// As store_length; lengths of small arrays fit.
template <class T>
__device__ void store_small_length(const EncodeArguments<T>& a, int run, int count, int end) {
  if (run >= a.max_runs) return;
  const auto length = static_cast<std::uint32_t>(a.ends ? end : count);
  if (a.wide_lengths) {
    static_cast<std::uint64_t*>(a.lengths)[run] = length;
  } else {
    static_cast<std::uint32_t*>(a.lengths)[run] = length;
  }
}

/// A warp's elements: rows of 32, and of each row a bit for each head.
template <class T, int kRows>
struct SmallRows {
  int first;
  T own[kRows];
  T preceding[kRows];
  std::uint32_t heads[kRows];

  /// Reads the elements. find_heads comes next, once all others that are wanted are being read.
  __device__ SmallRows(const EncodeArguments<T>& a, int first_element, int lane) : first(first_element) {
    const auto last = static_cast<int>(a.count) - 1;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      const int i = min(first + 32 * row + lane, last);
      own[row] = a.elements[i];
      preceding[row] = a.elements[max(i - 1, 0)];
    }
  }
  __device__ void find_heads(const EncodeArguments<T>& a, int lane) {
    const auto count = static_cast<int>(a.count);
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      const int i = first + 32 * row + lane;
      const bool head = i == 0 || differ(own[row], preceding[row]);
      heads[row] = __ballot_sync(kFullWarp, head && i < count);
    }
    if (a.cut != 0) add_cuts(static_cast<int>(a.cut), count, lane);
  }
  __device__ void add_cuts(int cut, int count, int lane) {
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      const int i = first + 32 * row + lane;
      heads[row] |= __ballot_sync(kFullWarp, i % cut == 0 && i < count);
    }
  }
  __device__ HeadSum row_sum(int row) const {
    return {__popc(heads[row]),
            heads[row] == 0 ? -1 : first + 32 * row + 31 - __clz(static_cast<int>(heads[row]))};
  }
  __device__ HeadSum sum() const {
    HeadSum all{0, -1};
#pragma unroll
    for (int row = 0; row < kRows; ++row) all = all.with(row_sum(row));
    return all;
  }

  /// Symbols, and the lengths of the runs before; `before` is the sum of all elements before.
  __device__ void write(const EncodeArguments<T>& a, HeadSum before, int lane) const {
    const bool plain = !a.wide_lengths && !a.ends && a.first_runs == nullptr && a.max_runs >= a.count;
    return plain ? write_plain(a, before, lane) : write_any(a, before, lane);
  }

 private:
  /// Counts of 32 bits, which there is room for: few instructions a row.
  __device__ void write_plain(const EncodeArguments<T>& a, const HeadSum& before, int lane) const {
    T* symbols = a.symbols + before.runs;
    std::uint32_t* lengths = static_cast<std::uint32_t*>(a.lengths) + before.runs - 1;
    int last = before.last;
    const std::uint32_t below = (1u << lane) - 1;
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      const std::uint32_t bits = heads[row];
      const int begin = first + 32 * row;
      if ((bits >> lane & 1u) != 0) {
        const std::uint32_t lower = bits & below;
        const int rank = __popc(lower);
        symbols[rank] = own[row];
        const int previous = lower != 0 ? begin + 31 - __clz(static_cast<int>(lower)) : last;
        if (previous >= 0) lengths[rank] = static_cast<std::uint32_t>(begin + lane - previous);
      }
      const int runs = __popc(bits);
      symbols += runs;
      lengths += runs;
      if (bits != 0) last = begin + 31 - __clz(static_cast<int>(bits));
    }
  }
  __device__ void write_any(const EncodeArguments<T>& a, HeadSum before, int lane) const {
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      if ((heads[row] >> lane & 1u) != 0) {
        const std::uint32_t lower = heads[row] & ((1u << lane) - 1);
        const int run = before.runs + __popc(lower);
        const int head = first + 32 * row + lane;
        const int previous = lower != 0 ? head - lane + 31 - __clz(static_cast<int>(lower)) : before.last;
        if (run < a.max_runs) a.symbols[run] = own[row];
        if (run > 0) store_small_length(a, run - 1, head - previous, head);
        if (a.first_runs != nullptr) write_first_run(a, head, run);
      }
      before = before.with(row_sum(row));
    }
  }

  __device__ static void write_first_run(const EncodeArguments<T>& a, int head, int run) {
    const auto piece = static_cast<int>(min(a.piece, a.count));
    if (head % piece == 0) a.first_runs[head / piece] = run;
  }
};

/// The heads of a warp's part of the elements before its cluster's own, of which each block of the cluster
/// has as many: at most kRows rows of 32.
template <class T, int kRows>
__device__ HeadSum sum_before_cluster(const EncodeArguments<T>& a, int rows_of_warp, int warp, int lane) {
  const auto clusters = static_cast<int>(blockIdx.x) / kSmallBlocks;
  const int rank = static_cast<int>(blockIdx.x) % kSmallBlocks;
  const int elements = clusters * rows_of_warp * 32;
  const int first = (rank * kSmallThreads / 32 + warp) * elements + lane;
  const int end = first - lane + elements;
  const auto cut = static_cast<int>(a.cut);
  T own[kRows];
  T preceding[kRows];
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    const int i = min(first + 32 * row, static_cast<int>(a.count) - 1);
    own[row] = a.elements[i];
    preceding[row] = a.elements[max(i - 1, 0)];
  }
  HeadSum sum{0, -1};
#pragma unroll
  for (int row = 0; row < kRows; ++row) {
    const int i = first + 32 * row;
    const bool head = i == 0 || differ(own[row], preceding[row]) || (cut != 0 && i % cut == 0);
    if (head && i < end) sum = {sum.runs + 1, i};
  }
  return sum.of_warp();
}

/// Of a block: the heads of its part of the elements before its cluster's own, and of its own elements.
struct alignas(16) BlockSums {
  HeadSum before_cluster;
  HeadSum own;
};

/// By a warp: of all elements before a block, from the sums of its cluster's blocks.
__device__ inline HeadSum sum_before_block(const BlockSums (&sums)[kSmallBlocks], int rank, int lane) {
  HeadSum sum{0, -1};
  if (lane < kSmallBlocks) sum = sums[lane].before_cluster;
  if (lane < rank) sum = sum.with(sums[lane].own);
  return sum.of_warp();
}

/// A whole array at once.
/// Owns: a warp kRows rows of 32 elements, in order; a block and a cluster, of at most kMaxClusters, its sum.
/// Reads: its elements and the one before each; of all elements before its cluster's as many as the cluster's
///   other blocks, likewise.
/// Writes: symbols of the runs that begin in its elements, and the lengths of the runs that end there; its
///   sums, into the shared memory of its cluster's blocks; the last block the last length and the report.
/// Waits for: the blocks of its cluster alone.
/// Cannot deadlock: a cluster's blocks are resident together, and all threads reach its barriers.
/// Source: this project's; mark, scan and write as in A. Balevic, "Parallel variable-length encoding on
///   GPGPUs", 2009.
template <class T, int kRows, int kMaxClusters>
__global__ void __launch_bounds__(kSmallThreads) encode_small(const EncodeArguments<T> a) {
  constexpr int kWarps = kSmallThreads / 32;
  static_assert(kWarps == 32);  // a lane for each
  __shared__ HeadSum warp_sums[kWarps];
#if __CUDA_ARCH__ >= 900
  __shared__ HeadSum warp_sums_before[kWarps];  // of elements before the cluster's
  __shared__ BlockSums block_sums[kSmallBlocks];
  const auto cluster = cooperative_groups::this_cluster();
  if (gridDim.x > 1) cluster.barrier_arrive();
#endif
  const int warp = warp_index();
  const int lane = lane_index();
  const int block = static_cast<int>(blockIdx.x);
  SmallRows<T, kRows> rows(a, (block * kWarps + warp) * kRows * 32, lane);
#if __CUDA_ARCH__ >= 900
  if constexpr (kMaxClusters > 1) {
    const HeadSum before = sum_before_cluster<T, kRows*(kMaxClusters - 1)>(a, kRows, warp, lane);
    if (lane == 0) warp_sums_before[warp] = before;
  }
#endif
  rows.find_heads(a, lane);
  if (lane == 0) warp_sums[warp] = rows.sum();
  __syncthreads();
  const HeadSum of_warp = warp_sums[lane];
  const HeadSum before_warps = of_warp.exclusive(lane);
  const HeadSum whole = before_warps.with(of_warp).of_lane(31);
  HeadSum lower{0, -1};
#if __CUDA_ARCH__ >= 900
  if (gridDim.x > 1) {
    const int rank = block % kSmallBlocks;
    cluster.barrier_wait();  // all blocks have begun
    if (warp == 0) {
      const HeadSum before = kMaxClusters > 1 ? warp_sums_before[lane].of_warp() : HeadSum{0, -1};
      if (lane < kSmallBlocks) *cluster.map_shared_rank(&block_sums[rank], lane) = {before, whole};
    }
    cluster.sync();
    lower = sum_before_block(block_sums, rank, lane);
  }
#endif
  if (threadIdx.x == 0 && block == static_cast<int>(gridDim.x) - 1) {
    const HeadSum all = lower.with(whole);
    const auto count = static_cast<int>(a.count);
    *a.caller_report = {all.runs, -1};
    store_small_length(a, all.runs - 1, count - all.last, count);
    if (a.first_runs != nullptr) a.first_runs[(a.count - 1) / a.piece + 1] = all.runs;
  }
  rows.write(a, lower.with(before_warps.of_lane(warp)), lane);
}

}  // namespace cumulus::run_length
