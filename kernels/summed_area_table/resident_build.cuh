#pragma once

#include <cstdint>

#include "kernels/summed_area_table/tagged_words.cuh"
#include "kernels/summed_area_table/tile_plan.cuh"
#include "kernels/summed_area_table/tile_strips.cuh"

// The kernel of small images, all of whose tiles are on the GPU at once, one per block, in registers. Each
// block tells the others its tile's last row (of the table of the tile alone) and its sums by row, and adds
// up itself what it needs of theirs, as it comes. There is no chain, no barrier of the grid and nothing to
// clear before: one launch. All blocks must run at once, since each waits for others.

namespace cumulus::summed_area_table {

template <class P>
struct ResidentArguments {
  Arguments<P> table;  // but for its tickets and words
  TaggedValues<typename P::Sum> values;
};

/// What a tile tells the others: kColumns values of its last row, then kRows sums of its rows.
template <class P>
inline constexpr int kResidentValues = P::kColumns + P::kRows;

template <class P>
struct ResidentMemory {
  using Sum = typename P::Sum;
  static constexpr int kColumnParts = P::kThreads / P::kColumns;
  static constexpr int kRowParts = P::kThreads / P::kRows;
  alignas(16) Sum strips[P::kWarps][P::kColumns];  // of each warp's rows; then of all warps' before
  alignas(16) Sum above[kColumnParts][P::kColumns];
  Sum left[kRowParts][P::kRows];
  Sum corners[P::kWarps];
  Sum before_row[P::kRows];  // all that lies left of the tile and not below the row
};

/// The warp's rows of the tile; a lane has four columns. Sums of 4 bytes stay in registers; where they are
/// longer the pixels do, and are summed once more.
template <class P>
class ResidentRows {
 public:
  using Input = typename P::Input;
  using Sum = typename P::Sum;
  static constexpr int kRows = P::kRowsPerWarp;
  static constexpr bool kKeepsSums = sizeof(Sum) == 4;
  static_assert(P::kSegments == 1 && P::kElements == 4 && P::kChannels == 1);

