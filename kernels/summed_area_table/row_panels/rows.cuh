#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/primitives/async_copy.cuh"
#include "kernels/summed_area_table/look_back/tile.cuh"
#include "kernels/summed_area_table/row_panels/traits.cuh"

// A thread's part of its block's row panel: what it reads once and keeps until it is written.

namespace cumulus::summed_area_table {

/// Turns a row into sums from its segments' left edges.
template <class P>
__device__ void scan_segments(PanelRow<P>& row) {
  typename P::Sum through[P::kSegments];
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
#pragma unroll
    for (int i = 1; i < 4; ++i) row[s].v[i] += row[s].v[i - 1];
    through[s] = row[s].v[3];
  }
  warp_inclusive_sums(through);
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
    const auto before = before_lane(through[s]);
#pragma unroll
    for (auto& sum : row[s].v) sum += before;
  }
}

template <class P>
__device__ void add_row(PanelRow<P>& sums, const PanelRow<P>& row) {
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[s].v[i] += row[s].v[i];
  }
}

template <class P>
__device__ int rows_of_panel(const PanelArguments<P>& a) {
  const std::int64_t top = std::int64_t{blockIdx.x} * a.panel_rows;
  return static_cast<int>(min(a.height - top, std::int64_t{a.panel_rows}));
}
template <class P>
__device__ const typename P::Input* pixels_of_panel(const PanelArguments<P>& a) {
  return a.image.data + std::int64_t{blockIdx.x} * a.panel_rows * a.image.row_stride;
}

/// All rows in registers, four pixels in each.
template <class P>
class PanelRows {
 public:
  __device__ PanelRows(const PanelArguments<P>& a, PanelMemory<P>& memory)
      : memory_(memory), rows_(rows_of_panel(a)) {
    const std::uint8_t* from = pixels_of_panel(a);
#pragma unroll
    for (int row = 0; row < kPanelRows; ++row) {
#pragma unroll
      for (int s = 0; s < P::kSegments; ++s) {
        const bool exists = row < rows_ && panel_column<P>(s) < a.width;
        pixels_[row][s] = exists ? load(from + row * a.image.row_stride + panel_column<P>(s)) : 0;
      }
    }
  }

  __device__ void sum_columns(PanelRow<P>& sums) const {
#pragma unroll
    for (int s = 0; s < P::kSegments; ++s) {
      std::uint32_t even = 0;  // of two columns, in the halves of the word
      std::uint32_t odd = 0;
#pragma unroll
      for (int row = 0; row < kPanelRows; ++row) {
        even += pixels_[row][s] & 0x00FF00FFU;
        odd += pixels_[row][s] >> 8 & 0x00FF00FFU;
      }
      sums[s] = {even & 0xFFFFU, odd & 0xFFFFU, even >> 16, odd >> 16};
    }
  }

  /// Leaves the rows' sums over lanes, and the segments' totals.
  __device__ void scan() {
    constexpr int kRowsAtOnce = 8;
    constexpr int kValues = kRowsAtOnce / 2 * P::kSegments;  // of two rows each
#pragma unroll
    for (int first = 0; first < kPanelRows; first += kRowsAtOnce) {
      if (first >= rows_) break;
      std::uint32_t through[kValues];
#pragma unroll
      for (int n = 0; n < kValues; ++n) {
        const int row = first + n / P::kSegments * 2;
        through[n] = total(row, n % P::kSegments) | total(row + 1, n % P::kSegments) << 16;
      }
      warp_inclusive_sums(through);
#pragma unroll
      for (int n = 0; n < kValues; ++n) {
        const int row = first + n / P::kSegments * 2;
        const int s = n % P::kSegments;
        through_at(row, s) = through[n];
        if (lane_index() == 31) {
          memory_.totals[row][panel_segment<P>(s)] = through[n] & 0xFFFFU;
          memory_.totals[row + 1][panel_segment<P>(s)] = through[n] >> 16;
        }
      }
    }
  }

  /// Calls visit(row's number, sums from its segments' left edges) for each row.
  template <class Visit>
  __device__ void for_each(const Visit& visit) const {
#pragma unroll
    for (int row = 0; row < kPanelRows; ++row) {
      if (row >= rows_) break;
      PanelRow<P> sums;
#pragma unroll
      for (int s = 0; s < P::kSegments; ++s) sums[s] = summed(row, s);
      visit(row, sums);
    }
  }

 private:
  /// Volatile, so that all loads start before the first is waited for.
  static __device__ std::uint32_t load(const std::uint8_t* from) {
    std::uint32_t pixels;
    asm volatile("ld.global.nc.L1::no_allocate.L2::cache_hint.u32 %0, [%1], %2;"
                 : "=r"(pixels)
                 : "l"(from), "l"(evict_normal()));
    return pixels;
  }
  __device__ Quad<std::uint32_t> summed(int row, int s) const {
    const std::uint32_t through = row % 2 == 0 ? through_at(row, s) & 0xFFFFU : through_at(row, s) >> 16;
    const std::uint32_t before = through - total(row, s);
    const std::uint32_t pixels = pixels_[row][s];
    return {__dp4a(pixels, 0x00000001U, before), __dp4a(pixels, 0x00000101U, before),
            __dp4a(pixels, 0x00010101U, before), __dp4a(pixels, 0x01010101U, before)};
  }
  __device__ std::uint32_t total(int row, int s) const { return __dp4a(pixels_[row][s], 0x01010101U, 0U); }
  __device__ std::uint32_t& through_at(int row, int s) const {
    return memory_.through[row / 2][panel_column<P>(s) / 4];
  }

  PanelMemory<P>& memory_;
  const int rows_;
  std::uint32_t pixels_[kPanelRows][P::kSegments];
};

}  // namespace cumulus::summed_area_table
