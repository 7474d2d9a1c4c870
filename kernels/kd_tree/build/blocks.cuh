#pragma once

// The part of a build in which a block of threads takes one segment down to its leaves in shared memory.

#include <cstdint>

#include "kernels/kd_tree/build/forest.cuh"
#include "kernels/kd_tree/build/layout.h"
#include "kernels/kd_tree/build/thread_groups.cuh"
#include "kernels/kd_tree/math/arithmetic.h"
#include "kernels/primitives/warp.cuh"

namespace cumulus::kd_tree {

/// A block's shared memory and what is the same for all of its threads.
template <class T>
struct BlockBuild {
  using Key = KeyOf<T>;

  const Forest<T>& forest;
  const unsigned capacity;
  const unsigned leaves;
  const unsigned items;
  T* coordinates;              // [dimensions, capacity]
  std::uint16_t* order;        // [capacity]
  Key* bounds;                 // [leaves, 2, dimensions]
  std::uint32_t* begins;       // [2, leaves + 1]
  std::uint32_t* counters;     // [3, leaves]
  std::uint32_t* lefts;        // [leaves]: points that go left
  std::uint32_t* axes;         // [leaves]
  std::uint32_t* sums_before;  // [leaves]: packed sides before a group
  std::uint32_t* warp_sums;    // [32]

  __device__ BlockBuild(const Forest<T>& of, unsigned points, unsigned groups, unsigned points_a_thread,
                        const BlockLayout& layout, unsigned char* memory)
      : forest(of),
        capacity(points),
        leaves(groups),
        items(points_a_thread),
        coordinates(reinterpret_cast<T*>(memory)),
        order(reinterpret_cast<std::uint16_t*>(memory + layout.order)),
        bounds(reinterpret_cast<Key*>(memory + layout.bounds)),
        begins(reinterpret_cast<std::uint32_t*>(memory + layout.begins)),
        counters(reinterpret_cast<std::uint32_t*>(memory + layout.group_words)),
        lefts(counters + 3 * groups),
        axes(counters + 4 * groups),
        sums_before(counters + 5 * groups),
        warp_sums(reinterpret_cast<std::uint32_t*>(memory + layout.warp_sums)) {}

