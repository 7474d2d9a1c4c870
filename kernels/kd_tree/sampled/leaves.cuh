#pragma once

// The last round: parts become subtrees, whose leaves have their points in the order of their indices.

#include <cstdint>

#include "kernels/kd_tree/build/forest.cuh"
#include "kernels/kd_tree/sampled/planes.cuh"

namespace cumulus::kd_tree {

/// What the blocks know of all parts.
struct PartTable {
  std::uint32_t* begins;    // [parts + 1]
  std::uint32_t* large;     // [parts]: those that need more room than most
  std::uint32_t* large_count;
  std::uint32_t* overflow;  // whether some part found no room
};

template <int D>
struct LeafJob {
  Forest<float> forest;
  Parts parts;
  PartTable table;
  unsigned capacity;  // of the blocks' parts
  bool large;         // parts of the list, else all that are not in it
  int above;          // levels above the parts
  int levels;         // of theirs
  float* points;
  std::int64_t* idx_array;
};

/// The box of a node of a heap of boxes from those of its children.
__device__ inline void merge_children(std::uint32_t* boxes, unsigned node) {
  const std::uint32_t* left = boxes + 6 * (2 * node + 1);
#pragma unroll
  for (int i = 0; i < kPartAxes; ++i) {
    boxes[6 * node + i] = min(left[i], left[6 + i]);
    boxes[6 * node + kPartAxes + i] = max(left[kPartAxes + i], left[6 + kPartAxes + i]);
  }
}

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
template <int kThreads, int kItems, int D>
__device__ void store_nodes(const Part<kThreads, kItems>& part, const LeafJob<D>& job, unsigned number,
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
  const int shift = max(0, 32 - __clz(static_cast<int>(range.greatest - range.least)) - (31 - __clz(static_cast<int>(group_bins))));
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

template <int kThreads, int kItems, int D>
__device__ void store_points(const Part<kThreads, kItems>& part, const LeafJob<D>& job, std::uint32_t begin) {
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
template <int kThreads, int kItems, int D>
__device__ void build_part(const LeafJob<D>& job, unsigned number, unsigned count, unsigned char* memory) {
  Part<kThreads, kItems> part = begin_part<kThreads, kItems>(memory, job.capacity, job.levels);
  load_part(part, job.parts, number, count);
  split_part(part, job.levels, [](int, unsigned, unsigned, unsigned) {});
  const std::uint32_t begin = job.table.begins[number];
  const IndexRange range = bound_nodes(part, job.levels);
  store_nodes(part, job, number, begin);
  sort_leaves(part, job.levels, range);
  store_points(part, job, begin);
}

template <int kThreads, int kItems, int D>
__global__ void __launch_bounds__(kThreads, 1152 / kThreads) build_parts(LeafJob<D> job) {
  extern __shared__ __align__(16) unsigned char memory[];
  if (*job.table.overflow != 0) return;
  if (!job.large) {
    const unsigned count = *job.parts.count(blockIdx.x);
    if (count <= job.capacity) build_part<kThreads, kItems>(job, blockIdx.x, count, memory);
    return;
  }
  for (unsigned i = blockIdx.x; i < *job.table.large_count; i += gridDim.x) {
    const unsigned number = job.table.large[i];
    build_part<kThreads, kItems>(job, number, *job.parts.count(number), memory);
    __syncthreads();
  }
}

struct TotalJob {
  Parts samples;
  unsigned sample_parts;
  Parts first;  // of the first step: as many
  Parts parts;
  unsigned part_count;
  unsigned small_capacity;
  PartTable table;
};

/// One block: where each part begins, and whether all have found room.
static __global__ void __launch_bounds__(1024) sum_parts(TotalJob job) {
  __shared__ std::uint32_t warp_sums[32];
  __shared__ std::uint32_t carry;
  __shared__ std::uint32_t large;
  bool over = false;
  if (threadIdx.x == 0) {
    carry = 0;
    large = 0;
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < job.sample_parts; i += blockDim.x) {
    over |= *job.samples.count(i) > job.samples.capacity || *job.first.count(i) > job.first.capacity;
  }
  for (unsigned first = 0; first < job.part_count; first += 4 * blockDim.x) {
    const unsigned at = first + 4 * threadIdx.x;
    uint4 four{0, 0, 0, 0};
    if (at < job.part_count) {
      four = *reinterpret_cast<const uint4*>(job.parts.counts + at);
    }
    const std::uint32_t most = max(max(four.x, four.y), max(four.z, four.w));
    over |= most > job.parts.capacity;
    if (most > job.small_capacity) {
      for (unsigned i = 0; i < 4; ++i) {
        const std::uint32_t count = i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
        if (count > job.small_capacity) job.table.large[atomicAdd(&large, 1u)] = at + i;
      }
    }
    const std::uint32_t sum = four.x + four.y + four.z + four.w;
    const std::uint32_t inclusive = warp_inclusive_sum(sum);
    if (lane_index() == 31) warp_sums[warp_index()] = inclusive;
    __syncthreads();
    if (warp_index() == 0) warp_sums[threadIdx.x] = warp_inclusive_sum(warp_sums[threadIdx.x]);
    __syncthreads();
    std::uint32_t before = carry + inclusive - sum + (warp_index() == 0 ? 0 : warp_sums[warp_index() - 1]);
    if (at < job.part_count) {
      uint4 begins;
      begins.x = before;
      begins.y = begins.x + four.x;
      begins.z = begins.y + four.y;
      begins.w = begins.z + four.z;
      *reinterpret_cast<uint4*>(job.table.begins + at) = begins;
    }
    __syncthreads();
    if (threadIdx.x == 0) carry += warp_sums[31];
    __syncthreads();
  }
  over = __syncthreads_or(over) != 0;
  if (threadIdx.x == 0) {
    job.table.begins[job.part_count] = carry;
    *job.table.overflow = over ? 1 : 0;
    *job.table.large_count = large;
  }
}

inline constexpr int kUpperLevels = 9;

struct UpperJob {
  Forest<float> forest;
  PartTable table;
  int above;  // levels above the parts
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
    const std::int64_t node = (std::int64_t{1} << bottom) - 1 + (std::int64_t{number} << levels) + threadIdx.x;
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
  store_node(job.forest, {0, (std::int64_t{1} << depth) - 1 + place, job.table.begins[first], job.table.begins[last]},
             false, boxes + 6 * i, boxes + 6 * i + kPartAxes);
}

/// The nodes above the parts: block b those of subtree b, the last of them those above.
static __global__ void __launch_bounds__(1 << kUpperLevels) bound_upper_nodes(UpperJob job) {
  __shared__ std::uint32_t boxes[12 << kUpperLevels];
  __shared__ bool last;
  if (*job.table.overflow != 0) return;
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
