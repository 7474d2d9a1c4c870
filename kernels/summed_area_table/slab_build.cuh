#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/summed_area_table/slab_exchange.cuh"
#include "kernels/summed_area_table/tile_strips.cuh"

// The kernel of slabs: each block has some whole rows of an image of bytes, a slab, and all of them run at
// once. A block reads its slab once and keeps it in registers, four pixels in each. Of the other blocks it
// needs to know only the sums of the columns above (slab_exchange.cuh); meanwhile it scans its rows.

namespace cumulus::summed_area_table {

/// Sums each value over the lanes up to this one: together, since each step has to wait for the one before.
template <int kCount>
__device__ void scan_together(std::uint32_t (&values)[kCount]) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
#pragma unroll
    for (std::uint32_t& value : values) {
      const std::uint32_t before = __shfl_up_sync(~0u, value, distance);
      if (lane_index() >= distance) value += before;
    }
  }
}

/// A thread's part of the slab.
template <class P>
class SlabPixels {
 public:
  __device__ SlabPixels(const SlabArguments<P>& a, SlabMemory<P>& memory) : memory_(memory) {
    const std::int64_t top = std::int64_t{blockIdx.x} * a.slab_rows;
    rows_ = static_cast<int>(min(a.height - top, std::int64_t{a.slab_rows}));
    const std::uint8_t* from = a.image.data + top * a.image.row_stride;
#pragma unroll
    for (int row = 0; row < kSlabRows; ++row) {
#pragma unroll
      for (int s = 0; s < P::kSegments; ++s) {
        const bool exists = row < rows_ && slab_column<P>(s) < a.width;
        pixels_[row][s] = exists ? load(from + row * a.image.row_stride + slab_column<P>(s)) : 0;
      }
    }
  }

  __device__ int rows() const { return rows_; }

  __device__ void sum_columns(SlabRow<P>& sums) const {
#pragma unroll
    for (int s = 0; s < P::kSegments; ++s) {
      std::uint32_t even = 0;  // of two columns, in the halves of the word
      std::uint32_t odd = 0;
#pragma unroll
      for (int row = 0; row < kSlabRows; ++row) {
        even += pixels_[row][s] & 0x00FF00FFU;
        odd += pixels_[row][s] >> 8 & 0x00FF00FFU;
      }
      sums[s] = {even & 0xFFFFU, odd & 0xFFFFU, even >> 16, odd >> 16};
    }
  }

  /// Leaves the rows' sums over lanes, and the segments' totals.
  __device__ void scan_rows() {
    constexpr int kRowsAtOnce = 8;
    constexpr int kValues = kRowsAtOnce / 2 * P::kSegments;  // of two rows each
#pragma unroll
    for (int first = 0; first < kSlabRows; first += kRowsAtOnce) {
      if (first >= rows_) break;
      std::uint32_t through[kValues];
#pragma unroll
      for (int n = 0; n < kValues; ++n) {
        const int row = first + n / P::kSegments * 2;
        through[n] = total(row, n % P::kSegments) | total(row + 1, n % P::kSegments) << 16;
      }
      scan_together(through);
#pragma unroll
      for (int n = 0; n < kValues; ++n) {
        const int row = first + n / P::kSegments * 2;
        const int s = n % P::kSegments;
        through_at(row, s) = through[n];
        if (lane_index() == 31) {
          memory_.totals[row][slab_segment<P>(s)] = through[n] & 0xFFFFU;
          memory_.totals[row + 1][slab_segment<P>(s)] = through[n] >> 16;
        }
      }
    }
  }

  /// Sums from the segment's left edge.
  __device__ Quad<std::uint32_t> summed(int row, int s) const {
    const std::uint32_t through = row % 2 == 0 ? through_at(row, s) & 0xFFFFU : through_at(row, s) >> 16;
    const std::uint32_t before = through - total(row, s);
    const std::uint32_t pixels = pixels_[row][s];
    return {__dp4a(pixels, 0x00000001U, before), __dp4a(pixels, 0x00000101U, before),
            __dp4a(pixels, 0x00010101U, before), __dp4a(pixels, 0x01010101U, before)};
  }

