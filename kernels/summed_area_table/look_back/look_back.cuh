#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/summed_area_table/tuning.h"

// How tiles of a two-dimensional grid tell each other their sums, without waiting for the whole grid.

namespace cumulus::summed_area_table {

/// A tile of the grid of one plane; a row of -1: none.
struct Tile {
  std::int32_t row;
  std::int32_t column;
  std::uint32_t plane;
};

/// The largest d with d (d + 1) / 2 <= n.
__device__ inline std::uint32_t triangle_root(std::uint32_t n) {
  auto d = static_cast<std::uint64_t>((sqrtf(8.0f * static_cast<float>(n) + 1.0f) - 1.0f) * 0.5f);
  while (d * (d + 1) / 2 > n) --d;
  while ((d + 1) * (d + 2) / 2 <= n) ++d;
  return static_cast<std::uint32_t>(d);
}

/// Planes are taken one after the other, their tiles in the order of their diagonals (row + column), so that
/// the tiles above and to the left of a tile have lower tickets. A block waits for lower tickets only, and
/// takes them one after the other: the block with the lowest ticket never waits, however few blocks are
/// resident. `ticket` counts from the plane's first.
__device__ inline Tile tile_of_ticket(std::uint32_t plane, std::uint32_t ticket, std::uint32_t rows,
                                      std::uint32_t columns) {
  const std::uint32_t longest = min(rows, columns);
  const std::uint32_t tiles = rows * columns;
  const auto growing =
      static_cast<std::uint32_t>(std::uint64_t{longest} * (longest - 1) / 2);  // the shorter diagonals
  std::uint32_t diagonal;
  std::uint32_t place;
  if (ticket < growing) {
    diagonal = triangle_root(ticket);
    place = ticket - static_cast<std::uint32_t>(std::uint64_t{diagonal} * (diagonal + 1) / 2);
  } else if (ticket < tiles - growing) {
    diagonal = longest - 1 + (ticket - growing) / longest;
    place = (ticket - growing) % longest;
  } else {
    const std::uint32_t from_end = tiles - 1 - ticket;
    const std::uint32_t mirrored = triangle_root(from_end);
    diagonal = rows + columns - 2 - mirrored;
    place = mirrored - (from_end - static_cast<std::uint32_t>(std::uint64_t{mirrored} * (mirrored + 1) / 2));
  }
  const std::uint32_t row = (diagonal >= columns ? diagonal - (columns - 1) : 0) + place;
  return {static_cast<std::int32_t>(row), static_cast<std::int32_t>(diagonal - row), plane};
}

/// What a word says: nothing yet, the tile's own sum, or the sum of the tile and all before it.
enum class State : std::uint32_t { kEmpty = 0, kAggregate = 1, kInclusive = 2 };

/// State and value in one machine word, which is read and written whole: a reader that sees the
/// state sees the value, and nothing else needs ordering. All bytes zero: empty.
template <class Sum>
struct alignas(sizeof(Sum) <= 4 ? 8 : 16) Word {
  std::uint64_t parts[sizeof(Sum) <= 4 ? 1 : 2];
};

template <class Sum>
struct Published {
  State state;
  Sum value;
};

template <class Sum>
__device__ void publish(Word<Sum>* word, State state, Sum value) {
  if constexpr (sizeof(Sum) <= 4) {
    std::uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    const std::uint64_t whole = static_cast<std::uint64_t>(state) << 32 | bits;
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(whole) : "memory");
  } else {
    std::uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    asm volatile(
        "{ .reg .b128 whole; mov.b128 whole, {%1, %2}; st.relaxed.gpu.global.b128 [%0], whole; }" ::"l"(word),
        "l"(bits), "l"(static_cast<std::uint64_t>(state))
        : "memory");
  }
}

template <class Sum>
__device__ Published<Sum> read(const Word<Sum>* word) {
  Published<Sum> published;
  if constexpr (sizeof(Sum) <= 4) {
    std::uint64_t whole;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(whole) : "l"(word) : "memory");
    const auto bits = static_cast<std::uint32_t>(whole);
    memcpy(&published.value, &bits, sizeof(bits));
    published.state = static_cast<State>(whole >> 32);
  } else {
    std::uint64_t bits;
    std::uint64_t state;
    asm volatile("{ .reg .b128 whole; ld.relaxed.gpu.global.b128 whole, [%2]; mov.b128 {%0, %1}, whole; }"
                 : "=l"(bits), "=l"(state)
                 : "l"(word)
                 : "memory");
    memcpy(&published.value, &bits, sizeof(bits));
    published.state = static_cast<State>(state);
  }
  return published;
}

/// The sum over all `available` tiles before this one, whose words lie `stride`, 2 * stride, ...
/// before `word`. Waits until the nearest kLookBackWindow of them suffice.
///
/// Sums are always added in the tiles' order, to the inclusive sum they follow, and an inclusive sum
/// is itself made so: the result has the same bits whichever tiles were ready.
template <class Sum>
__device__ Sum look_back(const Word<Sum>* word, std::int64_t stride, int available) {
  Published<Sum> window[kLookBackWindow];
#pragma unroll
  for (int k = 0; k < kLookBackWindow; ++k) {
    window[k] = {k < available ? State::kEmpty : State::kInclusive, Sum{0}};  // 0: before the first tile
  }
  // Mostly the nearest tiles know already; the whole window is for the start, when all begin at once.
  for (bool whole_window = false;; whole_window = true) {
#pragma unroll
    for (int k = 0; k < kLookBackWindow; ++k) {
      // Of the tiles known by their own sums only the farthest can end the wait.
      const bool farthest = k == kLookBackWindow - 1;
      const bool wanted = whole_window || k < kFirstLook;
      if (wanted &&
          (window[k].state == State::kEmpty || (farthest && window[k].state == State::kAggregate))) {
        window[k] = read(word - (k + 1) * stride);
      }
    }
    Sum sum = 0;
    bool reached = false;
#pragma unroll
    for (int k = kLookBackWindow - 1; k >= 0; --k) {
      sum = window[k].state == State::kInclusive ? window[k].value : sum + window[k].value;
      reached = window[k].state == State::kInclusive || (reached && window[k].state == State::kAggregate);
    }
    if (reached) return sum;
  }
}

}  // namespace cumulus::summed_area_table
