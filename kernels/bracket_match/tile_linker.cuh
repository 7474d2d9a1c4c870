#pragma once

#include <climits>
#include <cstdint>

#include "kernels/bracket_match/tile_memory.cuh"

// Matching across tiles.

namespace cumulus::bracket_match {

/// Tiles that one block links: enough for each warp to go on to another while a neighbour is held up, few
/// where there are not many tiles.
inline std::int64_t linked_tiles(std::int64_t tiles) {
  return tiles >= 16 * 1024 ? 4 * kTileWarps : kTileWarps;
}

/// The elements that one tile leaves to others, or those of them that are opens, where they are too many to
/// be listed: the words of bits in shared memory, each with how many bits are set in those before. By a warp.
class LeftItems {
 public:
  struct alignas(8) Word {
    std::uint32_t bits;
    std::int32_t before;
  };
  using Memory = Word[kTileThreads];

  /// How many there are is returned; for each() may follow at once.
  __device__ int take(Memory& memory, const std::uint32_t* left_items, std::int64_t tile) {
    memory_ = memory;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const uint4 own = reinterpret_cast<const uint4*>(left_items + tile * kTileThreads)[lane];
    const std::uint32_t words[kWords] = {own.x, own.y, own.z, own.w};
    int count = 0;
#pragma unroll
    for (int k = 0; k < kWords; ++k) count += __popc(words[k]);
    const int through = warp_prefix_sum(count);
    before_ = through - count;
    int before = before_;
    __syncwarp();
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      memory[lane * kWords + k] = {words[k], before};
      before += __popc(words[k]);
    }
    __syncwarp();
    return __shfl_sync(kAllLanes, through, 31);
  }

  /// Calls use(item, fetch(number, item)) for the elements from number `first` to before `end`, each by one
  /// lane; for those of several words first all fetch, as what they fetch may be far.
  template <class Fetch, class Use>
  __device__ void for_each(int first, int end, const Fetch& fetch, const Use& use) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const std::uint32_t lanes_before = (1u << lane) - 1;
    const auto count = static_cast<unsigned int>(end - first);
    int word = highest_bit(__ballot_sync(kAllLanes, before_ <= first)) * kWords;
#pragma unroll 1
    for (; word < kTileThreads && memory_[word].before < end; word += kWords) {
      decltype(fetch(0, 0)) fetched[kWords];
      bool wanted[kWords];
#pragma unroll
      for (int k = 0; k < kWords; ++k) {
        const Word it = memory_[word + k];
        const int number = it.before + __popc(it.bits & lanes_before);
        wanted[k] = (it.bits >> lane & 1) != 0 && static_cast<unsigned int>(number - first) < count;
        if (wanted[k]) fetched[k] = fetch(number, (word + k) * kThreadItems + lane);
      }
#pragma unroll
      for (int k = 0; k < kWords; ++k) {
        if (wanted[k]) use((word + k) * kThreadItems + lane, fetched[k]);
      }
    }
  }

 private:
  static constexpr int kWords = kTileThreads / 32;  // of one lane

  const Word* memory_;
  int before_;  // the lane's first word
};

template <class Symbol>
struct LinkMemory {
  struct Warp {
    LeftItems::Memory closes;
    LeftItems::Memory opens;
    std::uint16_t numbers[kLinkedAtOnce];  // in their tile, of a stretch of opens or of closes
  };
  Warp warps[kTileWarps];
  BlockTally tally;
  typename Rules<Symbol>::Mates mates;
};

/// The 32 tiles before a tile, one to each lane, the nearest to the first.
struct TileWindow {
  std::int64_t nearest;
  std::int64_t bottom;  // of the lane's
  std::int32_t opens;

  __device__ TileWindow(const DeviceTiles& tiles, std::int64_t end)
      : nearest(end - 1), bottom(INT64_MAX), opens(0) {
    const std::int64_t tile = nearest - threadIdx.x % 32;
    if (tile < 0 || tile >= tiles.count) return;
    bottom = tiles.bottoms[tile];
    opens = tiles.change[tile].opens;
  }

  /// How many pops out of a stack `depth` deep it takes to the least of the bottoms of the tiles up to the
  /// lane's: what the tile serves comes before.
  __device__ int reach(std::int64_t depth) const {
    return warp_prefix_max(
        static_cast<int>(max(min(depth - bottom, std::int64_t{INT_MAX}), std::int64_t{-1})));
  }
};

/// Pairs the closes of the block's tiles with the opens of earlier tiles.
template <class Symbol, class Index>
class TileLinker {
  using Memory = LinkMemory<Symbol>;

 public:
  /// The block links `tiles`, at most 32.
  __device__ TileLinker(const Arguments<Symbol, Index>& arguments, int tiles, Memory& memory)
      : a_(arguments),
        memory_(memory),
        own_(memory.warps[threadIdx.x / 32]),
        warp_(static_cast<int>(threadIdx.x) / 32),
        lane_(static_cast<int>(threadIdx.x) % 32),
        tiles_(tiles),
        block_first_(std::int64_t{blockIdx.x} * tiles) {}

