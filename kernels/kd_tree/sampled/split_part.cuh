#pragma once

// How a block splits its part into groups of equal size: two levels at a time, by a counting sort along one
// axis.

#include <cstdint>

#include "kernels/kd_tree/sampled/quantiles.cuh"

namespace cumulus::kd_tree {

/// Each group's axis and bins.
template <int kThreads, int kItems>
__device__ void choose_axes(const Part<kThreads, kItems>& part, const Pass& pass) {
  for (unsigned group = threadIdx.x; group < pass.groups; group += kThreads) {
    const auto* box = reinterpret_cast<const float*>(part.boxes + 6 * group);
    const auto axis = static_cast<unsigned>(widest_axis(
        kPartAxes, [=](int i) { return box[i]; }, [=](int i) { return box[kPartAxes + i]; }));
    part.axes[group] = axis;
    part.lowers[group] = box[axis];
    part.scales[group] = static_cast<float>(pass.group_bins) / (box[kPartAxes + axis] - box[axis]);
  }
}

/// What becomes of each split: `store(level, node, axis, place)` for every node of the pass, place being that
/// of its first point on the right, or the part's count where the node has no points.
template <int kThreads, int kItems, class Store>
__device__ void descend_boxes(const Part<kThreads, kItems>& part, const Pass& pass, const Store& store) {
  const unsigned number = threadIdx.x;
  const bool has = number < pass.groups << pass.levels;
  float box[2 * kPartAxes];
  Range node{0, 0};
  if (has) {
    const unsigned group = number >> pass.levels;
    const unsigned axis = part.axes[group];
    for (int i = 0; i < 2 * kPartAxes; ++i)
      box[i] = reinterpret_cast<const float*>(part.boxes)[6 * group + i];
    node = {part.begins[group], part.begins[group + 1] - part.begins[group]};
    for (int step = 0; step < pass.levels; ++step) {
      const int below = pass.levels - step;
      const unsigned left = left_points(node.count);
      const bool right = (number >> (below - 1) & 1u) != 0;
      const unsigned place = node.count == 0 ? part.count : part.next_order[node.begin + left];
      if ((number & ((1u << below) - 1)) == 0) store(pass.level + step, number >> below, axis, place);
      if (node.count > 0) {
        const float x = part.at(axis, place);
#pragma unroll
        for (unsigned i = 0; i < kPartAxes; ++i) {
          if (axis == i && right) box[i] = x;
          if (axis == i && !right) box[kPartAxes + i] = x;
        }
      }
      node = right ? Range{node.begin + left, node.count - left} : Range{node.begin, left};
    }
  }
  __syncthreads();
  if (has) {
    for (int i = 0; i < 2 * kPartAxes; ++i) reinterpret_cast<float*>(part.boxes)[6 * number + i] = box[i];
    part.begins[number] = node.begin;
    if (number + 1 == pass.groups << pass.levels) part.begins[number + 1] = part.count;
  }
}

/// One pass over all points. Begins after a barrier, and ends with one.
template <int kThreads, int kItems, class Store>
__device__ void split_pass(Part<kThreads, kItems>& part, const Pass& pass, const Store& store) {
  choose_axes(part, pass);
  clear_counters(part);
  if (threadIdx.x == 0) part.queue[0] = 0;
  __syncthreads();
  const GroupThreads<kThreads> threads(pass.level);
  const unsigned axis = part.axes[threads.group];
  const Digits digits{part.lowers[threads.group], part.scales[threads.group], pass.group_bins - 1};
  const unsigned first_bin = threads.group * pass.group_bins;
  const unsigned begin = part.begins[threads.group] + threads.lane;
  const unsigned end = part.begins[threads.group + 1];
  const float* coordinates = part.coordinates + axis * part.capacity;
  BinnedPoints<kItems> points;
#pragma unroll
  for (int item = 0; item < kItems; ++item) {
    const unsigned i = begin + item * threads.size;
    if (i >= end) break;
    points.places[item] = part.order[i];
    points.put(part.counters, item, first_bin + digits.of(coordinates[points.places[item]]));
  }
  __syncthreads();
  sum_counters(part);
#pragma unroll
  for (int item = 0; item < kItems; ++item) {
    if (begin + item * threads.size >= end) break;
    part.next_order[points.place(part.counters, item)] = points.places[item];
  }
  __syncthreads();
  sort_boundaries(part, pass);
  select_queued(part, pass);
  __syncthreads();
  descend_boxes(part, pass, store);
  std::uint16_t* const swapped = part.order;
  part.order = part.next_order;
  part.next_order = swapped;
  __syncthreads();
}

/// The part, whose points are in place and whose box is known, split `levels` times. Begins and ends with a
/// barrier.
template <int kThreads, int kItems, class Store>
__device__ void split_part(Part<kThreads, kItems>& part, int levels, const Store& store) {
  for (unsigned i = threadIdx.x; i < part.count; i += kThreads) part.order[i] = static_cast<std::uint16_t>(i);
  if (threadIdx.x < 2) part.begins[threadIdx.x] = threadIdx.x * part.count;
  __syncthreads();
  for (int level = 0; level < levels; level += kLevelsAnAxis) {
    split_pass(part, {level, min(kLevelsAnAxis, levels - level), 1u << level, part.kBins >> level}, store);
  }
}

}  // namespace cumulus::kd_tree
