#pragma once

#include <climits>
#include <cstdint>

#include "kernels/bracket_match/tile_memory.cuh"

// Matching within threads and within the tile.

namespace cumulus::bracket_match {

template <class Symbol>
struct MatchMemory {
  TileSymbols<Symbol> symbols;
  TileCodes<> partners;
  LevelMasks masks;
  BottomTree<> bottoms;
  std::uint32_t live[kTileThreads];  // opens that their own thread does not close
  StackChange<std::int32_t> warps[kTileWarps];
  int surviving_opens[kTileWarps];
  int highest;  // level of the opens that their own thread does not close
  BlockTally tally;
  typename Rules<Symbol>::Shared rules;
};

/// Matches the tile that is the block's number in itself, and says what it leaves to others.
template <class Symbol, class Index>
class TileMatcher {
  using Memory = MatchMemory<Symbol>;

 public:
  __device__ TileMatcher(const Arguments<Symbol, Index>& arguments, Memory& memory)
      : a_(arguments),
        memory_(memory),
        tile_(blockIdx.x),
        first_(tile_ * kTileItems),
        thread_(static_cast<int>(threadIdx.x)) {}

  __device__ void run() {
    a_.rules.prepare(memory_.rules);
    memory_.partners.clear();
    memory_.masks.clear();
    memory_.tally.clear();
    if (thread_ == 0) memory_.highest = INT_MIN / 2;
    memory_.symbols.load(a_.text, first_, a_.count);
    __syncthreads();
    const std::int64_t word = tile_ * kTileThreads + thread_;
    const RoleBits roles = memory_.symbols.roles(memory_.rules, a_.count - first_ - thread_ * kThreadItems,
                                                 a_.tiles.begins_of(word));
    found_.unmatched = __popc(roles.opens) + __popc(roles.closes);
    const OpenEnds ends =
        match_in_thread(roles, [&](int open, int close) { pair(thread_, open, thread_, close); });
    const StackChange<std::int32_t> change = ends.change(roles.begins);
    StackChange<std::int32_t> total;
    const auto before = block_exclusive_prefix<kTileThreads>(change, memory_.warps, total);
    const std::int32_t bottom = before.opens - before.closes - change.closes;
    memory_.live[thread_] = ends.opens;
    memory_.bottoms.build(bottom);
    // What the tile leaves on the stack lies at as many levels.
    const bool few_levels = total.opens <= kMaskedLevels;
    if (few_levels) mask_opens(bottom, change.opens);
    if (roles.begins != 0) meet_beginnings(roles, ends, before);
    __syncthreads();
    const int served = min(__popc(ends.closes), before.opens);
    if (few_levels && memory_.highest - memory_.bottoms.least() <= kMaskedLevels) {
      match_by_level(ends.closes, before, served);
    } else {
      match_in_order(ends.closes, before, served);
    }
    const std::uint32_t unserved = ends.closes & ~lowest_set_bits(ends.closes, served);
    const bool lost = reaches_beyond_a_beginning(before.closes);
    if (lost && unserved != 0) found_.meet(fault_at(lowest_bit(unserved), kCloseFault));
    a_.tiles.reaching_closes[word] = lost ? 0 : unserved;
    store_survivors(word, ends.opens, bottom);
    if (thread_ == 0) a_.tiles.change[tile_] = total;
    __syncthreads();
    if (thread_ < kTileWarps) store_survivor_counts();
    if (a_.outputs.partner != nullptr) write_partners();
    memory_.tally.publish(found_, a_.findings);
  }

 private:
  __device__ std::int64_t fault_at(int item, std::int64_t kind) const {
    return 2 * (first_ + thread_ * kThreadItems + item) + kind;
  }

  /// Where a document begins, the one before may be unclosed; closes after it may find nothing. What lies on
  /// the stack below the tile is link_tiles' to see.
  __device__ void meet_beginnings(const RoleBits& roles, const OpenEnds& ends,
                                  StackChange<std::int32_t> before) {
    if (ends.lost != 0) found_.meet(fault_at(lowest_bit(ends.lost), kCloseFault));
    if (ends.unclosed != 0) found_.meet(fault_at(lowest_bit(ends.unclosed), kUnclosedFault));
    if (before.opens > __popc(ends.closes)) found_.meet(fault_at(lowest_bit(roles.begins), kUnclosedFault));
  }

  /// Pairs element `open` of thread `owner` with element `close` of thread `closer`, if they fit.
  __device__ void pair(int owner, int open, int closer, int close) {
    if (memory_.rules.fit(memory_.symbols.at(owner, open), memory_.symbols.at(closer, close))) {
      found_.unmatched -= 2;
      memory_.partners.at(owner, open) = static_cast<Code>(closer * kThreadItems + close);
      memory_.partners.at(closer, close) = static_cast<Code>(owner * kThreadItems + open);
    } else {
      found_.meet(2 * (first_ + closer * kThreadItems + close) + kCloseFault);
    }
  }

