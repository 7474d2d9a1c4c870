#pragma once

#include <cstdint>

#include "kernels/summed_area_table/slab_plan.cuh"
#include "kernels/summed_area_table/tagged_words.cuh"

// How the blocks of slab_build.cuh learn what lies above their slabs, two messages away: each tells the sums
// of its columns; blocks in turn add up some columns over all slabs, and tell each slab what lies above it.

namespace cumulus::summed_area_table {

/// Sums of two neighbouring columns.
template <class P>
struct SlabPair {
  typename P::Sum v[2];
};

/// Tells the slab's sums by column.
template <class P>
__device__ void tell_columns(const SlabArguments<P>& a, const SlabRow<P>& sums) {
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
    if (slab_column<P>(s) >= a.width) continue;
    std::uint64_t* to = a.word(blockIdx.x, slab_column<P>(s));
    TaggedValue<SlabPair<P>>(a.tag, {{sums[s].v[0], sums[s].v[1]}}).store(to);
    TaggedValue<SlabPair<P>>(a.tag, {{sums[s].v[2], sums[s].v[3]}}).store(to + 2);
  }
}

/// Reads the pairs at at(0), at(1) and so on, waiting for those that have another tag; null: zeros.
template <class P, int kCount, class At>
__device__ void read_pairs(SlabPair<P> (&pairs)[kCount], std::uint32_t tag, const At& at) {
  TaggedValue<SlabPair<P>> values[kCount];
  bool complete = false;
  while (!complete) {
    complete = true;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      if (at(k) != nullptr) values[k].load(at(k));
    }
#pragma unroll
    for (int k = 0; k < kCount; ++k) complete = complete && (at(k) == nullptr || values[k].has(tag));
  }
  __syncwarp();
#pragma unroll
  for (int k = 0; k < kCount; ++k) pairs[k] = at(k) != nullptr ? values[k].value() : SlabPair<P>{};
}

/// Adds up the block's share of the columns over all slabs. Columns are taken in parts, block after block; a
/// thread has two of them in kSlabsOfThread slabs.
template <class P>
__device__ void add_up_slabs(const SlabArguments<P>& a, SlabMemory<P>& memory) {
  const int pair = static_cast<int>(threadIdx.x) % (P::kPart / 2) * 2;
  const int group = static_cast<int>(threadIdx.x) / (P::kPart / 2);
  const int first_slab = group * kSlabsOfThread;
  const auto slabs = static_cast<int>(gridDim.x);
#pragma unroll 1
  for (int first = static_cast<int>(blockIdx.x) * P::kPart; first < a.width; first += slabs * P::kPart) {
    const int column = first + pair;
    const auto at = [&](int k) {
      return first_slab + k < slabs && column < a.width ? a.word(first_slab + k, column) : nullptr;
    };
    SlabPair<P> sums[kSlabsOfThread];
    read_pairs<P>(sums, a.tag, at);
    SlabPair<P> sum{};
#pragma unroll
    for (const SlabPair<P>& one : sums) {
      sum.v[0] += one.v[0];
      sum.v[1] += one.v[1];
    }
    memory.groups[group][pair] = sum.v[0];
    memory.groups[group][pair + 1] = sum.v[1];
    __syncthreads();
#pragma unroll
    for (int c = warp_index(); c < P::kPart; c += P::kWarps) {
      auto& of_group = memory.groups[lane_index()][c];
      of_group = before_lane(warp_inclusive_scan(of_group));
    }
    __syncthreads();
    SlabPair<P> above{{memory.groups[group][pair], memory.groups[group][pair + 1]}};
#pragma unroll
    for (int k = 0; k < kSlabsOfThread; ++k) {
      if (at(k) != nullptr) TaggedValue<SlabPair<P>>(a.tag + 1, above).store(at(k));
      above.v[0] += sums[k].v[0];
      above.v[1] += sums[k].v[1];
    }
    __syncthreads();
  }
}

/// Waits for what lies above the slab in each column.
template <class P>
__device__ void read_above(const SlabArguments<P>& a, SlabRow<P>& above) {
  SlabPair<P> pairs[2 * P::kSegments];
  read_pairs<P>(pairs, a.tag + 1, [&](int k) {
    const int column = slab_column<P>(k / 2);
    return column < a.width ? a.word(blockIdx.x, column) + k % 2 * 2 : nullptr;
  });
#pragma unroll
  for (int k = 0; k < 2 * P::kSegments; ++k) {
    above[k / 2].v[k % 2 * 2] = pairs[k].v[0];
    above[k / 2].v[k % 2 * 2 + 1] = pairs[k].v[1];
  }
}

}  // namespace cumulus::summed_area_table
