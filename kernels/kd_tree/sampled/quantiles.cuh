#pragma once

// The bins of a counting sort that hold a quartile of a group, put in order.

#include <cstdint>

#include "kernels/kd_tree/sampled/part.cuh"

namespace cumulus::kd_tree {

/// A pass: `groups` groups of `level` become `groups << levels`.
struct Pass {
  int level;
  int levels;
  unsigned groups;
  unsigned group_bins;  // bins of each
};

/// A whole warp: the key of rank `rank` among next_order[begin ... end - 1], counted in 32 bins of the range
/// of what is left, until one is left.
template <int kThreads, int kItems>
__device__ std::uint64_t pivot_by_warp(const Part<kThreads, kItems>& part, unsigned axis, unsigned begin,
                                       unsigned end, unsigned rank) {
  std::uint64_t from = 0;
  std::uint64_t to = ~0ull;
  std::uint32_t* const counts = part.words + 32 * (1 + warp_index());
  const auto lane = static_cast<unsigned>(lane_index());
  while (true) {
    std::uint64_t least = ~0ull;
    std::uint64_t greatest = 0;
    for (unsigned i = begin + lane; i < end; i += 32) {
      const std::uint64_t key = part.key(axis, part.next_order[i]);
      if (key < from || key > to) continue;
      least = min(least, key);
      greatest = max(greatest, key);
    }
    for (int distance = 16; distance > 0; distance /= 2) {
      least = min(least, __shfl_xor_sync(kFullWarp, least, distance));
      greatest = max(greatest, __shfl_xor_sync(kFullWarp, greatest, distance));
    }
    if (least == greatest) return least;
    const int shift = max(0, 59 - __clzll(static_cast<long long>(greatest - least)));
    counts[lane] = 0;
    __syncwarp();
    for (unsigned i = begin + lane; i < end; i += 32) {
      const std::uint64_t key = part.key(axis, part.next_order[i]);
      if (key >= least && key <= greatest) atomicAdd(counts + ((key - least) >> shift), 1u);
    }
    __syncwarp();
    const std::uint32_t inclusive = warp_inclusive_sum(counts[lane]);
    __syncwarp();
    const int bin = __ffs(static_cast<int>(__ballot_sync(kFullWarp, inclusive > rank))) - 1;
    rank -= bin == 0 ? 0 : __shfl_sync(kFullWarp, inclusive, bin - 1);
    from = least + (static_cast<std::uint64_t>(bin) << shift);
    to = from + min(greatest - from, (std::uint64_t{1} << shift) - 1);
  }
}

/// A whole warp: moves the point of rank `rank` of next_order[begin ... end - 1] to its place, with all
/// before it that are less.
template <int kThreads, int kItems>
__device__ void select_by_warp(const Part<kThreads, kItems>& part, unsigned axis, unsigned begin,
                               unsigned end, unsigned rank) {
  const std::uint64_t pivot = pivot_by_warp(part, axis, begin, end, rank);
  const auto lane = static_cast<unsigned>(lane_index());
  unsigned less_before = begin;
  unsigned greater_before = begin + rank + 1;
  for (unsigned base = begin; base < end; base += 32) {
    const bool has = base + lane < end;
    const std::uint16_t place = has ? part.next_order[base + lane] : std::uint16_t{0};
    const std::uint64_t key = has ? part.key(axis, place) : 0;
    const unsigned lesser = __ballot_sync(kFullWarp, has && key < pivot);
    const unsigned greater = __ballot_sync(kFullWarp, has && key > pivot);
    const unsigned earlier = (1u << lane) - 1;
    if (has) {
      const unsigned to = key < pivot   ? less_before + __popc(lesser & earlier)
                          : key > pivot ? greater_before + __popc(greater & earlier)
                                        : begin + rank;
      part.order[to] = place;
    }
    less_before += __popc(lesser);
    greater_before += __popc(greater);
  }
  __syncwarp();
  for (unsigned i = begin + lane; i < end; i += 32) part.next_order[i] = part.order[i];
  __syncwarp();
}

/// One thread: sorts next_order[begin ... end - 1].
template <int kThreads, int kItems>
__device__ void sort_by_thread(const Part<kThreads, kItems>& part, unsigned axis, unsigned begin,
                               unsigned end) {
  for (unsigned i = begin + 1; i < end; ++i) {
    const std::uint16_t place = part.next_order[i];
    unsigned to = i;
    for (; to > begin && part.less(axis, place, part.next_order[to - 1]); --to) {
      part.next_order[to] = part.next_order[to - 1];
    }
    part.next_order[to] = place;
  }
}

/// Sorts the bins that have the first point of a child; those with more points than one thread sorts go to
/// the queue. Ends with a barrier.
template <int kThreads, int kItems>
__device__ void sort_boundaries(const Part<kThreads, kItems>& part, const Pass& pass) {
  const unsigned children = 1u << pass.levels;
  const unsigned group = threadIdx.x >> pass.levels;
  const unsigned child = threadIdx.x & (children - 1);
  unsigned axis = 0;
  unsigned begin = 0;
  unsigned end = 0;
  if (group < pass.groups && child > 0) {
    const Range all{part.begins[group], part.begins[group + 1] - part.begins[group]};
    const unsigned place = descendant(all, child, pass.levels).begin;
    if (all.count > 0) {
      axis = part.axes[group];
      const Digits digits{part.lowers[group], part.scales[group], pass.group_bins - 1};
      const unsigned bin = group * pass.group_bins + digits.of(part.at(axis, part.next_order[place]));
      begin = part.counters[bin];
      end = part.counters[bin + 1];
      // The bin may have an earlier child's first point, too.
      if (child > 1 && descendant(all, child - 1, pass.levels).begin >= begin) end = begin;
    }
  }
  __syncthreads();
  if (end - begin > kThreadSortPoints) {
    part.queue[1 + atomicAdd(part.queue, 1u)] = threadIdx.x;
  } else if (end - begin > 1) {
    sort_by_thread(part, axis, begin, end);
  }
  __syncthreads();
}

/// The bins in the queue, a warp each: all boundaries in them.
template <int kThreads, int kItems>
__device__ void select_queued(const Part<kThreads, kItems>& part, const Pass& pass) {
  const unsigned queued = part.queue[0];
  for (unsigned item = threadIdx.x / 32; item < queued; item += kThreads / 32) {
    const unsigned i = part.queue[1 + item];
    const unsigned group = i >> pass.levels;
    const Range all{part.begins[group], part.begins[group + 1] - part.begins[group]};
    const unsigned axis = part.axes[group];
    const Digits digits{part.lowers[group], part.scales[group], pass.group_bins - 1};
    unsigned child = i & ((1u << pass.levels) - 1);
    unsigned place = descendant(all, child, pass.levels).begin;
    const unsigned bin = group * pass.group_bins + digits.of(part.at(axis, part.next_order[place]));
    unsigned begin = part.counters[bin];
    const unsigned end = part.counters[bin + 1];
    __syncwarp();
    while (place < end) {
      select_by_warp(part, axis, begin, end, place - begin);
      begin = place;
      if (++child == 1u << pass.levels) break;
      place = descendant(all, child, pass.levels).begin;
    }
  }
}

}  // namespace cumulus::kd_tree
