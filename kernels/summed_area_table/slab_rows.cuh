#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/summed_area_table/slab_plan.cuh"
#include "kernels/summed_area_table/tile_strips.cuh"
#include "kernels/summed_area_table/warp_sums.cuh"

// The rows of a slab, which stay in registers and shared memory from their reading to the end.

namespace cumulus::summed_area_table {

/// Volatile, so that loads start where they are written.
template <class T>
__device__ Quad<T> load_quad(const T* from) {
  Quad<T> quad;
  if constexpr (sizeof(quad) == 16) {
    auto& v = reinterpret_cast<uint4&>(quad);
    asm volatile(
        "{ .reg .b64 streaming;\n"
        "  createpolicy.fractional.L2::evict_first.b64 streaming, 1.0;\n"
        "  ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], streaming; }"
        : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
        : "l"(from));
  } else {
    asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];"
                 : "=r"(reinterpret_cast<std::uint32_t&>(quad))
                 : "l"(from));
  }
  return quad;
}

template <class P>
__device__ void add_row(SlabRow<P>& sums, const SlabRow<P>& row) {
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums[s].v[i] += row[s].v[i];
  }
}

/// Sums each value over the lanes up to this one: together, since each step has to wait for the one before.
template <class Sum, int kCount>
__device__ void scan_together(Sum (&values)[kCount]) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
#pragma unroll
    for (Sum& value : values) {
      const Sum before = __shfl_up_sync(~0u, value, distance);
      if (lane_index() >= distance) value += before;
    }
  }
}

/// Turns rows into sums from their segments' left edges.
template <class P, int kCount>
__device__ void scan_rows(SlabRow<P>* rows) {
  typename P::Sum through[kCount * P::kSegments];
#pragma unroll
  for (int n = 0; n < kCount * P::kSegments; ++n) {
    auto& quad = rows[n / P::kSegments][n % P::kSegments];
#pragma unroll
    for (int i = 1; i < 4; ++i) quad.v[i] += quad.v[i - 1];
    through[n] = quad.v[3];
  }
  scan_together(through);
#pragma unroll
  for (int n = 0; n < kCount * P::kSegments; ++n) {
    const auto before = before_lane(through[n]);
#pragma unroll
    for (auto& sum : rows[n / P::kSegments][n % P::kSegments].v) sum += before;
  }
}

/// Floats: the first kHeld rows in registers, the others in shared memory.
template <class P>
class SlabFloats {
 public:
  using Row = SlabRow<P>;

  __device__ SlabFloats(const SlabPlace<P>& place, SlabMemory<P>& memory) : place_(place), memory_(memory) {}

  /// Reads the rows, and sums them by column.
  __device__ void read(Row& sums) {
    const int shared = min(place_.rows - P::kHeld, P::kShared);
#pragma unroll
    for (int i = 0; i < P::kShared; ++i) {
      if (i < shared) copy(i);
    }
#pragma unroll
    for (int i = 0; i < P::kHeld; ++i) {
#pragma unroll
      for (int s = 0; s < P::kSegments; ++s) {
        held_[i][s] = {};
        if (place_.has(i, s)) held_[i][s] = load_quad(place_.at(i, s));
      }
    }
    finish_copies();
#pragma unroll 1
    for (int i = 0; i < shared; ++i) {
      Row row[1];
      read_shared(i, row[0]);
      add_row<P>(sums, row[0]);
      scan<1>(row, P::kHeld + i);
#pragma unroll
      for (int s = 0; s < P::kSegments; ++s) shared_quad(i, s) = row[0][s];
    }
#pragma unroll
    for (const Row& row : held_) add_row<P>(sums, row);
  }

  /// Scans the rows. Leaves the totals of their segments.
  __device__ void scan() {
    constexpr int kAtOnce = 10 / P::kSegments;
    static_assert(P::kHeld % kAtOnce == 0);
#pragma unroll
    for (int i = 0; i < P::kHeld; i += kAtOnce) scan<kAtOnce>(held_ + i, i);
#pragma unroll 1
    for (int row = max(place_.rows, P::kHeld); row < P::kRows; ++row) {
      if (lane_index() < P::kSegments) memory_.totals[row][place_.segment(lane_index())] = 0;
    }
  }

