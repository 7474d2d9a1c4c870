#pragma once

#include <climits>
#include <cstdint>

#include "kernels/bracket_match/match/tile_memory.cuh"

// Matching across tiles.

namespace cumulus::bracket_match {

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
    const int through = warp_inclusive_sum(count);
    before_ = through - count;
    int before = before_;
    find_run(words, __shfl_sync(kFullWarp, through, 31));
    __syncwarp();
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      memory[lane * kWords + k] = {words[k], before};
      before += __popc(words[k]);
    }
    __syncwarp();
    return __shfl_sync(kFullWarp, through, 31);
  }

  /// Where all of them are one run, the first; else -1.
  __device__ int run() const { return run_; }

  /// Calls body(number, item) for the elements from number `first` to before `end`, each by one lane.
  template <class Body>
  __device__ void for_each(int first, int end, const Body& body) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const std::uint32_t lanes_before = (1u << lane) - 1;
    int word = highest_bit(__ballot_sync(kFullWarp, before_ <= first)) * kWords;
    for (; word < kTileThreads && memory_[word].before < end; word += kWords) {
#pragma unroll
      for (int k = 0; k < kWords; ++k) {
        const Word it = memory_[word + k];
        const int number = it.before + __popc(it.bits & lanes_before);
        if ((it.bits >> lane & 1) != 0 && number >= first && number < end) {
          body(number, (word + k) * kThreadItems + lane);
        }
      }
    }
  }

 private:
  static constexpr int kWords = kTileThreads / 32;  // of one lane

  __device__ void find_run(const std::uint32_t (&words)[kWords], int count) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    auto lowest = static_cast<std::uint32_t>(kTileItems);
    std::uint32_t highest = 0;
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      if (words[k] == 0) continue;
      const auto first = static_cast<std::uint32_t>((lane * kWords + k) * kThreadItems);
      lowest = min(lowest, first + static_cast<std::uint32_t>(lowest_bit(words[k])));
      highest = first + static_cast<std::uint32_t>(highest_bit(words[k]));
    }
    lowest = warp_min(lowest);
    highest = warp_max(highest);
    run_ = static_cast<int>(highest - lowest) + 1 == count ? static_cast<int>(lowest) : -1;
  }

  const Word* memory_;
  int before_;  // the lane's first word
  int run_ = -1;
};

template <class Symbol>
struct LinkMemory {
  struct Warp {
    LeftItems::Memory closes;
    LeftItems::Memory opens;
    // Of a chunk: the closes and the opens that they pop. Entries have kinds only if both were listed.
    ListEntry closes_listed[kLinkedAtOnce];
    ListEntry opens_listed[kLinkedAtOnce];
  };
  Warp warps[kTileWarps];
  BlockTally tally;
};

/// The 32 tiles before a tile, one to each lane, the nearest to the first.
struct TileWindow {
  std::int64_t nearest;
  std::int64_t bottom;  // of the lane's
  std::int32_t opens;

  __device__ TileWindow(const DeviceTiles& tiles, std::int64_t end)
      : nearest(end - 1), bottom(INT64_MAX), opens(0) {
    const std::int64_t tile = nearest - threadIdx.x % 32;
    if (tile < 0) return;
    bottom = tiles.bottoms[tile];
    opens = tiles.change[tile].opens;
  }

  /// How many pops out of a stack `depth` deep it takes to the least of the bottoms of the tiles up to the
  /// lane's: what the tile serves comes before.
  __device__ int reach(std::int64_t depth) const {
    return warp_inclusive_max(
        static_cast<int>(max(min(depth - bottom, std::int64_t{INT_MAX}), std::int64_t{-1})));
  }
};

/// Pairs the closes of the block's tiles with the opens of earlier tiles.
template <class Symbol, class Index>
class TileLinker {
  using Memory = LinkMemory<Symbol>;

 public:
  __device__ TileLinker(const Arguments<Symbol, Index>& arguments, Memory& memory)
      : a_(arguments),
        memory_(memory),
        own_(memory.warps[threadIdx.x / 32]),
        lane_(static_cast<int>(threadIdx.x) % 32),
        tile_(std::int64_t{blockIdx.x} * kLinkedTiles + threadIdx.x / 32),
        first_(tile_ * kTileItems) {}

  __device__ void run() {
    const bool present = tile_ < a_.tiles.count;
    // Nothing of this depends on anything else: the loads are under way together.
    const int pops = present ? a_.tiles.change[tile_].closes : 0;
    depth_ = present ? a_.tiles.depth[tile_] : 0;
    const TileWindow window(a_.tiles, present ? tile_ : 0);
    memory_.tally.clear();
    __syncthreads();
    if (pops > 0) link(pops, window);
    __syncthreads();
    memory_.tally.publish(found_, a_.findings);
  }

