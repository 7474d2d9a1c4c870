#pragma once

#include <climits>
#include <cstdint>

#include "kernels/bracket_match/tile_memory.cuh"

// Matching across tiles.

namespace cumulus::bracket_match {

/// Tiles of a block: one for each warp.
inline constexpr int kLinkedTiles = kTileWarps;

/// Elements of the words that a warp reads together.
inline constexpr int kStretchItems = 32 * kThreadItems;

template <class Symbol>
struct LinkMemory {
  /// Of the tile that each warp links: closes that reach out of it, by their numbers in it, in order.
  std::uint16_t closes[kTileWarps][kStretchItems];
  std::int64_t opens[kTileWarps][kLinkedAtOnce];  // that they pop
  BlockTally tally;
  typename Rules<Symbol>::Shared rules;
};
static_assert(kFewCloses <= kStretchItems);

/// Pairs the closes of the block's tiles with the opens of earlier tiles.
template <class Symbol, class Index>
class TileLinker {
  using Memory = LinkMemory<Symbol>;

 public:
  __device__ TileLinker(const Arguments<Symbol, Index>& arguments, Memory& memory)
      : a_(arguments),
        memory_(memory),
        thread_(static_cast<int>(threadIdx.x)),
        tile_(std::int64_t{blockIdx.x} * kLinkedTiles + thread_ / 32),
        first_(tile_ * kTileItems) {}

  __device__ void run() {
    memory_.tally.clear();
    const int pops = tile_ < a_.tiles.count ? a_.tiles.change[tile_].closes : 0;
    if (__syncthreads_or(static_cast<int>(pops > kFewCloses)) != 0) {
      a_.rules.prepare(memory_.rules);
      __syncthreads();
    }
    if (pops > kFewCloses) {
      link_many();
    } else if (pops > 0) {
      link_few(pops);
    }
    __syncthreads();
    memory_.tally.publish(found_, a_.findings);
  }

 private:
  __device__ void link_many() {
    const int lane = thread_ % 32;
    const std::uint16_t* numbers = memory_.closes[thread_ / 32];
    std::int64_t* opens = memory_.opens[thread_ / 32];
    const std::int64_t depth = a_.tiles.depth[tile_];
    OpenCursor cursor(a_.tiles, tile_, depth);
    int before = 0;  // closes of the stretches before
#pragma unroll 1
    for (int stretch = 0; stretch < kTileWarps; ++stretch) {
      const int count = list_stretch(stretch);
      const auto served =
          static_cast<int>(max(min(depth - before, static_cast<std::int64_t>(count)), std::int64_t{0}));
#pragma unroll 1
      for (int first = 0; first < served; first += kLinkedAtOnce) {
        const int end = min(first + kLinkedAtOnce, served);
        const int base = before + first;
        cursor.for_opens(base, before + end,
                         [&](int number, std::int64_t open) { opens[number - base] = open; });
        __syncwarp();
        pair_listed(numbers + first, opens, end - first);
        __syncwarp();
      }
      for (int number = served + lane; number < count; number += 32) lose(close(numbers, number));
      before += count;
      __syncwarp();
    }
    if (depth > before) meet_first_beginning();
  }

  /// The `count` closes that are listed with the opens that are: several at a time, as their symbols are far.
  __device__ void pair_listed(const std::uint16_t* numbers, const std::int64_t* listed, int count) {
    constexpr int kAtOnce = 4;
    for (int number = thread_ % 32; number < count; number += kAtOnce * 32) {
      std::int64_t opens[kAtOnce];
      std::int64_t closes[kAtOnce];
      bool fits[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int mine = min(number + i * 32, count - 1);
        opens[i] = listed[mine];
        closes[i] = close(numbers, mine);
        fits[i] = memory_.rules.fit(a_.text[opens[i]], a_.text[closes[i]]);
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (number + i * 32 < count) pair(fits[i], opens[i], closes[i]);
      }
    }
  }

  /// No document begins in a tile of few pops. Its closes are dealt out to the lanes.
  __device__ void link_few(int closes) {
    const int lane = thread_ % 32;
    std::uint16_t* numbers = memory_.closes[thread_ / 32];
    list_few_closes(numbers);
    const std::int64_t depth = a_.tiles.depth[tile_];
    const auto served = static_cast<int>(min(depth, static_cast<std::int64_t>(closes)));
    for (int first = 0; first < served; first += 32) {
      const std::int64_t open = listed_open(depth, first + lane, first + lane < served);
      if (open >= 0) pair_few(open, close(numbers, first + lane));
      const std::uint32_t others = __ballot_sync(kAllLanes, open < 0 && first + lane < served);
      if (others == 0) continue;
      OpenCursor(a_.tiles, tile_, depth)
          .for_opens(first + lowest_bit(others), first + highest_bit(others) + 1,
                     [&](int number, std::int64_t far) {
                       if ((others >> (number - first) & 1) != 0) pair_few(far, close(numbers, number));
                     });
    }
    for (int number = served + lane; number < closes; number += 32) lose(close(numbers, number));
  }

