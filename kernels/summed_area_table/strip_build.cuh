#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/summed_area_table/strip_exchange.cuh"
#include "kernels/summed_area_table/tile_strips.cuh"

// The kernel of large images: a block goes down a strip of the image, from its first row to its last, and
// keeps what is above in registers. Of the other blocks it needs to know only what lies to the left of its
// strip, row by row, and it learns that some bands before it needs it (strip_exchange.cuh): kLag bands wait
// in shared memory meanwhile, and kAhead more are being copied there. So every pixel is read once, every sum
// written once, and all blocks go down the image side by side. All of them must run at once.

namespace cumulus::summed_area_table {

/// Waits for the block's summing warps.
template <class P>
__device__ void sync_summing_warps() {
  asm volatile("bar.sync 1, %0;" ::"n"(P::kSummingThreads) : "memory");
}

/// Starts to copy the first `bytes` of 16 bytes, and zeros after them.
__device__ inline void copy_or_zero_async(void* to, const void* from, int bytes) {
  asm volatile(
      "{ .reg .b64 streaming;\n"
      "  createpolicy.fractional.L2::evict_first.b64 streaming, 1.0;\n"
      "  cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2, streaming; }" ::"r"(
          static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
      "l"(from), "r"(bytes)
      : "memory");
}

__device__ inline void close_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits for the warp's copies but for those of the last kPending calls of close_copies.
template <int kPending>
__device__ void await_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
  __syncwarp();
}

/// Sums over the lanes of each group of kWidth up to this one.
template <int kWidth, class Sum, int kCount>
__device__ void scan_lanes(Sum (&values)[kCount]) {
#pragma unroll
  for (int distance = 1; distance < kWidth; distance *= 2) {
#pragma unroll
    for (Sum& value : values) {
      const Sum before = __shfl_up_sync(~0u, value, distance, kWidth);
      if (lane_index() % kWidth >= distance) value += before;
    }
  }
}
template <int kWidth, class Sum>
__device__ Sum before_lanes(Sum inclusive) {
  const Sum before = __shfl_up_sync(~0u, inclusive, 1, kWidth);
  return lane_index() % kWidth == 0 ? Sum{0} : before;
}

/// A thread that sums: four columns and kGroupRows rows of every band. A warp copies and reads its own rows
/// only, so that copies need no barrier.
template <class P>
class Summer {
 public:
  using Input = typename P::Input;
  using Sum = typename P::Sum;
  using Total = typename P::Total;

  __device__ Summer(const StripArguments<P>& a, StripMemory<P>& memory)
      : a_(a),
        memory_(memory),
        lane_(lane_index() % P::kRowLanes),
        group_(static_cast<int>(threadIdx.x) / P::kRowLanes) {
    const std::int64_t strip_column = std::int64_t{blockIdx.x} * P::kColumns;
    columns_ =
        static_cast<int>(max(min(a.width - strip_column - lane_ * 4, std::int64_t{4}), std::int64_t{0}));
    to_ = a.table.data + group_ * P::kGroupRows * a.table.row_stride + strip_column + lane_ * 4;
    piece_row_ = warp_index() * kWarpRows + lane_index() / kPieces;
    piece_column_ = lane_index() % kPieces * kPieceElements;
    const std::int64_t elements = a.width - strip_column - piece_column_;
    piece_bytes_ = static_cast<int>(max(min(elements, std::int64_t{kPieceElements}), std::int64_t{0}) *
                                    static_cast<int>(sizeof(Input)));
    from_ = a.image.data + piece_row_ * a.image.row_stride + strip_column + piece_column_;
  }

  __device__ void copy(std::uint32_t band) {
    if (band < a_.bands) {
      const std::int64_t top = std::int64_t{band} * P::kRows;
      const Input* from = from_ + top * a_.image.row_stride;
#pragma unroll
      for (int i = 0; i < kWarpRows * kPieces / 32; ++i) {
        const int row = i * (32 / kPieces);
        const int bytes = top + piece_row_ + row < a_.height ? piece_bytes_ : 0;
        copy_or_zero_async(&memory_.pixels[band % P::kStages][piece_row_ + row][piece_column_],
                           bytes > 0 ? from + row * a_.image.row_stride : a_.image.data, bytes);
      }
    }
    close_copies();
  }

