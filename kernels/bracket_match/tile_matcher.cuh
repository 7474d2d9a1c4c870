#pragma once

#include <climits>
#include <cstdint>

#include "kernels/bracket_match/level_masks.cuh"
#include "kernels/bracket_match/thread_stacks.cuh"
#include "kernels/bracket_match/tile_items.cuh"
#include "kernels/bracket_match/tile_levels.cuh"
#include "kernels/bracket_match/tile_memory.cuh"

// Matching within threads and within the tile.

namespace cumulus::bracket_match {

template <class Symbol>
struct MatchMemory {
  TilePartners partners;
  ThreadStacks stacks;
  LevelMasks masks;
  BottomTree<> bottoms;
  TileLevels::Memory levels;
  BlockTally tally;
  typename TileItems<Symbol>::Memory items;
};

/// Matches the tile that is the block's number in itself, and says what it leaves to others.
template <class Symbol, class Index>
class TileMatcher {
  using Memory = MatchMemory<Symbol>;
  using Items = TileItems<Symbol>;

 public:
  __device__ TileMatcher(const Arguments<Symbol, Index>& arguments, const Codes<Symbol>& codes,
                         Memory& memory)
      : a_(arguments),
        codes_(codes),
        memory_(memory),
        tile_(blockIdx.x),
        first_(tile_ * kTileItems),
        thread_(static_cast<int>(threadIdx.x)),
        valid_(static_cast<int>(max(
            min(a_.count - first_ - thread_ * kThreadItems, std::int64_t{kThreadItems}), std::int64_t{0}))) {}

  __device__ void run() {
    memory_.masks.clear();
    memory_.tally.clear();
    const Items items(codes_, memory_.items, a_.text, first_, valid_);
    const std::int64_t word = tile_ * kTileThreads + thread_;
    const std::uint32_t begins = a_.tiles.begins_of(word);
    __syncthreads();
    ThreadStacks::Column column(memory_.stacks, thread_);
    if (__any_sync(kAllLanes, begins != 0 || valid_ < kThreadItems)) {
      match_in_thread<false>(items, begins, column);
    } else {
      match_in_thread<true>(items, begins, column);
    }
    const int opens = column.opens();
    const int closes = column.closes();
    found_.unmatched += opens + closes;

    const TileLevels levels(memory_.levels, closes + (begins != 0 ? kPopsOfABeginning : 0), opens);
    const StackChange<std::int32_t> before = levels.before();
    if (begins != 0 && before.opens > closes) found_.meet(fault_at(lowest_bit(begins), kUnclosedFault));
    const bool few_levels = levels.highest() - levels.least() <= kMaskedLevels;
    if (few_levels) {
      memory_.bottoms.set(levels.bottom());
      memory_.masks.add(levels.bottom(), opens);
      __syncthreads();
    } else {
      memory_.bottoms.build(levels.bottom());
      __syncthreads();
    }
    const int served = min(closes, before.opens);
    if (few_levels) {
      match_by_level(items, levels.height(), served);
    } else {
      match_in_order(items, levels.height(), served);
    }
    leave_closes(levels, served, closes);
    leave_opens(levels, min(opens, levels.later() - levels.bottom()));
    if (thread_ % 32 == 0) {
      a_.tiles.opens_before[tile_ * kTileWarps + thread_ / 32] =
          static_cast<std::uint16_t>(levels.opens_before_warp());
    }
    if (thread_ == 0) a_.tiles.change[tile_] = levels.total();
    __syncthreads();
    if (a_.outputs.partner != nullptr) write_partners();
    memory_.tally.publish(found_, a_.findings);
  }

 private:
  __device__ std::int64_t fault_at(int item, std::int64_t kind) const {
    return 2 * (first_ + thread_ * kThreadItems + item) + kind;
  }
  __device__ static std::uint16_t number(int thread, int item) {
    return static_cast<std::uint16_t>(thread * kThreadItems + item);
  }
  /// Of the elements themselves, which may be far: where their entries do not say enough.
  __device__ bool fit(const Items& items, int owner, int open, int closer, int close) const {
    return items.fit(a_.text[first_ + owner * kThreadItems + open],
                     a_.text[first_ + closer * kThreadItems + close]);
  }

