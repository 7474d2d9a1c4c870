#pragma once

#include <cstdint>

#include "kernels/core/div.h"
#include "kernels/primitives/await_all.cuh"
#include "kernels/summed_area_table/look_back/tile.cuh"
#include "kernels/summed_area_table/look_back/traits.cuh"
#include "kernels/summed_area_table/resident/line_sum.cuh"
#include "kernels/summed_area_table/resident/resident.h"

// The kernel of small images, all of whose tiles are on the GPU at once: register-resident tiles, one per
// block. Each block publishes its tile's aggregates by column and by row, and their total, and sums itself
// those that it needs, as they come. There is no chain, no barrier of the grid and nothing to clear before:
// one launch.

namespace cumulus::summed_area_table {

template <class P>
struct ResidentArguments {
  Arguments<P> table;  // but for its tickets and words
  TaggedValues<typename P::Sum> values;
};

/// Where the values that a tile publishes lie: the sums of its columns, those of its rows, and their total.
template <class P>
struct ResidentValues {
  static constexpr int kRows = P::kColumns;
  static constexpr int kTotal = kRows + P::kRows;
  static constexpr int kCount = published_values(P::kShape);
};

template <class P>
struct ResidentMemory {
  using Sum = typename P::Sum;
  static constexpr int kColumnParts = P::kThreads / P::kColumns;
  static constexpr int kRowParts = P::kThreads / P::kRows;
  alignas(16) Sum warp_columns[P::kWarps][P::kColumns];  // of each warp's rows; then of all warps' before
  alignas(16) Sum above[kColumnParts][P::kColumns];
  Sum left[kRowParts][P::kRows];
  Sum totals[P::kWarps];   // of each warp's rows
  Sum corners[P::kWarps];  // parts of the corner, the sum over all tiles above and to the left
};

/// The warp's rows of the tile; a lane has four columns. Sums of 4 bytes take the pixels' registers; where
/// they are longer the pixels stay, and are summed when they are needed. kWhole: all tiles are, and rows
/// begin at multiples of 16 bytes.
template <class P, bool kWhole>
class ResidentRows {
 public:
  using Input = typename P::Input;
  using Sum = typename P::Sum;
  static constexpr int kRows = P::kRowsPerWarp;
  static constexpr bool kKeepsSums = sizeof(Sum) == 4;
  static_assert(P::kSegments == 1 && P::kElements == 4 && P::kChannels == 1);

