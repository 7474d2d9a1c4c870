#pragma once

// How a block splits a bucket between the bins of histograms, its points in registers: groups are about, not
// exactly, of equal size.

#include <cstdint>

#include "kernels/kd_tree/math/arithmetic.h"
#include "kernels/kd_tree/sampled/part.cuh"

namespace cumulus::kd_tree {

/// Where a group's bins lie.
struct alignas(16) BinnedGroup {
  float lower;
  float scale;
  float width;  // of a bin
  unsigned axis;
};

/// A bucket in the registers and the shared memory of a block.
template <int kThreads>
struct BinnedPart {
  static constexpr unsigned kBins = kThreadBins * kThreads;

  std::uint32_t* counters;  // [kBins]
  std::uint32_t* words;     // [kThreads / 32]
  BinnedGroup* groups;      // [leaves]: those of each pass, level after level
  uint4* places;            // [leaves]: where a group's second to fourth child are to begin
  uint4* bounds;            // [leaves]: the first bins of these
  float* boxes;             // [leaves, 2, kPartAxes]: of the groups
  std::uint32_t* keys;      // [2 * leaves, 2, kPartAxes]: the nodes' boxes, once there are no more groups
  uint2* ranges;            // [2 * leaves]: begin and end
  std::uint32_t* cursors;   // [leaves]
  std::uint16_t* targets;   // [capacity]
  float* coordinates;       // [capacity, D], before that the indices as they come
  std::uint32_t* indices;   // [capacity]
  unsigned count;