  /// What the tile's pop `number` pops, if one of the tiles not far before has pushed it and lists it;
  /// otherwise, and to lanes that do not ask, -1. Each lane asks for its own. The stack before the tile is
  /// `depth` deep.
  __device__ std::int64_t listed_open(std::int64_t depth, int number, bool asks) const {
    constexpr int kWindows = 4;
    const int lane = thread_ % 32;
    std::int64_t open = -1;
    for (int window = 0; window < kWindows; ++window) {
      const std::int64_t nearest = tile_ - 1 - 32 * window;
      // How many pops it takes to get to the bottom of that lane's tile.
      int pops = -1;
      if (nearest >= lane) {
        pops = static_cast<int>(
            max(min(depth - a_.tiles.bottoms[nearest - lane], std::int64_t{INT_MAX}), std::int64_t{-1}));
      }
      const int most = warp_prefix_max(pops);
      int server = 0;  // the first lane whose tile's bottom is beyond the lane's own pop, if there is one
#pragma unroll
      for (int step = 16; step > 0; step /= 2) {
        if (__shfl_sync(kAllLanes, most, server + step - 1) <= number) server += step;
      }
      const int rank = __shfl_sync(kAllLanes, most, server) - number - 1;
      if (asks && rank >= 0) {
        asks = false;
        const std::int64_t tile = nearest - server;
        if (rank < kListedOpens) open = tile * kTileItems + a_.tiles.listed_opens[tile * kListedOpens + rank];
      }
      if (!__any_sync(kAllLanes, asks)) break;
    }
    return open;
  }

  __device__ void list_few_closes(std::uint16_t* numbers) const {
    const int lane = thread_ % 32;
    constexpr int kWords = kTileThreads / 32;
    std::uint32_t words[kWords];
    int own = 0;
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      words[k] = a_.tiles.reaching_closes[tile_ * kTileThreads + lane * kWords + k];
      own += __popc(words[k]);
    }
    int number = warp_prefix_sum(own) - own;
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      for (std::uint32_t bits = words[k]; bits != 0; bits &= bits - 1, ++number) {
        numbers[number] = static_cast<std::uint16_t>((lane * kWords + k) * kThreadItems + lowest_bit(bits));
      }
    }
    __syncwarp();
  }

  /// Lists the closes of one stretch of the tile; returns how many there are. By a whole warp.
  __device__ int list_stretch(int stretch) {
    const int lane = thread_ % 32;
    const int word = stretch * 32 + lane;
    std::uint32_t closes = a_.tiles.reaching_closes[tile_ * kTileThreads + word];
    const int through = warp_prefix_sum(__popc(closes));
    std::uint16_t* numbers = memory_.closes[thread_ / 32] + through - __popc(closes);
    for (; closes != 0; closes &= closes - 1, ++numbers) {
      *numbers = static_cast<std::uint16_t>(word * kThreadItems + lowest_bit(closes));
    }
    __syncwarp();
    return __shfl_sync(kAllLanes, through, 31);
  }

  __device__ std::int64_t close(const std::uint16_t* numbers, int number) const {
    return first_ + numbers[number];
  }

  __device__ void pair_few(std::int64_t open, std::int64_t close) {
    pair(a_.rules.fit(a_.text[open], a_.text[close]), open, close);
  }
  __device__ void pair(bool fits, std::int64_t open, std::int64_t close) {
    if (!fits) return lose(close);
    found_.unmatched -= 2;
    if (a_.outputs.partner == nullptr) return;
    a_.outputs.partner[close] = static_cast<Index>(open);
    a_.outputs.partner[open] = static_cast<Index>(close);
  }

  __device__ void lose(std::int64_t close) { found_.meet(2 * close + kCloseFault); }

  /// Something is left below the tile: if a document begins in the tile, the one before is unclosed there.
  __device__ void meet_first_beginning() {
    for (int stretch = 0; stretch < kTileWarps; ++stretch) {
      const int word = stretch * 32 + thread_ % 32;
      const std::uint32_t begins = a_.tiles.begins_of(tile_ * kTileThreads + word);
      const std::uint32_t words = __ballot_sync(kAllLanes, begins != 0);
      if (words == 0) continue;
      if (thread_ % 32 == lowest_bit(words))
        found_.meet(2 * (first_ + word * kThreadItems + lowest_bit(begins)) + kUnclosedFault);
      return;
    }
  }

  const Arguments<Symbol, Index>& a_;
  Memory& memory_;
  const int thread_;
  const std::int64_t tile_;  // the warp's
  const std::int64_t first_;
  Found found_;
};

}  // namespace cumulus::bracket_match
