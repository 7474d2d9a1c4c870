#pragma once

#include <cstdint>

#include "kernels/summed_area_table/tagged_words.cuh"
#include "kernels/summed_area_table/tile_plan.cuh"
#include "kernels/summed_area_table/tile_strips.cuh"

// The kernel of small images, all of whose tiles are on the GPU at once, one per block, in registers. Each
// block tells the others its tile's sums by column and by row, and their total, and adds up itself what it
// needs of theirs, as it comes. There is no chain, no barrier of the grid and nothing to clear before: one
// launch. All blocks must run at once, since each waits for others.

namespace cumulus::summed_area_table {

template <class P>
struct ResidentArguments {
  Arguments<P> table;  // but for its tickets and words
  TaggedValues<typename P::Sum> values;
};

/// What a tile tells the others: the sums of its kColumns columns, those of its kRows rows, and their total.
/// Three are left free, so that a tile's values begin at a multiple of 32 bytes.
template <class P>
struct ResidentValues {
  static constexpr int kRows = P::kColumns;
  static constexpr int kTotal = kRows + P::kRows;
  static constexpr int kCount = kTotal + 4;
};

template <class P>
struct ResidentMemory {
  using Sum = typename P::Sum;
  static constexpr int kColumnParts = P::kThreads / P::kColumns;
  static constexpr int kRowParts = P::kThreads / P::kRows;
  alignas(16) Sum strips[P::kWarps][P::kColumns];  // of each warp's rows; then of all warps' before
  alignas(16) Sum above[kColumnParts][P::kColumns];
  Sum left[kRowParts][P::kRows];
  Sum totals[P::kWarps];   // of each warp's rows
  Sum corners[P::kWarps];  // parts of what lies above and to the left
};

/// The warp's rows of the tile; a lane has four columns. Sums of 4 bytes take the pixels' registers; where
/// they are longer the pixels stay, and are summed when they are needed. kWhole: all tiles are, and rows begin
/// at multiples of 16 bytes.
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
    const bool whole = kWhole || (a.image.aligned && inside(a, tile));
    Quad<Input> pixels[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (whole) {
        pixels[r] = quad_at(from + r * a.image.row_stride);
      } else {
        pixels[r] = {};
        if (row + r >= a.height) continue;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (column + i < a.row_elements) pixels[r].v[i] = from[r * a.image.row_stride + i];
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int i = 0; i < 4; ++i) held_[r].v[i] = static_cast<Held>(pixels[r].v[i]);
    }
  }

  /// Of the lane's columns, over the warp's rows. Before scan().
  __device__ Quad<Sum> columns() const {
    Quad<Sum> sums{};
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sums.v[i] += static_cast<Sum>(held_[r].v[i]);
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
      for (int i = 0; i < 4; ++i) totals[r] += static_cast<Sum>(held_[r].v[i]);
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
        for (int r = 0; r < kAtOnce; ++r) held_[first + r] = sums[r];
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
        for (int r = 0; r < kAtOnce; ++r) sums[r] = held_[first + r];
      } else {
        scanned(first, sums);
      }
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r) body(first + r, sums[r]);
    }
  }

 private:
  using Held = std::conditional_t<kKeepsSums, Sum, Input>;
  /// Rows that are scanned side by side: one exchange waits for the one before.
  static constexpr int kAtOnce = kKeepsSums ? 8 : 4;
  static_assert(kRows % kAtOnce == 0);

  __device__ void scanned(int first, Quad<Sum> (&sums)[kAtOnce]) const {
    Sum through[kAtOnce];
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const auto pixel = static_cast<Sum>(held_[first + r].v[i]);
        sums[r].v[i] = i == 0 ? pixel : sums[r].v[i - 1] + pixel;
      }
      through[r] = sums[r].v[3];
    }
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r) {
        const Sum before = __shfl_up_sync(~0u, through[r], distance);
        if (lane_index() >= distance) through[r] += before;
      }
    }
#pragma unroll
    for (int r = 0; r < kAtOnce; ++r) {
      const Sum before = before_lane(through[r]);
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[r].v[i] += before;
    }
  }

  Quad<Held> held_[kRows];
};

/// Tells the sums of the warp's rows, and leaves those of its columns, and their total, in memory.
template <class P, bool kWhole>
__device__ void tell_rows(const ResidentArguments<P>& a, const ResidentRows<P, kWhole>& rows,
                          ResidentMemory<P>& memory, int values) {
  using Sum = typename P::Sum;
  constexpr int kLanes = ResidentRows<P, kWhole>::kLanesOfTotal;
  quad_at(&memory.strips[warp_index()][lane_index() * 4]) = rows.columns();
  const Sum total = rows.total();
  const bool tells = lane_index() % kLanes == 0;
  if (tells) {
    const int row = warp_index() * P::kRowsPerWarp + lane_index() / kLanes;
    a.values.tell(values + ResidentValues<P>::kRows + row, total);
  }
  const Sum of_rows = warp_sum(tells ? total : Sum{0});
  if (lane_index() == 0) memory.totals[warp_index()] = of_rows;
}

/// Tells the sums of the tile's columns and their total. Turns memory.strips into sums over the strips before.
template <class P>
__device__ void tell_columns(const ResidentArguments<P>& a, ResidentMemory<P>& memory, int values) {
  using Sum = typename P::Sum;
  static_assert(P::kThreads > P::kColumns, "a thread is free for the total");
  const auto column = static_cast<int>(threadIdx.x);
  if (column > P::kColumns) return;
  Sum sum = 0;
  if (column == P::kColumns) {
#pragma unroll
    for (const Sum of_warp : memory.totals) sum += of_warp;
    a.values.tell(values + ResidentValues<P>::kTotal, sum);
    return;
  }
#pragma unroll
  for (int warp = 0; warp < P::kWarps; ++warp) {
    const Sum own = memory.strips[warp][column];
    memory.strips[warp][column] = sum;
    sum += own;
  }
  a.values.tell(values + column, sum);
}

