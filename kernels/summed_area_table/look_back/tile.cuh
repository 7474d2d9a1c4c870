#pragma once

#include <cstdint>

#include "kernels/primitives/async_copy.cuh"
#include "kernels/summed_area_table/look_back/traits.cuh"

// One tile of a block: how it is loaded, summed, scanned and stored. Each warp does so for some whole rows of
// the tile.

namespace cumulus::summed_area_table {

/// Starts to copy one element, or to write 0.
template <class T>
__device__ void copy_element_async(T* to, const T* from, bool exists) {
#if __CUDA_ARCH__ >= 800
  if constexpr (sizeof(T) >= 4) {
    constexpr int kBytes = sizeof(T);
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(
                     static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
                 "l"(from), "r"(exists ? kBytes : 0), "n"(kBytes)
                 : "memory");
    return;
  }
#endif
  *to = exists ? *from : T{};
}

/// Waits until the warp's copies have arrived.
__device__ inline void finish_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  __syncwarp();
}

/// Starts to load the warp's rows of a tile in words of 16 bytes; zeros beyond the image. The first row is
/// number `first_row` of the image, and its first element number `first_column` of its row, at `from`.
template <class P, bool kInside>
__device__ void load_words(const Arguments<P>& a, typename P::Input (*to)[P::kColumns],
                           const typename P::Input* from, std::int64_t first_row, std::int64_t first_column) {
  constexpr int kElementBytes = sizeof(typename P::Input);
  constexpr int kWordElements = 16 / kElementBytes;
  constexpr int kWords = P::kColumns / kWordElements;
  static_assert(P::kRowsPerWarp * kWords % 32 == 0, "every lane copies as many words");
  const std::int64_t columns = a.row_elements - first_column;
#pragma unroll
  for (int i = 0; i < P::kRowsPerWarp * kWords / 32; ++i) {
    const int row = (i * 32 + lane_index()) / kWords;
    const int column = (i * 32 + lane_index()) % kWords * kWordElements;
    const auto* word = from + row * a.image.row_stride + column;
    if constexpr (kInside) {
      copy_async(&to[row][column], word, evict_first_three_quarters());
    } else {
      const bool exists = first_row + row < a.height && column < columns;
      const int elements =
          columns - column < kWordElements ? static_cast<int>(columns - column) : kWordElements;
      copy_async_or_zero(&to[row][column], exists ? word : a.image.data,
                         exists ? elements * kElementBytes : 0, evict_first_three_quarters());
    }
  }
}

/// Starts to load the warp's rows of a tile; zero beyond the image.
template <class P>
__device__ void load_warp_rows(const Arguments<P>& a, TileMemory<P>& memory, Tile tile) {
  using Input = typename P::Input;
  const int strip_row = warp_index() * P::kRowsPerWarp;
  const std::int64_t first_row = std::int64_t{tile.row} * P::kRows + strip_row;
  const std::int64_t first_column = std::int64_t{tile.column} * P::kColumns;
  const Input* image = a.image.plane(tile.plane);
  if (a.image.aligned) {
    const Input* from = image + first_row * a.image.row_stride + first_column;
    if (inside(a, tile)) {
      load_words<P, true>(a, &memory.pixels[strip_row], from, first_row, first_column);
    } else {
      load_words<P, false>(a, &memory.pixels[strip_row], from, first_row, first_column);
    }
    return;
  }
#pragma unroll 8
  for (int i = lane_index(); i < P::kRowsPerWarp * P::kColumns; i += 32) {
    const std::int64_t y = first_row + i / P::kColumns;
    const std::int64_t x = first_column + i % P::kColumns;
    const bool exists = y < a.height && x < a.row_elements;
    const std::int64_t element = exists ? y * a.image.row_stride + x * a.image.element_stride() : 0;
    copy_element_async(&memory.pixels[strip_row][0] + i, image + element, exists);
  }
}

/// What to subtract from the pixels of each channel.
template <class P>
struct Offsets {
  typename P::Sum of_channel[P::kChannels] = {};

  __device__ Offsets(const Arguments<P>& a, Tile tile) {
    if constexpr (P::kTerms == Terms::kOffsets) {
#pragma unroll
      for (int channel = 0; channel < P::kChannels; ++channel)
        of_channel[channel] = a.offsets[std::int64_t{tile.plane} * P::kChannels + channel];
    }
  }
};

