#pragma once

#include <cstdint>

#include "kernels/bracket_match/tile_memory.cuh"

// Matching within threads, within the tile, across tiles.

namespace cumulus::bracket_match {

/// Writes the outputs of the tile that is the block's number.
template <class Symbol, class Index, bool kTree>
class TileResolver {
  using Memory = ResolveMemory<Symbol, Index, kTree>;

 public:
  __device__ TileResolver(const Arguments<Symbol, Index>& arguments, Memory& memory)
      : a_(arguments),
        memory_(memory),
        tile_(blockIdx.x),
        first_(tile_ * kTileItems),
        depth_(arguments.tiles.depth[tile_]),
        thread_(static_cast<int>(threadIdx.x)) {}

  __device__ void run() {
    a_.rules.prepare(memory_.rules);
    memory_.partners.clear();
    memory_.tally.clear();
    memory_.stage.symbols.load(a_.text, first_, a_.count);
    __syncthreads();
    const RoleBits roles =
        memory_.stage.symbols.roles(memory_.rules, a_.count - first_ - thread_ * kThreadItems,
                                    a_.tiles.begins_of(tile_ * kTileThreads + thread_));
    unmatched_ = __popc(roles.opens) + __popc(roles.closes);
    const OpenEnds ends = match_in_thread(roles, [&](int open, int close) { pair(thread_, open, close); });
    const StackChange<std::int32_t> change = ends.change(roles.begins);
    StackChange<std::int32_t> total;
    const auto before = block_exclusive_prefix<kTileThreads>(change, memory_.warps, total);
    const std::int32_t height = before.opens - before.closes;
    memory_.live[thread_] = ends.opens;
    memory_.bottoms.build(height - change.closes);
    if (roles.begins != 0) meet_beginnings(roles, ends, before);
    __syncthreads();
    const std::uint32_t bottom_items = kTree ? find_parents_in_thread(roles) : 0;
    const std::uint32_t unserved = match_in_tile(ends.closes, before, bottom_items);
    const std::uint32_t reaching = reaches_beyond_a_beginning(before.closes) ? 0 : unserved;
    memory_.elsewhere[thread_] = reaching | a_.tiles.surviving_opens[tile_ * kTileThreads + thread_];
    if (a_.tiles.begins != nullptr && reaching != 0) atomicAdd(&memory_.tally.reaching, __popc(reaching));
    if constexpr (kTree) {
      memory_.tree.opens[thread_] = roles.opens;
      memory_.tree.closes[thread_] = roles.closes;
      memory_.tree.begins[thread_] = roles.begins;
      memory_.tree.unserved[thread_] = unserved | ends.lost;
      memory_.tree.height[thread_] = height;
      memory_.tree.unserved_before[thread_] = before.closes;
    }
    __syncthreads();
    match_across_tiles(a_.tiles.begins == nullptr ? total.closes : memory_.tally.reaching);
    if (a_.outputs.partner != nullptr) write_partners();
    if constexpr (kTree) {
      __syncthreads();
      write_tree();
    }
    memory_.tally.add(unmatched_, first_fault_, maximum_depth_);
    __syncthreads();
    memory_.tally.publish(a_.findings);
  }

 private:
  __device__ void meet(std::int64_t fault) {
    first_fault_ = min(first_fault_, static_cast<unsigned long long>(fault));
  }

  /// Where a document begins, the one before may be unclosed; closes after it may find nothing.
  __device__ void meet_beginnings(const RoleBits& roles, const OpenEnds& ends,
                                  StackChange<std::int32_t> before) {
    const std::int64_t first = first_ + thread_ * kThreadItems;
    if (ends.lost != 0) meet(2 * (first + lowest_bit(ends.lost)) + kCloseFault);
    if (ends.unclosed != 0) meet(2 * (first + lowest_bit(ends.unclosed)) + kUnclosedFault);
    const std::int64_t outer =
        reaches_beyond_a_beginning(before.closes) ? 0 : max(depth_ - before.closes, std::int64_t{0});
    if (outer + before.opens > __popc(ends.closes))
      meet(2 * (first + lowest_bit(roles.begins)) + kUnclosedFault);
  }