/// Adds up what the other tiles tell, in parts: of each column above the tile, of each row left of it, and of
/// all tiles above and to the left. All three are asked for together.
template <class P>
__device__ void gather(const ResidentArguments<P>& a, ResidentMemory<P>& memory, Tile tile) {
  using Sum = typename P::Sum;
  using Memory = ResidentMemory<P>;
  using Values = ResidentValues<P>;
  constexpr int kAtOnce = P::kRows <= 64 ? 8 : 4;  // as registers allow
  const auto thread = static_cast<int>(threadIdx.x);
  const auto tile_columns = static_cast<int>(a.table.tile_columns);
  // Every kParts-th of `count` tiles.
  const auto share = [](int count, int part, int parts) { return (count - part + parts - 1) / parts; };

  const int column = thread % P::kColumns;
  const int column_part = thread / P::kColumns;
  const ToldLine columns{(column_part * tile_columns + tile.column) * Values::kCount + column,
                         Memory::kColumnParts * tile_columns * Values::kCount,
                         share(tile.row, column_part, Memory::kColumnParts)};
  const int row = thread % P::kRows;
  const int row_part = thread / P::kRows;
  const ToldLine rows{(tile.row * tile_columns + row_part) * Values::kCount + Values::kRows + row,
                      Memory::kRowParts * Values::kCount, share(tile.column, row_part, Memory::kRowParts)};
  const int corners = tile.row * tile.column;
  const auto corner_at = [&](int n) {
    if (n >= corners) return ToldLine{0, 0, 0};
    return ToldLine{(n / tile.column * tile_columns + n % tile.column) * Values::kCount + Values::kTotal, 0, 1};
  };

  Sum above = 0;
  Sum left = 0;
  Sum corner = 0;
#pragma unroll 1
  for (int first = 0, n = thread; first < columns.count || first < rows.count || n < corners;
       first += kAtOnce, n += P::kThreads) {
    AskedValues<Sum, kAtOnce> of_columns(a.values, columns, first);
    AskedValues<Sum, kAtOnce> of_rows(a.values, rows, first);
    AskedValues<Sum, 1> of_corner(a.values, corner_at(n), 0);
    bool complete = false;
    while (!complete) {
      complete = of_columns.complete();
      complete = of_rows.complete() && complete;
      complete = of_corner.complete() && complete;
    }
    of_columns.add_to(above);
    of_rows.add_to(left);
    of_corner.add_to(corner);
  }
  memory.above[column_part][column] = above;
  memory.left[row_part][row] = left;
  __syncwarp();
  corner = warp_sum(corner);
  if (lane_index() == 0) memory.corners[warp_index()] = corner;
}

/// What lies left of the tile and not below a row, for each of its rows. Every warp finds all of them.
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
    const Sum before = before_lane(warp_inclusive_scan(through));
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
    return __shfl_sync(~0u, sums_[row % kLaneRows], lane);
  }

 private:
  static constexpr int kLaneRows = P::kRows / 32;
  Sum sums_[kLaneRows];
};

/// The table of all that lies above the warp's rows, from the tile's left edge: in the lane's columns.
template <class P>
__device__ Quad<typename P::Sum> table_above(const ResidentMemory<P>& memory) {
  using Sum = typename P::Sum;
  Quad<Sum> above = quad_at(&memory.strips[warp_index()][lane_index() * 4]);
#pragma unroll
  for (int part = 0; part < ResidentMemory<P>::kColumnParts; ++part) {
    const auto of_part = quad_at(&memory.above[part][lane_index() * 4]);
#pragma unroll
    for (int i = 0; i < 4; ++i) above.v[i] += of_part.v[i];
  }
#pragma unroll
  for (int i = 1; i < 4; ++i) above.v[i] += above.v[i - 1];
  const Sum before = before_lane(warp_inclusive_scan(above.v[3]));
#pragma unroll
  for (int i = 0; i < 4; ++i) above.v[i] += before;
  return above;
}

/// Puts the tile's rows on top of all that lies above and to the left.
template <class P, bool kWhole>
__device__ void store_rows(const Arguments<P>& a, const ResidentRows<P, kWhole>& rows,
                           const ResidentMemory<P>& memory, Tile tile) {
  using Sum = typename P::Sum;
  const bool whole = kWhole || (a.sums.aligned && inside(a, tile));
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
    if (whole) {
      store_quads(to + row * a.sums.row_stride, 4, out);
    } else if (y + row < a.height) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (x + i < a.row_elements) __stcs(to + row * a.sums.row_stride + i, out.v[i]);
      }
    }
  });
}

template <class P, bool kWhole>
__global__ void __launch_bounds__(P::kThreads, resident_tiles(P::kShape))
    build_resident_table(const ResidentArguments<P> a) {
  __shared__ ResidentMemory<P> memory;
  const Tile tile{static_cast<std::int32_t>(blockIdx.x / a.table.tile_columns),
                  static_cast<std::int32_t>(blockIdx.x % a.table.tile_columns), 0};
  const int values = static_cast<int>(blockIdx.x) * ResidentValues<P>::kCount;
  ResidentRows<P, kWhole> rows(a.table, tile);
  tell_rows(a, rows, memory, values);
  __syncthreads();
  tell_columns(a, memory, values);
  rows.scan();
  gather(a, memory, tile);
  __syncthreads();
  store_rows(a.table, rows, memory, tile);
}

}  // namespace cumulus::summed_area_table
