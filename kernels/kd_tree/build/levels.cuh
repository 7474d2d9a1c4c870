#pragma once

// The part of a build in which all segments of a level are split together. A level takes these kernels:
// prepare_segments (one thread a segment), with kMidpoint count_to_middle and place_middle, count_digits once
// for every kDigitBits of a number (which finds the pivots), and those of partition.cuh: count_sides,
// move_points. All but the first go over tiles of points, block b being tile b % tiles of segment b / tiles.

#include <cstdint>

#include "kernels/kd_tree/build/forest.cuh"
#include "kernels/kd_tree/build/layout.h"
#include "kernels/kd_tree/build/tiles.cuh"
#include "kernels/kd_tree/math/arithmetic.h"
#include "kernels/kd_tree/threads.cuh"

namespace cumulus::kd_tree {

/// The two children of a node get their points.
__device__ inline void place_children(KdTreeNode* nodes, std::int64_t node, std::int64_t left) {
  KdTreeNode* children = nodes + 2 * node + 1;
  children[0].begin = nodes[node].begin;
  children[0].end = nodes[node].begin + left;
  children[1].begin = nodes[node].begin + left;
  children[1].end = nodes[node].end;
}

/// A level begins: the segments' nodes, their axes and the state of their selections; `next_bounds` (null:
/// there is no next level) are cleared for their children.
/// Owns: thread i segment i of `level`.
/// Reads: the segment's bounds and its node's points.
/// Writes: its node; where there is a next level, its Segment, its children's bounds and, unless the split is
///   kMidpoint, their points.
/// Waits for: nothing.
/// Cannot deadlock: no thread waits for another.
/// Source: this project's.
template <class T>
__global__ void prepare_segments(Forest<T> forest, int level, const KeyOf<T>* bounds,
                                 Segment<KeyOf<T>>* segments, KeyOf<T>* next_bounds) {
  using Key = KeyOf<T>;
  const std::int64_t number = thread_number();
  if (number >= forest.shape.trees << level) return;
  const int dimensions = forest.shape.dimensions;
  const std::int64_t tree = number >> level;
  const std::int64_t node = forest.node_of(number, level);
  const std::int64_t begin = forest.tree_nodes(tree)[node].begin;
  const std::int64_t end = forest.tree_nodes(tree)[node].end;
  const Key* least = bounds + 2 * number * dimensions;
  const Key* greatest = least + dimensions;
  store_node(forest, {tree, node, begin, end}, next_bounds == nullptr, least, greatest);
  if (next_bounds == nullptr) return;
  clear_bounds(next_bounds, 2 * number, dimensions);
  clear_bounds(next_bounds, 2 * number + 1, dimensions);
  Segment<Key> segment;
  segment.axis = split_axis(forest, level, least, greatest);
  segment.begin = tree * forest.shape.points + begin;
  segment.count = end - begin;
  segment.left = forest.split == KdTreeSplit::kMidpoint ? 0 : segment.count / 2;
  segment.rank = segment.left;
  segment.least = least[segment.axis];
  segment.prefix = 0;
  const Key range = greatest[segment.axis] - segment.least;
  segment.undecided_bits =
      segment.count == 0 ? 0 : 64 - __clzll(static_cast<long long>(static_cast<unsigned long long>(range)));
  segments[number] = segment;
  if (forest.split != KdTreeSplit::kMidpoint) place_children(forest.tree_nodes(tree), node, segment.left);
}

/// With kMidpoint: counts the points up to the middle of each segment's extent.
/// Owns: block b tile b % tiles of segment b / tiles.
/// Reads: the tile's coordinates along its segment's axis, and the segment's bounds.
/// Writes: Segment::left, by an atomic addition.
/// Waits for: nothing of other blocks.
/// Cannot deadlock: all threads of a block reach its barriers.
/// Source: this project's.
template <class T>
__global__ void __launch_bounds__(kTileThreads)
    count_to_middle(std::int64_t all, const T* coordinates, std::int64_t tiles, const KeyOf<T>* bounds,
                    int dimensions, Segment<KeyOf<T>>* segments) {
  __shared__ std::uint32_t sums[kTileThreads / 32];
  const Tile tile = block_tile(segments, tiles);
  if (tile.count == 0) return;
  const Segment<KeyOf<T>>& segment = segments[tile.segment];
  const KeyOf<T>* least = bounds + 2 * tile.segment * dimensions + segment.axis;
  const T up_to = middle(from_ordered_key<T>(least[0]), from_ordered_key<T>(least[dimensions]));
  const T* x = coordinates + segment.axis * all + segment.begin + tile.first;
  T rows[kTileItems];
  load_rows(x, tile.count, rows);
  std::uint32_t found = 0;
#pragma unroll
  for (int row = 0; row < kTileItems; ++row) found += has_row(row, tile.count) && rows[row] <= up_to ? 1 : 0;
  found = block_sum(found, sums);
  if (threadIdx.x == 0) {
    atomicAdd(reinterpret_cast<unsigned long long*>(&segments[tile.segment].left),
              static_cast<unsigned long long>(found));
  }
}

/// With kMidpoint: where each segment is split.
/// Owns: thread i segment i of `level`.
/// Reads: its Segment, whose `left` counts the points up to the middle.
/// Writes: Segment::left and ::rank; the points of the node's children.
/// Waits for: nothing.
/// Cannot deadlock: no thread waits for another.
/// Source: this project's.
template <class T>
__global__ void place_middle(Forest<T> forest, int level, std::int64_t child_capacity,
                             Segment<KeyOf<T>>* segments) {
  const std::int64_t number = thread_number();
  if (number >= forest.shape.trees << level) return;
  Segment<KeyOf<T>>& segment = segments[number];
  segment.left = midpoint_position(segment.count, segment.left, child_capacity);
  segment.rank = segment.left;
  place_children(forest.tree_nodes(number >> level), forest.node_of(number, level), segment.left);
}

/// Whether this block is the last of its segment's `tiles` to arrive; then it sees what the others wrote.
__device__ inline bool is_last_of_segment(std::uint32_t* arrived, std::int64_t tiles) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(arrived, 1u) == static_cast<std::uint32_t>(tiles - 1);
    if (last) *arrived = 0;  // for the next pass
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
}