  /// Sums the group's rows, and tells their totals.
  __device__ void sum_rows(std::uint32_t band) {
    await_copies<P::kAhead - 1>();
    Total through[P::kGroupRows];
    if constexpr (P::kBytes) {
#pragma unroll
      for (int r = 0; r < P::kGroupRows; ++r) through[r] = __dp4a(bytes_at(band, r), 0x01010101U, 0U);
      scan_lanes<P::kRowLanes>(through);
#pragma unroll
      for (int r = 0; r < P::kGroupRows; ++r) through_at(band, r) = static_cast<std::uint16_t>(through[r]);
    } else {
      Quad<Sum> rows[P::kGroupRows];
#pragma unroll
      for (int r = 0; r < P::kGroupRows; ++r) {
        rows[r] = quad_at(pixels_at(band, r));
#pragma unroll
        for (int i = 1; i < 4; ++i) rows[r].v[i] += rows[r].v[i - 1];
        through[r] = rows[r].v[3];
      }
      scan_lanes<P::kRowLanes>(through);
#pragma unroll
      for (int r = 0; r < P::kGroupRows; ++r) {
        const Sum before = before_lanes<P::kRowLanes>(through[r]);
#pragma unroll
        for (Sum& sum : rows[r].v) sum += before;
        quad_at(pixels_at(band, r)) = rows[r];
      }
    }
    if (lane_ == P::kRowLanes - 1) {
#pragma unroll
      for (int r = 0; r < P::kGroupRows; ++r) memory_.totals[group_ * P::kGroupRows + r] = through[r];
    }
    __syncwarp();
    if (lane_index() < kWarpRows / 2) {
      const int row = warp_index() * kWarpRows + lane_index() * 2;
      a_.words.tell(a_.words.totals(band, blockIdx.x, row), band, memory_.totals[row],
                    memory_.totals[row + 1]);
    }
    memory_.totals_told[band % P::kRing].arrive();
  }

  /// Stores the group's rows of the table.
  __device__ void finish(std::uint32_t band) {
    Quad<Sum> rows[P::kGroupRows];
#pragma unroll
    for (int r = 0; r < P::kGroupRows; ++r) rows[r] = summed_row(band, r);
    auto& groups = memory_.groups[band % 2];
    Quad<Sum>& own = quad_at(&groups[group_][lane_ * 4]);
    Quad<Sum> above{};
#pragma unroll
    for (const Quad<Sum>& row : rows) add(above, row);
    own = above;
    sync_summing_warps<P>();
    scan_groups(groups);
    sync_summing_warps<P>();
    above = own;
    memory_.left_ready[band % P::kRing].wait(band / P::kRing);
#pragma unroll
    for (int r = 0; r < P::kGroupRows; ++r) {
      add(above, rows[r]);
      const Sum left = memory_.left[band % P::kRing][group_ * P::kGroupRows + r];
      Quad<Sum> out = above;
#pragma unroll
      for (Sum& sum : out.v) sum += left;
      store(band, r, out);
    }
    __syncwarp();  // the warp's rows may be copied over now
  }

 private:
  static constexpr int kWarpRows = P::kRows / P::kWarps;
  static constexpr int kPieceElements = 16 / sizeof(Input);
  static constexpr int kPieces = P::kColumns / kPieceElements;  // of a row
  static_assert(kWarpRows * kPieces % 32 == 0, "every lane copies as many pieces");

  __device__ Input* pixels_at(std::uint32_t band, int row) const {
    return &memory_.pixels[band % P::kStages][group_ * P::kGroupRows + row][lane_ * 4];
  }
  __device__ std::uint32_t bytes_at(std::uint32_t band, int row) const {
    return *reinterpret_cast<const std::uint32_t*>(pixels_at(band, row));
  }
  __device__ std::uint16_t& through_at(std::uint32_t band, int row) const {
    return memory_.through[band % (P::kLag + 1)][group_ * P::kGroupRows + row][lane_];
  }