  __device__ int dimensions() const { return forest.shape.dimensions; }
  __device__ T at(int axis, unsigned place) const {
    return coordinates[static_cast<unsigned>(axis) * capacity + place];
  }
  __device__ Key* least(unsigned group) const {
    return bounds + 2 * group * static_cast<unsigned>(dimensions());
  }
  __device__ Key* greatest(unsigned group) const { return least(group) + dimensions(); }
};

/// Bounds each group with its threads' points. Synchronised before and after by the block.
template <class T>
__device__ void bound_groups(const BlockBuild<T>& block, const ThreadGroup& group,
                             const ThreadPoints& points) {
  using Key = KeyOf<T>;
  for (int axis = 0; axis < block.dimensions(); ++axis) {
    Key least = ~Key{0};
    Key greatest = 0;
#pragma unroll
    for (unsigned i = 0; i < kMaxBlockItems; ++i) {
      if (i >= points.count) continue;
      const Key key = ordered_key(block.at(axis, points.places[i]));
      least = min(least, key);
      greatest = max(greatest, key);
    }
    if (group.size < 32) {
      for (unsigned offset = group.size / 2; offset > 0; offset /= 2) {
        least = min(least, __shfl_xor_sync(kFullWarp, least, static_cast<int>(offset)));
        greatest = max(greatest, __shfl_xor_sync(kFullWarp, greatest, static_cast<int>(offset)));
      }
    } else {
      least = warp_least(least);
      greatest = warp_greatest(greatest);
    }
    if (group.lane % 32 == 0 && least <= greatest) {
      atomic_least(block.least(group.number) + axis, least);
      atomic_greatest(block.greatest(group.number) + axis, greatest);
    }
  }
}

/// The pivot of a group: the key, less the group's least, of point `rank` in the order of keys, and how many
/// are less.
template <class Key>
struct Pivot {
  Key key;
  std::uint32_t less;
};

/// Finds each group's pivot bit by bit. `keys` are the thread's, less the group's least; the whole block
/// calls this.
template <class T>
__device__ Pivot<KeyOf<T>> select(const BlockBuild<T>& block, const ThreadGroup& group, const KeyOf<T>* keys,
                                  unsigned count, std::uint32_t rank, int bits) {
  using Key = KeyOf<T>;
  Pivot<Key> pivot{0, 0};
  unsigned round = 0;
  for (int bit = bits - 1; bit >= 0; --bit, ++round) {
    const Key tried = pivot.key | (Key{1} << bit);
    std::uint32_t less = 0;
#pragma unroll
    for (unsigned i = 0; i < kMaxBlockItems; ++i) less += i < count && keys[i] < tried ? 1u : 0u;
    less = group_sum(group, less, block.counters, round);
    if (less <= rank) pivot = {tried, less};
  }
  return pivot;
}

/// Bits of the largest range of keys of any group, for the whole block.
template <class Key>
__device__ int range_bits(Key range, std::uint32_t* word) {
  const int bits = 64 - __clzll(static_cast<long long>(static_cast<unsigned long long>(range)));
  if (threadIdx.x == 0) *word = 0;
  __syncthreads();
  const std::uint32_t greatest = warp_max(static_cast<std::uint32_t>(bits));
  if (threadIdx.x % 32 == 0) atomicMax(word, greatest);
  __syncthreads();
  return static_cast<int>(*word);
}

/// How many of a group's points go left.
template <class T>
__device__ std::uint32_t group_left(const BlockBuild<T>& block, const ThreadGroup& group,
                                    const ThreadPoints& points, unsigned group_count, int axis,
                                    std::int64_t child_capacity) {
  if (block.forest.split != KdTreeSplit::kMidpoint) return group_count / 2;
  const T up_to = middle(from_ordered_key<T>(block.least(group.number)[axis]),
                         from_ordered_key<T>(block.greatest(group.number)[axis]));
  std::uint32_t found = 0;
#pragma unroll
  for (unsigned i = 0; i < kMaxBlockItems; ++i)
    found += i < points.count && block.at(axis, points.places[i]) <= up_to ? 1u : 0u;
  found = group_sum(group, found, block.counters, 0);
  return static_cast<std::uint32_t>(midpoint_position(group_count, found, child_capacity));
}

/// Zeroes the counters of group_sum, so that a new series may begin.
template <class T>
__device__ void clear_counters(const BlockBuild<T>& block, unsigned groups) {
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 3 * groups; i += blockDim.x) block.counters[i] = 0;
  __syncthreads();
}

/// Where a group is split: so many points go left, and of those equal to the pivot `rank`.
template <class Key>
struct GroupSplit {
  std::uint32_t begin;
  std::uint32_t left;
  std::uint32_t rank;
  Key pivot;
};

/// The stable partition of every group: the new order of its points. `keys` are the thread's. Other threads'
/// parts of the order have been read.
template <class T>
__device__ void partition_groups(const BlockBuild<T>& block, const ThreadGroup& group,
                                 const ThreadPoints& points, const KeyOf<T>* keys,
                                 const GroupSplit<KeyOf<T>>& split, std::uint32_t before) {
  std::uint32_t less = before & 0xFFFFu;
  std::uint32_t equal = before >> 16;
  const std::uint32_t first = group.lane * block.items;
#pragma unroll
  for (unsigned i = 0; i < kMaxBlockItems; ++i) {
    if (i >= points.count) continue;
    const std::uint32_t lefts = less + min(equal, split.rank);
    const bool is_less = keys[i] < split.pivot;
    const bool is_equal = keys[i] == split.pivot;
    const bool goes_left = is_less || (is_equal && equal < split.rank);
    block.order[split.begin + (goes_left ? lefts : split.left + first + i - lefts)] = points.places[i];
    less += is_less ? 1 : 0;
    equal += is_equal ? 1 : 0;
  }
}