/// True where a pixel that load_warp_rows has set to zero, being beyond the image, must not be summed: less
/// its offset it would not be zero.
template <class P, Term kTerm>
__device__ bool beyond(const Arguments<P>& a, Tile tile, int row, int column) {
  if constexpr (kTerm != Term::kOffset) return false;
  return std::int64_t{tile.row} * P::kRows + row >= a.height ||
         std::int64_t{tile.column} * P::kColumns + column >= a.row_elements;
}

/// What is summed of the tile's pixels.
template <class P, Term kTerm>
struct Summands {
  using Sum = typename P::Sum;
  const Arguments<P>& a;
  const TileMemory<P>& memory;
  Tile tile;
  const Offsets<P>& offsets;

  /// Of four neighbouring pixels, of which the first is number `element` of its lane.
  __device__ Quad<Sum> at(int row, int column, int element) const {
    const auto pixels = quad_at(&memory.pixels[row][column]);
    Quad<Sum> quad;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      quad.v[i] = beyond<P, kTerm>(a, tile, row, column + i)
                      ? Sum{0}
                      : summand<kTerm, Sum>(pixels.v[i], offsets.of_channel[(element + i) % P::kChannels]);
    }
    return quad;
  }
};

/// Sums the warp's rows by columns and by rows.
template <class P, Term kTerm>
__device__ void sum_warp_rows(const Arguments<P>& a, TileMemory<P>& memory, Tile tile,
                              const Offsets<P>& offsets) {
  using Sum = typename P::Sum;
  constexpr int kTotals = P::kRowsPerWarp * P::kChannels;
  const Summands<P, kTerm> summands{a, memory, tile, offsets};
  Quad<Sum> columns[P::kSegments][P::kQuads] = {};
  Sum* rows = memory.rows + warp_index() * kTotals;
  constexpr int kAtOnce = P::kRowTotalsAtOnce;
  Sum pending[kAtOnce] = {};  // totals of rows and channels, this lane's part of them
#pragma unroll
  for (int r = 0; r < P::kRowsPerWarp; ++r) {
    const int row = warp_index() * P::kRowsPerWarp + r;
    Sum totals[P::kChannels] = {};
#pragma unroll
    for (int s = 0; s < P::kSegments; ++s) {
#pragma unroll
      for (int q = 0; q < P::kQuads; ++q) {
        const auto pixels = summands.at(row, quad_column<P>(s, q), q * 4);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          columns[s][q].v[i] += pixels.v[i];
          totals[(q * 4 + i) % P::kChannels] += pixels.v[i];
        }
      }
    }
#pragma unroll
    for (int channel = 0; channel < P::kChannels; ++channel) {
      const int number = r * P::kChannels + channel;
      pending[number % kAtOnce] = totals[channel];
      if (number % kAtOnce != kAtOnce - 1) continue;
      const Sum total = warp_sums(pending);
      constexpr int kLanes = 32 / kAtOnce;
      if (lane_index() % kLanes == 0) rows[number - (kAtOnce - 1) + lane_index() / kLanes] = total;
    }
  }
#pragma unroll
  for (int number = kTotals / kAtOnce * kAtOnce; number < kTotals; ++number) {
    const Sum total = warp_sum<Sum>(pending[number % kAtOnce]);
    if (lane_index() == 0) rows[number] = total;
  }
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
#pragma unroll
    for (int q = 0; q < P::kQuads; ++q) {
      quad_at(&memory.warp_columns[warp_index()][quad_column<P>(s, q)]) = columns[s][q];
    }
  }
}

/// Stores the warp's quads, `stride` elements from lane to lane, `to` being this lane's place; of lanes for
/// which they exist. One instruction writes 16 bytes a lane and memory takes whole sectors of 32: of quads of
/// 32 bytes two lanes write one together, then the other.
template <class Sum>
__device__ void store_quads(Sum* to, int stride, const Quad<Sum>& quad, bool exists = true) {
  const auto* words = reinterpret_cast<const uint4*>(&quad);
  if constexpr (sizeof(quad) == 16) {
    if (exists) __stcs(reinterpret_cast<uint4*>(to), words[0]);
  } else {
    const bool odd = lane_index() % 2 == 1;
    const bool other_exists = __shfl_xor_sync(kFullWarp, exists, 1);
    const uint4 given = odd ? words[0] : words[1];
    const uint4 taken{__shfl_xor_sync(kFullWarp, given.x, 1), __shfl_xor_sync(kFullWarp, given.y, 1),
                      __shfl_xor_sync(kFullWarp, given.z, 1), __shfl_xor_sync(kFullWarp, given.w, 1)};
    Sum* first = odd ? to - stride + 2 : to;
    if (odd ? other_exists : exists) __stcs(reinterpret_cast<uint4*>(first), odd ? taken : words[0]);
    if (odd ? exists : other_exists) __stcs(reinterpret_cast<uint4*>(first + stride), odd ? words[1] : taken);
  }
}