  __device__ BinnedPart(unsigned char* memory, unsigned capacity, unsigned leaves, unsigned points)
      : count(points) {
    groups = reinterpret_cast<BinnedGroup*>(memory);
    keys = reinterpret_cast<std::uint32_t*>(memory);
    places = reinterpret_cast<uint4*>(groups + leaves);
    bounds = places + leaves;
    boxes = reinterpret_cast<float*>(bounds + leaves);
    counters = reinterpret_cast<std::uint32_t*>(boxes + 2 * kPartAxes * leaves);
    words = counters + kBins;
    ranges = reinterpret_cast<uint2*>(words + 32);
    cursors = reinterpret_cast<std::uint32_t*>(ranges + 2 * leaves);
    coordinates = reinterpret_cast<float*>(cursors + leaves);
    indices = reinterpret_cast<std::uint32_t*>(coordinates + kPartAxes * capacity);
    targets = reinterpret_cast<std::uint16_t*>(indices + capacity);
  }
  /// The records of level `level`.
  __device__ static unsigned at(int level) { return (1u << level) - 1; }
};

/// A thread's points.
template <int kItems>
struct HeldPoints {
  float x[kItems];
  float y[kItems];
  float z[kItems];
  std::uint32_t index[kItems];
  std::uint32_t group[kItems];  // of the level; the leaf in the end
};

/// The bins of a group's box.
__device__ inline BinnedGroup bins_of(const float (&box)[2 * kPartAxes], unsigned group_bins) {
  float extent = box[kPartAxes] - box[0];
  unsigned axis = 0;
  float lower = box[0];
#pragma unroll
  for (int i = 1; i < kPartAxes; ++i) {
    const float other = box[kPartAxes + i] - box[i];
    if (other > extent) {
      extent = other;
      axis = static_cast<unsigned>(i);
      lower = box[i];
    }
  }
  const auto bins = static_cast<float>(group_bins);
  return {lower, bins / extent, extent / bins, axis};
}

/// A pass: groups of `level` become children `levels` below.
struct BinnedPass {
  int level;
  int levels;
  int bin_bits;  // of a group's bins
};

/// Where a group's children are to begin; no place where there is no such child.
__device__ inline uint4 child_places(const uint2& range, int levels) {
  const Range all{range.x, range.y - range.x};
  if (all.count == 0) return {~0u, ~0u, ~0u, 0};
  if (levels == 1) return {descendant(all, 1, 1).begin, ~0u, ~0u, 0};
  return {descendant(all, 1, 2).begin, descendant(all, 2, 2).begin, descendant(all, 3, 2).begin, 0};
}

/// One child begins at the nearer end of the bin that has its place, in the thread's bins, of which `before`
/// points come before. True where neither end is near.
template <int kThreads>
__device__ bool find_bound(const BinnedPart<kThreads>& part, const BinnedPass& pass, const uint4& counts,
                           unsigned before, unsigned child, unsigned place) {
  const unsigned bin = threadIdx.x * kThreadBins;
  const unsigned group = bin >> pass.bin_bits;
  const unsigned record = part.at(pass.level) + group;
  unsigned first = bin - (group << pass.bin_bits);
  unsigned low = before;
  unsigned high = before + counts.x;
  const unsigned others[kThreadBins - 1] = {counts.y, counts.z, counts.w};
#pragma unroll
  for (unsigned i = 0; i + 1 < kThreadBins; ++i) {
    if (place < high) continue;
    ++first;
    low = high;
    high += others[i];
  }
  const bool up = high - place < place - low;
  reinterpret_cast<std::uint32_t*>(part.bounds + record)[child - 1] = first + (up ? 1 : 0);
  part.ranges[part.at(pass.level + pass.levels) + (group << pass.levels) + child].x = up ? high : low;
  const unsigned all = part.ranges[record].y - part.ranges[record].x;
  return (up ? high - place : place - low) > 1 + (all >> (3 + pass.levels));
}

/// The beginnings of all children whose places are in the thread's bins.
template <int kThreads>
__device__ bool find_bounds(const BinnedPart<kThreads>& part, const BinnedPass& pass, const uint4& counts,
                            unsigned before) {
  const unsigned sum = counts.x + counts.y + counts.z + counts.w;
  const uint4 places = part.places[part.at(pass.level) + (threadIdx.x * kThreadBins >> pass.bin_bits)];
  bool far = false;
  if (places.x - before < sum) far |= find_bound(part, pass, counts, before, 1, places.x);
  if (places.y - before < sum) far |= find_bound(part, pass, counts, before, 2, places.y);
  if (places.z - before < sum) far |= find_bound(part, pass, counts, before, 3, places.z);
  return far;
}

/// The boxes and bins of the pass's children. The first threads call this.
template <int kThreads>
__device__ void begin_children(const BinnedPart<kThreads>& part, const BinnedPass& pass) {
  const unsigned children = 1u << (pass.level + pass.levels);
  const unsigned number = threadIdx.x;
  if (number >= children) return;
  const unsigned parent = part.at(pass.level) + (number >> pass.levels);
  const unsigned child = number & ((1u << pass.levels) - 1);
  const unsigned record = part.at(pass.level + pass.levels) + number;
  const BinnedGroup group = part.groups[parent];
  const uint4 bounds = part.bounds[parent];
  float box[2 * kPartAxes];
#pragma unroll
  for (int i = 0; i < 2 * kPartAxes; ++i) box[i] = part.boxes[6 * parent + i];
  const unsigned low = child == 1 ? bounds.x : child == 2 ? bounds.y : bounds.z;
  const unsigned high = child == 0 ? bounds.x : child == 1 ? bounds.y : bounds.z;
  const float lower = group.lower + static_cast<float>(low) * group.width;
  const float upper = group.lower + static_cast<float>(high) * group.width;
#pragma unroll
  for (unsigned i = 0; i < kPartAxes; ++i) {
    if (group.axis == i && child > 0) box[i] = lower;
    if (group.axis == i && child + 1 < 1u << pass.levels) box[kPartAxes + i] = upper;
  }
#pragma unroll
  for (int i = 0; i < 2 * kPartAxes; ++i) part.boxes[6 * record + i] = box[i];
  part.groups[record] = bins_of(box, 1u << (pass.bin_bits - pass.levels));
}

/// Where a group is empty, its children begin where it does; where it has no such child, no bin is its first.
template <int kThreads>
__device__ void clear_children(const BinnedPart<kThreads>& part, const BinnedPass& pass) {
  const unsigned children = 1u << (pass.level + pass.levels);
  if (threadIdx.x >= children) return;
  const unsigned parent = part.at(pass.level) + (threadIdx.x >> pass.levels);
  part.ranges[part.at(pass.level + pass.levels) + threadIdx.x].x = part.ranges[parent].x;
  if ((threadIdx.x & ((1u << pass.levels) - 1)) == 0) part.bounds[parent] = {~0u, ~0u, ~0u, 0};
}
/// A child ends where the next one begins. Of a pass that is followed by one of `next_levels`.
template <int kThreads>
__device__ void end_children(const BinnedPart<kThreads>& part, const BinnedPass& pass, int next_levels) {
  const unsigned children = 1u << (pass.level + pass.levels);
  if (threadIdx.x >= children) return;
  const unsigned record = part.at(pass.level + pass.levels) + threadIdx.x;
  const uint2 range{part.ranges[record].x,
                    threadIdx.x + 1 < children ? part.ranges[record + 1].x : part.count};
  part.ranges[record].y = range.y;
  if (next_levels > 0) {
    part.places[record] = child_places(range, next_levels);
  } else {
    part.cursors[threadIdx.x] = range.x;
  }
}

/// Whether some thread has a point `item`: always, of the first ones, whose loads so need not wait for it.
template <int kThreads>
__device__ bool has_item(const BinnedPart<kThreads>& part, int item) {
  return item < 4 || item * kThreads < part.count;
}

/// One pass over all points; false, for the whole block, where some group has no bounds near its quartiles.
/// Begins and ends with a barrier; the counters are zero then.
template <int kThreads, int kItems>
__device__ bool binned_pass(const BinnedPart<kThreads>& part, const BinnedPass& pass, int next_levels,
                            HeldPoints<kItems>& points) {
  const BinnedGroup* const groups = part.groups + part.at(pass.level);
  const unsigned last = (1u << pass.bin_bits) - 1;
#pragma unroll
  for (int item = 0; item < kItems; ++item) {
    if (!has_item(part, item)) continue;
    const BinnedGroup group = groups[points.group[item]];
    const float x = group.axis == 0 ? points.x[item] : group.axis == 1 ? points.y[item] : points.z[item];
    const unsigned bin = Digits{group.lower, group.scale, last}.of(x);
    points.group[item] = points.group[item] << pass.bin_bits | bin;
    if (threadIdx.x + item * kThreads < part.count) atomicAdd(part.counters + points.group[item], 1u);
  }
  clear_children(part, pass);
  __syncthreads();
  auto* const four = reinterpret_cast<uint4*>(part.counters) + threadIdx.x;
  const uint4 counts = *four;
  *four = {0, 0, 0, 0};
  const std::uint32_t sum = counts.x + counts.y + counts.z + counts.w;
  const std::uint32_t inclusive = warp_inclusive_sum(sum);
  if (lane_index() == 31) part.words[warp_index()] = inclusive;
  __syncthreads();
  const std::uint32_t of_warp = lane_index() < warp_index() ? part.words[lane_index()] : 0;
  const bool far = find_bounds(part, pass, counts, inclusive - sum + warp_sum(of_warp));
  if (__syncthreads_or(far) != 0) return false;
  const uint4* const bounds_of = part.bounds + part.at(pass.level);
#pragma unroll
  for (int item = 0; item < kItems; ++item) {
    if (!has_item(part, item)) continue;
    const unsigned group = points.group[item] >> pass.bin_bits;
    const unsigned bin = points.group[item] & last;
    const uint4 bounds = bounds_of[group];
    points.group[item] = (group << pass.levels) + (bin >= bounds.x ? 1u : 0u) + (bin >= bounds.y ? 1u : 0u) +
                         (bin >= bounds.z ? 1u : 0u);
  }
  if (next_levels > 0) begin_children(part, pass);
  end_children(part, pass, next_levels);
  __syncthreads();
  return true;
}

/// Brings the points into the order of (leaf, index): `coordinates` and `indices`. Ends with a barrier.
template <int D, int kThreads, int kItems>
__device__ void order_leaves(const BinnedPart<kThreads>& part, int levels, const HeldPoints<kItems>& points) {
  constexpr int kRanked = 7;
  auto* const arrived = reinterpret_cast<std::uint32_t*>(part.coordinates);
  std::uint16_t slots[kItems];
#pragma unroll
  for (int item = 0; item < kItems; ++item) {
    if (threadIdx.x + item * kThreads >= part.count) continue;
    const unsigned slot = atomicAdd(part.cursors + points.group[item], 1u);
    slots[item] = static_cast<std::uint16_t>(slot);
    arrived[slot] = points.index[item];
  }
  __syncthreads();
  const GroupThreads<kThreads> threads(levels);
  const uint2 leaf = part.ranges[part.at(levels) + threads.group];
  for (unsigned first = leaf.x + threads.lane; first < leaf.y; first += kRanked * threads.size) {
    std::uint32_t index[kRanked];
    unsigned to[kRanked];
#pragma unroll
    for (int i = 0; i < kRanked; ++i) {
      const unsigned slot = first + i * threads.size;
      index[i] = slot < leaf.y ? arrived[slot] : 0;
      to[i] = leaf.x;
    }
#pragma unroll 4
    for (unsigned j = leaf.x; j < leaf.y; ++j) {
      const std::uint32_t other = arrived[j];
#pragma unroll
      for (int i = 0; i < kRanked; ++i) to[i] += other < index[i] ? 1u : 0u;
    }
#pragma unroll
    for (int i = 0; i < kRanked; ++i) {
      const unsigned slot = first + i * threads.size;
      if (slot < leaf.y) part.targets[slot] = static_cast<std::uint16_t>(to[i]);
    }
  }
  __syncthreads();
#pragma unroll
  for (int item = 0; item < kItems; ++item) {
    if (threadIdx.x + item * kThreads >= part.count) continue;
    const unsigned to = part.targets[slots[item]];
    part.coordinates[D * to] = points.x[item];
    part.coordinates[D * to + 1] = points.y[item];
    if (D == 3) part.coordinates[D * to + 2] = points.z[item];
    part.indices[to] = points.index[item];
  }
  __syncthreads();
}

}  // namespace cumulus::kd_tree
