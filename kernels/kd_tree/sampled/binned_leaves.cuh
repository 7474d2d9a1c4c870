#pragma once

// Buckets become subtrees, split between bins.

#include <cstdint>

#include "kernels/kd_tree/sampled/binned.cuh"
#include "kernels/kd_tree/sampled/leaves.cuh"

namespace cumulus::kd_tree {

/// Loads the bucket into registers and begins its root.
template <int kThreads, int kItems>
__device__ void load_bucket(const BinnedPart<kThreads>& part, const LeafJob& job, unsigned number,
                            HeldPoints<kItems>& points) {
  const auto* records = reinterpret_cast<const float4*>(
      job.parts.records + static_cast<std::int64_t>(number) * job.parts.capacity);
  ThreadBox box;
#pragma unroll
  for (int item = 0; item < kItems; ++item) {
    const unsigned i = threadIdx.x + item * kThreads;
    const bool has = i < part.count;
    const float4 four = has ? __ldcs(records + i) : float4{0, 0, 0, 0};
    points.x[item] = four.x;
    points.y[item] = four.y;
    points.z[item] = four.z;
    points.index[item] = __float_as_uint(four.w);
    points.group[item] = 0;
    if (has) box.include(four.x, four.y, four.z);
  }
  reinterpret_cast<uint4*>(part.counters)[threadIdx.x] = {0, 0, 0, 0};
  auto* const keys = reinterpret_cast<std::uint32_t*>(part.boxes);
  if (threadIdx.x == 0) clear_box(keys);
  __syncthreads();
  widen_box(keys, box);
  __syncthreads();
  if (threadIdx.x == 0) {
    float root[2 * kPartAxes];
#pragma unroll
    for (int i = 0; i < 2 * kPartAxes; ++i) root[i] = part.boxes[i] = from_ordered_key<float>(keys[i]);
    part.groups[0] = bins_of(root, part.kBins);
    part.ranges[0] = {0, part.count};
    part.places[0] = child_places({0, part.count}, min(kLevelsAnAxis, job.levels));
  }
  __syncthreads();
}

/// The boxes of the leaves and of the nodes above them, as keys.
template <int D, int kThreads>
__device__ void bound_leaves(const BinnedPart<kThreads>& part, int levels) {
  const GroupThreads<kThreads> threads(levels);
  const uint2 leaf = part.ranges[part.at(levels) + threads.group];
  ThreadBox box;
#pragma unroll 4
  for (unsigned i = leaf.x + threads.lane; i < leaf.y; i += threads.size) {
    const float* point = part.coordinates + D * i;
    box.include(point[0], point[1], D == 3 ? point[D - 1] : 0.0f);
  }
  std::uint32_t lower[kPartAxes];
  std::uint32_t upper[kPartAxes];
#pragma unroll
  for (int axis = 0; axis < kPartAxes; ++axis) {
    lower[axis] = ordered_key(box.lower[axis]);
    upper[axis] = ordered_key(box.upper[axis]);
  }
  std::uint32_t* const boxes = part.keys;
  unsigned node = part.at(levels) + threads.group;
  for (unsigned distance = 1; distance <= 32; distance *= 2) {
    if (distance >= threads.size) {
      if ((lane_index() & (distance - 1)) == 0) {
#pragma unroll
        for (int axis = 0; axis < kPartAxes; ++axis) {
          boxes[6 * node + axis] = lower[axis];
          boxes[6 * node + kPartAxes + axis] = upper[axis];
        }
      }
      node = (node - 1) / 2;
    }
    if (distance == 32) break;
#pragma unroll
    for (int axis = 0; axis < kPartAxes; ++axis) {
      lower[axis] = min(lower[axis], __shfl_xor_sync(kFullWarp, lower[axis], distance));
      upper[axis] = max(upper[axis], __shfl_xor_sync(kFullWarp, upper[axis], distance));
    }
  }
  constexpr int kWarpLevels = GroupThreads<kThreads>::kBits - 5;
#pragma unroll
  for (int level = kWarpLevels - 1; level >= 0; --level) {
    __syncthreads();
    if (threadIdx.x < 1u << level) merge_children(boxes, (1u << level) - 1 + threadIdx.x);
  }
  __syncthreads();
}

/// Writes the bucket's nodes.
template <int kThreads>
__device__ void store_bucket_nodes(const BinnedPart<kThreads>& part, const LeafJob& job, unsigned number,
                                   std::uint32_t begin) {
  const unsigned nodes = (2u << job.levels) - 1;
  const std::uint32_t* boxes = part.keys;
  for (unsigned i = threadIdx.x; i < nodes; i += kThreads) {
    const int level = 31 - __clz(static_cast<int>(i + 1));
    const unsigned place = i + 1 - (1u << level);
    const uint2* leaves = part.ranges + part.at(job.levels);
    const unsigned first = leaves[place << (job.levels - level)].x;
    const unsigned last = leaves[((place + 1) << (job.levels - level)) - 1].y;
    const std::int64_t node =
        (std::int64_t{1} << (job.above + level)) - 1 + (std::int64_t{number} << level) + place;
    store_node(job.forest, {0, node, begin + first, begin + last}, level == job.levels, boxes + 6 * i,
               boxes + 6 * i + kPartAxes);
  }
}

/// Leaves a bucket to the kernel that splits at medians.
__device__ inline void list_uneven(const LeafJob& job, unsigned number) {
  if (threadIdx.x == 0) job.table.uneven[atomicAdd(job.table.uneven_count, 1u)] = number;
}

template <int D, int kThreads, int kItems>
__device__ void build_binned_part(const LeafJob& job, unsigned number, unsigned count,
                                  unsigned char* memory) {
  const BinnedPart<kThreads> part(memory, job.capacity, 1u << job.levels, count);
  HeldPoints<kItems> points;
  load_bucket(part, job, number, points);
  constexpr int kBinBits = GroupThreads<kThreads>::kBits + 2;
  static_assert(1 << kBinBits == BinnedPart<kThreads>::kBins);
  for (int level = 0; level < job.levels; level += kLevelsAnAxis) {
    const BinnedPass pass{level, min(kLevelsAnAxis, job.levels - level), kBinBits - level};
    const int next_levels = min(kLevelsAnAxis, job.levels - level - pass.levels);
    if (!binned_pass(part, pass, next_levels, points)) {
      list_uneven(job, number);
      return;
    }
  }
  order_leaves<D>(part, job.levels, points);
  bound_leaves<D>(part, job.levels);
  const std::uint32_t begin = job.table.begins[number];
  store_bucket_nodes(part, job, number, begin);
  float* const to = job.points + std::int64_t{begin} * D;
  for (unsigned i = threadIdx.x; i < D * count; i += kThreads) __stcs(to + i, part.coordinates[i]);
  auto* const index_to = reinterpret_cast<long long*>(job.idx_array) + begin;
  for (unsigned i = threadIdx.x; i < count; i += kThreads) {
    __stcs(index_to + i, static_cast<long long>(part.indices[i]));
  }
}

/// Buckets become subtrees, split between bins; those that have no bins for it go to a list.
/// Owns: block b bucket b, unless it is large; of large ones, every gridDim.x-th of the list from b on.
/// Reads: the bucket's points, once; its begin; whether all buckets have found room.
/// Writes: the bucket's points and indices in the tree's order, and its nodes; or its number on the list.
/// Waits for: the kernel in front of it; nothing of other blocks. Where this is the one that takes large
/// buckets, which waited for the tables before this one began, in the end: both are done when this one is.
/// Cannot deadlock: all threads of a block reach its barriers.
/// Source: this project's; docs/experiments/kd_tree.md has its design.
template <int D, int kThreads, int kItems, int kBlocks>
__global__ void __launch_bounds__(kThreads, kBlocks) build_binned(LeafJob job) {
  extern __shared__ __align__(16) unsigned char memory[];
  if (job.large) wait_for_primary_kernel();
  allow_secondary_kernel();
  if (*job.table.crowded == 0) {
    const unsigned listed = job.large ? *job.table.large_count : blockIdx.x + 1;
    for (unsigned i = blockIdx.x; i < listed; i += gridDim.x) {
      const unsigned number = job.large ? job.table.large[i] : i;
      const unsigned count = *job.parts.count(number);
      if (count <= job.capacity) {
        build_binned_part<D, kThreads, kItems>(job, number, count, memory);
      } else if (job.large) {
        list_uneven(job, number);
      }
      __syncthreads();
    }
  }
  if (!job.large) wait_for_primary_kernel();
}

}  // namespace cumulus::kd_tree