/// The lane's quads of one row of the tile to the warp's shared memory, from where lanes take neighbouring
/// words of 16 bytes: the word `word` of the row. Of lanes that have an even number of words every second
/// eight change places in pairs, so that eight lanes meet no bank twice.
template <class P>
constexpr __device__ int place_of_word(int word) {
  constexpr int kLaneWords = P::kElements * static_cast<int>(sizeof(typename P::Sum)) / 16;
  return kLaneWords % 2 == 0 ? word ^ (word / 8 & 1) : word;
}
template <class P>
__device__ void stage_row(uint4* staged, const Quad<typename P::Sum> (&row)[P::kSegments][P::kQuads]) {
  constexpr int kQuadWords = sizeof(row[0][0]) / 16;
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
#pragma unroll
    for (int q = 0; q < P::kQuads; ++q) {
      const auto* words = reinterpret_cast<const uint4*>(&row[s][q]);
#pragma unroll
      for (int i = 0; i < kQuadWords; ++i)
        staged[place_of_word<P>(quad_column<P>(s, q) / 4 * kQuadWords + i)] = words[i];
    }
  }
}

/// The first `columns` of them, which are whole words.
template <class P>
__device__ void store_staged_row(typename P::Sum* to, const uint4* staged, int columns = P::kColumns) {
  constexpr int kWordSums = 16 / sizeof(typename P::Sum);
  constexpr int kWords = P::kColumns / kWordSums;
#pragma unroll
  for (int i = 0; i < kWords / 32; ++i) {
    const int word = i * 32 + lane_index();
    if (word * kWordSums < columns)
      __stcs(reinterpret_cast<uint4*>(to) + word, staged[place_of_word<P>(word)]);
  }
}

/// Writes the lane's quads of one row of the tile: by way of shared memory (the warp's sums by column are not
/// needed any more), so that lanes write neighbours, unless they have such anyway.
template <class P>
__device__ void store_row(const Arguments<P>& a, const typename Arguments<P>::Table& table,
                          TileMemory<P>& memory, Tile tile, int tile_row,
                          const Quad<typename P::Sum> (&row)[P::kSegments][P::kQuads]) {
  using Sum = typename P::Sum;
  constexpr int kWordSums = 16 / sizeof(Sum);
  const std::int64_t y = std::int64_t{tile.row} * P::kRows + tile_row;
  const std::int64_t first_column = std::int64_t{tile.column} * P::kColumns;
  Sum* to = table.plane(tile.plane) + y * table.row_stride + first_column * table.element_stride();
  const bool whole = table.aligned && inside(a, tile);
  if constexpr (P::kElements == kWordSums) {
    if (whole) {
#pragma unroll
      for (int s = 0; s < P::kSegments; ++s)
        __stcs(reinterpret_cast<uint4*>(to + quad_column<P>(s, 0)),
               *reinterpret_cast<const uint4*>(&row[s][0]));
      return;
    }
  }
  auto* staged = reinterpret_cast<uint4*>(memory.warp_columns[warp_index()]);
  stage_row<P>(staged, row);
  __syncwarp();
  if (whole) {
    store_staged_row<P>(to, staged);
  } else if (y < a.height && table.aligned && a.row_elements % kWordSums == 0) {
    const std::int64_t columns = a.row_elements - first_column;
    store_staged_row<P>(to, staged, columns < P::kColumns ? static_cast<int>(columns) : P::kColumns);
  } else if (y < a.height) {
    const auto* sums = reinterpret_cast<const Sum*>(staged);
    for (int i = lane_index(); i < P::kColumns && first_column + i < a.row_elements; i += 32) {
      __stcs(to + i * table.element_stride(),
             sums[place_of_word<P>(i / kWordSums) * kWordSums + i % kWordSums]);
    }
  }
  __syncwarp();
}