  __device__ ResidentRows(const Arguments<P>& a, Tile tile) {
    const std::int64_t row = std::int64_t{tile.row} * P::kRows + warp_index() * kRows;
    const std::int64_t column = std::int64_t{tile.column} * P::kColumns + lane_index() * 4;
    const Input* from = a.image.data + row * a.image.row_stride + column;
    Quad<Input> pixels[kRows];
    // All loads are issued before one is waited for.
    if (kWhole || (a.image.aligned && has_whole_rows(a, tile))) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        pixels[r] = {};
        if (kWhole || row + r < a.height) pixels[r] = quad_at(from + r * a.image.row_stride);
      }
    } else {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        pixels[r] = {};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (row + r < a.height && column + i < a.row_elements) {
            pixels[r].v[i] = from[r * a.image.row_stride + i];
          }
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int i = 0; i < 4; ++i) registers_[r].v[i] = static_cast<Element>(pixels[r].v[i]);
    }
  }

  /// Of the lane's columns, over the warp's rows. Before scan().
  __device__ Quad<Sum> columns() const {
    Quad<Sum> sums{};
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sums.v[i] += static_cast<Sum>(registers_[r].v[i]);
    }
    return sums;
  }

  /// Over row number lane_index() / kLanesOfTotal. Before scan().
  static constexpr int kLanesOfTotal = 32 / kRows;
  __device__ Sum total() const {
    Sum totals[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      totals[r] = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) totals[r] += static_cast<Sum>(registers_[r].v[i]);
    }
    return warp_sums(totals);
  }

  /// Sums the pixels along their rows, if the sums are kept.
  __device__ void scan() {
    if constexpr (kKeepsSums) {
#pragma unroll
      for (int first = 0; first < kRows; first += kAtOnce) {
        Quad<Sum> sums[kAtOnce];
        scanned(first, sums);
#pragma unroll
        for (int r = 0; r < kAtOnce; ++r) registers_[first + r] = sums[r];
      }
    }
  }

  /// Calls body(row, sums) for each of the warp's rows, summed from the tile's left edge. After scan().
  template <class Body>
  __device__ void for_each(const Body& body) const {
#pragma unroll
    for (int first = 0; first < kRows; first += kAtOnce) {
      Quad<Sum> sums[kAtOnce];
      if constexpr (kKeepsSums) {
#pragma unroll
        for (int r = 0; r < kAtOnce; ++r) sums[r] = registers_[first + r];
      } else {
        scanned(first, sums);
      }
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r) body(first + r, sums[r]);
    }
  }

 private:
  using Element = std::conditional_t<kKeepsSums, Sum, Input>;
  /// Rows that are scanned side by side: one exchange waits for the one before.
  static constexpr int kAtOnce = kKeepsSums ? 8 : 4;
  static_assert(kRows % kAtOnce == 0);

  __device__ void scanned(int first, Quad<Sum> (&sums)[kAtOnce]) const {
    Sum through[kAtOnce];
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const auto pixel = static_cast<Sum>(registers_[first + r].v[i]);
        sums[r].v[i] = i == 0 ? pixel : sums[r].v[i - 1] + pixel;
      }
      through[r] = sums[r].v[3];
    }
    warp_inclusive_sums(through);
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r) {
      const Sum before = before_lane(through[r]);
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[r].v[i] += before;
    }
  }

  Quad<Element> registers_[kRows];
};

/// Publishes the sums of the warp's rows, and leaves those of its columns, and their total, in memory.
template <class P, bool kWhole>
__device__ void publish_row_aggregates(const ResidentArguments<P>& a, const ResidentRows<P, kWhole>& rows,
                                       ResidentMemory<P>& memory, int values) {
  using Sum = typename P::Sum;
  constexpr int kLanes = ResidentRows<P, kWhole>::kLanesOfTotal;
  quad_at(&memory.warp_columns[warp_index()][lane_index() * 4]) = rows.columns();
  const Sum total = rows.total();
  const bool publishes = lane_index() % kLanes == 0;
  if (publishes) {
    const int row = warp_index() * P::kRowsPerWarp + lane_index() / kLanes;
    a.values.publish(values + ResidentValues<P>::kRows + row, total);
  }
  const Sum of_rows = warp_sum<Sum>(publishes ? total : Sum{0});
  if (lane_index() == 0) memory.totals[warp_index()] = of_rows;
}

/// Publishes the sums of the tile's columns and their total. Turns memory.strips into sums over the strips
/// before.
template <class P>
__device__ void publish_column_aggregates(const ResidentArguments<P>& a, ResidentMemory<P>& memory,
                                          int values) {
  using Sum = typename P::Sum;
  static_assert(P::kThreads > P::kColumns, "a thread is free for the total");
  const auto column = static_cast<int>(threadIdx.x);
  if (column > P::kColumns) return;
  Sum sum = 0;
  if (column == P::kColumns) {
#pragma unroll
    for (const Sum of_warp : memory.totals) sum += of_warp;
    a.values.publish(values + ResidentValues<P>::kTotal, sum);
    return;
  }
#pragma unroll
  for (int warp = 0; warp < P::kWarps; ++warp) {
    const Sum own = memory.warp_columns[warp][column];
    memory.warp_columns[warp][column] = sum;
    sum += own;
  }
  a.values.publish(values + column, sum);
}

/// Sums the aggregates of other tiles, in parts: of each column above the tile, of each row left of it, and
/// of all tiles above and to the left. All three are polled together.
template <class P>
class PrefixGather {
 public:
  using Sum = typename P::Sum;