 private:
  /// Volatile, so that all loads start before the first is waited for.
  static __device__ std::uint32_t load(const std::uint8_t* from) {
    std::uint32_t pixels;
    asm volatile(
        "{ .reg .b64 normal;\n"
        "  createpolicy.fractional.L2::evict_normal.b64 normal, 1.0;\n"
        "  ld.global.nc.L1::no_allocate.L2::cache_hint.u32 %0, [%1], normal; }"
        : "=r"(pixels)
        : "l"(from));
    return pixels;
  }
  __device__ std::uint32_t total(int row, int s) const { return __dp4a(pixels_[row][s], 0x01010101U, 0U); }
  __device__ std::uint32_t& through_at(int row, int s) const {
    return memory_.through[row / 2][slab_column<P>(s) / 4];
  }

  SlabMemory<P>& memory_;
  int rows_;
  std::uint32_t pixels_[kSlabRows][P::kSegments];
};

/// What lies left of the warp's segments in the slab's rows down to row number lane_index(), if there is one.
template <class P>
__device__ void find_left(SlabMemory<P>& memory, std::uint32_t (&left)[P::kSegments]) {
  __syncthreads();
  const bool exists = lane_index() < P::kAllSegments;
#pragma unroll
  for (int row = warp_index(); row < kSlabRows; row += kSlabWarps) {
    const std::uint32_t total = exists ? memory.totals[row][lane_index()] : 0;
    const std::uint32_t before = before_lane(warp_inclusive_scan(total));
    if (exists) memory.totals[row][lane_index()] = before;
  }
  __syncthreads();
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s)
    left[s] = warp_inclusive_scan(memory.totals[lane_index()][slab_segment<P>(s)]);
}

/// Scans the table's row above the slab within segments, and adds to `left` what lies left of them.
template <class P>
__device__ void scan_above(SlabMemory<P>& memory, SlabRow<P>& above, std::uint32_t (&left)[P::kSegments]) {
  std::uint32_t through[P::kSegments];
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
#pragma unroll
    for (int i = 1; i < 4; ++i) above[s].v[i] += above[s].v[i - 1];
    through[s] = above[s].v[3];
  }
  scan_together(through);
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
    const std::uint32_t before = before_lane(through[s]);
#pragma unroll
    for (std::uint32_t& sum : above[s].v) sum += before;
    if (lane_index() == 31) memory.above[slab_segment<P>(s)] = through[s];
  }
  __syncthreads();
  const std::uint32_t total = lane_index() < P::kAllSegments ? memory.above[lane_index()] : 0;
  const std::uint32_t before = before_lane(warp_inclusive_scan(total));
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) left[s] += __shfl_sync(~0u, before, slab_segment<P>(s));
}

template <class P>
__device__ void store_slab(const SlabArguments<P>& a, const SlabPixels<P>& pixels, SlabRow<P>& above,
                           const std::uint32_t (&left)[P::kSegments]) {
  std::uint32_t* const to = a.table.data + std::int64_t{blockIdx.x} * a.slab_rows * a.table.row_stride;
#pragma unroll
  for (int row = 0; row < kSlabRows; ++row) {
    if (row >= pixels.rows()) break;
#pragma unroll
    for (int s = 0; s < P::kSegments; ++s) {
      const Quad<std::uint32_t> sums = pixels.summed(row, s);
      const std::uint32_t before = __shfl_sync(~0u, left[s], row);
      Quad<std::uint32_t> out;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        above[s].v[i] += sums.v[i];
        out.v[i] = above[s].v[i] + before;
      }
      const int column = slab_column<P>(s);
      store_quads(to + row * a.table.row_stride + column, 4, out, column < a.width);
    }
  }
}

template <class P>
__global__ void __launch_bounds__(P::kThreads, 1) build_table_in_slabs(const SlabArguments<P> a) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ uint4 shared_memory[];
  auto& memory = *reinterpret_cast<SlabMemory<P>*>(shared_memory);
  SlabPixels<P> pixels(a, memory);
  SlabRow<P> sums;
  pixels.sum_columns(sums);
  tell_columns(a, sums);
  pixels.scan_rows();
  add_up_slabs(a, memory);  // first: other blocks wait for this
  std::uint32_t left[P::kSegments];
  find_left<P>(memory, left);
  SlabRow<P> above;
  read_above(a, above);
  scan_above<P>(memory, above, left);
  store_slab(a, pixels, above, left);
#endif
}

}  // namespace cumulus::summed_area_table