  /// Runs the stack over the thread's elements. Kinds are compared all at once, at the end. `kPlain`: all
  /// elements are there, and no document begins among them.
  template <bool kPlain>
  __device__ void match_in_thread(const Items& items, std::uint32_t begins, ThreadStacks::Column& column) {
    std::uint16_t* row = memory_.partners.row(thread_);
    Entry mismatches = 0;
    bool begun = false;
    constexpr int kAhead = 4;  // codes are looked up before the stack is in the way
    unsigned int codes[kAhead];
#pragma unroll
    for (int i = 0; i < kThreadItems; ++i) {
      if (i % kAhead == 0) {
#pragma unroll
        for (int j = 0; j < kAhead; ++j) codes[j] = items.code(i + j);
      }
      const unsigned int code = codes[i % kAhead];
      bool opens = items.is_open(code);
      bool closes = items.is_close(code);
      if constexpr (!kPlain) {
        opens = opens && i < valid_;
        closes = closes && i < valid_;
        if ((begins >> i & 1) != 0) {
          if (!column.empty()) found_.meet(fault_at(i, kUnclosedFault));
          found_.unmatched += column.opens();
          column.clear();
          begun = true;
        }
      }
      const auto entry = code << kKindShift | static_cast<Entry>(i);
      const bool pops = closes && !column.empty();
      std::uint16_t partner = TilePartners::kNone;
      if (pops) {
        const Entry open = column.pop();
        mismatches |= open ^ entry;
        if constexpr (!Items::kCodesAreExact) {
          if (!fit(items, thread_, item_of(open), thread_, i)) mismatches = kKindBits;
        }
        row[item_of(open)] = number(thread_, i);
        partner = number(thread_, item_of(open));
      }
      row[i] = partner;
      const bool finds_nothing = closes && !pops;
      if (!kPlain && begun && finds_nothing) {
        found_.meet(fault_at(i, kCloseFault));
        ++found_.unmatched;
      }
      column.keep(entry, opens, finds_nothing && (kPlain || !begun));
    }
    finish_shared_accesses();
    if ((mismatches & kKindBits) != 0) part_wrong_pairs(items, row);
  }

  /// Of the pairs within the thread.
  __device__ void part_wrong_pairs(const Items& items, std::uint16_t* row) {
    for (int close = 0; close < kThreadItems; ++close) {
      const int open = item_of(static_cast<Entry>(row[close]));
      if (row[close] == TilePartners::kNone || open > close) continue;
      if (fit(items, thread_, open, thread_, close)) continue;
      row[open] = TilePartners::kNone;
      row[close] = TilePartners::kNone;
      found_.unmatched += 2;
      found_.meet(fault_at(close, kCloseFault));
    }
  }

  /// Pairs an open of thread `owner` with a close of a later thread, if they fit.
  __device__ void pair(const Items& items, int owner, Entry open, int closer, Entry close) {
    bool fits = ((open ^ close) & kKindBits) == 0;
    if constexpr (!Items::kCodesAreExact) {
      fits = fits && fit(items, owner, item_of(open), closer, item_of(close));
    }
    if (fits) {
      found_.unmatched -= 2;
      memory_.partners.row(owner)[item_of(open)] = number(closer, item_of(close));
      memory_.partners.row(closer)[item_of(close)] = number(owner, item_of(open));
    } else {
      found_.meet(2 * (first_ + closer * kThreadItems + item_of(close)) + kCloseFault);
    }
  }

  /// Matches the first `served` closes that each thread has kept, which pop what earlier threads have left:
  /// from level `height` of the stack downwards. A warp deals out those of its threads: the open of each is
  /// in the last thread before that has pushed at its level.
  __device__ void match_by_level(const Items& items, std::int32_t height, int served) {
    const int lane = thread_ % 32;
    const int through = warp_prefix_sum(served);
    const int first = through - served;
    const int total = __shfl_sync(kAllLanes, through, 31);
    for (int group = 0; group < total; group += 32) {
      const int item = group + lane;
      int closer = 0;  // the last lane whose first is not beyond the item
#pragma unroll
      for (int step = 16; step > 0; step /= 2) {
        if (__shfl_sync(kAllLanes, first, closer + step) <= item) closer += step;
      }
      const int rank = item - __shfl_sync(kAllLanes, first, closer);
      const std::int32_t level = __shfl_sync(kAllLanes, height, closer) - rank;
      if (item >= total) continue;
      closer += thread_ - lane;
      const int owner = memory_.masks.last_at(level, closer);
      const Entry open = memory_.stacks.open(level - memory_.bottoms.bottom(owner) - 1, owner);
      pair(items, owner, open, closer, memory_.stacks.close(rank, closer));
    }
  }

