#pragma once

#include <cstdint>

#include "kernels/summed_area_table/slab_plan.cuh"
#include "kernels/summed_area_table/slab_rows.cuh"
#include "kernels/summed_area_table/warp_sums.cuh"

// How the blocks of slab_build.cuh learn what lies above their slabs, two messages away.

namespace cumulus::summed_area_table {

/// Tells the slab's sums by column.
template <class P>
__device__ void tell_columns(const SlabWords<P>& words, const SlabRow<P>& sums) {
  using Pair = typename SlabWords<P>::Pair;
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
    const int column = SlabPlace<P>::column(s);
    if (column >= words.width) continue;
    std::uint64_t* to = words.at(blockIdx.x, column);
    TaggedValue<Pair>(words.tag, Pair{{sums[s].v[0], sums[s].v[1]}}).store(to);
    TaggedValue<Pair>(words.tag, Pair{{sums[s].v[2], sums[s].v[3]}}).store(to + 2);
  }
}

/// Waits for what lies above the slab in each column.
template <class P>
__device__ void read_above(const SlabWords<P>& words, SlabRow<P>& above) {
  using Pair = typename SlabWords<P>::Pair;
  TaggedValue<Pair> values[P::kSegments][2];
  bool complete = false;
  while (!complete) {
    complete = true;
#pragma unroll
    for (int s = 0; s < P::kSegments; ++s) {
      if (SlabPlace<P>::column(s) >= words.width) continue;
      const std::uint64_t* from = words.at(blockIdx.x, SlabPlace<P>::column(s));
      values[s][0].load(from);
      values[s][1].load(from + 2);
    }
#pragma unroll
    for (int s = 0; s < P::kSegments; ++s) {
      const bool exists = SlabPlace<P>::column(s) < words.width;
      complete =
          complete && (!exists || (values[s][0].has(words.tag + 1) && values[s][1].has(words.tag + 1)));
    }
  }
  __syncwarp();
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
    const bool exists = SlabPlace<P>::column(s) < words.width;
#pragma unroll
    for (int i = 0; i < 4; ++i) above[s].v[i] = exists ? values[s][i / 2].value().v[i % 2] : 0;
  }
}

/// Adds up some columns over all slabs, in their order, and tells each slab what lies above it. Columns are
/// taken in parts, block after block.
template <class P>
__device__ void add_up_slabs(const SlabWords<P>& words, SlabMemory<P>& memory) {
  using Sum = typename P::Sum;
  using Pair = typename SlabWords<P>::Pair;
  const int pair = static_cast<int>(threadIdx.x) % (P::kPart / 2) * 2;
  const int group = static_cast<int>(threadIdx.x) / (P::kPart / 2);
  const auto slabs = static_cast<int>(gridDim.x);
  const auto width = static_cast<int>(words.width);
#pragma unroll 1
  for (int first = static_cast<int>(blockIdx.x) * P::kPart; first < width; first += slabs * P::kPart) {
    const int column = first + pair;
    const auto has = [&](int k) { return group * kSlabsOfThread + k < slabs && column < width; };
    std::uint64_t* const at = words.at(group * kSlabsOfThread, column);
    TaggedValue<Pair> values[kSlabsOfThread];
    bool complete = false;
    while (!complete) {
      complete = true;
#pragma unroll
      for (int k = 0; k < kSlabsOfThread; ++k) {
        if (has(k)) values[k].load(at + k * words.width);
      }
#pragma unroll
      for (int k = 0; k < kSlabsOfThread; ++k) complete = complete && (!has(k) || values[k].has(words.tag));
    }
    __syncwarp();
    Pair sums[kSlabsOfThread];
#pragma unroll
    for (int k = 0; k < kSlabsOfThread; ++k) sums[k] = has(k) ? values[k].value() : Pair{};
    Pair sum{};
#pragma unroll
    for (const Pair& one : sums) {
      sum.v[0] += one.v[0];
      sum.v[1] += one.v[1];
    }
    memory.groups[group][pair] = sum.v[0];
    memory.groups[group][pair + 1] = sum.v[1];
    __syncthreads();
#pragma unroll
    for (int c = warp_index(); c < P::kPart; c += P::kWarps) {
      Sum& sum_of_group = memory.groups[lane_index()][c];
      sum_of_group = before_lane(warp_inclusive_scan(sum_of_group));
    }
    __syncthreads();
    Pair above{{memory.groups[group][pair], memory.groups[group][pair + 1]}};
#pragma unroll
    for (int k = 0; k < kSlabsOfThread; ++k) {
      if (has(k)) TaggedValue<Pair>(words.tag + 1, above).store(at + k * words.width);
      above.v[0] += sums[k].v[0];
      above.v[1] += sums[k].v[1];
    }
    __syncthreads();
  }
}

}  // namespace cumulus::summed_area_table