  /// Issues the first loads.
  __device__ PrefixGather(const ResidentArguments<P>& a, Tile tile)
      : above_(a.values, columns_above(static_cast<int>(a.table.tile_columns), tile)),
        left_(a.values, rows_left(static_cast<int>(a.table.tile_columns), tile)),
        corner_(a.values, corner(static_cast<int>(a.table.tile_columns), tile)) {}

  /// Waits for the rest and leaves the exclusive prefixes in memory.
  __device__ void finish(ResidentMemory<P>& memory) {
    bool more = true;
    while (more) {
      await_together(above_, left_, corner_);
      more = above_.advance();
      more = left_.advance() || more;
      more = corner_.advance() || more;
    }
    memory.above[thread() / P::kColumns][thread() % P::kColumns] = above_.sum();
    memory.left[thread() / P::kRows][thread() % P::kRows] = left_.sum();
    __syncwarp();
    const Sum corner = warp_sum<Sum>(corner_.sum());
    if (lane_index() == 0) memory.corners[warp_index()] = corner;
  }

 private:
  using Memory = ResidentMemory<P>;
  using Values = ResidentValues<P>;
  /// As many as registers allow beside the tile: bytes are unpacked there.
  static constexpr int kAtOnce = P::kRows > 64 && sizeof(typename P::Input) < 4 ? 4 : 8;

  static __device__ int thread() { return static_cast<int>(threadIdx.x); }
  /// Of `count` tiles every one of `parts`; none where `part` < `parts` is not below `count`.
  static __device__ int share(int count, int part, int parts) { return divide_up(count - part, parts); }

  static __device__ WordLine columns_above(int tile_columns, Tile tile) {
    constexpr int kParts = Memory::kColumnParts;
    const int part = thread() / P::kColumns;
    return {(part * tile_columns + tile.column) * Values::kCount + thread() % P::kColumns,
            kParts * tile_columns * Values::kCount, share(tile.row, part, kParts)};
  }
  static __device__ WordLine rows_left(int tile_columns, Tile tile) {
    constexpr int kParts = Memory::kRowParts;
    const int part = thread() / P::kRows;
    return {(tile.row * tile_columns + part) * Values::kCount + Values::kRows + thread() % P::kRows,
            kParts * Values::kCount, share(tile.column, part, kParts)};
  }
  /// The total of one tile: no tile has more above and to the left than threads.
  static __device__ WordLine corner(int tile_columns, Tile tile) {
    if (thread() >= tile.row * tile.column) return {0, 0, 0};
    const int other = thread() / tile.column * tile_columns + thread() % tile.column;
    return {other * Values::kCount + Values::kTotal, 0, 1};
  }

  LineSum<Sum, kAtOnce> above_;
  LineSum<Sum, kAtOnce> left_;
  LineSum<Sum, 1> corner_;
};

/// The exclusive prefixes along x, summed over the tile's rows up to each and with the corner. Every warp
/// finds all.
template <class P>
class RowsBefore {
 public:
  using Sum = typename P::Sum;

  __device__ explicit RowsBefore(const ResidentMemory<P>& memory) {
    Sum through = 0;
#pragma unroll
    for (int i = 0; i < kLaneRows; ++i) {
      Sum left = 0;
#pragma unroll
      for (int part = 0; part < ResidentMemory<P>::kRowParts; ++part)
        left += memory.left[part][lane_index() * kLaneRows + i];
      through += left;
      sums_[i] = through;
    }
    const Sum before = before_lane(warp_inclusive_sum(through));
    Sum corner = 0;
#pragma unroll
    for (const Sum of_warp : memory.corners) corner += of_warp;
#pragma unroll
    for (int i = 0; i < kLaneRows; ++i) sums_[i] = corner + (before + sums_[i]);
  }

  /// Of the warp's row number `row`.
  __device__ Sum operator[](int row) const {
    static_assert(P::kRowsPerWarp % kLaneRows == 0, "a warp's rows begin with a lane's first");
    const int lane = (warp_index() * P::kRowsPerWarp + row) / kLaneRows;
    return __shfl_sync(kFullWarp, sums_[row % kLaneRows], lane);
  }