  /// Pairs element `open` of thread `owner` with element `close` of this thread, if they fit.
  __device__ void pair(int owner, int open, int close) {
    const bool fit =
        memory_.rules.fit(memory_.stage.symbols.at(owner, open), memory_.stage.symbols.at(thread_, close));
    if (fit) {
      unmatched_ -= 2;
      memory_.partners.at(owner, open) = static_cast<Code>(thread_ * kThreadItems + close);
      memory_.partners.at(thread_, close) = static_cast<Code>(owner * kThreadItems + open);
    } else {
      meet(2 * (first_ + thread_ * kThreadItems + close) + kCloseFault);
    }
  }

  /// Runs the stack over the thread's elements. Returns those whose parent may be in an earlier thread.
  __device__ std::uint32_t find_parents_in_thread(const RoleBits& roles) {
    std::uint32_t stack = 0;
    std::uint32_t outer = 0;
    bool begun = false;
    for (int item = 0; item < kThreadItems; ++item) {
      const std::uint32_t bit = 1u << item;
      if ((roles.begins & bit) != 0) {
        stack = 0;
        begun = true;
      }
      if ((roles.closes & bit) != 0 && stack != 0) stack ^= 1u << highest_bit(stack);
      if (stack != 0) {
        parents().at(thread_, item) = static_cast<Code>(thread_ * kThreadItems + highest_bit(stack));
      } else if (begun) {
        parents().at(thread_, item) = kNobody;
      } else {
        outer |= bit;
      }
      if ((roles.opens & bit) != 0) stack |= bit;
    }
    return outer;
  }

  __device__ TileCodes<>& parents() {
    if constexpr (kTree) return memory_.tree.parents;
    return memory_.partners;  // never asked
  }

  /// The elements of `items` that come before the next of `closes` have parent `code`.
  __device__ void set_parents(std::uint32_t& items, std::uint32_t closes, Code code) {
    const std::uint32_t next = closes & (0u - closes);
    for (std::uint32_t run = items & (next - 1); run != 0; run &= run - 1) {
      parents().at(thread_, lowest_bit(run)) = code;
    }
    items &= ~(next - 1);
  }

  /// Matches the thread's closes that reach out of it: they pop consecutive levels, each earlier thread that
  /// serves them serves consecutive ones. Then lists those that reach out of the tile; returns those that no
  /// open of the tile serves. The parents of `bottom_items` are those levels too, and one more.
  __device__ std::uint32_t match_in_tile(std::uint32_t closes, StackChange<std::int32_t> before,
                                         std::uint32_t bottom_items) {
    const int levels = kTree ? __popc(closes) + 1 : __popc(closes);
    const int served = min(levels, before.opens);
    std::uint32_t rest = closes;
    std::int32_t level = before.opens - before.closes;
    int owner = thread_;
    for (int done = 0; done < served;) {
      owner = memory_.bottoms.last_below(owner, level);
      std::uint32_t stack = memory_.live[owner];
      const std::int32_t bottom = memory_.bottoms.bottom(owner);
      stack = lowest_set_bits(stack, level - bottom);
      const int end = min(served, done + level - bottom);
      level = bottom;
      for (; done < end; ++done) {
        const int open = highest_bit(stack);
        stack ^= 1u << open;
        if (kTree) set_parents(bottom_items, rest, static_cast<Code>(owner * kThreadItems + open));
        if (rest != 0) pair(owner, open, lowest_bit(rest));
        rest &= rest - 1;
      }
    }
    const std::uint32_t unserved = rest;
    if (reaches_beyond_a_beginning(before.closes)) {
      if (kTree) set_parents(bottom_items, 0, kNobody);
      if (unserved != 0) meet(2 * (first_ + thread_ * kThreadItems + lowest_bit(unserved)) + kCloseFault);
      return unserved;
    }
    for (int done = served; done < levels; ++done) {
      const int number = before.closes + done - before.opens;
      if (kTree) set_parents(bottom_items, rest, static_cast<Code>(kTileItems + number));
      if (rest != 0) {
        memory_.reaching_closes[number] =
            static_cast<std::uint16_t>(thread_ * kThreadItems + lowest_bit(rest));
      }
      rest &= rest - 1;
    }
    return unserved;
  }

