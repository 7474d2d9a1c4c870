#pragma once

// The part of a build in which a block of threads takes one segment down to its leaves in shared memory.

#include <cstdint>

#include "kernels/kd_tree/build/forest.cuh"
#include "kernels/kd_tree/build/plan.h"
#include "kernels/kd_tree/math/arithmetic.h"

namespace cumulus::kd_tree {

/// The threads of a block, shared out among the groups of points of a level: `size` (a power of two)
/// consecutive threads to a group, each with the same number of consecutive points.
struct ThreadGroup {
  unsigned size;
  unsigned number;
  unsigned lane;

  __device__ ThreadGroup(unsigned groups)
      : size(blockDim.x / groups), number(threadIdx.x / size), lane(threadIdx.x % size) {}
  __device__ bool leads() const { return lane == 0; }
};

/// For every thread the sum over its group. `counters` has three words a group, all zero before the first
/// call of a series; `round` counts the calls of the series. The whole block calls this.
__device__ inline std::uint32_t group_sum(const ThreadGroup& group, std::uint32_t number,
                                          std::uint32_t* counters, unsigned groups, unsigned round) {
  if (group.size < 32) {
    for (unsigned offset = group.size / 2; offset > 0; offset /= 2) {
      number += __shfl_xor_sync(0xFFFFFFFFu, number, static_cast<int>(offset));
    }
    return number;
  }
  number = warp_sum(number);
  if (group.size == 32) return number;
  // Three words by turns: this round's, the next one's, which nobody reads any more, and the last one's.
  if (threadIdx.x % 32 == 0) atomicAdd(counters + (round % 3) * groups + group.number, number);
  if (group.leads()) counters[((round + 1) % 3) * groups + group.number] = 0;
  __syncthreads();
  return counters[(round % 3) * groups + group.number];
}

/// For every thread the sum over the threads before it in the block. The whole block calls this; `warp_sums`
/// has 32 words.
__device__ inline std::uint32_t sum_before(std::uint32_t number, std::uint32_t* warp_sums) {
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  std::uint32_t up_to = number;
  for (unsigned offset = 1; offset < 32; offset *= 2) {
    const std::uint32_t other = __shfl_up_sync(0xFFFFFFFFu, up_to, offset);
    if (lane >= offset) up_to += other;
  }
  if (lane == 31) warp_sums[warp] = up_to;
  __syncthreads();
  if (warp == 0) {
    const std::uint32_t own = lane < blockDim.x / 32 ? warp_sums[lane] : 0;
    std::uint32_t sum = own;
    for (unsigned offset = 1; offset < 32; offset *= 2) {
      const std::uint32_t other = __shfl_up_sync(0xFFFFFFFFu, sum, offset);
      if (lane >= offset) sum += other;
    }
    warp_sums[lane] = sum - own;
  }
  __syncthreads();
  return warp_sums[warp] + up_to - number;
}

/// A block's shared memory and what its threads know of it.
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

/// Bounds each group with its threads' points, `places`. Synchronised before and after by the block.
template <class T>
__device__ void bound_groups(const BlockBuild<T>& block, const ThreadGroup& group,
                             const std::uint16_t* places, unsigned count) {
  using Key = KeyOf<T>;
  for (int axis = 0; axis < block.dimensions(); ++axis) {
    Key least = ~Key{0};
    Key greatest = 0;
#pragma unroll
    for (unsigned i = 0; i < kMostBlockItems; ++i) {
      if (i >= count) continue;
      const Key key = ordered_key(block.at(axis, places[i]));
      least = min(least, key);
      greatest = max(greatest, key);
    }
    if (group.size < 32) {
      for (unsigned offset = group.size / 2; offset > 0; offset /= 2) {
        least = min(least, __shfl_xor_sync(0xFFFFFFFFu, least, static_cast<int>(offset)));
        greatest = max(greatest, __shfl_xor_sync(0xFFFFFFFFu, greatest, static_cast<int>(offset)));
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
__device__ Pivot<KeyOf<T>> select(const BlockBuild<T>& block, const ThreadGroup& group, unsigned groups,
                                  const KeyOf<T>* keys, unsigned count, std::uint32_t rank, int bits) {
  using Key = KeyOf<T>;
  Pivot<Key> pivot{0, 0};
  unsigned round = 0;
  for (int bit = bits - 1; bit >= 0; --bit, ++round) {
    const Key tried = pivot.key | (Key{1} << bit);
    std::uint32_t less = 0;
#pragma unroll
    for (unsigned i = 0; i < kMostBlockItems; ++i) less += i < count && keys[i] < tried ? 1u : 0u;
    less = group_sum(group, less, block.counters, groups, round);
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
__device__ std::uint32_t group_left(const BlockBuild<T>& block, const ThreadGroup& group, unsigned groups,
                                    const std::uint16_t* places, unsigned count, unsigned group_count,
                                    int axis, std::int64_t child_capacity) {
  if (block.forest.split != KdTreeSplit::kMidpoint) return group_count / 2;
  const T up_to = middle(from_ordered_key<T>(block.least(group.number)[axis]),
                         from_ordered_key<T>(block.greatest(group.number)[axis]));
  std::uint32_t found = 0;
#pragma unroll
  for (unsigned i = 0; i < kMostBlockItems; ++i)
    found += i < count && block.at(axis, places[i]) <= up_to ? 1u : 0u;
  found = group_sum(group, found, block.counters, groups, 0);
  return static_cast<std::uint32_t>(midpoint_position(group_count, found, child_capacity));
}

/// Zeroes the counters of group_sum, so that a new series may begin.
template <class T>
__device__ void clear_counters(const BlockBuild<T>& block, unsigned groups) {
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 3 * groups; i += blockDim.x) block.counters[i] = 0;
  __syncthreads();
}

/// Splits every group of a level into two: the order of its points, stably, and the begins of the next
/// level's groups.
template <class T>
__device__ void split_groups(const BlockBuild<T>& block, const ThreadGroup& group, unsigned groups,
                             const std::uint16_t* places, unsigned count, const std::uint32_t* begins,
                             std::uint32_t* next_begins, std::int64_t child_capacity) {
  using Key = KeyOf<T>;
  const std::uint32_t begin = begins[group.number];
  const std::uint32_t group_count = begins[group.number + 1] - begin;
  const int axis = static_cast<int>(block.axes[group.number]);
  const Key least = block.least(group.number)[axis];
  Key keys[kMostBlockItems];
#pragma unroll
  for (unsigned i = 0; i < kMostBlockItems; ++i) {
    keys[i] = i < count ? ordered_key(block.at(axis, places[i])) - least : ~Key{0};
  }
  clear_counters(block, groups);
  const std::uint32_t left =
      group_left(block, group, groups, places, count, group_count, axis, child_capacity);
  const int bits =
      range_bits(group_count == 0 ? Key{0} : static_cast<Key>(block.greatest(group.number)[axis] - least),
                 block.warp_sums);
  clear_counters(block, groups);
  const Pivot<Key> pivot = select(block, group, groups, keys, count, left, bits);
  const std::uint32_t rank = left - pivot.less;

  std::uint32_t sides = 0;  // less in the low half, equal in the high
#pragma unroll
  for (unsigned i = 0; i < kMostBlockItems; ++i) {
    if (i < count) sides += keys[i] < pivot.key ? 1u : keys[i] == pivot.key ? 1u << 16 : 0u;
  }
  std::uint32_t before = sum_before(sides, block.warp_sums);
  if (group.leads()) {
    block.sums_before[group.number] = before;
    next_begins[2 * group.number] = begin;
    next_begins[2 * group.number + 1] = begin + left;
    if (group.number + 1 == groups) next_begins[2 * groups] = begin + group_count;
  }
  __syncthreads();  // and everybody has read its part of the order
  before -= block.sums_before[group.number];
  std::uint32_t less = before & 0xFFFFu;
  std::uint32_t equal = before >> 16;
  const std::uint32_t first = group.lane * block.items;
#pragma unroll
  for (unsigned i = 0; i < kMostBlockItems; ++i) {
    if (i >= count) continue;
    const std::uint32_t lefts = less + min(equal, rank);
    const bool is_less = keys[i] < pivot.key;
    const bool is_equal = keys[i] == pivot.key;
    const bool goes_left = is_less || (is_equal && equal < rank);
    block.order[begin + (goes_left ? lefts : left + first + i - lefts)] = places[i];
    less += is_less ? 1 : 0;
    equal += is_equal ? 1 : 0;
  }
  __syncthreads();
}

/// Block b builds the subtree of segment b of `level`, whose points lie in `from`.
template <class T>
__global__ void __launch_bounds__(kMostBlockThreads)
    build_subtrees(Forest<T> forest, int level, int items, int most_points, PointCopy<T> from, T* points,
                   std::int64_t* idx_array) {
  using Key = KeyOf<T>;
  extern __shared__ __align__(16) unsigned char memory[];
  const KdTreeShape& shape = forest.shape;
  const unsigned leaves = 1u << (shape.levels - 1 - level);
  const auto capacity = static_cast<unsigned>(most_points);
  const BlockBuild<T> block(forest, capacity, leaves, static_cast<unsigned>(items),
                            BlockLayout(sizeof(T), shape.dimensions, capacity, leaves), memory);
  const std::int64_t segment = blockIdx.x;
  const std::int64_t tree = segment >> level;
  const KdTreeNode root = forest.tree_nodes(tree)[forest.node_of(segment, level)];
  const auto count = static_cast<unsigned>(root.end - root.begin);
  const std::int64_t source = tree * shape.points + root.begin;

  for (int axis = 0; axis < shape.dimensions; ++axis) {
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
      block.coordinates[static_cast<unsigned>(axis) * capacity + i] =
          from.coordinates[axis * shape.all_points() + source + i];
    }
  }
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) block.order[i] = static_cast<std::uint16_t>(i);
  std::uint32_t* begins = block.begins;
  std::uint32_t* next_begins = block.begins + leaves + 1;
  if (threadIdx.x == 0) {
    begins[0] = 0;
    begins[1] = count;
  }

  for (unsigned groups = 1;; groups *= 2, ++level) {
    const bool last = level + 1 == shape.levels;
    const auto keys = static_cast<unsigned>(2 * shape.dimensions);
    for (unsigned i = threadIdx.x; i < groups * keys; i += blockDim.x) {
      block.bounds[i] = i % keys < keys / 2 ? ~Key{0} : Key{0};
    }
    __syncthreads();
    const ThreadGroup group(groups);
    const std::uint32_t begin = begins[group.number];
    const std::uint32_t group_count = begins[group.number + 1] - begin;
    const std::uint32_t first = min(group.lane * block.items, group_count);
    const std::uint32_t own = min(group_count - first, block.items);
    std::uint16_t places[kMostBlockItems];
#pragma unroll
    for (unsigned i = 0; i < kMostBlockItems; ++i) {
      places[i] = i < own ? block.order[begin + first + i] : std::uint16_t{0};
    }
    bound_groups(block, group, places, own);
    __syncthreads();
    if (group.leads()) {
      store_node(forest, tree, forest.node_of(segment * groups + group.number, level), root.begin + begin,
                 root.begin + begin + group_count, last, block.least(group.number),
                 block.greatest(group.number));
      block.axes[group.number] = static_cast<std::uint32_t>(
          split_axis(forest, level, block.least(group.number), block.greatest(group.number)));
    }
    if (last) break;
    __syncthreads();
    split_groups(block, group, groups, places, own, begins, next_begins,
                 kd_tree_capacity(shape, forest.leaf_size, level + 1));
    std::uint32_t* swapped = begins;
    begins = next_begins;
    next_begins = swapped;
  }

  const auto width = static_cast<unsigned>(shape.dimensions);
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
    idx_array[source + i] = from.order[source + block.order[i]];
  }
  for (unsigned i = threadIdx.x; i < count * width; i += blockDim.x) {
    const unsigned point = i / width;
    points[source * width + i] = block.at(static_cast<int>(i - point * width), block.order[point]);
  }
}

}  // namespace cumulus::kd_tree
