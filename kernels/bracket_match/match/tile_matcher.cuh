#pragma once

#include <climits>
#include <cstdint>

#include "kernels/bracket_match/match/level_masks.cuh"
#include "kernels/bracket_match/match/thread_stacks.cuh"
#include "kernels/bracket_match/match/tile_items.cuh"
#include "kernels/bracket_match/match/tile_levels.cuh"
#include "kernels/bracket_match/match/tile_memory.cuh"

// Matching within threads and within the tile.

namespace cumulus::bracket_match {

/// Where the partners of a tile's elements are gathered, by their numbers in the tile. A thread's elements
/// are a row.
struct TilePartners {
  static constexpr std::uint16_t kNone = 0xFFFF;    // in the tile
  static constexpr int kStride = kThreadItems + 2;  // so that rows begin in different banks
  alignas(16) std::uint16_t numbers[kTileThreads * kStride];

  __device__ std::uint16_t* row(unsigned int thread) { return numbers + thread * kStride; }
  __device__ void clear() {
    auto* eights = reinterpret_cast<uint4*>(numbers);
    for (int i = static_cast<int>(threadIdx.x); i < kTileThreads * kStride / 8; i += kTileThreads)
      eights[i] = {~0u, ~0u, ~0u, ~0u};
  }
};

/// The opens that a thread leaves, where it has pushed them.
struct ThreadOpens {
  std::uint32_t opens;
  KindBits kinds;
};

template <class Symbol>
struct MatchMemory {
  TilePartners partners;
  struct FewLevels {
    LevelMasks masks;
    ThreadStacks stacks;
  };
  union {
    FewLevels few;
    ThreadOpens many[kTileThreads];
  };
  BottomTree<> bottoms;
  TileLevels::Memory levels;
  BlockTally tally;
  typename TileItems<Symbol>::Memory items;
};

/// Matches the tile that is the block's number in itself, and lists its surviving opens and reaching closes.
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
    memory_.few.masks.clear();
    memory_.tally.clear();
    memory_.partners.clear();
    const Items items(codes_, memory_.items, a_.text, first_, valid_);
    const std::uint32_t begins = a_.tiles.begins_of(tile_ * kTileThreads + thread_);
    __syncthreads();
    const ItemBits bits = items.bits();
    kinds_ = bits.kinds;
    const OpenEnds ends = match_in_thread(bits, begins);
    const int opens = __popc(ends.opens);
    const int closes = __popc(ends.closes);

    const TileLevels levels(memory_.levels, ends.change(begins).closes, opens);
    const StackChange<std::int32_t> before = levels.before();
    if (begins != 0 && before.opens > closes) found_.record(fault_at(lowest_bit(begins), kUnclosedFault));
    const int served = min(closes, before.opens);
    if (levels.highest() - levels.least() <= kMaskedLevels) {
      memory_.bottoms.set(levels.bottom());
      memory_.few.masks.add(levels.bottom(), opens);
      memory_.few.stacks.keep(ends.opens, ends.closes, kinds_);
      __syncthreads();
      match_by_level(levels.height(), served);
    } else {
      memory_.many[thread_] = {ends.opens, kinds_};
      memory_.bottoms.build(levels.bottom());
      __syncthreads();
      match_in_order(ends.closes, levels.height(), served);
    }
    leave_closes(levels, ends.closes & ~lowest_set_bits(ends.closes, served));
    leave_opens(levels, lowest_set_bits(ends.opens, levels.later() - levels.bottom()));
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
  __device__ static std::uint16_t number(unsigned int thread, int item) {
    return static_cast<std::uint16_t>(thread * kThreadItems + static_cast<unsigned int>(item));
  }
  /// Of the elements themselves, which may be far: where their codes do not say enough.
  __device__ bool fit(unsigned int owner, int open, unsigned int closer, int close) const {
    return a_.rules.fit(a_.text[first_ + number(owner, open)], a_.text[first_ + number(closer, close)]);
  }

  /// Kinds are compared all at once, at the end.
  __device__ OpenEnds match_in_thread(const ItemBits& bits, std::uint32_t begins) {
    const std::uint32_t valid = lowest_bits(valid_);
    const RoleBits roles{bits.opens & valid, bits.closes & valid, begins};
    std::uint16_t* row = memory_.partners.row(thread_);
    std::uint32_t differences = 0;
    const OpenEnds ends = bracket_match::match_in_thread(roles, [&](int open, int close) {
      row[open] = number(thread_, close);
      row[close] = number(thread_, open);
      differences |= difference(bits.kinds, open, bits.kinds, close);
    });
    const std::uint32_t left = ends.closes | ends.lost;
    found_.unmatched += __popc(roles.opens) - __popc(roles.closes) + 2 * __popc(left);
    if (ends.unclosed != 0) found_.record(fault_at(lowest_bit(ends.unclosed), kUnclosedFault));
    if (ends.lost != 0) found_.record(fault_at(lowest_bit(ends.lost), kCloseFault));
    if ((differences & 1) != 0 || !codes_.exact) part_wrong_pairs(row, roles.closes & ~left);
    return ends;
  }

  /// Of the pairs within the thread, whose closes are given.
  __device__ void part_wrong_pairs(std::uint16_t* row, std::uint32_t closes) {
    for (; closes != 0; closes &= closes - 1) {
      const int close = lowest_bit(closes);
      const int open = row[close] % kThreadItems;
      if (fit(thread_, open, thread_, close)) continue;
      row[open] = TilePartners::kNone;
      row[close] = TilePartners::kNone;
      found_.unmatched += 2;
      found_.record(fault_at(close, kCloseFault));
    }
  }

