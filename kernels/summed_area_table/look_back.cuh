#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/summed_area_table/summed_area_table_tuning.h"

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
/// resident.
__device__ inline Tile tile_of_ticket(std::uint32_t ticket, std::uint32_t rows, std::uint32_t columns) {
  const std::uint32_t plane = ticket / (rows * columns);
  ticket -= plane * rows * columns;
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
enum class State : std::uint32_t { kEmpty = 0, kOwn = 1, kInclusive = 2 };

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

/// Waits until a word says at least `state`. One word, not the whole window: a device full of waiting blocks
/// would leave nothing of its caches' bandwidth to those that work.
template <class Sum>
__device__ void wait_for(const Word<Sum>* word, State state) {
  while (read(word).state < state) {
  }
}

/// What the words of the tiles before this one have said.
template <class Sum>
struct LookBack {
  bool reached;  // `sum` is the sum over all tiles before this one
  Sum sum;
  int unknown;  // else the nearest tile that has said nothing, 0 the nearest of all; the window's size: none
};

/// Looks at the nearest `kTiles` of `available` tiles, their words lying `stride`, 2 * stride, ... before
/// `word`. All words are asked for before the first is looked at: the answers take long, whatever their
/// number.
///
/// Sums are always added in the tiles' order, to the inclusive sum they follow, and an inclusive sum
/// is itself made so: the result has the same bits whichever tiles were ready.
template <int kTiles, class Sum>
__device__ LookBack<Sum> look_at(const Word<Sum>* word, std::int64_t stride, int available) {
  Published<Sum> window[kTiles];
#pragma unroll
  for (int k = 0; k < kTiles; ++k) window[k] = read(word - (k < available ? k + 1 : 0) * stride);
  LookBack<Sum> seen{false, Sum{0}, kTiles};
#pragma unroll
  for (int k = kTiles - 1; k >= 0; --k) {
    const bool before_first = k >= available;
    const State state = before_first ? State::kInclusive : window[k].state;
    const Sum value = before_first ? Sum{0} : window[k].value;
    seen.sum = state == State::kInclusive ? value : seen.sum + value;
    seen.reached = state == State::kInclusive || (seen.reached && state == State::kOwn);
    if (state == State::kEmpty) seen.unknown = k;
    if (state == State::kInclusive) seen.unknown = kTiles;
  }
  return seen;
}

/// The sum over all `available` tiles before this one, a chain of words for each lane. Waits until the
/// nearest kLookBackWindow tiles suffice for all lanes. The whole warp calls it; lanes that are not `active`
/// have any word of the tile and get no sum.
template <class Sum>
__device__ Sum look_back(const Word<Sum>* word, std::int64_t stride, int available, bool active) {
  // Mostly the nearest tiles know already; the whole window is for the start, when all begin at once.
  LookBack<Sum> seen = look_at<kFirstLook>(word, stride, available);
  for (int tiles = kFirstLook; !__all_sync(~0u, seen.reached || !active); tiles = kLookBackWindow) {
    if (active && !seen.reached) {
      if (seen.unknown < tiles) {
        wait_for(word - (seen.unknown + 1) * stride, State::kOwn);
      } else if (tiles == kLookBackWindow) {
        wait_for(word - kLookBackWindow * stride, State::kInclusive);
      }
    }
    __syncwarp();
    seen = look_at<kLookBackWindow>(word, stride, available);
  }
  return seen.sum;
}

/// The same of one word only, with a lane of the warp for each of the nearest 32 tiles; every lane gets the
/// sum.
template <class Sum>
__device__ Sum look_back_wide(const Word<Sum>* word, std::int64_t stride, int available) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const bool before_first = lane >= available;
  const Word<Sum>* of_lane = word - (before_first ? 0 : lane + 1) * stride;
  for (;;) {
    const Published<Sum> seen = read(of_lane);
    const State state = before_first ? State::kInclusive : seen.state;
    const unsigned int inclusive = __ballot_sync(~0u, state == State::kInclusive);
    const unsigned int nearer =
        (inclusive & (~inclusive + 1)) - 1;  // than the nearest inclusive sum; all: none
    const unsigned int empty = __ballot_sync(~0u, state == State::kEmpty) & nearer;
    if (inclusive != 0 && empty == 0) {
      const int first = __popc(nearer);
      const Sum value = before_first ? Sum{0} : seen.value;
      Sum sum = __shfl_sync(~0u, value, first);
      for (int k = first - 1; k >= 0; --k) sum += __shfl_sync(~0u, value, k);
      return sum;
    }
    const int waiting = empty != 0 ? __ffs(static_cast<int>(empty)) - 1 : 31;
    if (lane == waiting) wait_for(of_lane, empty != 0 ? State::kOwn : State::kInclusive);
    __syncwarp();
  }
}

}  // namespace cumulus::summed_area_table
