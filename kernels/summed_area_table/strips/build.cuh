#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/primitives/async_copy.cuh"
#include "kernels/summed_area_table/look_back/tile.cuh"
#include "kernels/summed_area_table/strips/cluster.cuh"
#include "kernels/summed_area_table/strips/exchange.cuh"

// The kernel of large images: a block goes down a strip of the image, from its first row to its last, and
// keeps the sums by column above it in registers; or the two blocks of a cluster do, which take the strip's
// bands alternately, so that a strip is twice as wide. Of other strips a block needs the exclusive prefix of
// each row only (strips/exchange.cuh). It is there kCarryLatency bands later: so many bands wait in shared
// memory, and kPrefetchDistance more are being copied there. Every pixel is read once, every sum written
// once. Within a block warps advance independently of each other: mbarriers of single bands order them.

namespace cumulus::summed_area_table {

__device__ inline void close_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits for the warp's copies but for those of the last kPending calls of close_copies.
template <int kPending>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
  __syncwarp();
}

/// A thread that sums: four columns and kGroupRows rows of each of the block's bands. A warp copies and reads
/// its own rows only, so that copies need no barrier.
template <class P>
class ComputeWarp {
 public:
  using Input = typename P::Input;
  using Sum = typename P::Sum;
  using Total = typename P::Total;

