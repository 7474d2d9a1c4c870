#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "kernels/summed_area_table/slab_exchange.cuh"
#include "kernels/summed_area_table/slab_rows.cuh"
#include "kernels/summed_area_table/tile_strips.cuh"

// The kernel of slabs: each block has some whole rows of the image, a slab, and all of them run at once. A
// block reads its slab once and keeps it. Of the other blocks it needs to know only the sums of the columns
// above, which it learns two messages later (slab_exchange.cuh); meanwhile it scans its rows.

namespace cumulus::summed_area_table {

/// What lies left of the warp's segments in the slab's rows down to row number lane_index().
template <class P>
__device__ void find_left(SlabMemory<P>& memory, typename P::Sum (&left)[P::kSegments]) {
  using Sum = typename P::Sum;
  const bool exists = lane_index() < P::kAllSegments;
  const int segment = exists ? lane_index() : 0;
  __syncthreads();
#pragma unroll
  for (int row = warp_index(); row < P::kRows; row += P::kWarps) {
    const Sum before = before_lane(warp_inclusive_scan(memory.totals[row][segment]));
    __syncwarp();
    if (exists) memory.totals[row][segment] = before;
  }
  __syncthreads();
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
    const int row = min(lane_index(), P::kRows - 1);
    left[s] = warp_inclusive_scan(memory.totals[row][SlabPlace<P>::segment(s)]);
  }
}

/// Scans the table's row above the slab within segments, and adds to `left` what lies left of them.
template <class P>
__device__ void scan_above(SlabMemory<P>& memory, SlabRow<P>& above, typename P::Sum (&left)[P::kSegments]) {
  using Sum = typename P::Sum;
  scan_rows<P, 1>(&above);
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
    if (lane_index() == 31) memory.above[SlabPlace<P>::segment(s)] = above[s].v[3];
  }
  __syncthreads();
  const Sum total = memory.above[min(lane_index(), P::kAllSegments - 1)];
  const Sum before = before_lane(warp_inclusive_scan(total));
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) left[s] += __shfl_sync(~0u, before, SlabPlace<P>::segment(s));
}

template <class P>
__global__ void __launch_bounds__(P::kThreads, 1) build_table_in_slabs(const SlabArguments<P> a) {
#if __CUDA_ARCH__ >= 900
  using Sum = typename P::Sum;
  extern __shared__ uint4 shared_memory[];
  auto& memory = *reinterpret_cast<SlabMemory<P>*>(shared_memory);
  const std::int64_t top = std::int64_t{blockIdx.x} * a.slab_rows;
  const SlabPlace<P> place{a.image.data + top * a.image.row_stride + SlabPlace<P>::column(0),
                           a.image.row_stride, a.width,
                           static_cast<int>(min(a.height - top, std::int64_t{a.slab_rows}))};
  std::conditional_t<P::kBytes, SlabBytes<P>, SlabFloats<P>> rows(place, memory);
  {
    SlabRow<P> sums = {};
    rows.read(sums);
    tell_columns<P>(a.words, sums);
  }
  rows.scan();
  Sum left[P::kSegments];
  find_left<P>(memory, left);
  add_up_slabs<P>(a.words, memory);
  SlabRow<P> above;
  read_above<P>(a.words, above);
  scan_above<P>(memory, above, left);
  Sum* const to = a.table.data + top * a.table.row_stride + place.column(0);
  rows.for_each([&](int number, const SlabRow<P>& row) {
    add_row<P>(above, row);
#pragma unroll
    for (int s = 0; s < P::kSegments; ++s) {
      const Sum before = __shfl_sync(~0u, left[s], number);
      Quad<Sum> out = above[s];
#pragma unroll
      for (Sum& sum : out.v) sum += before;
      store_quads(to + number * a.table.row_stride + s * kSegmentColumns, 4, out, place.has(number, s));
    }
  });
#endif
}

}  // namespace cumulus::summed_area_table