/// The zeros of an exclusive table that border on the tile: a row above the image, a column before it.
template <class P>
__device__ void store_zeros(const Arguments<P>& a, const typename Arguments<P>::Table& table, Tile tile) {
  using Sum = typename P::Sum;
  Sum* origin = table.plane(tile.plane);
  const auto thread = static_cast<int>(threadIdx.x);
  const std::int64_t first_column = std::int64_t{tile.column} * P::kColumns;
  if (tile.row == 0) {
    for (int i = thread; i < P::kColumns && first_column + i < a.row_elements; i += P::kThreads)
      origin[(first_column + i) * table.element_stride() - table.row_stride] = Sum{0};
  }
  if (tile.column != 0) return;
  const std::int64_t first_row = std::int64_t{tile.row} * P::kRows;
  for (int i = thread - 1; i < P::kRows && first_row + i < a.height; i += P::kThreads) {
    if (i < 0 && tile.row > 0) continue;  // the row above is another tile's
#pragma unroll
    for (int channel = 1; channel <= P::kChannels; ++channel)
      origin[(first_row + i) * table.row_stride - channel * table.element_stride()] = Sum{0};
  }
}

/// The exclusive prefixes along x of the tile's rows up to this one, summed, and the corner.
template <class P>
__device__ typename P::Sum left_of_row(const TileMemory<P>& memory, int row, int channel) {
  typename P::Sum corner = 0;
  typename P::Sum groups_before = 0;
#pragma unroll
  for (int group = 0; group < P::kRowGroups; ++group) {
    corner += memory.group_corner[group * P::kChannels + channel];
    if (group < row / 32) groups_before += memory.group_left[group * P::kChannels + channel];
  }
  return corner + (groups_before + memory.rows[row * P::kChannels + channel]);
}

/// Scans the warp's rows on top of the exclusive prefixes, and stores them.
template <class P, Term kTerm>
__device__ void store_warp_rows(const Arguments<P>& a, const typename Arguments<P>::Table& table,
                                TileMemory<P>& memory, Tile tile, const Offsets<P>& offsets) {
  using Sum = typename P::Sum;
  constexpr int kElements = P::kElements;
  const Summands<P, kTerm> summands{a, memory, tile, offsets};
  Sum columns[P::kSegments][kElements];
#pragma unroll
  for (int s = 0; s < P::kSegments; ++s) {
#pragma unroll
    for (int q = 0; q < P::kQuads; ++q) {
      const int column = quad_column<P>(s, q);
      const auto above = quad_at(&memory.above[column]);
      const auto strips = quad_at(&memory.warp_columns[warp_index()][column]);
#pragma unroll
      for (int i = 0; i < 4; ++i) columns[s][q * 4 + i] = above.v[i] + strips.v[i];
    }
  }
  __syncwarp();
#pragma unroll
  for (int r = 0; r < P::kRowsPerWarp; ++r) {
    const int tile_row = warp_index() * P::kRowsPerWarp + r;
    Sum base[P::kChannels];
#pragma unroll
    for (int channel = 0; channel < P::kChannels; ++channel)
      base[channel] = left_of_row<P>(memory, tile_row, channel);
    Quad<Sum> row[P::kSegments][P::kQuads];
#pragma unroll
    for (int s = 0; s < P::kSegments; ++s) {
      Sum scan[kElements];
#pragma unroll
      for (int q = 0; q < P::kQuads; ++q) {
        const auto pixels = summands.at(tile_row, quad_column<P>(s, q), q * 4);
#pragma unroll
        for (int e = q * 4; e < q * 4 + 4; ++e) {
          columns[s][e] += pixels.v[e % 4];
          scan[e] = columns[s][e];
          if (e >= P::kChannels) scan[e] += scan[e - P::kChannels];
        }
      }
      Sum before[P::kChannels];
#pragma unroll
      for (int channel = 0; channel < P::kChannels; ++channel) {
        const Sum through_lane = warp_inclusive_sum(scan[kElements - P::kChannels + channel]);
        before[channel] = base[channel] + before_lane(through_lane);
        base[channel] += __shfl_sync(kFullWarp, through_lane, 31);
      }
#pragma unroll
      for (int e = 0; e < kElements; ++e) row[s][e / 4].v[e % 4] = before[e % P::kChannels] + scan[e];
    }
    store_row<P>(a, table, memory, tile, tile_row, row);
  }
}

}  // namespace cumulus::summed_area_table