  __device__ ComputeWarp(const StripArguments<P>& a, StripMemory<P>& memory)
      : a_(a),
        memory_(memory),
        lane_(lane_index() % P::kRowLanes),
        group_(static_cast<int>(threadIdx.x) / P::kRowLanes),
        place_(a.words.place(a.strip())) {
    const std::int64_t strip_column = std::int64_t{a.strip()} * P::kColumns;
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

  __device__ void copy(std::uint32_t step) {
    if (step < a_.steps()) {
      const std::int64_t top = std::int64_t{a_.band(step)} * P::kRows;
      const Input* from = from_ + top * a_.image.row_stride;
#pragma unroll
      for (int i = 0; i < kWarpRows * kPieces / 32; ++i) {
        const int row = i * (32 / kPieces);
        const int bytes = top + piece_row_ + row < a_.height ? piece_bytes_ : 0;
        copy_async_or_zero(&memory_.pixels[step % P::kStages][piece_row_ + row][piece_column_],
                           bytes > 0 ? from + row * a_.image.row_stride : a_.image.data, bytes,
                           evict_first_three_quarters());
      }
    }
    close_copies();
  }

  /// Sums the block's band number `step`, and stores the table of band number `step` - kCarryLatency, once it
  /// has made place for the next copies.
  template <bool kSums, bool kFinishes>
  __device__ void advance(std::uint32_t step) {
    Finished finished;
    if constexpr (kSums && P::kSumsFirst) sum_rows(step);
    if constexpr (kFinishes) {
      load(step - P::kCarryLatency, finished);
      __syncwarp();  // the warp's rows may be copied over now
    }
    copy(step + P::kPrefetchDistance);
    if constexpr (kSums && !P::kSumsFirst) sum_rows(step);
    if constexpr (kFinishes) store(step - P::kCarryLatency, finished);
  }

 private:
  static constexpr int kWarpRows = P::kRows / P::kWarps;
  static constexpr int kPieceElements = 16 / sizeof(Input);
  static constexpr int kPieces = P::kColumns / kPieceElements;  // of a row
  static_assert(kWarpRows * kPieces % 32 == 0, "every lane copies as many pieces");

  /// The thread's part of a band whose neighbours are known.
  struct Finished {
    Quad<Sum> rows[P::kGroupRows];
    Quad<Sum> above;          // of the band's rows above the warp's
    Quad<Sum> columns;        // of all its rows
    Sum left[P::kGroupRows];  // of the band's rows up to each
    Sum left_of_band;
    Quad<Sum> other_columns{};  // of the other block's band before
    Sum left_of_other{};
  };

  __device__ Input* pixels_at(std::uint32_t step, int row) const {
    return &memory_.pixels[step % P::kStages][group_ * P::kGroupRows + row][lane_ * 4];
  }
  __device__ std::uint32_t bytes_at(std::uint32_t step, int row) const {
    return *reinterpret_cast<const std::uint32_t*>(pixels_at(step, row));
  }
  __device__ std::uint16_t& through_at(std::uint32_t step, int row) const {
    return memory_.through[step % (P::kCarryLatency + 1)][group_ * P::kGroupRows + row][lane_];
  }

  static __device__ void add(Quad<Sum>& sums, const Quad<Sum>& others) {
#pragma unroll
    for (int i = 0; i < 4; ++i) sums.v[i] += others.v[i];
  }

  /// Of the warp's groups: adds to the sums of each those of the groups before it, and returns these.
  static __device__ Quad<Sum> before_groups(Quad<Sum>& sums) {
    Quad<Sum> before{};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int distance = P::kRowLanes; distance < 32; distance *= 2) {
        const Sum other = __shfl_up_sync(kFullWarp, sums.v[i], distance);
        if (lane_index() >= distance) sums.v[i] += other;
      }
      if constexpr (P::kRowLanes < 32) {
        const Sum other = __shfl_up_sync(kFullWarp, sums.v[i], P::kRowLanes);
        if (lane_index() >= P::kRowLanes) before.v[i] = other;
      }
    }
    return before;
  }

  /// Sums the group's rows, publishes their totals, and leaves the warp's sums by column.
  __device__ void sum_rows(std::uint32_t step) {
    wait_for_copies<P::kPrefetchDistance - (P::kSumsFirst ? 1 : 0)>();
    if (step >= P::kMaxWarpSkew) memory_.wait_for_totals(step - P::kMaxWarpSkew);
    Quad<Sum> columns;
    if constexpr (P::kBytes) {
      columns = sum_bytes(step);
    } else {
      columns = sum_in_place(step);
    }
    if (lane_index() >= 32 - P::kRowLanes)
      quad_at(&memory_.columns[step % P::kRing][warp_index()][lane_ * 4]) = columns;
    memory_.totals_published[step % P::kRing].arrive();
  }

  /// Both return the sums by column of the warp's rows, as its last group has them.
  __device__ Quad<Sum> sum_bytes(std::uint32_t step) {
    Total through[P::kGroupRows];
    Quad<Sum> columns{};
    Sum before = 0;  // of the columns before the lane's, in all its rows
#pragma unroll
    for (int r = 0; r < P::kGroupRows; ++r) {
      const std::uint32_t pixels = bytes_at(step, r);
      through[r] = __dp4a(pixels, 0x01010101U, 0U);
      before -= through[r];
      columns = {__dp4a(pixels, 0x00000001U, columns.v[0]), __dp4a(pixels, 0x00000101U, columns.v[1]),
                 __dp4a(pixels, 0x00010101U, columns.v[2]), __dp4a(pixels, 0x01010101U, columns.v[3])};
    }
    warp_inclusive_sums<P::kRowLanes>(through);
    publish(step, through);
#pragma unroll
    for (int r = 0; r < P::kGroupRows; ++r) {
      through_at(step, r) = static_cast<std::uint16_t>(through[r]);
      before += through[r];
    }
#pragma unroll
    for (Sum& sum : columns.v) sum += before;
    before_groups(columns);
    return columns;
  }
  __device__ Quad<Sum> sum_in_place(std::uint32_t step) {
    Total through[P::kGroupRows];
    Quad<Sum> rows[P::kGroupRows];
#pragma unroll
    for (int r = 0; r < P::kGroupRows; ++r) {
      rows[r] = quad_at(pixels_at(step, r));
#pragma unroll
      for (int i = 1; i < 4; ++i) rows[r].v[i] += rows[r].v[i - 1];
      through[r] = rows[r].v[3];
    }
    warp_inclusive_sums<P::kRowLanes>(through);
    publish(step, through);
#pragma unroll
    for (int r = 0; r < P::kGroupRows; ++r) {
      const Sum before = before_lane<P::kRowLanes>(through[r]);
#pragma unroll
      for (Sum& sum : rows[r].v) sum += before;
      if (r > 0) add(rows[r], rows[r - 1]);
    }
    Quad<Sum> columns = rows[P::kGroupRows - 1];
    const Quad<Sum> above = before_groups(columns);
#pragma unroll
    for (int r = 0; r < P::kGroupRows; ++r) {
      add(rows[r], above);
      quad_at(pixels_at(step, r)) = rows[r];
    }
    return columns;
  }

  /// Publishes the totals of the group's rows, which its last lane has, two by each of its last lanes.
  __device__ void publish(std::uint32_t step, const Total (&totals)[P::kGroupRows]) const {
    const int pair = P::kRowLanes - 1 - lane_;
    Total first = 0;
    Total second = 0;
#pragma unroll
    for (int i = 0; i < P::kGroupRows / 2; ++i) {
      const Total even = __shfl_sync(kFullWarp, totals[2 * i], P::kRowLanes - 1, P::kRowLanes);
      const Total odd = __shfl_sync(kFullWarp, totals[2 * i + 1], P::kRowLanes - 1, P::kRowLanes);
      if (pair == i) {
        first = even;
        second = odd;
      }
    }
    if (pair < P::kGroupRows / 2) {
      const std::uint32_t band = a_.band(step);
      a_.words.publish(a_.words.totals(band, place_, group_ * P::kGroupRows + pair * 2), band, first, second);
    }
  }

  /// Waits for the carries of a band: sums above it, and left of it.
  __device__ void load(std::uint32_t step, Finished& f) const {
    const std::uint32_t slot = step % P::kRing;
    memory_.left_ready[slot].wait(step / P::kRing);
    if (a_.other_is_before(step)) {
      const std::uint32_t others = a_.others_step(step);
      const std::uint32_t place = others % P::kOtherRing;
      memory_.from_other[place].wait(others / P::kOtherRing);
      f.other_columns = quad_at(&memory_.other_columns[place][lane_ * 4]);
      f.left_of_other = memory_.other_left[place];
    }
#pragma unroll
    for (int r = 0; r < P::kGroupRows; ++r) {
      f.rows[r] = summed_row(step, r);
      f.left[r] = memory_.left[slot][group_ * P::kGroupRows + r];
    }
    f.above = quad_at(&memory_.columns[slot][warp_index()][lane_ * 4]);
    f.columns = quad_at(&memory_.columns[slot][P::kWarps][lane_ * 4]);
    f.left_of_band = memory_.left[slot][P::kRows - 1];
  }

  /// Sums from the strip's left edge; of floats, of all the warp's rows up to this one.
  __device__ Quad<Sum> summed_row(std::uint32_t step, int row) const {
    if constexpr (P::kBytes) {
      const std::uint32_t pixels = bytes_at(step, row);
      const std::uint32_t before = through_at(step, row) - __dp4a(pixels, 0x01010101U, 0U);
      return {__dp4a(pixels, 0x00000001U, before), __dp4a(pixels, 0x00000101U, before),
              __dp4a(pixels, 0x00010101U, before), __dp4a(pixels, 0x01010101U, before)};
    } else {
      return quad_at(pixels_at(step, row));
    }
  }

  /// Stores the group's rows of the table.
  __device__ void store(std::uint32_t step, Finished& f) {
    add(above_, f.other_columns);
    left_above_ += f.left_of_other;
    add(f.above, above_);
    if constexpr (P::kBytes) {
#pragma unroll
      for (int r = 1; r < P::kGroupRows; ++r) add(f.rows[r], f.rows[r - 1]);
      Quad<Sum> group = f.rows[P::kGroupRows - 1];
      add(f.above, before_groups(group));
    }
#pragma unroll
    for (int r = 0; r < P::kGroupRows; ++r) {
      const Sum left = left_above_ + f.left[r];
      add(f.rows[r], f.above);
#pragma unroll
      for (Sum& sum : f.rows[r].v) sum += left;
      store_row(step, r, f.rows[r]);
    }
    add(above_, f.columns);
    left_above_ += f.left_of_band;
  }

  __device__ void store_row(std::uint32_t step, int row, const Quad<Sum>& sums) const {
    const std::int64_t top = std::int64_t{a_.band(step)} * P::kRows;
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
  const std::uint32_t place_;  // of the strip, in the words
  int columns_;                // of the lane's four that exist
  Sum* to_;
  int piece_row_;  // what the lane copies: 16 bytes of every 32 / kPieces-th row of the warp's
  int piece_column_;
  int piece_bytes_;
  const Input* from_;
  Quad<Sum> above_{};   // in the lane's columns, of all bands before
  Sum left_above_ = 0;  // the exclusive prefix along x, of all rows before
};