  /// Sums from the strip's left edge.
  __device__ Quad<Sum> summed_row(std::uint32_t band, int row) const {
    if constexpr (P::kBytes) {
      const std::uint32_t pixels = bytes_at(band, row);
      const std::uint32_t before = through_at(band, row) - __dp4a(pixels, 0x01010101U, 0U);
      return {__dp4a(pixels, 0x00000001U, before), __dp4a(pixels, 0x00000101U, before),
              __dp4a(pixels, 0x00010101U, before), __dp4a(pixels, 0x01010101U, before)};
    } else {
      return quad_at(pixels_at(band, row));
    }
  }

  static __device__ void add(Quad<Sum>& sums, const Quad<Sum>& others) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums.v[i] += others.v[i];
  }

  /// Turns the groups' sums into those of all rows above each group. A thread has one group and four columns
  /// of its own, the last lane's group being the lowest.
  template <class Groups>
  __device__ void scan_groups(Groups& groups) {
    const int group = static_cast<int>(threadIdx.x) % P::kGroups;
    Quad<Sum>& own = quad_at(&groups[group][static_cast<int>(threadIdx.x) / P::kGroups * 4]);
    Quad<Sum> sums = own;
    scan_lanes<P::kGroups>(sums.v);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const Sum through = sums.v[i];
      sums.v[i] = above_.v[i] + before_lanes<P::kGroups>(through);
      above_.v[i] += __shfl_sync(~0u, through, P::kGroups - 1, P::kGroups);
    }
    own = sums;
  }

  __device__ void store(std::uint32_t band, int row, const Quad<Sum>& sums) const {
    const std::int64_t top = std::int64_t{band} * P::kRows;
    const bool exists = top + group_ * P::kGroupRows + row < a_.height;
    Sum* to = to_ + (top + row) * a_.table.row_stride;
    // All lanes take part in store_quads's exchange.
    store_quads(to, 4, sums, exists && columns_ == 4);
    if (exists && columns_ < 4) {
#pragma unroll
      for (int i = 0; i < 3; ++i) {
        if (i < columns_) __stcs(to + i, sums.v[i]);
      }
    }
  }

  const StripArguments<P>& a_;
  StripMemory<P>& memory_;
  const int lane_;
  const int group_;
  int columns_;  // of the lane's four that exist
  Sum* to_;
  int piece_row_;  // what the lane copies: 16 bytes of every 32 / kPieces-th row of the warp's
  int piece_column_;
  int piece_bytes_;
  const Input* from_;
  Quad<Sum> above_{};  // of the columns that scan_groups gives the thread: all bands done
};

template <class P>
__global__ void __launch_bounds__(P::kThreads, 1) build_table_in_strips(const StripArguments<P> a) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ uint4 shared_memory[];
  auto& memory = *reinterpret_cast<StripMemory<P>*>(shared_memory);
  if (threadIdx.x == 0) {
    for (int i = 0; i < P::kRing; ++i) {
      memory.totals_told[i].init(P::kWarps * 32);
      memory.left_ready[i].init(32);
    }
  }
  __syncthreads();
  if (warp_index() == P::kWarps) {
    Adder<P>(a, memory).run();
  } else if (warp_index() > P::kWarps) {
    Messenger<P>(a, memory).run();
  } else {
    Summer<P> summer(a, memory);
#pragma unroll 1
    for (std::uint32_t band = 0; band < P::kAhead; ++band) summer.copy(band);
#pragma unroll 1
    for (std::uint32_t step = 0; step < a.bands + P::kLag; ++step) {
      if (step < a.bands) summer.sum_rows(step);
      if (step >= P::kLag) summer.finish(step - P::kLag);
      summer.copy(step + P::kAhead);
    }
  }
#endif
}

}  // namespace cumulus::summed_area_table