  /// The same for any number of levels: each thread takes its own closes.
  __device__ void match_in_order(const Items& items, std::int32_t level, int served) {
    int owner = thread_;
    for (int done = 0; done < served;) {
      owner = memory_.bottoms.last_below(owner, level);
      const std::int32_t bottom = memory_.bottoms.bottom(owner);
      for (; done < served && level > bottom; ++done, --level) {
        pair(items, owner, memory_.stacks.open(level - bottom - 1, owner), thread_,
             memory_.stacks.close(done, thread_));
      }
    }
  }

  /// Leaves the `closes` that the thread has kept to other tiles, but the first `served`.
  __device__ void leave_closes(const TileLevels& levels, int served, int closes) {
    const StackChange<std::int32_t> before = levels.before();
    const bool lost = reaches_beyond_a_beginning(before.closes);
    if (lost && served < closes)
      found_.meet(fault_at(item_of(memory_.stacks.close(served, thread_)), kCloseFault));
    leave(a_.tiles.reaching_closes, levels.total().closes, before.closes, lost ? 0 : closes - served,
          [&](int rank) { return memory_.stacks.close(served + rank, thread_); });
  }
  /// Leaves the lowest `count` opens that the thread has left.
  __device__ void leave_opens(const TileLevels& levels, int count) {
    leave(a_.tiles.surviving_opens, levels.total().opens, levels.bottom() - levels.least(), count,
          [&](int rank) { return memory_.stacks.open(rank, thread_); });
  }
  /// Of `total` elements that the tile leaves the thread has `count`, which come after `before` others.
  template <class EntryOf>
  __device__ void leave(std::uint32_t* left_items, std::int32_t total, std::int32_t before, int count,
                        const EntryOf& entry) {
    std::uint32_t* words = left_items + tile_ * kTileThreads;
    if (is_listed(total)) {
      std::uint16_t* numbers = reinterpret_cast<std::uint16_t*>(words) + before;
      for (int rank = 0; rank < count; ++rank)
        numbers[rank] = static_cast<std::uint16_t>(thread_ * kThreadItems + item_of(entry(rank)));
      return;
    }
    std::uint32_t bits = 0;
    for (int rank = 0; rank < count; ++rank) bits |= 1u << item_of(entry(rank));
    words[thread_] = bits;
  }

  /// Those whose partner is not in the tile get none, until link_tiles finds it.
  __device__ void write_partners() {
    const bool aligned =
        reinterpret_cast<std::uintptr_t>(a_.outputs.partner) % alignof(FourIndices<Index>) == 0;
    Index* out = a_.outputs.partner + first_;
    if (!aligned || first_ + kTileItems > a_.count) {
      for (int i = thread_; i < min(a_.count - first_, std::int64_t{kTileItems}); i += kTileThreads) {
        out[i] = index_of(memory_.partners.row(i / kThreadItems)[i % kThreadItems]);
      }
      return;
    }
    constexpr int kFours = kThreadItems / 4;  // in the row of a thread
#pragma unroll
    for (int k = 0; k < kFours; ++k) {
      const int four = k * kTileThreads + thread_;
      const auto* pairs =
          reinterpret_cast<const std::uint32_t*>(memory_.partners.row(four / kFours) + four % kFours * 4);
      FourIndices<Index> partners;
#pragma unroll
      for (int i = 0; i < 4; ++i)
        partners.of[i] = index_of(static_cast<std::uint16_t>(pairs[i / 2] >> i % 2 * 16));
      *reinterpret_cast<FourIndices<Index>*>(out + 4 * four) = partners;
    }
  }
  /// Of kNone, as a signed number, all bits are set.
  __device__ Index index_of(std::uint16_t number) const {
    return static_cast<Index>(first_) | static_cast<Index>(static_cast<std::int16_t>(number));
  }

  const Arguments<Symbol, Index>& a_;
  const Codes<Symbol>& codes_;
  Memory& memory_;
  const std::int64_t tile_;
  const std::int64_t first_;
  const int thread_;
  const int valid_;  // of the thread's elements, those in the text
  Found found_;
};

}  // namespace cumulus::bracket_match
