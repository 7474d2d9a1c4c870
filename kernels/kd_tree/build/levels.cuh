#pragma once

// The part of a build in which all segments of a level are split together. A level takes these kernels:
// prepare_segments (one thread a segment), with kMidpoint count_to_middle and place_middle, count_digits once
// for every kDigitBits of a number (which finds the pivots), count_sides, move_points (a stable partition).
// All but the first go over tiles of points, block b being tile b % tiles of segment b / tiles.

#include <cstdint>

#include "kernels/kd_tree/build/forest.cuh"
#include "kernels/kd_tree/build/plan.h"
#include "kernels/kd_tree/math/arithmetic.h"

namespace cumulus::kd_tree {

/// What the threads' numbers add up to; for every thread. `memory` has a word for each warp.
__device__ inline std::uint32_t block_sum(std::uint32_t number, std::uint32_t* memory) {
  const std::uint32_t of_warp = warp_sum(number);
  __syncthreads();  // `memory` may still be read from the call before
  if (threadIdx.x % 32 == 0) memory[threadIdx.x / 32] = of_warp;
  __syncthreads();
  std::uint32_t sum = 0;
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) sum += memory[warp];
  return sum;
}

/// The two children of a node get their points.
__device__ inline void place_children(KdTreeNode* nodes, std::int64_t node, std::int64_t left) {
  KdTreeNode* children = nodes + 2 * node + 1;
  children[0].begin = nodes[node].begin;
  children[0].end = nodes[node].begin + left;
  children[1].begin = nodes[node].begin + left;
  children[1].end = nodes[node].end;
}

/// One thread a segment: its node, its axis and the state of its selection; `next_bounds` (null: there is no
/// next level) are cleared for its children.
template <class T>
__global__ void prepare_segments(Forest<T> forest, int level, const KeyOf<T>* bounds,
                                 Segment<KeyOf<T>>* segments, KeyOf<T>* next_bounds) {
  using Key = KeyOf<T>;
  const std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (number >= forest.shape.trees << level) return;
  const int dimensions = forest.shape.dimensions;
  const std::int64_t tree = number >> level;
  const std::int64_t node = forest.node_of(number, level);
  const std::int64_t begin = forest.tree_nodes(tree)[node].begin;
  const std::int64_t end = forest.tree_nodes(tree)[node].end;
  const Key* least = bounds + 2 * number * dimensions;
  const Key* greatest = least + dimensions;
  store_node(forest, tree, node, begin, end, next_bounds == nullptr, least, greatest);
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

/// A block's tile: `count` points from `first` on, of `segment`.
struct Tile {
  std::int64_t segment;
  std::int64_t number;  // within its segment
  std::int64_t first;   // within its segment
  int count;
};
template <class Key>
__device__ Tile block_tile(const Segment<Key>* segments, std::int64_t tiles) {
  const std::int64_t segment = blockIdx.x / tiles;
  const std::int64_t number = blockIdx.x - segment * tiles;
  const std::int64_t first = number * kTilePoints;
  const std::int64_t rest = segments[segment].count - first;
  return {segment, number, first, static_cast<int>(rest < 0 ? 0 : min(rest, std::int64_t{kTilePoints}))};
}

/// Adds up in Segment::left the points up to the middle of each segment's extent.
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

template <class T>
__global__ void place_middle(Forest<T> forest, int level, std::int64_t child_capacity,
                             Segment<KeyOf<T>>* segments) {
  const std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (number >= forest.shape.trees << level) return;
  Segment<KeyOf<T>>& segment = segments[number];
  segment.left = midpoint_position(segment.count, segment.left, child_capacity);
  segment.rank = segment.left;
  place_children(forest.tree_nodes(number >> level), forest.node_of(number, level), segment.left);
}

/// Whether this block is the last of its segment's `tiles` to come here; then it sees what the others wrote.
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
  const std::uint32_t own = __ldcg(histogram + digit);
  std::uint32_t up_to = own;
  for (unsigned offset = 1; offset < 32; offset *= 2) {
    const std::uint32_t other = __shfl_up_sync(0xFFFFFFFFu, up_to, offset);
    if (lane >= offset) up_to += other;
  }
  if (lane == 31) warp_sums[digit / 32] = up_to;
  const std::int64_t rank = segment.rank;
  __syncthreads();  // and everybody has read the rank
  for (unsigned warp = 0; warp < digit / 32; ++warp) up_to += warp_sums[warp];
  if (rank < up_to && rank >= up_to - own) {
    segment.rank = rank - (up_to - own);
    segment.prefix = static_cast<Key>(static_cast<std::uint64_t>(segment.prefix) << digit_bits | digit);
    segment.undecided_bits -= digit_bits;
  }
}

