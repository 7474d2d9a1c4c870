#pragma once

// The stable partition of all segments of a level by their pivots: reduce, then scan and scatter.

#include <cstdint>

#include "kernels/kd_tree/build/forest.cuh"
#include "kernels/kd_tree/build/layout.h"
#include "kernels/kd_tree/build/tiles.cuh"
#include "kernels/kd_tree/math/arithmetic.h"
#include "kernels/primitives/warp.cuh"
#include "kernels/primitives/warp_scan.cuh"

namespace cumulus::kd_tree {

/// Where a point goes: -1 left, 0 left if it is among the first `rank` such, 1 right.
template <class Key>
__device__ int side_of(Key key, Key pivot) {
  return key < pivot ? -1 : key == pivot ? 0 : 1;
}

/// Tile aggregates of the partition: points less than the segment's pivot (low half) and equal to it (high
/// half).
/// Owns: block b tile b % tiles of segment b / tiles.
/// Reads: the tile's coordinates along its segment's axis; its Segment.
/// Writes: tile_sides[b].
/// Waits for: nothing of other blocks.
/// Cannot deadlock: all threads of a block reach its barriers.
/// Source: the reduction of a reduce-then-scan partition (Merrill and Garland 2016).
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
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(kFullWarp, sum, offset);
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (const std::uint64_t of_warp : warp_sums) sum += of_warp;
  return sum;
}

/// What move_points works on.
template <class T>
struct Move {
  std::int64_t all;  // points
  int dimensions;
  PointCopy<T> from;
  PointCopy<T> to;
  std::int64_t tiles;
  const Segment<KeyOf<T>>* segments;
  const std::uint64_t* tile_sides;
  KeyOf<T>* next_bounds;  // null: the children are not bounded
};

/// On which side of the pivot the thread's points are, a bit for each row.
struct RowSides {
  std::uint32_t less = 0;
  std::uint32_t equal = 0;
};

/// Reads the sides of the thread's keys, and counts each row's of each warp in `counts`, less in the low
/// half, equal in the high.
template <class T>
__device__ RowSides count_row_sides(const T* numbers, int count, KeyOf<T> pivot, std::uint32_t* counts) {
  constexpr int kWarps = kTileThreads / 32;
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  RowSides sides;
#pragma unroll
  for (int row = 0; row < kTileItems; ++row) {
    const int side = has_row(row, count) ? side_of(ordered_key(numbers[row]), pivot) : 1;
    sides.less |= (side < 0 ? 1u : 0u) << row;
    sides.equal |= (side == 0 ? 1u : 0u) << row;
    const unsigned lesses = __ballot_sync(kFullWarp, side < 0);
    const unsigned equals = __ballot_sync(kFullWarp, side == 0);
    if (lane == 0) {
      counts[row * kWarps + static_cast<int>(warp)] =
          static_cast<std::uint32_t>(__popc(lesses)) | static_cast<std::uint32_t>(__popc(equals)) << 16;
    }
  }
  return sides;
}

/// By one warp: counts become exclusive prefixes.
__device__ inline void scan_row_sides(std::uint32_t* counts) {
  constexpr int kWarps = kTileThreads / 32;
  const unsigned lane = threadIdx.x % 32;
  std::uint32_t sum = 0;
  for (int first = 0; first < kTileItems * kWarps; first += 32) {
    const std::uint32_t count = counts[first + static_cast<int>(lane)];
    const std::uint32_t inclusive = warp_inclusive_sum(count);
    counts[first + static_cast<int>(lane)] = sum + inclusive - count;
    sum += __shfl_sync(kFullWarp, inclusive, 31);
  }
}

/// Where the thread's points go within the segment, and, a bit for each row, whether that is left. `before`
/// is the tile's exclusive prefix, `row_prefixes` those of rows and warps within it.
template <class Key>
__device__ std::uint32_t place_rows(const Segment<Key>& segment, const Tile& tile, const RowSides& sides,
                                    std::uint64_t before, const std::uint32_t* row_prefixes,
                                    std::uint32_t* targets) {
  constexpr int kWarps = kTileThreads / 32;
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  const unsigned lower_lanes = (1u << lane) - 1;
  const std::int64_t less_before = static_cast<std::int64_t>(before & 0xFFFFFFFFu);
  const std::int64_t equal_before = static_cast<std::int64_t>(before >> 32);
  std::uint32_t goes_left = 0;
#pragma unroll
  for (int row = 0; row < kTileItems; ++row) {
    const bool is_less = (sides.less >> row & 1u) != 0;
    const bool is_equal = (sides.equal >> row & 1u) != 0;
    const unsigned lesses = __ballot_sync(kFullWarp, is_less);
    const unsigned equals = __ballot_sync(kFullWarp, is_equal);
    const std::uint32_t rows_before = row_prefixes[row * kWarps + static_cast<int>(warp)];
    const std::int64_t lesses_before = less_before + (rows_before & 0xFFFFu) + __popc(lesses & lower_lanes);
    const std::int64_t equals_before = equal_before + (rows_before >> 16) + __popc(equals & lower_lanes);
    const std::int64_t lefts_before = lesses_before + min(equals_before, segment.rank);
    const bool left = is_less || (is_equal && equals_before < segment.rank);
    const std::int64_t position = tile.first + row * kTileThreads + threadIdx.x;
    targets[row] = static_cast<std::uint32_t>(left ? lefts_before : segment.left + position - lefts_before);
    goes_left |= (left ? 1u : 0u) << row;
  }
  return goes_left;
}

