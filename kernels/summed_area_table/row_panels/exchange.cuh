#pragma once

#include <cstdint>

#include "kernels/summed_area_table/gpu/tagged_words.cuh"
#include "kernels/summed_area_table/row_panels/traits.cuh"

// Carries between the blocks of row_panels/build.cuh, two hops away: each block publishes the sums of its
// columns (aggregates); blocks in turn scan some columns over all panels and publish the exclusive prefixes.

namespace cumulus::summed_area_table {

/// Sums of two neighbouring columns.
template <class P>
struct PanelPair {
  typename P::Sum v[2];
};

/// Publishes the panel's aggregates by column.
template <class P>
__device__ void publish_column_aggregates(const PanelArguments<P>& a, const PanelRow<P>& sums) {
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
    if (panel_column<P>(s) >= a.width) continue;
    std::uint64_t* to = a.word(blockIdx.x, panel_column<P>(s));
    TaggedValue<PanelPair<P>>(a.tag, {{sums[s].v[0], sums[s].v[1]}}).store(to);
    TaggedValue<PanelPair<P>>(a.tag, {{sums[s].v[2], sums[s].v[3]}}).store(to + 2);
  }
}

/// Reads the pairs at at(0), at(1) and so on, waiting for those that have another tag; null: zeros.
template <class P, int kCount, class At>
__device__ void read_pairs(PanelPair<P> (&pairs)[kCount], std::uint32_t tag, const At& at) {
  TaggedValue<PanelPair<P>> values[kCount];
  bool poll = false;
  while (!poll) {
    poll = true;
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      if (at(k) != nullptr) values[k].load(at(k));
    }
#pragma unroll
    for (int k = 0; k < kCount; ++k) poll = poll && (at(k) == nullptr || values[k].has(tag));
  }
  __syncwarp();
#pragma unroll
  for (int k = 0; k < kCount; ++k) pairs[k] = at(k) != nullptr ? values[k].value() : PanelPair<P>{};
}

/// Adds up the block's share of the columns over all row panels. Columns are taken in parts, block after
/// block; a thread has two of them in kPanelsOfThread row panels.
template <class P>
__device__ void scan_panels(const PanelArguments<P>& a, PanelMemory<P>& memory) {
  const int pair = static_cast<int>(threadIdx.x) % (P::kPart / 2) * 2;
  const int group = static_cast<int>(threadIdx.x) / (P::kPart / 2);
  const int first_panel = group * kPanelsOfThread;
  const auto panels = static_cast<int>(gridDim.x);
#pragma unroll 1
  for (int first = static_cast<int>(blockIdx.x) * P::kPart; first < a.width; first += panels * P::kPart) {
    const int column = first + pair;
    const auto at = [&](int k) {
      return first_panel + k < panels && column < a.width ? a.word(first_panel + k, column) : nullptr;
    };
    PanelPair<P> sums[kPanelsOfThread];
    read_pairs<P>(sums, a.tag, at);
    PanelPair<P> sum{};
#pragma unroll
    for (const PanelPair<P>& one : sums) {
      sum.v[0] += one.v[0];
      sum.v[1] += one.v[1];
    }
    memory.groups[group][pair] = sum.v[0];
    memory.groups[group][pair + 1] = sum.v[1];
    __syncthreads();
#pragma unroll
    for (int c = warp_index(); c < P::kPart; c += P::kWarps) {
      auto& of_group = memory.groups[lane_index()][c];
      of_group = before_lane(warp_inclusive_sum(of_group));
    }
    __syncthreads();
    PanelPair<P> above{{memory.groups[group][pair], memory.groups[group][pair + 1]}};
#pragma unroll
    for (int k = 0; k < kPanelsOfThread; ++k) {
      if (at(k) != nullptr) TaggedValue<PanelPair<P>>(a.tag + 1, above).store(at(k));
      above.v[0] += sums[k].v[0];
      above.v[1] += sums[k].v[1];
    }
    __syncthreads();
  }
}

/// Waits for the exclusive prefix of each of the panel's columns.
template <class P>
__device__ void read_above(const PanelArguments<P>& a, PanelRow<P>& above) {
  PanelPair<P> pairs[2 * P::kSegments];
  read_pairs<P>(pairs, a.tag + 1, [&](int k) {
    const int column = panel_column<P>(k / 2);
    return column < a.width ? a.word(blockIdx.x, column) + k % 2 * 2 : nullptr;
  });
#pragma unroll
  for (int k = 0; k < 2 * P::kSegments; ++k) {
    above[k / 2].v[k % 2 * 2] = pairs[k].v[0];
    above[k / 2].v[k % 2 * 2 + 1] = pairs[k].v[1];
  }
}

}  // namespace cumulus::summed_area_table