 private:
  __device__ void link(int pops, TileWindow window) {
    closes_listed_ = is_listed(pops);
    if (!closes_listed_) a_.prefetch_text(tile_);
    const int closes = closes_listed_ ? pops : closes_.take(own_.closes, a_.tiles.reaching_closes, tile_);
    const auto served = static_cast<int>(min(depth_, static_cast<std::int64_t>(closes)));
    for (int number = 0;;) {
      number = link_in(window, number, served);
      if (number == served) break;
      const std::int64_t tile = last_tile_below(a_.tiles, window.nearest - 31, depth_ - number);
      window = TileWindow(a_.tiles, tile + 1);
    }
    lose_from(served, closes);
    if (depth_ > closes && reaches_beyond_a_beginning(pops)) record_first_beginning();
  }

  /// Links the closes from `number` on that tiles of the window serve; returns the next.
  __device__ int link_in(const TileWindow& window, int number, int served) {
    const int reach = window.reach(depth_);
    while (number < served) {
      const std::uint32_t hits = __ballot_sync(kFullWarp, reach > number);
      if (hits == 0) break;
      const int server = lowest_bit(hits);
      const int end = __shfl_sync(kFullWarp, reach, server);
      const bool open_listed = is_listed(__shfl_sync(kFullWarp, window.opens, server));
      if (!open_listed || min(end, served) - number >= kManyServed) {
        link_chunks(window.nearest - server, open_listed, number, end, min(end, served));
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
      if (__shfl_sync(kFullWarp, reach, server + step - 1) <= mine) server += step;
    }
    const int rank = __shfl_sync(kFullWarp, reach, server) - mine - 1;
    const bool open_listed = is_listed(__shfl_sync(kFullWarp, window.opens, server));
    const std::uint32_t others = __ballot_sync(kFullWarp, mine >= served || rank < 0 || !open_listed);
    const int count = others == 0 ? 32 : lowest_bit(others);
    if (!closes_listed_) {
      list_closes(number, number + count);
      __syncwarp();
    }
    if (lane_ < count) {
      const std::int64_t tile = window.nearest - server;
      const ListEntry open_entry = listed(a_.tiles.surviving_opens, tile)[rank];
      const ListEntry close_entry =
          closes_listed_ ? listed(a_.tiles.reaching_closes, tile_)[mine] : own_.closes_listed[lane_];
      const std::int64_t open = tile * kTileItems + item_of(open_entry);
      const std::int64_t close = first_ + item_of(close_entry);
      pair(fit(closes_listed_, open_entry, open, close_entry, close), open, close);
    }
    __syncwarp();
    return count;
  }

  /// Links the closes from `number` to before `last`, all served by tile `server`: the pop before `end` is
  /// the tile's lowest open.
  __device__ void link_chunks(std::int64_t server, bool open_listed, int number, int end, int last) {
    const bool both_listed = open_listed && closes_listed_;
    if (!both_listed || !a_.exact_kinds) a_.prefetch_text(server);
    LeftItems opens;
    if (!open_listed) opens.take(own_.opens, a_.tiles.surviving_opens, server);
    if (closes_.run() >= 0 && opens.run() >= 0) {
      const std::int64_t open = server * kTileItems + opens.run() + end - 1;
      const std::int64_t close = first_ + closes_.run();
      pair_by_symbols(
          number, last, [=](int i) { return open - i; }, [=](int i) { return close + i; });
      return;
    }
#pragma unroll 1
    for (; number < last; number += kLinkedAtOnce) {
      const int count = min(last - number, kLinkedAtOnce);
      list_closes(number, number + count);
      const int highest = end - 1 - number;
      const auto keep = [&](int rank, int item) {
        own_.opens_listed[highest - rank] = static_cast<ListEntry>(item);
      };
      if (open_listed) {
        const ListEntry* entries = listed(a_.tiles.surviving_opens, server);
        for (int i = lane_; i < count; i += 32) keep(highest - i, entries[highest - i]);
      } else {
        opens.for_each(highest + 1 - count, highest + 1, keep);
      }
      __syncwarp();
      const std::int64_t opens_first = server * kTileItems;
      prefetch_partners(first_, own_.closes_listed[0], own_.closes_listed[count - 1], count);
      prefetch_partners(opens_first, own_.opens_listed[count - 1], own_.opens_listed[0], count);
      pair_chunk(opens_first, both_listed, count);
      __syncwarp();
    }
  }

  /// Where partners in a tile, from `first` to `last`, are written with gaps, what lies between has to be
  /// read: all at once rather than store by store.
  __device__ void prefetch_partners(std::int64_t tile_first, ListEntry first, ListEntry last,
                                    int count) const {
    const int span = item_of(last) - item_of(first) + 1;
    if (8 * count >= 7 * span || a_.outputs.partner == nullptr) return;
    constexpr int kLineItems = 128 / static_cast<int>(sizeof(Index));
    for (int element = lane_ * kLineItems; element < span + kLineItems - 1; element += 32 * kLineItems) {
      prefetch_to_l2(a_.outputs.partner + tile_first + item_of(first) + min(element, span - 1));
    }
  }

  /// Of the `count` closes and opens that are listed in shared memory.
  __device__ void pair_chunk(std::int64_t opens_first, bool both_listed, int count) {
    if (both_listed && a_.exact_kinds) {
      for (int i = lane_; i < count; i += 32) {
        const ListEntry open = own_.opens_listed[i];
        const ListEntry close = own_.closes_listed[i];
        pair(same_kind(open, close), opens_first + item_of(open), first_ + item_of(close));
      }
      return;
    }
    pair_by_symbols(
        0, count, [&](int i) { return opens_first + item_of(own_.opens_listed[i]); },
        [&](int i) { return first_ + item_of(own_.closes_listed[i]); });
  }

  /// Of the opens and closes with numbers from `begin` to before `end`.
  template <class OpenOf, class CloseOf>
  __device__ void pair_by_symbols(int begin, int end, const OpenOf& open_of, const CloseOf& close_of) {
    constexpr int kAtOnce = 4;  // of a lane, as their symbols are far
    for (int i = begin + lane_; i < end; i += kAtOnce * 32) {
      Symbol opens[kAtOnce];
      Symbol closes[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int mine = min(i + k * 32, end - 1);
        opens[k] = a_.text[open_of(mine)];
        closes[k] = a_.text[close_of(mine)];
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int mine = i + k * 32;
        if (mine < end) pair(a_.rules.fit(opens[k], closes[k]), open_of(mine), close_of(mine));
      }
    }
  }

  /// Lists the tile's closes from number `first` to before `end` in shared memory.
  __device__ void list_closes(int first, int end) {
    for_closes(first, end, [&](int number, int entry) {
      own_.closes_listed[number - first] = static_cast<ListEntry>(entry);
    });
  }
  template <class Body>
  __device__ void for_closes(int first, int end, const Body& body) const {
    if (!closes_listed_) return closes_.for_each(first, end, body);
    const ListEntry* entries = listed(a_.tiles.reaching_closes, tile_);
    for (int number = first + lane_; number < end; number += 32) body(number, entries[number]);
  }

  __device__ bool fit(bool both_listed, ListEntry open_entry, std::int64_t open, ListEntry close_entry,
                      std::int64_t close) const {
    if (both_listed && a_.exact_kinds) return same_kind(open_entry, close_entry);
    return a_.rules.fit(a_.text[open], a_.text[close]);
  }

  __device__ void pair(bool fits, std::int64_t open, std::int64_t close) {
    if (!fits) return lose(close);
    found_.unmatched -= 2;
    if (a_.outputs.partner == nullptr) return;
    a_.outputs.partner[close] = static_cast<Index>(open);
    a_.outputs.partner[open] = static_cast<Index>(close);
  }

  __device__ void lose(std::int64_t close) { found_.record(2 * close + kCloseFault); }
  /// Nothing is left for the closes from number `first` on.
  __device__ void lose_from(int first, int end) {
    if (first < end)
      for_closes(first, end, [&](int, int entry) { lose(first_ + item_of(static_cast<ListEntry>(entry))); });
  }

  /// Something is left below the tile: if a document begins in the tile, the one before is unclosed there.
  __device__ void record_first_beginning() {
    for (int chunk = 0; chunk < kTileWarps; ++chunk) {
      const int word = chunk * 32 + lane_;
      const std::uint32_t begins = a_.tiles.begins_of(tile_ * kTileThreads + word);
      const std::uint32_t words = __ballot_sync(kFullWarp, begins != 0);
      if (words == 0) continue;
      if (lane_ == lowest_bit(words))
        found_.record(2 * (first_ + word * kThreadItems + lowest_bit(begins)) + kUnclosedFault);
      return;
    }
  }

  const Arguments<Symbol, Index>& a_;
  Memory& memory_;
  typename Memory::Warp& own_;
  const int lane_;
  const std::int64_t tile_;  // the warp's
  const std::int64_t first_;
  std::int64_t depth_ = 0;  // the stack's size before the tile
  bool closes_listed_ = true;
  LeftItems closes_;  // where they are not listed
  Found found_;
};

}  // namespace cumulus::bracket_match