  __device__ ResidentRows(const Arguments<P>& a, Tile tile) {
    const bool whole = a.image.aligned && inside(a, tile);
    const std::int64_t row = std::int64_t{tile.row} * P::kRows + warp_index() * kRows;
    const std::int64_t column = std::int64_t{tile.column} * P::kColumns + lane_index() * 4;
    const Input* from = a.image.data + row * a.image.row_stride + column;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      Quad<Input> pixels{};
      if (whole) {
        pixels = quad_at(from + r * a.image.row_stride);
      } else if (row + r < a.height) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (column + i < a.row_elements) pixels.v[i] = from[r * a.image.row_stride + i];
        }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) held_[r].v[i] = static_cast<Held>(pixels.v[i]);
    }
    if constexpr (kKeepsSums) {
#pragma unroll
      for (int first = 0; first < kRows; first += kAtOnce) {
        Quad<Sum> sums[kAtOnce];
        scan(first, sums);
#pragma unroll
        for (int r = 0; r < kAtOnce; ++r) held_[first + r] = sums[r];
      }
    }
  }

  /// Calls body(row, sums) for each of the warp's rows, summed from the tile's left edge.
  template <class Body>
  __device__ void for_each(const Body& body) const {
#pragma unroll
    for (int first = 0; first < kRows; first += kAtOnce) {
      Quad<Sum> sums[kAtOnce];
      if constexpr (kKeepsSums) {
#pragma unroll
        for (int r = 0; r < kAtOnce; ++r) sums[r] = held_[first + r];
      } else {
        scan(first, sums);
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

  __device__ void scan(int first, Quad<Sum> (&sums)[kAtOnce]) const {
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

/// Tells the tile's sums by row, and leaves those of the warp's rows by column in memory.strips.
template <class P>
__device__ void tell_rows(const ResidentArguments<P>& a, const ResidentRows<P>& rows,
                          ResidentMemory<P>& memory, std::int64_t values) {
  using Sum = typename P::Sum;
  Quad<Sum> columns{};
  rows.for_each([&](int row, const Quad<Sum>& sums) {
#pragma unroll
    for (int i = 0; i < 4; ++i) columns.v[i] += sums.v[i];
    if (lane_index() == 31)
      a.values.tell(values + P::kColumns + warp_index() * P::kRowsPerWarp + row, sums.v[3]);
  });
  quad_at(&memory.strips[warp_index()][lane_index() * 4]) = columns;
}

/// Tells the tile's last row. Turns memory.strips into sums over the strips before.
template <class P>
__device__ void tell_columns(const ResidentArguments<P>& a, ResidentMemory<P>& memory, std::int64_t values) {
  using Sum = typename P::Sum;
  const auto column = static_cast<int>(threadIdx.x);
  if (column >= P::kColumns) return;
  Sum sum = 0;
#pragma unroll
  for (int warp = 0; warp < P::kWarps; ++warp) {
    const Sum own = memory.strips[warp][column];
    memory.strips[warp][column] = sum;
    sum += own;
  }
  a.values.tell(values + column, sum);
}

/// Adds up what the other tiles tell, in parts: of each column above the tile, of each row left of it, and of
/// all tiles above and to the left.
template <class P>
__device__ void gather(const ResidentArguments<P>& a, ResidentMemory<P>& memory, Tile tile) {
  using Sum = typename P::Sum;
  using Memory = ResidentMemory<P>;
  constexpr std::int64_t kValues = kResidentValues<P>;
  const auto thread = static_cast<int>(threadIdx.x);
  const std::int64_t tile_columns = a.table.tile_columns;
  // Every kParts-th of `count` tiles.
  const auto share = [](int count, int part, int parts) { return (count - part + parts - 1) / parts; };

  const int column = thread % P::kColumns;
  const int column_part = thread / P::kColumns;
  memory.above[column_part][column] = a.values.template sum<8>(
      (column_part * tile_columns + tile.column) * kValues + column,
      Memory::kColumnParts * tile_columns * kValues, share(tile.row, column_part, Memory::kColumnParts));

  const int row = thread % P::kRows;
  const int row_part = thread / P::kRows;
  memory.left[row_part][row] =
      a.values.template sum<4>((tile.row * tile_columns + row_part) * kValues + P::kColumns + row,
                               Memory::kRowParts * kValues, share(tile.column, row_part, Memory::kRowParts));

  Sum corner = 0;
  for (int n = thread; n < tile.row * tile.column; n += P::kThreads) {
    const std::int64_t other = n / tile.column * tile_columns + n % tile.column;
    corner += a.values.template sum<1>(other * kValues + P::kColumns - 1, 0, 1);
  }
  __syncwarp();
  corner = warp_sum(corner);
  if (lane_index() == 0) memory.corners[warp_index()] = corner;
}

/// By the first warp: memory.before_row.
template <class P>
__device__ void scan_left(ResidentMemory<P>& memory) {
  using Sum = typename P::Sum;
  constexpr int kLaneRows = P::kRows / 32;
  Sum sums[kLaneRows];
  Sum through = 0;
#pragma unroll
  for (int i = 0; i < kLaneRows; ++i) {
    Sum left = 0;
#pragma unroll
    for (int part = 0; part < ResidentMemory<P>::kRowParts; ++part)
      left += memory.left[part][lane_index() * kLaneRows + i];
    through += left;
    sums[i] = through;
  }
  const Sum before = before_lane(warp_inclusive_scan(through));
  Sum corner = 0;
#pragma unroll
  for (const Sum of_warp : memory.corners) corner += of_warp;
#pragma unroll
  for (int i = 0; i < kLaneRows; ++i)
    memory.before_row[lane_index() * kLaneRows + i] = corner + (before + sums[i]);
}

/// Puts the tile's rows on top of all that lies above and to the left.
template <class P>
__device__ void store_rows(const Arguments<P>& a, const ResidentRows<P>& rows,
                           const ResidentMemory<P>& memory, Tile tile) {
  using Sum = typename P::Sum;
  const bool whole = a.sums.aligned && inside(a, tile);
  const int first = warp_index() * P::kRowsPerWarp;
  const int lane_column = lane_index() * 4;
  const std::int64_t y = std::int64_t{tile.row} * P::kRows + first;
  const std::int64_t x = std::int64_t{tile.column} * P::kColumns + lane_column;
  Sum* to = a.sums.data + y * a.sums.row_stride + x;
  Quad<Sum> above = quad_at(&memory.strips[warp_index()][lane_column]);
#pragma unroll
  for (int part = 0; part < ResidentMemory<P>::kColumnParts; ++part) {
    const auto of_part = quad_at(&memory.above[part][lane_column]);
#pragma unroll
    for (int i = 0; i < 4; ++i) above.v[i] += of_part.v[i];
  }
  rows.for_each([&](int row, const Quad<Sum>& sums) {
    const Sum before = memory.before_row[first + row];
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

template <class P>
__global__ void __launch_bounds__(P::kThreads, resident_tiles(P::kShape))
    build_resident_table(const ResidentArguments<P> a) {
  __shared__ ResidentMemory<P> memory;
  const Tile tile{static_cast<std::int32_t>(blockIdx.x / a.table.tile_columns),
                  static_cast<std::int32_t>(blockIdx.x % a.table.tile_columns), 0};
  const std::int64_t values = blockIdx.x * std::int64_t{kResidentValues<P>};
  const ResidentRows<P> rows(a.table, tile);
  tell_rows(a, rows, memory, values);
  __syncthreads();
  tell_columns(a, memory, values);
  gather(a, memory, tile);
  __syncthreads();
  if (warp_index() == 0) scan_left(memory);
  __syncthreads();
  store_rows(a.table, rows, memory, tile);
}

}  // namespace cumulus::summed_area_table