  /// Marks the levels at which the thread pushes.
  __device__ void mask_opens(std::int32_t bottom, std::int32_t opens) {
    for (std::int32_t level = bottom + 1; level <= bottom + opens; ++level) memory_.masks.add(level);
    int highest = opens > 0 ? bottom + opens : INT_MIN / 2;
    for (int distance = 16; distance > 0; distance /= 2) {
      highest = max(highest, __shfl_xor_sync(kAllLanes, highest, distance));
    }
    if (thread_ % 32 == 0) atomicMax(&memory_.highest, highest);
  }

  /// Matches the first `served` closes of each thread, which reach out of it and not out of the tile. A warp
  /// deals out those of its threads: a close pops a level, and its open is in the last thread before that has
  /// pushed there.
  __device__ void match_by_level(std::uint32_t closes, StackChange<std::int32_t> before, int served) {
    const int lane = thread_ % 32;
    const std::int32_t height = before.opens - before.closes;
    int through = served;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int others = __shfl_up_sync(kAllLanes, through, distance);
      if (lane >= distance) through += others;
    }
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
      const std::uint32_t closers = __shfl_sync(kAllLanes, closes, closer);
      const std::int32_t level = __shfl_sync(kAllLanes, height, closer) - rank;
      if (item >= total) continue;
      closer += thread_ - lane;
      const int owner = memory_.masks.last_at(level, closer);
      const int open = select_bit(memory_.live[owner], level - memory_.bottoms.bottom(owner) - 1);
      pair(owner, open, closer, select_bit(closers, rank));
    }
  }

  /// The same for any number of levels: each thread takes its own.
  __device__ void match_in_order(std::uint32_t closes, StackChange<std::int32_t> before, int served) {
    for_opens_below(memory_.bottoms, memory_.live, thread_, before.opens - before.closes, served,
                    [&](int owner, int open) {
                      pair(owner, open, thread_, lowest_bit(closes));
                      closes &= closes - 1;
                    });
  }

  /// Of the thread's opens, those that lie at or below all later threads' bottoms.
  __device__ void store_survivors(std::int64_t word, std::uint32_t opens, std::int32_t bottom) {
    const int lane = thread_ % 32;
    const int warp = thread_ / 32;
    std::int32_t later = INT_MAX / 2;  // and no overflow below
    for (int other = warp + 1; other < kTileWarps; ++other) {
      later = min(later, memory_.bottoms.least_of_warp(other));
    }
    std::int32_t from_here = bottom;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const std::int32_t after = __shfl_down_sync(kAllLanes, from_here, distance);
      if (lane + distance < 32) from_here = min(from_here, after);
    }
    const std::int32_t after = __shfl_down_sync(kAllLanes, from_here, 1);
    if (lane < 31) later = min(later, after);
    const int count = max(min(__popc(opens), later - bottom), 0);
    a_.tiles.surviving_opens[word] = lowest_set_bits(opens, count);
    int sum = count;
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(kAllLanes, sum, distance);
    if (lane == 0) memory_.surviving_opens[warp] = sum;
  }

  __device__ void store_survivor_counts() {
    int before = 0;
    for (int warp = 0; warp < thread_; ++warp) before += memory_.surviving_opens[warp];
    a_.tiles.opens_before[tile_ * kTileWarps + thread_] = static_cast<std::uint16_t>(before);
  }

  /// Four elements at a time. Those whose partner is not in the tile get none, until link_tiles finds it.
  __device__ void write_partners() {
    const bool aligned =
        reinterpret_cast<std::uintptr_t>(a_.outputs.partner) % alignof(FourIndices<Index>) == 0;
    const int first_item = 4 * (thread_ % 8);
    for (int owner = thread_ / 8; owner < kTileThreads; owner += kTileThreads / 8) {
      const std::int64_t element = first_ + owner * kThreadItems + first_item;
      FourIndices<Index> partners;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const Code code = memory_.partners.at(owner, first_item + i);
        partners.of[i] = code == kNobody ? Index{-1} : static_cast<Index>(first_ + code);
      }
      Index* out = a_.outputs.partner + element;
      if (aligned && element + 4 <= a_.count) {
        *reinterpret_cast<FourIndices<Index>*>(out) = partners;
        continue;
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (element + i < a_.count) out[i] = partners.of[i];
      }
    }
  }

  const Arguments<Symbol, Index>& a_;
  Memory& memory_;
  const std::int64_t tile_;
  const std::int64_t first_;
  const int thread_;
  Found found_;
};

}  // namespace cumulus::bracket_match