/// The whole block: finds the digit of the pivot in `histogram` and moves the segment's selection on by it.
template <class Key>
__device__ void decide_digit(const std::uint32_t* histogram, int digit_bits, Segment<Key>& segment) {
  static_assert(kDigits == kTileThreads);
  __shared__ std::uint32_t warp_sums[kTileThreads / 32];
  const unsigned digit = threadIdx.x;
  const unsigned lane = digit % 32;
  const std::uint32_t count = __ldcg(histogram + digit);
  std::uint32_t inclusive = warp_inclusive_sum(count);
  if (lane == 31) warp_sums[digit / 32] = inclusive;
  const std::int64_t rank = segment.rank;
  __syncthreads();  // and every thread has read the rank
  for (unsigned warp = 0; warp < digit / 32; ++warp) inclusive += warp_sums[warp];
  if (rank < inclusive && rank >= inclusive - count) {
    segment.rank = rank - (inclusive - count);
    segment.prefix = static_cast<Key>(static_cast<std::uint64_t>(segment.prefix) << digit_bits | digit);
    segment.undecided_bits -= digit_bits;
  }
}

/// One pass of the radix selection of each segment's pivot: a histogram, by their next digit, of the keys
/// that begin with the segment's prefix; the segment's last block decides the digit.
/// Owns: block b tile b % tiles of segment b / tiles.
/// Reads: the tile's coordinates along its segment's axis; its Segment; the last block the histogram.
/// Writes: the segment's histogram, by atomic additions, and its count of arrived blocks; the last block
///   Segment::prefix, ::rank and ::undecided_bits.
/// Waits for: nothing of other blocks. Which one is last, an atomic counter says after a fence.
/// Cannot deadlock: no block waits for another; all threads of a block reach its barriers.
/// Source: radix selection, as in T. Alabi et al., "Fast k-selection algorithms for graphics processing
///   units", 2012; the last block as in NVIDIA's sample threadFenceReduction.
template <class T>
__global__ void __launch_bounds__(kTileThreads)
    count_digits(std::int64_t all, const T* coordinates, std::int64_t tiles, Segment<KeyOf<T>>* segments,
                 std::uint32_t* histograms, std::uint32_t* arrived) {
  using Key = KeyOf<T>;
  __shared__ std::uint32_t counts[kDigits];
  const Tile tile = block_tile(segments, tiles);
  Segment<Key>& segment = segments[tile.segment];
  const int undecided = segment.undecided_bits;
  if (undecided == 0) return;  // alike for all blocks of the segment
  const int digit_bits = min(kDigitBits, undecided);
  const Key least = segment.least;
  const Key prefix = segment.prefix;
  const T* x = coordinates + segment.axis * all + segment.begin + tile.first;
  T rows[kTileItems];
  load_rows(x, tile.count, rows);
  counts[threadIdx.x] = 0;
  __syncthreads();
#pragma unroll
  for (int row = 0; row < kTileItems; ++row) {
    if (!has_row(row, tile.count)) continue;
    const Key key = ordered_key(rows[row]) - least;
    const Key digits = key >> (undecided - digit_bits);
    if ((digits >> digit_bits) != prefix) continue;
    atomicAdd(counts + (static_cast<unsigned>(digits) & ((1u << digit_bits) - 1)), 1u);
  }
  __syncthreads();
  std::uint32_t* histogram = histograms + tile.segment * kDigits;
  if (counts[threadIdx.x] != 0) atomicAdd(histogram + threadIdx.x, counts[threadIdx.x]);
  if (is_last_of_segment(arrived + tile.segment, tiles)) decide_digit(histogram, digit_bits, segment);
}

/// Where segments are leaves already: the points as they stand, to the tree's arrays.
/// Owns: thread i point i of the tree's order.
/// Reads: the point and its index in the last copy.
/// Writes: the same in the tree's arrays.
/// Waits for: nothing.
/// Cannot deadlock: no thread waits for another.
/// Source: this project's.
template <class T>
__global__ void store_points(std::int64_t all, int dimensions, PointCopy<T> from, T* points,
                             std::int64_t* idx_array) {
  const std::int64_t i = thread_number();
  if (i >= all) return;
  idx_array[i] = from.order[i];
  for (int axis = 0; axis < dimensions; ++axis)
    points[i * dimensions + axis] = from.coordinates[axis * all + i];
}

}  // namespace cumulus::kd_tree