/// Splits every group of a level into two: the order of its points, stably, and the begins of the next
/// level's groups.
template <class T>
__device__ void split_groups(const BlockBuild<T>& block, const ThreadGroup& group, const ThreadPoints& points,
                             const std::uint32_t* begins, std::uint32_t* next_begins,
                             std::int64_t child_capacity) {
  using Key = KeyOf<T>;
  const std::uint32_t begin = begins[group.number];
  const std::uint32_t group_count = begins[group.number + 1] - begin;
  const int axis = static_cast<int>(block.axes[group.number]);
  const Key least = block.least(group.number)[axis];
  Key keys[kMaxBlockItems];
#pragma unroll
  for (unsigned i = 0; i < kMaxBlockItems; ++i) {
    keys[i] = i < points.count ? ordered_key(block.at(axis, points.places[i])) - least : ~Key{0};
  }
  clear_counters(block, group.count);
  const std::uint32_t left = group_left(block, group, points, group_count, axis, child_capacity);
  const int bits =
      range_bits(group_count == 0 ? Key{0} : static_cast<Key>(block.greatest(group.number)[axis] - least),
                 block.warp_sums);
  clear_counters(block, group.count);
  const Pivot<Key> pivot = select(block, group, keys, points.count, left, bits);

  std::uint32_t sides = 0;  // less in the low half, equal in the high
#pragma unroll
  for (unsigned i = 0; i < kMaxBlockItems; ++i) {
    if (i < points.count) sides += keys[i] < pivot.key ? 1u : keys[i] == pivot.key ? 1u << 16 : 0u;
  }
  const std::uint32_t before = exclusive_block_sum(sides, block.warp_sums);
  if (group.leads()) {
    block.sums_before[group.number] = before;
    next_begins[2 * group.number] = begin;
    next_begins[2 * group.number + 1] = begin + left;
    if (group.number + 1 == group.count) next_begins[2 * group.count] = begin + group_count;
  }
  __syncthreads();  // and every thread has read its part of the order
  partition_groups(block, group, points, keys, {begin, left, left - pivot.less, pivot.key},
                   before - block.sums_before[group.number]);
  __syncthreads();
}

/// What build_subtrees works on.
template <class T>
struct SubtreeJob {
  Forest<T> forest;
  int level;
  int items;     // points a thread
  int capacity;  // points a block
  PointCopy<T> from;
  T* points;  // the tree's, as is
  std::int64_t* idx_array;
};

/// A block's segment.
struct BlockSegment {
  std::int64_t number;
  std::int64_t tree;
  std::int64_t begin;   // of its points within the tree
  std::int64_t source;  // among all points
  unsigned count;
};

/// Loads the segment's points, in their order.
template <class T>
__device__ void load_segment(const BlockBuild<T>& block, const PointCopy<T>& from,
                             const BlockSegment& segment) {
  for (int axis = 0; axis < block.dimensions(); ++axis) {
    for (unsigned i = threadIdx.x; i < segment.count; i += blockDim.x) {
      block.coordinates[static_cast<unsigned>(axis) * block.capacity + i] =
          from.coordinates[axis * block.forest.shape.all_points() + segment.source + i];
    }
  }
  for (unsigned i = threadIdx.x; i < segment.count; i += blockDim.x) {
    block.order[i] = static_cast<std::uint16_t>(i);
  }
  if (threadIdx.x == 0) {
    block.begins[0] = 0;
    block.begins[1] = segment.count;
  }
}

