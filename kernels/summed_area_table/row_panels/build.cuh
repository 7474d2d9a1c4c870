#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/summed_area_table/look_back/tile.cuh"
#include "kernels/summed_area_table/row_panels/exchange.cuh"
#include "kernels/summed_area_table/row_panels/rows.cuh"

// The kernel of row panels: each block has some whole rows of the image, a panel, and all of them are
// resident. A block reads its panel once and keeps it (row_panels/rows.cuh). Of the other blocks it needs the
// exclusive prefixes of the columns only (row_panels/exchange.cuh); meanwhile it scans its rows.

namespace cumulus::summed_area_table {

/// The exclusive prefixes along x of the warp's segments, summed over the panel's rows down to row number
/// lane_index().
template <class P>
__device__ void find_left(PanelMemory<P>& memory, typename P::Sum (&left)[P::kSegments]) {
  using Sum = typename P::Sum;
  __syncthreads();
  const bool exists = lane_index() < P::kAllSegments;
#pragma unroll
  for (int row = warp_index(); row < kPanelRows; row += P::kWarps) {
    const Sum total = exists ? memory.totals[row][lane_index()] : 0;
    const Sum before = before_lane(warp_inclusive_sum(total));
    if (exists) memory.totals[row][lane_index()] = before;
  }
  __syncthreads();
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s)
    left[s] = warp_inclusive_sum(memory.totals[lane_index()][panel_segment<P>(s)]);
}

/// Scans the table's row above the row panel within segments, and adds their exclusive prefixes along x to
/// `left`.
template <class P>
__device__ void scan_above(PanelMemory<P>& memory, PanelRow<P>& above,
                           typename P::Sum (&left)[P::kSegments]) {
  using Sum = typename P::Sum;
  scan_segments<P>(above);
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
    if (lane_index() == 31) memory.above[panel_segment<P>(s)] = above[s].v[3];
  }
  __syncthreads();
  const Sum total = lane_index() < P::kAllSegments ? memory.above[lane_index()] : 0;
  const Sum before = before_lane(warp_inclusive_sum(total));
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) left[s] += __shfl_sync(kFullWarp, before, panel_segment<P>(s));
}

template <class P>
__device__ void store_panel(const PanelArguments<P>& a, const PanelRows<P>& rows, PanelRow<P>& above,
                            const typename P::Sum (&left)[P::kSegments]) {
  using Sum = typename P::Sum;
  Sum* const to = a.table.data + std::int64_t{blockIdx.x} * a.panel_rows * a.table.row_stride;
  rows.for_each([&](int row, const PanelRow<P>& sums) {
    add_row<P>(above, sums);
#pragma unroll
    for (int s = 0; s < P::kSegments; ++s) {
      const Sum before = __shfl_sync(kFullWarp, left[s], row);
      Quad<Sum> out = above[s];
#pragma unroll
      for (Sum& sum : out.v) sum += before;
      const int column = panel_column<P>(s);
      store_quads(to + row * a.table.row_stride + column, 4, out, column < a.width);
    }
  });
}

/// Owns: block b rows b * panel_rows and on, at most kPanelRows, whole; a warp kSegments segments of 128
///   columns of each.
/// Reads: the panel's pixels once; aggregates of all panels in its share of the columns; its own exclusive
///   prefixes.
/// Writes: the panel's sums; its aggregates; exclusive prefixes of its share of the columns, for all
///   panels.
/// Waits for: aggregates of all panels in its share of the columns, then the exclusive prefixes of its own
///   panel.
/// Cannot deadlock: the launch is cooperative, so all blocks are resident; aggregates are published before
///   anything is waited for, and exclusive prefixes wait for aggregates only.
/// Source: the two phases of a scan in three kernels (reduce, scan, propagate), in one launch.
template <class P>
__global__ void __launch_bounds__(P::kThreads, 1) build_table_in_row_panels(const PanelArguments<P> a) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ uint4 shared_memory[];
  auto& memory = *reinterpret_cast<PanelMemory<P>*>(shared_memory);
  PanelRows<P> rows(a, memory);
  PanelRow<P> sums;
  rows.sum_columns(sums);
  publish_column_aggregates(a, sums);
  rows.scan();  // published sums take a while to arrive
  scan_panels(a, memory);
  typename P::Sum left[P::kSegments];
  find_left<P>(memory, left);
  PanelRow<P> above;
  read_above(a, above);
  scan_above<P>(memory, above, left);
  store_panel(a, rows, above, left);
#endif
}

}  // namespace cumulus::summed_area_table