  /// Calls visit(row's number, sums from its segments' left edges) for each row.
  template <class Visit>
  __device__ void for_each(const Visit& visit) {
#pragma unroll
    for (int i = 0; i < P::kHeld; ++i) visit(i, held_[i]);
    const int shared = min(place_.rows - P::kHeld, P::kShared);
#pragma unroll 2
    for (int i = 0; i < shared; ++i) {
      Row row;
      read_shared(i, row);
      visit(P::kHeld + i, row);
    }
  }

 private:
  __device__ auto& shared_quad(int i, int s) const { return quad_at(&memory_.rows[i][place_.column(s)]); }
  __device__ void read_shared(int i, Row& row) const {
#pragma unroll
    for (int s = 0; s < P::kSegments; ++s) row[s] = shared_quad(i, s);
  }
  /// Each thread copies what it reads itself.
  __device__ void copy(int i) const {
#pragma unroll
    for (int s = 0; s < P::kSegments; ++s) {
      if (place_.has(P::kHeld + i, s)) {
        copy_async(&shared_quad(i, s), place_.at(P::kHeld + i, s));
      } else {
        shared_quad(i, s) = {};
      }
    }
  }

  template <int kCount>
  __device__ void scan(Row* rows, int number) const {
    scan_rows<P, kCount>(rows);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
#pragma unroll
      for (int s = 0; s < P::kSegments; ++s) {
        if (lane_index() == 31) memory_.totals[number + i][place_.segment(s)] = rows[i][s].v[3];
      }
    }
  }

  const SlabPlace<P>& place_;
  SlabMemory<P>& memory_;
  Row held_[P::kHeld];
};

/// Bytes: all rows in registers, four pixels in each, and their sums over lanes in shared memory.
template <class P>
class SlabBytes {
 public:
  using Row = SlabRow<P>;

  __device__ SlabBytes(const SlabPlace<P>& place, SlabMemory<P>& memory) : place_(place), memory_(memory) {}

  __device__ void read(Row& sums) {
#pragma unroll
    for (int i = 0; i < P::kRows; ++i) {
#pragma unroll
      for (int s = 0; s < P::kSegments; ++s) {
        held_[i][s] = 0;
        if (place_.has(i, s)) {
          const auto pixels = load_quad(place_.at(i, s));
          held_[i][s] = reinterpret_cast<const std::uint32_t&>(pixels);
        }
      }
    }
#pragma unroll
    for (int s = 0; s < P::kSegments; ++s) {
      std::uint32_t even = 0;  // of two columns, 16 bits each: 32 bytes do not sum to more
      std::uint32_t odd = 0;
#pragma unroll
      for (int i = 0; i < P::kRows; ++i) {
        even += held_[i][s] & 0x00FF00FFU;
        odd += held_[i][s] >> 8 & 0x00FF00FFU;
      }
      sums[s] = {even & 0xFFFFU, odd & 0xFFFFU, even >> 16, odd >> 16};
    }
  }

  __device__ void scan() {
    constexpr int kValues = 8;  // scanned together, of two rows each
    constexpr int kRowsAtOnce = 2 * kValues / P::kSegments;
    static_assert(P::kRows % kRowsAtOnce == 0);
#pragma unroll
    for (int first = 0; first < P::kRows; first += kRowsAtOnce) {
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
          memory_.totals[row][place_.segment(s)] = through[n] & 0xFFFFU;
          memory_.totals[row + 1][place_.segment(s)] = through[n] >> 16;
        }
      }
    }
  }

  template <class Visit>
  __device__ void for_each(const Visit& visit) const {
#pragma unroll
    for (int i = 0; i < P::kRows; ++i) {
      Row row;
#pragma unroll
      for (int s = 0; s < P::kSegments; ++s) {
        const std::uint32_t through = i % 2 == 0 ? through_at(i, s) & 0xFFFFU : through_at(i, s) >> 16;
        const std::uint32_t before = through - total(i, s);
        row[s] = {__dp4a(held_[i][s], 0x00000001U, before), __dp4a(held_[i][s], 0x00000101U, before),
                  __dp4a(held_[i][s], 0x00010101U, before), __dp4a(held_[i][s], 0x01010101U, before)};
      }
      visit(i, row);
    }
  }

 private:
  __device__ std::uint32_t total(int row, int s) const { return __dp4a(held_[row][s], 0x01010101U, 0U); }
  __device__ std::uint32_t& through_at(int row, int s) const {
    return memory_.rows[row / 2][place_.column(s) / 4];
  }

  const SlabPlace<P>& place_;
  SlabMemory<P>& memory_;
  std::uint32_t held_[P::kRows][P::kSegments];
};

}  // namespace cumulus::summed_area_table