  /// A warp takes 32 of the tile's reaching closes at a time: they pop consecutive levels of the stack.
  __device__ void match_across_tiles(int closes) {
    const int entries = kTree ? closes + 1 : closes;
    const int lane = thread_ % 32;
    for (int group = thread_ / 32 * 32; group < entries; group += kTileThreads) {
      const auto wanted = static_cast<int>(
          min(max(depth_ - group, std::int64_t{0}), static_cast<std::int64_t>(min(32, entries - group))));
      std::int64_t open = -1;
      if (wanted > 0) open = opens_down_from(a_.tiles, tile_, depth_ - group, wanted);
      if (lane >= wanted) open = -1;
      if constexpr (kTree) {
        if (group + lane < entries) memory_.stage.outer[group + lane] = static_cast<Index>(open);
      }
      if (group + lane < closes) pair_across(open, first_ + memory_.reaching_closes[group + lane]);
    }
  }

  __device__ void pair_across(std::int64_t open, std::int64_t close) {
    const bool fit = open >= 0 && memory_.rules.fit(a_.text[open], a_.text[close]);
    if (fit) {
      unmatched_ -= 2;
    } else {
      meet(2 * close + kCloseFault);
    }
    if (a_.outputs.partner == nullptr) return;
    a_.outputs.partner[close] = fit ? static_cast<Index>(open) : Index{-1};
    if (fit) a_.outputs.partner[open] = static_cast<Index>(close);
  }

  __device__ void write_partners() {
    const int lane = thread_ % 32;
    for (int owner = thread_ / 32; owner < kTileThreads; owner += kTileWarps) {
      const std::int64_t element = first_ + owner * kThreadItems + lane;
      const Code code = memory_.partners.at(owner, lane);
      if ((memory_.elsewhere[owner] >> lane & 1) != 0 || element >= a_.count) continue;
      a_.outputs.partner[element] = code == kNobody ? Index{-1} : static_cast<Index>(first_ + code);
    }
  }

  __device__ void write_tree() {
    const int lane = thread_ % 32;
    for (int owner = thread_ / 32; owner < kTileThreads; owner += kTileWarps) {
      const std::int64_t element = first_ + owner * kThreadItems + lane;
      if (element >= a_.count) continue;
      const Code code = parents().at(owner, lane);
      const Index parent = code < kTileItems ? static_cast<Index>(first_ + code)
                           : code != kNobody ? memory_.stage.outer[code - kTileItems]
                                             : Index{-1};
      const bool open = (memory_.tree.opens[owner] >> lane & 1) != 0;
      const std::int64_t depth = depth_of(owner, lane);
      if (open) maximum_depth_ = max(maximum_depth_, static_cast<long long>(depth + 1));
      if (a_.outputs.parent != nullptr) a_.outputs.parent[element] = parent;
      if (a_.outputs.depth != nullptr) a_.outputs.depth[element] = static_cast<Index>(depth);
      if (a_.outputs.top != nullptr) a_.outputs.top[element] = open ? static_cast<Index>(element) : parent;
    }
  }

  /// What is left of the stack before the tile, and what the tile has pushed on it.
  __device__ std::int64_t depth_of(int owner, int item) const {
    const auto& tree = memory_.tree;
    const std::uint32_t before = (1u << item) - 1;
    const std::uint32_t through = before << 1 | 1;
    const std::uint32_t begins = tree.begins[owner] & through;
    const std::uint32_t document = begins == 0 ? ~0u : ~((1u << highest_bit(begins)) - 1);
    const int unserved = __popc(tree.unserved[owner] & through & document);
    const int height = __popc(tree.opens[owner] & before & document) -
                       __popc(tree.closes[owner] & through & document) + unserved;
    if (begins != 0) return height;
    const int pops = tree.unserved_before[owner] + unserved;
    const std::int64_t outer = reaches_beyond_a_beginning(pops) ? 0 : max(depth_ - pops, std::int64_t{0});
    return outer + tree.height[owner] + tree.unserved_before[owner] + height;
  }

  const Arguments<Symbol, Index>& a_;
  Memory& memory_;
  const std::int64_t tile_;
  const std::int64_t first_;
  const std::int64_t depth_;  // the stack's size before the tile
  const int thread_;
  int unmatched_ = 0;
  unsigned long long first_fault_ = kNoFault;
  long long maximum_depth_ = 0;
};

}  // namespace cumulus::bracket_match