/// Begins the uses of a block's barriers. Until wait_for_barriers they are not to be used; nor is any of the
/// other block's.
template <class P>
__device__ void begin(StripMemory<P>& memory) {
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread < P::kRing) {
    memory.totals_published[thread].init(P::kWarps * 32);
    memory.left_ready[thread].init(32);
  }
  if constexpr (P::kBlocksPerStrip > 1) {
    if (thread < P::kOtherRing) memory.from_other[thread].init(1);
    arrive_at_cluster();
  }
}
template <class P>
__device__ void wait_for_barriers() {
  if constexpr (P::kBlocksPerStrip > 1) {
    wait_for_cluster();
  } else {
    __syncthreads();
  }
}

/// Owns: a block (or a cluster of two, band by band in turn) the strip blockIdx.x / kBlocksPerStrip,
///   P::kColumns columns of all rows. kWarps warps compute, one scans carries, the others load carries.
/// Reads: the strip's pixels once; row totals and carries of the bands under way (StripWords).
/// Writes: the strip's sums; row totals of its bands; carries of the rows that its scanner has.
/// Waits for: its scanner for a band's row totals of all strips; its loaders for the strip's carries, and
///   for the other block's sums by column of the band before.
/// Cannot deadlock: the launch is cooperative, so all blocks are resident. Row totals of band n are
///   published by compute warps that wait only for carries at least kCarryLatency of the block's bands
///   before (and poll delays are shorter): by induction over n every band is finished.
/// Source: this project's; row aggregates and column carries as in D. Nehab et al., SIGGRAPH Asia 2011.
template <class P>
__global__ void __launch_bounds__(P::kThreads, 1) build_table_in_strips(const StripArguments<P> a) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ uint4 shared_memory[];
  auto& memory = *reinterpret_cast<StripMemory<P>*>(shared_memory);
  begin(memory);
  ComputeWarp<P> warp(a, memory);
  if (warp_index() < P::kWarps) {
#pragma unroll 1
    for (std::uint32_t step = 0; step < P::kPrefetchDistance; ++step) warp.copy(step);
  }
  wait_for_barriers<P>();
  if (warp_index() == P::kWarps) {
    CarryScanner<P>(a, memory).run();
  } else if (warp_index() > P::kWarps) {
    CarryLoader<P>(a, memory).run(static_cast<std::uint32_t>(warp_index() - P::kWarps - 1));
  } else {
    const std::uint32_t steps = a.steps();
    std::uint32_t step = 0;
#pragma unroll 1
    for (; step < min(steps, std::uint32_t{P::kCarryLatency}); ++step)
      warp.template advance<true, false>(step);
#pragma unroll 1
    for (; step < steps; ++step) warp.template advance<true, true>(step);
#pragma unroll 1
    for (step = max(steps, std::uint32_t{P::kCarryLatency}); step < steps + P::kCarryLatency; ++step)
      warp.template advance<false, true>(step);
  }
#endif
}

}  // namespace cumulus::summed_area_table
