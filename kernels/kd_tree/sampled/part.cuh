#pragma once

// How a block of threads splits a part of the points, in shared memory, into groups of equal size: by
// counting sorts along one axis, two levels at a time.

#include <bit>
#include <cstdint>

#include "kernels/kd_tree/math/arithmetic.h"
#include "kernels/kd_tree/sampled/layout.h"
#include "kernels/kd_tree/sampled/samples.h"
#include "kernels/primitives/warp.cuh"
#include "kernels/primitives/warp_scan.cuh"

namespace cumulus::kd_tree {

/// A part in the shared memory of a block of kThreads threads, each of which takes at most kItems points.
template <int kThreads, int kItems>
struct Part {
  static constexpr unsigned kBins = kThreadBins * kThreads;  // of all groups together
  static constexpr unsigned kWords = (1 + kThreads / 32) * 32;

  unsigned capacity;
  unsigned count;
  std::uint32_t* counters;    // [kBins + 4]: the bins' begins, then the end of the last
  std::uint32_t* words;       // [kWords]: of the block, then of each warp
  float* coordinates;         // [kPartAxes, capacity]
  std::uint32_t* indices;     // [capacity]
  std::uint32_t* boxes;       // [2 * groups, 2, kPartAxes]
  std::uint32_t* begins;      // [groups + 1]
  std::uint32_t* axes;        // [groups]
  float* lowers;              // [groups]
  float* scales;              // [groups]
  std::uint32_t* queue;       // [groups + 1]
  std::uint16_t* order;       // [capacity]
  std::uint16_t* next_order;  // [capacity]

  __device__ Part(unsigned char* memory, unsigned points, unsigned groups) : capacity(points), count(0) {
    counters = reinterpret_cast<std::uint32_t*>(memory);
    words = counters + kBins + 4;
    coordinates = reinterpret_cast<float*>(words + kWords);
    indices = reinterpret_cast<std::uint32_t*>(coordinates + kPartAxes * capacity);
    boxes = indices + capacity;
    begins = boxes + 12 * groups;
    axes = begins + groups + 1;
    lowers = reinterpret_cast<float*>(axes + groups);
    scales = lowers + groups;
    queue = reinterpret_cast<std::uint32_t*>(scales + groups);
    order = reinterpret_cast<std::uint16_t*>(queue + groups + 1);
    next_order = order + capacity;
  }

  __device__ float at(unsigned axis, unsigned place) const { return coordinates[axis * capacity + place]; }
  /// In the order of (coordinate, index).
  __device__ bool less(unsigned axis, unsigned a, unsigned b) const {
    const float x = at(axis, a);
    const float y = at(axis, b);
    return x < y || (x == y && indices[a] < indices[b]);
  }
  __device__ std::uint64_t key(unsigned axis, unsigned place) const {
    return std::uint64_t{ordered_key(at(axis, place))} << 32 | indices[place];
  }
};

/// The bins of a group: monotone in x, whatever the numbers are. NaN, from infinities, is bin 0.
struct Digits {
  float lower;
  float scale;
  unsigned last;
  __device__ unsigned of(float x) const { return min(__float2uint_rz((x - lower) * scale), last); }
};

/// The threads of each of 2^level groups: consecutive ones, as many for each.
template <int kThreads>
struct GroupThreads {
  static constexpr int kBits = std::bit_width(static_cast<unsigned>(kThreads)) - 1;
  unsigned size;
  unsigned group;
  unsigned lane;
  __device__ explicit GroupThreads(int level)
      : size(static_cast<unsigned>(kThreads) >> level),
        group(threadIdx.x >> (kBits - level)),
        lane(threadIdx.x & (size - 1)) {}
};

/// Where the first child of a node of `count` points ends.
__device__ inline unsigned left_points(unsigned count) { return count / 2; }

/// begins[i] and the number of points of descendant `number`, `levels` below a node.
struct Range {
  unsigned begin;
  unsigned count;
};
__device__ inline Range descendant(Range node, unsigned number, int levels) {
  for (int bit = levels - 1; bit >= 0; --bit) {
    const unsigned left = left_points(node.count);
    if ((number >> bit & 1u) != 0) {
      node.begin += left;
      node.count -= left;
    } else {
      node.count = left;
    }
  }
  return node;
}

/// Zeroes the counters. The whole block calls this.
template <int kThreads, int kItems>
__device__ void clear_counters(const Part<kThreads, kItems>& part) {
  auto* const fours = reinterpret_cast<uint4*>(part.counters);
#pragma unroll
  for (unsigned i = 0; i < kThreadBins / 4; ++i) fours[threadIdx.x + i * kThreads] = {0, 0, 0, 0};
}

/// Exclusive prefix sums of the counters. The whole block calls this, after a barrier; ends with one.
template <int kThreads, int kItems>
__device__ void sum_counters(const Part<kThreads, kItems>& part) {
  auto* const first = reinterpret_cast<uint4*>(part.counters + threadIdx.x * kThreadBins);
  uint4 counts[kThreadBins / 4];
  std::uint32_t sum = 0;
#pragma unroll
  for (unsigned i = 0; i < kThreadBins / 4; ++i) {
    counts[i] = first[i];
    sum += counts[i].x + counts[i].y + counts[i].z + counts[i].w;
  }
  const std::uint32_t inclusive = warp_inclusive_sum(sum);
  if (lane_index() == 31) part.words[warp_index()] = inclusive;
  __syncthreads();
  std::uint32_t before = inclusive - sum;
  if (kThreads <= 128) {
    for (int warp = 0; warp < warp_index(); ++warp) before += part.words[warp];
  } else {
    const std::uint32_t of_warp = lane_index() < warp_index() ? part.words[lane_index()] : 0;
    before += warp_sum(of_warp);
  }
#pragma unroll
  for (unsigned i = 0; i < kThreadBins / 4; ++i) {
    uint4 sums;
    sums.x = before;
    sums.y = sums.x + counts[i].x;
    sums.z = sums.y + counts[i].y;
    sums.w = sums.z + counts[i].z;
    before = sums.w + counts[i].w;
    first[i] = sums;
  }
  if (threadIdx.x == kThreads - 1) part.counters[part.kBins] = before;
  __syncthreads();
}

/// A thread's points, each with its bin and its number within it.
template <int kItems>
struct BinnedPoints {
  std::uint16_t places[kItems];
  std::uint32_t slots[kItems];