  __device__ void run() {
    const bool has_tile = lane_ < tiles_ && block_first_ + lane_ < a_.tiles.count;
    pops_ = has_tile ? a_.tiles.change[block_first_ + lane_].closes : 0;
    depths_ = has_tile ? a_.tiles.depth[block_first_ + lane_] : 0;
    memory_.tally.clear();
    a_.rules.prepare_mates(memory_.mates);
    few_ = __ballot_sync(kAllLanes, pops_ > 0 && is_listed(pops_)) & (kEachOwn << warp_);
    many_ = __ballot_sync(kAllLanes, !is_listed(pops_));
    __syncthreads();
    link_tiles();
    __syncthreads();
    memory_.tally.publish(found_, a_.findings);
  }

 private:
  static constexpr std::uint32_t kEachOwn = 0x11111111;  // tiles of the first warp
  static_assert(kTileWarps == 4);

  /// Of few closes first: each warp has its own. Then those of many: all warps together. The window of the
  /// next tile is asked for before one is linked.
  __device__ void link_tiles() {
    if ((few_ | many_) == 0) return;
    int next = take_tile();
    TileWindow next_window(a_.tiles, block_first_ + next);
    while (next >= 0) {
      const int tile = next;
      const TileWindow window = next_window;
      next = (few_ | many_) == 0 ? -1 : take_tile();
      if (next >= 0) next_window = TileWindow(a_.tiles, block_first_ + next);
      link(turn_to(tile), window);
    }
  }
  __device__ int take_tile() {
    const int tile = lowest_bit(few_ != 0 ? few_ : many_);
    if (few_ == 0) many_ &= many_ - 1;
    few_ &= few_ - 1;
    return tile;
  }

  /// Turns to the block's tile number `i`; returns its pops.
  __device__ int turn_to(int i) {
    tile_ = block_first_ + i;
    depth_ = __shfl_sync(kAllLanes, depths_, i);
    return __shfl_sync(kAllLanes, pops_, i);
  }

  __device__ void link(int pops, TileWindow window) {
    closes_listed_ = is_listed(pops);
    const int closes = closes_listed_ ? pops : closes_.take(own_.closes, a_.tiles.reaching_closes, tile_);
    const auto served = static_cast<int>(min(depth_, static_cast<std::int64_t>(closes)));
    for (int number = 0;;) {
      number = link_in(window, number, served);
      if (number == served) break;
      const std::int64_t tile = last_tile_below(a_.tiles, window.nearest - 31, depth_ - number);
      window = TileWindow(a_.tiles, tile + 1);
    }
    if (!is_mine(0)) return;
    lose_from(served, closes);
    if (depth_ > closes && reaches_beyond_a_beginning(pops)) meet_first_beginning();
  }

  /// Of the warps that share a tile, this one links the stretch of closes that has `number`.
  __device__ bool is_mine(int number) const {
    return closes_listed_ || number / kLinkedAtOnce % kTileWarps == warp_;
  }

  /// Links the closes from `number` on that tiles of the window serve; returns the next.
  __device__ int link_in(const TileWindow& window, int number, int served) {
    const int reach = window.reach(depth_);
    while (number < served) {
      const std::uint32_t hits = __ballot_sync(kAllLanes, reach > number);
      if (hits == 0) break;
      const int server = lowest_bit(hits);
      const int end = __shfl_sync(kAllLanes, reach, server);
      const bool open_listed = is_listed(__shfl_sync(kAllLanes, window.opens, server));
      if (!open_listed || min(end, served) - number >= kManyServed) {
        link_stretches(window.nearest - server, open_listed, number, end, min(end, served));
        number = min(end, served);
      } else {
        number += link_one_by_one(window, reach, number, served);
      }
    }
    return number;
  }