 private:
  static constexpr int kLaneRows = P::kRows / 32;
  Sum sums_[kLaneRows];
};

/// The table of all that lies above the warp's rows, from the tile's left edge: in the lane's columns.
template <class P>
__device__ Quad<typename P::Sum> table_above(const ResidentMemory<P>& memory) {
  using Sum = typename P::Sum;
  Quad<Sum> above = quad_at(&memory.warp_columns[warp_index()][lane_index() * 4]);
#pragma unroll
  for (int part = 0; part < ResidentMemory<P>::kColumnParts; ++part) {
    const auto of_part = quad_at(&memory.above[part][lane_index() * 4]);
#pragma unroll
    for (int i = 0; i < 4; ++i) above.v[i] += of_part.v[i];
  }
#pragma unroll
  for (int i = 1; i < 4; ++i) above.v[i] += above.v[i - 1];
  const Sum before = before_lane(warp_inclusive_sum(above.v[3]));
#pragma unroll
  for (int i = 0; i < 4; ++i) above.v[i] += before;
  return above;
}

/// Puts the tile's rows on top of all that lies above and to the left.
template <class P, bool kWhole>
__device__ void store_rows(const Arguments<P>& a, const ResidentRows<P, kWhole>& rows,
                           const ResidentMemory<P>& memory, Tile tile) {
  using Sum = typename P::Sum;
  const bool whole = kWhole || (a.sums.aligned && has_whole_rows(a, tile));
  const std::int64_t y = std::int64_t{tile.row} * P::kRows + warp_index() * P::kRowsPerWarp;
  const std::int64_t x = std::int64_t{tile.column} * P::kColumns + lane_index() * 4;
  Sum* to = a.sums.data + y * a.sums.row_stride + x;
  Quad<Sum> above = table_above(memory);
  const RowsBefore<P> rows_before(memory);
  rows.for_each([&](int row, const Quad<Sum>& sums) {
    const Sum before = rows_before[row];
    Quad<Sum> out;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      above.v[i] += sums.v[i];
      out.v[i] = above.v[i] + before;
    }
    if (!kWhole && y + row >= a.height) return;
    if (whole) {
      store_quads(to + row * a.sums.row_stride, 4, out);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (x + i < a.row_elements) __stcs(to + row * a.sums.row_stride + i, out.v[i]);
      }
    }
  });
}

/// Owns: block b the tile b, row after row of tiles, in registers; a warp kRowsPerWarp whole rows of it.
/// Reads: the tile's pixels once; aggregates of the tiles above, to the left, and above and to the left.
/// Writes: the tile's sums; its aggregates by column and by row, and their total.
/// Waits for: those aggregates.
/// Cannot deadlock: the launch is cooperative, so all blocks are resident, and each publishes before it
///   waits.
/// Source: this project's; aggregates as in D. Nehab et al. 2011, their sums by each reader instead of by
///   further kernels.
template <class P, bool kWhole>
__global__ void __launch_bounds__(P::kThreads, kResidentTiles)
    build_resident_table(const ResidentArguments<P> a) {
  __shared__ ResidentMemory<P> memory;
  const Tile tile{static_cast<std::int32_t>(blockIdx.x / a.table.tile_columns),
                  static_cast<std::int32_t>(blockIdx.x % a.table.tile_columns), 0};
  const int values = static_cast<int>(blockIdx.x) * ResidentValues<P>::kCount;
  ResidentRows<P, kWhole> rows(a.table, tile);
  publish_row_aggregates(a, rows, memory, values);
  __syncthreads();
  publish_column_aggregates(a, memory, values);
  // Rows are scanned while the loads are under way.
  PrefixGather<P> gather(a, tile);
  rows.scan();
  gather.finish(memory);
  __syncthreads();
  store_rows(a.table, rows, memory, tile);
}

}  // namespace cumulus::summed_area_table
