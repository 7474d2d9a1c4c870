#pragma once

// The sizes of buckets, and the nodes above them.

#include <cstdint>

#include "kernels/kd_tree/build/forest.cuh"
#include "kernels/kd_tree/kd_tree.h"
#include "kernels/kd_tree/sampled/scatter.cuh"
#include "kernels/primitives/block_scan.cuh"
#include "kernels/primitives/launch.cuh"

namespace cumulus::kd_tree {

/// What blocks know of all buckets.
struct BucketTable {
  std::uint32_t* begins;  // [buckets + 1]
  std::uint32_t* large;   // [buckets]: those that are larger than most
  std::uint32_t* large_count;
  std::uint32_t* uneven;  // [buckets]: those that no bins split evenly
  std::uint32_t* uneven_count;
  std::uint32_t* crowded;  // 1: some part found no room
};

struct SumJob {
  Parts samples;
  Parts first;  // of the first step
  unsigned first_count;
  Parts buckets;
  unsigned bucket_count;
  unsigned small_capacity;
  BucketTable table;
  KdTreeReport* report;
};

inline constexpr int kSumThreads = 1024;

/// Four buckets, from `first` on; 0 where there are none.
__device__ inline uint4 load_counts(const SumJob& job, unsigned first) {
  if (first >= job.bucket_count) return {0, 0, 0, 0};
  return *reinterpret_cast<const uint4*>(job.buckets.counts + first);
}

/// Puts those of four buckets that are large on the list.
__device__ inline void list_large(const SumJob& job, unsigned first, const uint4& counts, unsigned* listed) {
  const std::uint32_t each[4] = {counts.x, counts.y, counts.z, counts.w};
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    if (each[i] > job.small_capacity) job.table.large[atomicAdd(listed, 1u)] = first + i;
  }
}

/// Where each bucket begins, which are large, and whether all parts have found room.
/// Owns: one block has all.
/// Reads: the numbers of points of all parts.
/// Writes: the table of buckets, and what the report says of room.
/// Waits for: the kernel in front of it; nothing of other blocks.
/// Cannot deadlock: all threads of a block reach its barriers.
/// Source: this project's.
static __global__ void __launch_bounds__(kSumThreads) sum_buckets(SumJob job) {
  __shared__ std::uint32_t warp_sums[32];
  __shared__ unsigned large;
  bool over = false;
  wait_for_primary_kernel();
  allow_secondary_kernel();
  if (threadIdx.x == 0) large = 0;
  for (unsigned i = threadIdx.x; i < job.first_count; i += kSumThreads) {
    over |= *job.samples.count(i) > job.samples.capacity || *job.first.count(i) > job.first.capacity;
  }
  __syncthreads();
  std::uint32_t carry = 0;
  for (unsigned first = 0; first < job.bucket_count; first += 4 * kSumThreads) {
    const unsigned at = first + 4 * threadIdx.x;
    const uint4 counts = load_counts(job, at);
    const std::uint32_t most = max(max(counts.x, counts.y), max(counts.z, counts.w));
    over |= most > job.buckets.capacity;
    if (most > job.small_capacity) list_large(job, at, counts, &large);
    const BlockScan<std::uint32_t> sums = block_exclusive_scan<kSumThreads>(
        counts.x + counts.y + counts.z + counts.w, 0u, [](auto a, auto b) { return a + b; }, warp_sums);
    uint4 begins;
    begins.x = carry + sums.before;
    begins.y = begins.x + counts.x;
    begins.z = begins.y + counts.y;
    begins.w = begins.z + counts.z;
    if (at < job.bucket_count) *reinterpret_cast<uint4*>(job.table.begins + at) = begins;
    carry += sums.total;
    __syncthreads();
  }
  over = __syncthreads_or(over) != 0;
  if (threadIdx.x != 0) return;
  job.table.begins[job.bucket_count] = carry;
  *job.table.crowded = over ? 1 : 0;
  *job.table.large_count = large;
  *job.table.uneven_count = 0;
  job.report->crowded = over ? 1 : 0;
}