  /// Each lane takes one close. Returns how many are linked.
  __device__ int link_one_by_one(const TileWindow& window, int reach, int number, int served) {
    const int mine = number + lane_;
    int server = 0;  // the first lane whose tile's bottom is beyond the lane's own pop, if there is one
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
      if (__shfl_sync(kAllLanes, reach, server + step - 1) <= mine) server += step;
    }
    const int rank = __shfl_sync(kAllLanes, reach, server) - mine - 1;
    const bool open_listed = is_listed(__shfl_sync(kAllLanes, window.opens, server));
    const std::uint32_t others = __ballot_sync(kAllLanes, mine >= served || rank < 0 || !open_listed);
    const int count = others == 0 ? 32 : lowest_bit(others);
    if (!is_mine(number)) return count;
    if (!closes_listed_) {
      closes_.for_each(
          number, number + count, [](int it, int) { return it; },
          [&](int item, int it) { own_.numbers[it - number] = static_cast<std::uint16_t>(item); });
      __syncwarp();
    }
    if (lane_ < count) {
      const std::int64_t tile = window.nearest - server;
      const std::int64_t open = tile * kTileItems + listed(a_.tiles.surviving_opens, tile)[rank];
      const std::int64_t close =
          tile_ * kTileItems +
          (closes_listed_ ? listed(a_.tiles.reaching_closes, tile_)[mine] : own_.numbers[lane_]);
      pair(memory_.mates.fit(a_.text[open], a_.text[close]), open, close);
    }
    __syncwarp();
    return count;
  }

  /// Links the closes from `number` to before `last`, all served by tile `server`: the pop before `end` is
  /// the tile's lowest open.
  __device__ void link_stretches(std::int64_t server, bool open_listed, int number, int end, int last) {
    LeftItems opens;
    if (!open_listed) opens.take(own_.opens, a_.tiles.surviving_opens, server);
#pragma unroll 1
    for (int next; number < last; number = next) {
      next = min((number / kLinkedAtOnce + 1) * kLinkedAtOnce, last);
      if (!is_mine(number)) continue;
      const int highest = end - 1 - number;
      const int lowest = end - next;
      if (open_listed) {
        const std::uint16_t* numbers = listed(a_.tiles.surviving_opens, server);
        for (int i = lane_; i < next - number; i += 32) own_.numbers[i] = numbers[highest - i];
      } else {
        opens.for_each(
            lowest, highest + 1, [](int rank, int) { return rank; },
            [&](int item, int rank) { own_.numbers[highest - rank] = static_cast<std::uint16_t>(item); });
      }
      __syncwarp();
      pair_stretch(server * kTileItems, number, next);
      __syncwarp();
    }
  }

  /// Pairs the closes from `number` to before `next` with the opens that are listed in shared memory.
  __device__ void pair_stretch(std::int64_t opens_first, int number, int next) {
    struct Pair {
      int open;
      Symbol open_symbol;
      Symbol close_symbol;
    };
    int first_lost = kTileItems;
    for_closes(
        number, next,
        [&](int it, int item) {
          const int open = own_.numbers[it - number];
          return Pair{open, a_.text[opens_first + open], a_.text[tile_ * kTileItems + item]};
        },
        [&](int item, const Pair& it) {
          const bool fits = memory_.mates.fit(it.open_symbol, it.close_symbol);
          if (!fits) first_lost = min(first_lost, item);
          if (fits) store_pair(opens_first + it.open, tile_ * kTileItems + item);
        });
    if (first_lost < kTileItems) lose(tile_ * kTileItems + first_lost);
  }

  /// Calls use(item, fetch(number, item)) for the tile's closes from number `first` to before `end`.
  template <class Fetch, class Use>
  __device__ void for_closes(int first, int end, const Fetch& fetch, const Use& use) const {
    if (!closes_listed_) return closes_.for_each(first, end, fetch, use);
    const std::uint16_t* numbers = listed(a_.tiles.reaching_closes, tile_);
    for (int number = first + lane_; number < end; number += 32) {
      const int item = numbers[number];
      use(item, fetch(number, item));
    }
  }

  __device__ void pair(bool fits, std::int64_t open, std::int64_t close) {
    fits ? store_pair(open, close) : lose(close);
  }
  __device__ void store_pair(std::int64_t open, std::int64_t close) {
    found_.unmatched -= 2;
    if (a_.outputs.partner == nullptr) return;
    a_.outputs.partner[close] = static_cast<Index>(open);
    a_.outputs.partner[open] = static_cast<Index>(close);
  }

  __device__ void lose(std::int64_t close) { found_.meet(2 * close + kCloseFault); }
  /// Nothing is left for the closes from number `first` on.
  __device__ void lose_from(int first, int end) {
    for_closes(
        first, end, [](int, int) { return 0; }, [&](int item, int) { lose(tile_ * kTileItems + item); });
  }

  /// Something is left below the tile: if a document begins in the tile, the one before is unclosed there.
  __device__ void meet_first_beginning() {
    for (int stretch = 0; stretch < kTileWarps; ++stretch) {
      const int word = stretch * 32 + lane_;
      const std::uint32_t begins = a_.tiles.begins_of(tile_ * kTileThreads + word);
      const std::uint32_t words = __ballot_sync(kAllLanes, begins != 0);
      if (words == 0) continue;
      if (lane_ == lowest_bit(words))
        found_.meet(2 * (tile_ * kTileItems + word * kThreadItems + lowest_bit(begins)) + kUnclosedFault);
      return;
    }
  }

  const Arguments<Symbol, Index>& a_;
  Memory& memory_;
  typename Memory::Warp& own_;
  const int warp_;
  const int lane_;
  const int tiles_;
  const std::int64_t block_first_;
  std::uint32_t few_;    // tiles of the block that are left to the warp, a bit each: of few closes
  std::uint32_t many_;   // and of many
  int pops_;             // of the tile that has the lane's number in the block
  std::int64_t depths_;  // the stack's size before it
  std::int64_t tile_;    // that the warp links
  std::int64_t depth_;   // the stack's size before it
  bool closes_listed_ = true;
  LeftItems closes_;  // where they are not listed
  Found found_;
};

}  // namespace cumulus::bracket_match