/// One pass of the selection: counts, by their next digit, the keys that begin with the segment's prefix; the
/// segment's last block decides.
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

/// Where a point goes: -1 left, 0 left if it is among the first `rank` such, 1 right.
template <class Key>
__device__ int side_of(Key key, Key pivot) {
  return key < pivot ? -1 : key == pivot ? 0 : 1;
}

/// Each tile's points less than its segment's pivot (low half) and equal to it (high half).
template <class T>
__global__ void __launch_bounds__(kTileThreads)
    count_sides(std::int64_t all, const T* coordinates, std::int64_t tiles, const Segment<KeyOf<T>>* segments,
                std::uint64_t* tile_sides) {
  __shared__ std::uint32_t sums[kTileThreads / 32];
  const Tile tile = block_tile(segments, tiles);
  const Segment<KeyOf<T>>& segment = segments[tile.segment];
  const KeyOf<T> pivot = segment.least + segment.prefix;
  const T* x = coordinates + segment.axis * all + segment.begin + tile.first;
  std::uint32_t sides = 0;  // less in the low half, equal in the high: no tile has more than 2^15 points
  T rows[kTileItems];
  load_rows(x, tile.count, rows);
#pragma unroll
  for (int row = 0; row < kTileItems; ++row) {
    if (!has_row(row, tile.count)) continue;
    const int side = side_of(ordered_key(rows[row]), pivot);
    sides += side < 0 ? 1u : side == 0 ? 1u << 16 : 0u;
  }
  sides = block_sum(sides, sums);
  if (threadIdx.x == 0) {
    tile_sides[blockIdx.x] = (sides & 0xFFFFu) | static_cast<std::uint64_t>(sides >> 16) << 32;
  }
}