  __device__ void put(std::uint32_t* counters, int item, unsigned bin) {
    slots[item] = bin << 16 | atomicAdd(counters + bin, 1u);
  }
  __device__ unsigned bin(int item) const { return slots[item] >> 16; }
  /// Where it goes, once the counters are summed.
  __device__ unsigned place(const std::uint32_t* counters, int item) const {
    return counters[bin(item)] + (slots[item] & 0xFFFFu);
  }
};

/// Takes a point into the part.
template <int kThreads, int kItems>
__device__ void put_point(const Part<kThreads, kItems>& part, unsigned place, const PointRecord& record) {
  part.coordinates[place] = record.x;
  part.coordinates[part.capacity + place] = record.y;
  part.coordinates[2 * part.capacity + place] = record.z;
  part.indices[place] = record.index;
}

/// A box, gathered by a thread.
struct ThreadBox {
  float lower[kPartAxes];
  float upper[kPartAxes];
  __device__ ThreadBox() {
#pragma unroll
    for (int axis = 0; axis < kPartAxes; ++axis) {
      lower[axis] = INFINITY;
      upper[axis] = -INFINITY;
    }
  }
  __device__ void include(float x, float y, float z) {
    lower[0] = fminf(lower[0], x);
    lower[1] = fminf(lower[1], y);
    lower[2] = fminf(lower[2], z);
    upper[0] = fmaxf(upper[0], x);
    upper[1] = fmaxf(upper[1], y);
    upper[2] = fmaxf(upper[2], z);
  }
};

__device__ inline void clear_box(std::uint32_t* box) {
  for (int axis = 0; axis < kPartAxes; ++axis) {
    box[axis] = ~0u;
    box[kPartAxes + axis] = 0;
  }
}

/// Widens a box of keys in shared memory by those of a warp's threads.
__device__ inline void widen_box(std::uint32_t* box, const ThreadBox& by) {
#pragma unroll
  for (int axis = 0; axis < kPartAxes; ++axis) {
    const std::uint32_t lower = warp_min(ordered_key(by.lower[axis]));
    const std::uint32_t upper = warp_max(ordered_key(by.upper[axis]));
    if (lane_index() == 0) {
      atomicMin(box + axis, lower);
      atomicMax(box + kPartAxes + axis, upper);
    }
  }
}

/// Bounds the part: box 0, as numbers. The whole block calls this, whose box has been cleared; ends with a
/// barrier.
template <int kThreads, int kItems>
__device__ void bound_part(const Part<kThreads, kItems>& part, const ThreadBox& box) {
  widen_box(part.boxes, box);
  __syncthreads();
  if (threadIdx.x < 2 * kPartAxes) {
    const float x = from_ordered_key<float>(part.boxes[threadIdx.x]);
    reinterpret_cast<float*>(part.boxes)[threadIdx.x] = x;
  }
  __syncthreads();
}

}  // namespace cumulus::kd_tree