/// A level's groups: their nodes, and the thread's points of its group.
template <class T>
__device__ ThreadPoints store_groups(const BlockBuild<T>& block, const BlockSegment& segment,
                                     const ThreadGroup& group, const std::uint32_t* begins, int level) {
  const std::uint32_t begin = begins[group.number];
  const std::uint32_t group_count = begins[group.number + 1] - begin;
  const std::uint32_t first = min(group.lane * block.items, group_count);
  ThreadPoints points;
  points.count = min(group_count - first, block.items);
#pragma unroll
  for (unsigned i = 0; i < kMaxBlockItems; ++i) {
    points.places[i] = i < points.count ? block.order[begin + first + i] : std::uint16_t{0};
  }
  bound_groups(block, group, points);
  __syncthreads();
  if (group.leads()) {
    const Forest<T>& forest = block.forest;
    const NodePoints node{segment.tree, forest.node_of(segment.number * group.count + group.number, level),
                          segment.begin + begin, segment.begin + begin + group_count};
    store_node(forest, node, level + 1 == forest.shape.levels, block.least(group.number),
               block.greatest(group.number));
    block.axes[group.number] = static_cast<std::uint32_t>(
        split_axis(forest, level, block.least(group.number), block.greatest(group.number)));
  }
  return points;
}

/// Writes the segment's points in their new order to the tree's arrays.
template <class T>
__device__ void store_segment(const BlockBuild<T>& block, const SubtreeJob<T>& job,
                              const BlockSegment& segment) {
  const auto width = static_cast<unsigned>(block.dimensions());
  for (unsigned i = threadIdx.x; i < segment.count; i += blockDim.x) {
    job.idx_array[segment.source + i] = job.from.order[segment.source + block.order[i]];
  }
  for (unsigned i = threadIdx.x; i < segment.count * width; i += blockDim.x) {
    const unsigned point = i / width;
    job.points[segment.source * width + i] =
        block.at(static_cast<int>(i - point * width), block.order[point]);
  }
}

/// Takes segments down to their leaves.
/// Owns: block b segment b of `level`, in shared memory (BlockLayout); at each level a group of threads has a
///   group of points.
/// Reads: the segment's points in `from`; its root's points.
/// Writes: the nodes of the segment's subtree; its points and indices in the tree's arrays, which are not
/// those
///   of `from`.
/// Waits for: nothing of other blocks; its own threads at barriers that all of them reach.
/// Cannot deadlock: the number of levels, the same for all threads, decides every loop that has a barrier.
/// Source: this project's; a group's median bit by bit, as radix selection with digits of one bit.
template <class T>
__global__ void __launch_bounds__(kMaxBlockThreads) build_subtrees(SubtreeJob<T> job) {
  extern __shared__ __align__(16) unsigned char memory[];
  const Forest<T>& forest = job.forest;
  const KdTreeShape& shape = forest.shape;
  const unsigned leaves = 1u << (shape.levels - 1 - job.level);
  const auto capacity = static_cast<unsigned>(job.capacity);
  const BlockBuild<T> block(forest, capacity, leaves, static_cast<unsigned>(job.items),
                            BlockLayout(sizeof(T), shape.dimensions, capacity, leaves), memory);
  const std::int64_t number = blockIdx.x;
  const std::int64_t tree = number >> job.level;
  const KdTreeNode root = forest.tree_nodes(tree)[forest.node_of(number, job.level)];
  const BlockSegment segment{number, tree, root.begin, tree * shape.points + root.begin,
                             static_cast<unsigned>(root.end - root.begin)};
  load_segment(block, job.from, segment);

  std::uint32_t* begins = block.begins;
  std::uint32_t* next_begins = block.begins + leaves + 1;
  int level = job.level;
  for (unsigned groups = 1;; groups *= 2, ++level) {
    const auto keys = static_cast<unsigned>(2 * shape.dimensions);
    for (unsigned i = threadIdx.x; i < groups * keys; i += blockDim.x) {
      block.bounds[i] = i % keys < keys / 2 ? ~KeyOf<T>{0} : KeyOf<T>{0};
    }
    __syncthreads();
    const ThreadGroup group(groups);
    const ThreadPoints points = store_groups(block, segment, group, begins, level);
    if (level + 1 == shape.levels) break;
    __syncthreads();
    split_groups(block, group, points, begins, next_begins,
                 kd_tree_capacity(shape, forest.leaf_size, level + 1));
    std::uint32_t* swapped = begins;
    begins = next_begins;
    next_begins = swapped;
  }
  store_segment(block, job, segment);
}

}  // namespace cumulus::kd_tree
