#pragma once

#include <cstdint>

#include "kernels/primitives/await_all.cuh"
#include "kernels/primitives/cross_block_scan.cuh"
#include "kernels/primitives/status_word.cuh"
#include "kernels/primitives/warp_scan.cuh"
#include "kernels/summed_area_table/row_panels/traits.cuh"

// Carries between the blocks of row_panels/build.cuh, two hops away: each block publishes the sums of its
// columns (aggregates); blocks in turn scan some columns over all panels and publish the exclusive prefixes.

namespace cumulus::summed_area_table {

/// Sums of two neighbouring columns.
template <class P>
using PanelPair = LinePair<typename P::Sum>;

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
    const auto exists = [&](int k) { return first_panel + k < panels && column < a.width; };
    const auto at = [&](int k) { return a.word(first_panel + k, column); };
    const BlocksOfThread<typename P::Sum, kPanelsOfThread> aggregates(a.tag, exists, at);
    memory.groups[group][pair] = aggregates.sum(0);
    memory.groups[group][pair + 1] = aggregates.sum(1);
    __syncthreads();
#pragma unroll
    for (int c = warp_index(); c < P::kPart; c += P::kWarps) {
      auto& of_group = memory.groups[lane_index()][c];
      of_group = before_lane(warp_inclusive_sum(of_group));
    }
    __syncthreads();
    aggregates.publish_carries(a.tag + 1, {{memory.groups[group][pair], memory.groups[group][pair + 1]}},
                               exists, at);
    __syncthreads();
  }
}

/// Waits for the exclusive prefix of each of the panel's columns.
template <class P>
__device__ void read_above(const PanelArguments<P>& a, PanelRow<P>& above) {
  constexpr int kCount = 2 * P::kSegments;
  const auto exists = [&](int k) { return panel_column<P>(k / 2) < a.width; };
  TaggedValue<PanelPair<P>> carries[kCount];
  await_all<kCount>(
      [&](int k) {
        if (exists(k)) carries[k].load(a.word(blockIdx.x, panel_column<P>(k / 2)) + k % 2 * 2);
      },
      [&](int k) { return !exists(k) || carries[k].has(a.tag + 1); });
  __syncwarp();
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    const PanelPair<P> pair = exists(k) ? carries[k].value() : PanelPair<P>{};
    above[k / 2].v[k % 2 * 2] = pair.v[0];
    above[k / 2].v[k % 2 * 2 + 1] = pair.v[1];
  }
}

}  // namespace cumulus::summed_area_table