  /// Pairs an open of thread `owner` with a close of a later thread, if they fit.
  __device__ void pair(bool same_kind, unsigned int owner, int open, unsigned int closer, int close) {
    if (same_kind && (codes_.exact || fit(owner, open, closer, close))) {
      found_.unmatched -= 2;
      memory_.partners.row(owner)[open] = number(closer, close);
      memory_.partners.row(closer)[close] = number(owner, open);
    } else {
      found_.record(2 * (first_ + number(closer, close)) + kCloseFault);
    }
  }

  /// Matches the first `served` of the closes that each thread has left, which pop what earlier threads have
  /// left: from level `height` of the stack downwards. A warp deals out those of its threads: the open of
  /// each is in the last thread before that has pushed at its level.
  __device__ void match_by_level(std::int32_t height, int served) {
    const unsigned int lane = threadIdx.x % 32;
    const int through = warp_inclusive_sum(served);
    const int first = through - served;
    const int total = __shfl_sync(kFullWarp, through, 31);
    for (int group = 0; group < total; group += 32) {
      const int item = group + static_cast<int>(lane);
      unsigned int closer = 0;  // the last lane whose first is not beyond the item
#pragma unroll
      for (unsigned int step = 16; step > 0; step /= 2) {
        if (__shfl_sync(kFullWarp, first, closer + step) <= item) closer += step;
      }
      const int rank = item - __shfl_sync(kFullWarp, first, closer);
      const std::int32_t level = __shfl_sync(kFullWarp, height, closer) - rank;
      if (item >= total) continue;
      closer += threadIdx.x - lane;
      const unsigned int owner = memory_.few.masks.last_at(level, closer);
      const auto open = memory_.few.stacks.open(level - memory_.bottoms.bottom(owner) - 1, owner);
      const auto close = memory_.few.stacks.close(rank, closer);
      pair(ThreadStacks::same_kind(open, close), owner, ThreadStacks::item_of(open), closer,
           ThreadStacks::item_of(close));
    }
  }

  /// The same for any number of levels: each thread takes its own closes.
  __device__ void match_in_order(std::uint32_t closes, std::int32_t level, int served) {
    int owner = thread_;
    for (int done = 0; done < served;) {
      owner = memory_.bottoms.last_below(owner, level);
      const std::int32_t bottom = memory_.bottoms.bottom(owner);
      const ThreadOpens left = memory_.many[owner];
      std::uint32_t stack = lowest_set_bits(left.opens, level - bottom);
#pragma unroll 1
      for (; done < served && level > bottom; ++done, --level, closes &= closes - 1) {
        const int open = highest_bit(stack);
        const int close = lowest_bit(closes);
        stack ^= 1u << open;
        pair((difference(left.kinds, open, kinds_, close) & 1) == 0, owner, open, thread_, close);
      }
    }
  }

  /// Leaves closes of the thread to other tiles: all behind the first of them.
  __device__ void leave_closes(const TileLevels& levels, std::uint32_t closes) {
    const StackChange<std::int32_t> before = levels.before();
    if (reaches_beyond_a_beginning(before.closes)) {
      if (closes != 0) found_.record(fault_at(lowest_bit(closes), kCloseFault));
      closes = 0;
    }
    leave(a_.tiles.reaching_closes, levels.total().closes, before.closes, closes);
  }
  __device__ void leave_opens(const TileLevels& levels, std::uint32_t opens) {
    leave(a_.tiles.surviving_opens, levels.total().opens, levels.bottom() - levels.least(), opens);
  }
  /// Of `total` elements that the tile leaves the thread has these, which come after `before` others.
  __device__ void leave(std::uint32_t* left_items, std::int32_t total, std::int32_t before,
                        std::uint32_t items) {
    std::uint32_t* words = left_items + tile_ * kTileThreads;
    if (!is_listed(total)) {
      words[thread_] = items;
      return;
    }
    ListEntry* entries = reinterpret_cast<ListEntry*>(words) + before;
    for (; items != 0; items &= items - 1) {
      const int item = highest_bit(items & (0u - items));
      *entries++ = entry_of(thread_ * kThreadItems + item, kinds_.of(item));
    }
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
    constexpr unsigned int kFours = kThreadItems / 4;  // in the row of a thread
    constexpr unsigned int kRows = kTileThreads / kFours;
    const unsigned int four = threadIdx.x % kFours * 4;
#pragma unroll
    for (unsigned int rows = 0; rows < kTileThreads; rows += kRows) {
      const unsigned int owner = rows + threadIdx.x / kFours;
      const auto* pairs = reinterpret_cast<const std::uint32_t*>(memory_.partners.row(owner) + four);
      FourIndices<Index> partners;
#pragma unroll
      for (int i = 0; i < 4; ++i)
        partners.of[i] = index_of(static_cast<std::uint16_t>(pairs[i / 2] >> i % 2 * 16));
      *reinterpret_cast<FourIndices<Index>*>(out + 4 * (rows * kFours + threadIdx.x)) = partners;
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
  KindBits kinds_;   // of the thread's elements
  Found found_;
};

}  // namespace cumulus::bracket_match