/// The sides of the points of a segment before this tile.
__device__ inline std::uint64_t sides_before(const std::uint64_t* tile_sides, const Tile& tile) {
  __shared__ std::uint64_t warp_sums[kTileThreads / 32];
  const std::uint64_t* first = tile_sides + blockIdx.x - tile.number;
  std::uint64_t sum = 0;
  for (std::int64_t i = threadIdx.x; i < tile.number; i += kTileThreads) sum += first[i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (const std::uint64_t of_warp : warp_sums) sum += of_warp;
  return sum;
}

/// The stable partition of a tile: moves its points to the other copy and, unless `next_bounds` is null,
/// bounds the two children with them.
template <class T>
__global__ void __launch_bounds__(kTileThreads)
    move_points(std::int64_t all, int dimensions, PointCopy<T> from, PointCopy<T> to, std::int64_t tiles,
                const Segment<KeyOf<T>>* segments, const std::uint64_t* tile_sides, KeyOf<T>* next_bounds) {
  using Key = KeyOf<T>;
  constexpr int kWarps = kTileThreads / 32;
  __shared__ std::uint32_t row_sides[kTileItems * kWarps];  // then those of the rows before
  __shared__ Key bounds[2 * 2 * kMaxKdTreeDimensions];      // of the tile's points that go to either child
  const Tile tile = block_tile(segments, tiles);
  if (tile.count == 0) return;
  if (threadIdx.x < 2) clear_bounds(bounds, threadIdx.x, dimensions);
  const Segment<Key> segment = segments[tile.segment];
  const Key pivot = segment.least + segment.prefix;
  const std::int64_t source = segment.begin + tile.first;
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  const unsigned lower_lanes = (1u << lane) - 1;

  const T* x = from.coordinates + segment.axis * all + source;
  T numbers[kTileItems];
  load_rows(x, tile.count, numbers);
  std::uint32_t less = 0;
  std::uint32_t equal = 0;
#pragma unroll
  for (int row = 0; row < kTileItems; ++row) {
    const int side = has_row(row, tile.count) ? side_of(ordered_key(numbers[row]), pivot) : 1;
    less |= (side < 0 ? 1u : 0u) << row;
    equal |= (side == 0 ? 1u : 0u) << row;
    const unsigned lesses = __ballot_sync(0xFFFFFFFFu, side < 0);
    const unsigned equals = __ballot_sync(0xFFFFFFFFu, side == 0);
    if (lane == 0) {
      row_sides[row * kWarps + static_cast<int>(warp)] =
          static_cast<std::uint32_t>(__popc(lesses)) | static_cast<std::uint32_t>(__popc(equals)) << 16;
    }
  }
  const std::uint64_t before = sides_before(tile_sides, tile);  // synchronises the block
  if (warp == 0) {
    std::uint32_t sum = 0;
    for (int first = 0; first < kTileItems * kWarps; first += 32) {
      const std::uint32_t own = row_sides[first + static_cast<int>(lane)];
      std::uint32_t up_to = own;
      for (unsigned offset = 1; offset < 32; offset *= 2) {
        const std::uint32_t other = __shfl_up_sync(0xFFFFFFFFu, up_to, offset);
        if (lane >= offset) up_to += other;
      }
      row_sides[first + static_cast<int>(lane)] = sum + up_to - own;
      sum += __shfl_sync(0xFFFFFFFFu, up_to, 31);
    }
  }
  __syncthreads();

  const std::int64_t less_before = static_cast<std::int64_t>(before & 0xFFFFFFFFu);
  const std::int64_t equal_before = static_cast<std::int64_t>(before >> 32);
  std::uint32_t targets[kTileItems];  // within the segment
  std::uint32_t goes_left = 0;
#pragma unroll
  for (int row = 0; row < kTileItems; ++row) {
    const bool is_less = (less >> row & 1u) != 0;
    const bool is_equal = (equal >> row & 1u) != 0;
    const unsigned lesses = __ballot_sync(0xFFFFFFFFu, is_less);
    const unsigned equals = __ballot_sync(0xFFFFFFFFu, is_equal);
    const std::uint32_t rows_before = row_sides[row * kWarps + static_cast<int>(warp)];
    const std::int64_t lesses_before = less_before + (rows_before & 0xFFFFu) + __popc(lesses & lower_lanes);
    const std::int64_t equals_before = equal_before + (rows_before >> 16) + __popc(equals & lower_lanes);
    const std::int64_t lefts_before = lesses_before + min(equals_before, segment.rank);
    const bool left = is_less || (is_equal && equals_before < segment.rank);
    const std::int64_t position = tile.first + row * kTileThreads + threadIdx.x;
    targets[row] = static_cast<std::uint32_t>(left ? lefts_before : segment.left + position - lefts_before);
    goes_left |= (left ? 1u : 0u) << row;
  }

  std::uint32_t indices[kTileItems];
  load_rows(from.order + source, tile.count, indices);
#pragma unroll
  for (int row = 0; row < kTileItems; ++row) {
    if (has_row(row, tile.count)) to.order[segment.begin + targets[row]] = indices[row];
  }
  for (int axis = 0; axis < dimensions; ++axis) {
    T* write = to.coordinates + axis * all + segment.begin;
    load_rows(from.coordinates + axis * all + source, tile.count, numbers);
    Key least[2] = {~Key{0}, ~Key{0}};
    Key greatest[2] = {0, 0};
#pragma unroll
    for (int row = 0; row < kTileItems; ++row) {
      if (!has_row(row, tile.count)) continue;
      write[targets[row]] = numbers[row];
      const Key key = ordered_key(numbers[row]);
      const bool left = (goes_left >> row & 1u) != 0;
      least[0] = left ? min(least[0], key) : least[0];
      greatest[0] = left ? max(greatest[0], key) : greatest[0];
      least[1] = left ? least[1] : min(least[1], key);
      greatest[1] = left ? greatest[1] : max(greatest[1], key);
    }
    if (next_bounds == nullptr) continue;
    for (int child = 0; child < 2; ++child) {
      const Key low = warp_least(least[child]);
      const Key high = warp_greatest(greatest[child]);
      Key* keys = bounds + 2 * child * dimensions + axis;
      if (lane == 0 && low <= high) {
        atomic_least(keys, low);
        atomic_greatest(keys + dimensions, high);
      }
    }
  }
  if (next_bounds != nullptr) {
    widen_bounds(next_bounds + 4 * tile.segment * dimensions, bounds, 2, dimensions);
  }
}

/// Where segments are leaves already: the points as they stand, to the tree's arrays.
template <class T>
__global__ void store_points(std::int64_t all, int dimensions, PointCopy<T> from, T* points,
                             std::int64_t* idx_array) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= all) return;
  idx_array[i] = from.order[i];
  for (int axis = 0; axis < dimensions; ++axis)
    points[i * dimensions + axis] = from.coordinates[axis * all + i];
}

}  // namespace cumulus::kd_tree