/// The box of a node of a heap of boxes from those of its children.
__device__ inline void merge_children(std::uint32_t* boxes, unsigned node) {
  const std::uint32_t* left = boxes + 6 * (2 * node + 1);
#pragma unroll
  for (int i = 0; i < kPartAxes; ++i) {
    boxes[6 * node + i] = min(left[i], left[6 + i]);
    boxes[6 * node + kPartAxes + i] = max(left[kPartAxes + i], left[6 + kPartAxes + i]);
  }
}

inline constexpr int kUpperLevels = 9;

struct UpperJob {
  Forest<float> forest;
  BucketTable table;
  int above;  // levels above the buckets
  unsigned* arrived;
};

/// Boxes of the nodes above level `bottom`, `levels` of them, of subtree `number`, from the stored boxes of
/// those at `bottom`.
__device__ inline void merge_upwards(const UpperJob& job, int bottom, int levels, unsigned number,
                                     std::uint32_t* boxes) {
  const int dimensions = job.forest.shape.dimensions;
  const float* lowers = job.forest.bounds;
  const float* uppers = lowers + job.forest.shape.nodes() * dimensions;
  const unsigned width = 1u << levels;
  if (threadIdx.x < width) {
    const std::int64_t node =
        (std::int64_t{1} << bottom) - 1 + (std::int64_t{number} << levels) + threadIdx.x;
    std::uint32_t* box = boxes + 6 * (width - 1 + threadIdx.x);
    for (int axis = 0; axis < kPartAxes; ++axis) {
      box[axis] = axis < dimensions ? ordered_key(__ldcg(lowers + node * dimensions + axis)) : 0;
      box[kPartAxes + axis] = axis < dimensions ? ordered_key(__ldcg(uppers + node * dimensions + axis)) : 0;
    }
  }
  __syncthreads();
  for (int level = levels - 1; level >= 0; --level) {
    if (threadIdx.x < 1u << level) merge_children(boxes, (1u << level) - 1 + threadIdx.x);
    __syncthreads();
  }
  const unsigned i = threadIdx.x;
  if (i + 1 >= width) return;
  const int level = 31 - __clz(static_cast<int>(i + 1));
  const int depth = bottom - levels + level;
  const std::int64_t place = (std::int64_t{number} << level) + (i + 1 - (1u << level));
  const std::int64_t first = place << (job.above - depth);
  const std::int64_t last = (place + 1) << (job.above - depth);
  const std::int64_t node = (std::int64_t{1} << depth) - 1 + place;
  store_node(job.forest, {0, node, job.table.begins[first], job.table.begins[last]}, false, boxes + 6 * i,
             boxes + 6 * i + kPartAxes);
}

/// The nodes above the buckets.
/// Owns: block b the nodes of subtree b, kUpperLevels deep; the last to arrive, those above all subtrees.
/// Reads: the boxes that the buckets' blocks stored, and the buckets' begins.
/// Writes: its nodes; the number of blocks that have arrived.
/// Waits for: the kernel in front of it; no block: the last to arrive finds the others' nodes stored.
/// Cannot deadlock: no block waits for another.
/// Source: the last block's work is that of threadFenceReduction in NVIDIA's CUDA samples.
static __global__ void __launch_bounds__(1 << kUpperLevels) bound_upper_nodes(UpperJob job) {
  __shared__ std::uint32_t boxes[12 << kUpperLevels];
  __shared__ bool last;
  wait_for_primary_kernel();
  if (*job.table.crowded != 0) return;
  const int below = min(job.above, kUpperLevels);
  merge_upwards(job, job.above, below, blockIdx.x, boxes);
  if (job.above == below) return;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(job.arrived, 1u) + 1 == gridDim.x;
  __syncthreads();
  if (!last) return;
  __threadfence();
  merge_upwards(job, job.above - below, job.above - below, 0, boxes);
}

}  // namespace cumulus::kd_tree