/// Extents of the thread's points that go to either child.
template <class Key>
struct ChildBounds {
  Key least[2] = {~Key{0}, ~Key{0}};
  Key greatest[2] = {0, 0};

  __device__ void include(Key key, bool left) {
    least[0] = left ? min(least[0], key) : least[0];
    greatest[0] = left ? max(greatest[0], key) : greatest[0];
    least[1] = left ? least[1] : min(least[1], key);
    greatest[1] = left ? greatest[1] : max(greatest[1], key);
  }
  /// Widens the block's `bounds`, [2, 2, dimensions], along `axis`. By whole warps.
  __device__ void widen(Key* bounds, int dimensions, int axis) const {
    for (int child = 0; child < 2; ++child) {
      const Key low = warp_least(least[child]);
      const Key high = warp_greatest(greatest[child]);
      Key* keys = bounds + 2 * child * dimensions + axis;
      if (threadIdx.x % 32 == 0 && low <= high) {
        atomic_least(keys, low);
        atomic_greatest(keys + dimensions, high);
      }
    }
  }
};

/// The stable partition of a tile: moves its points to the other copy and, unless `next_bounds` is null,
/// bounds the two children with them.
/// Owns: block b tile b % tiles of segment b / tiles; thread i the tile's points i, i + kTileThreads, ...
/// Reads: the tile's points in `from`; its Segment; the tile aggregates of the segment's tiles before it.
/// Writes: the tile's points in `to`; the children's bounds, by atomic minima and maxima.
/// Waits for: nothing of other blocks, as the kernel before has written the aggregates.
/// Cannot deadlock: all threads of a block reach its barriers.
/// Source: the scan and downsweep of a reduce-then-scan partition (Merrill and Garland 2016).
template <class T>
__global__ void __launch_bounds__(kTileThreads) move_points(Move<T> move) {
  using Key = KeyOf<T>;
  __shared__ std::uint32_t row_sides[kTileItems * kTileThreads / 32];  // then their exclusive prefixes
  __shared__ Key bounds[2 * 2 * kMaxKdTreeDimensions];  // of the tile's points that go to either child
  const Tile tile = block_tile(move.segments, move.tiles);
  if (tile.count == 0) return;
  if (threadIdx.x < 2) clear_bounds(bounds, threadIdx.x, move.dimensions);
  const Segment<Key> segment = move.segments[tile.segment];
  const Key pivot = segment.least + segment.prefix;
  const std::int64_t source = segment.begin + tile.first;

  T numbers[kTileItems];
  load_rows(move.from.coordinates + segment.axis * move.all + source, tile.count, numbers);
  const RowSides sides = count_row_sides(numbers, tile.count, pivot, row_sides);
  const std::uint64_t before = sides_before(move.tile_sides, tile);  // synchronises the block
  if (threadIdx.x / 32 == 0) scan_row_sides(row_sides);
  __syncthreads();
  std::uint32_t targets[kTileItems];
  const std::uint32_t goes_left = place_rows(segment, tile, sides, before, row_sides, targets);

  std::uint32_t indices[kTileItems];
  load_rows(move.from.order + source, tile.count, indices);
#pragma unroll
  for (int row = 0; row < kTileItems; ++row) {
    if (has_row(row, tile.count)) move.to.order[segment.begin + targets[row]] = indices[row];
  }
  for (int axis = 0; axis < move.dimensions; ++axis) {
    T* write = move.to.coordinates + axis * move.all + segment.begin;
    load_rows(move.from.coordinates + axis * move.all + source, tile.count, numbers);
    ChildBounds<Key> children;
#pragma unroll
    for (int row = 0; row < kTileItems; ++row) {
      if (!has_row(row, tile.count)) continue;
      write[targets[row]] = numbers[row];
      children.include(ordered_key(numbers[row]), (goes_left >> row & 1u) != 0);
    }
    if (move.next_bounds != nullptr) children.widen(bounds, move.dimensions, axis);
  }
  if (move.next_bounds != nullptr) {
    widen_bounds(move.next_bounds + 4 * tile.segment * move.dimensions, bounds, 2, move.dimensions);
  }
}

}  // namespace cumulus::kd_tree
