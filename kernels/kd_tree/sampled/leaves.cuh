#pragma once

// The last round: parts become subtrees, whose leaves have their points in the order of their indices.

#include <cstdint>

#include "kernels/kd_tree/build/forest.cuh"
#include "kernels/kd_tree/sampled/buckets.cuh"
#include "kernels/kd_tree/sampled/planes.cuh"

namespace cumulus::kd_tree {

/// Threads that share a multiprocessor, and so its registers; Turing's holds no more.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
inline constexpr int kBucketThreads = 1024;
#else
inline constexpr int kBucketThreads = 1152;
#endif

struct LeafJob {
  Forest<float> forest;
  Parts parts;  // the buckets
  BucketTable table;
  unsigned capacity;  // of the blocks
  bool large;         // buckets of the list, else all that are not in it
  int above;          // levels above the buckets
  int levels;         // of theirs
  float* points;
  std::int64_t* idx_array;
};

/// The indices of a leaf.
struct IndexRange {
  std::uint32_t least;
  std::uint32_t greatest;
};

/// The boxes of the leaves and of the nodes above them as keys, node after node; the range of the indices of
/// the thread's leaf. A leaf has a warp at most.
template <int kThreads, int kItems>
__device__ IndexRange bound_nodes(const Part<kThreads, kItems>& part, int levels) {
  const unsigned leaves = 1u << levels;
  const GroupThreads<kThreads> threads(levels);
  ThreadBox box;
  IndexRange range{~0u, 0};
#pragma unroll 4
  for (unsigned i = part.begins[threads.group] + threads.lane; i < part.begins[threads.group + 1];
       i += threads.size) {
    const unsigned place = part.order[i];
    box.include(part.at(0, place), part.at(1, place), part.at(2, place));
    range.least = min(range.least, part.indices[place]);
    range.greatest = max(range.greatest, part.indices[place]);
  }
  for (unsigned distance = threads.size / 2; distance > 0; distance /= 2) {
    const auto mask = static_cast<int>(distance);
#pragma unroll
    for (int axis = 0; axis < kPartAxes; ++axis) {
      box.lower[axis] = fminf(box.lower[axis], __shfl_xor_sync(kFullWarp, box.lower[axis], mask));
      box.upper[axis] = fmaxf(box.upper[axis], __shfl_xor_sync(kFullWarp, box.upper[axis], mask));
    }
    range.least = min(range.least, __shfl_xor_sync(kFullWarp, range.least, mask));
    range.greatest = max(range.greatest, __shfl_xor_sync(kFullWarp, range.greatest, mask));
  }
  if (threads.lane == 0) {
    std::uint32_t* const leaf = part.boxes + 6 * (leaves - 1 + threads.group);
#pragma unroll
    for (int axis = 0; axis < kPartAxes; ++axis) {
      leaf[axis] = ordered_key(box.lower[axis]);
      leaf[kPartAxes + axis] = ordered_key(box.upper[axis]);
    }
  }
  __syncthreads();
  for (int level = levels - 1; level >= 0; --level) {
    if (threadIdx.x < 1u << level) merge_children(part.boxes, (1u << level) - 1 + threadIdx.x);
    __syncthreads();
  }
  return range;
}

/// Writes the part's nodes.
template <int kThreads, int kItems>
__device__ void store_nodes(const Part<kThreads, kItems>& part, const LeafJob& job, unsigned number,
                            std::uint32_t begin) {
  const unsigned nodes = (2u << job.levels) - 1;
  for (unsigned i = threadIdx.x; i < nodes; i += kThreads) {
    const int level = 31 - __clz(static_cast<int>(i + 1));
    const unsigned place = i + 1 - (1u << level);
    const unsigned first = place << (job.levels - level);
    const unsigned last = first + (1u << (job.levels - level));
    const std::int64_t node =
        (std::int64_t{1} << (job.above + level)) - 1 + (std::int64_t{number} << level) + place;
    store_node(job.forest, {0, node, begin + part.begins[first], begin + part.begins[last]},
               level == job.levels, part.boxes + 6 * i, part.boxes + 6 * i + kPartAxes);
  }
}

/// Sorts each leaf by index: its points' places go to `order`. Bins of a leaf are of the indices between its
/// least and its greatest.
template <int kThreads, int kItems>
__device__ void sort_leaves(Part<kThreads, kItems>& part, int levels, const IndexRange& range) {
  const GroupThreads<kThreads> threads(levels);
  const unsigned group_bins = part.kBins >> levels;
  clear_counters(part);
  __syncthreads();
  const unsigned begin = part.begins[threads.group] + threads.lane;
  const unsigned end = part.begins[threads.group + 1];
  const int shift = max(0, 32 - __clz(static_cast<int>(range.greatest - range.least)) -
                               (31 - __clz(static_cast<int>(group_bins))));
  const auto bin_of = [&](unsigned place) { return (part.indices[place] - range.least) >> shift; };
  BinnedPoints<kItems> points;
#pragma unroll
  for (int item = 0; item < kItems; ++item) {
    const unsigned i = begin + item * threads.size;
    if (i >= end) break;
    points.places[item] = part.order[i];
    points.put(part.counters, item, threads.group * group_bins + bin_of(points.places[item]));
  }
  __syncthreads();
  sum_counters(part);
#pragma unroll
  for (int item = 0; item < kItems; ++item) {
    if (begin + item * threads.size >= end) break;
    part.next_order[points.place(part.counters, item)] = points.places[item];
  }
  __syncthreads();
#pragma unroll
  for (int item = 0; item < kItems; ++item) {
    if (begin + item * threads.size >= end) break;
    const unsigned first = part.counters[points.bin(item)];
    const unsigned last = part.counters[points.bin(item) + 1];
    unsigned to = first;
    if (last - first > 1) {
      const std::uint32_t index = part.indices[points.places[item]];
      for (unsigned j = first; j < last; ++j) to += part.indices[part.next_order[j]] < index ? 1 : 0;
    }
    part.order[to] = points.places[item];
  }
  __syncthreads();
}

template <int D, int kThreads, int kItems>
__device__ void store_points(const Part<kThreads, kItems>& part, const LeafJob& job, std::uint32_t begin) {
  float* to = job.points + (std::int64_t{begin} + threadIdx.x) * D;
  long long* index_to = reinterpret_cast<long long*>(job.idx_array) + begin + threadIdx.x;
#pragma unroll 2
  for (unsigned i = threadIdx.x; i < part.count; i += kThreads, to += kThreads * D, index_to += kThreads) {
    const unsigned place = part.order[i];
    *index_to = part.indices[place];
#pragma unroll
    for (unsigned axis = 0; axis < D; ++axis) to[axis] = part.at(axis, place);
  }
}

/// Part `number`, down to its leaves.
template <int kThreads, int kItems>
__device__ void build_part(const LeafJob& job, unsigned number, unsigned count, unsigned char* memory) {
  Part<kThreads, kItems> part = begin_part<kThreads, kItems>(memory, job.capacity, job.levels);
  load_part(part, job.parts, number, count);
  split_part(part, job.levels, [](int, unsigned, unsigned, unsigned) {});
  const std::uint32_t begin = job.table.begins[number];
  const IndexRange range = bound_nodes(part, job.levels);
  store_nodes(part, job, number, begin);
  sort_leaves(part, job.levels, range);
  if (job.forest.shape.dimensions == 3) {
    store_points<3>(part, job, begin);
  } else {
    store_points<2>(part, job, begin);
  }
}

/// Buckets that no bins split evenly become subtrees, at medians.
/// Owns: block b every gridDim.x-th of their list from b on.
/// Reads: the bucket's points, once; its begin; whether all buckets have found room.
/// Writes: the bucket's points and indices in the tree's order, and its nodes.
/// Waits for: the kernel in front of it; nothing of other blocks.
/// Cannot deadlock: all threads of a block reach its barriers.
/// Source: this project's; docs/experiments/kd_tree.md has its design.
template <int kThreads, int kItems>
__global__ void __launch_bounds__(kThreads, kBucketThreads / kThreads) build_buckets(LeafJob job) {
  extern __shared__ __align__(16) unsigned char memory[];
  wait_for_primary_kernel();
  allow_secondary_kernel();
  if (*job.table.crowded != 0) return;
  for (unsigned i = blockIdx.x; i < *job.table.uneven_count; i += gridDim.x) {
    const unsigned number = job.table.uneven[i];
    build_part<kThreads, kItems>(job, number, *job.parts.count(number), memory);
    __syncthreads();
  }
}

}  // namespace cumulus::kd_tree
