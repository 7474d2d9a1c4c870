#pragma once

#include <cstdint>

#include "kernels/bracket_match/match/tile_memory.cuh"
#include "kernels/primitives/block_scan.cuh"

// Parents, depths and tops of a tile's elements.

namespace cumulus::bracket_match {

template <class Symbol, class Index>
struct TreeMemory {
  union Stage {
    TileSymbols<Symbol> symbols;  // while the elements are read
    Index outer[kTileItems + 1];  // then: the opens of the stack before the tile, from the top
  } stage;
  TileCodes<> parents;
  BottomTree<> bottoms;
  std::uint32_t live[kTileThreads];  // opens that their own thread does not close
  std::uint32_t opens[kTileThreads];
  std::uint32_t closes[kTileThreads];
  std::uint32_t begins[kTileThreads];
  std::uint32_t unserved[kTileThreads];        // closes that pop no open of the tile
  std::int32_t height[kTileThreads];           // opens less pops of the tile before the thread's elements
  std::int32_t unserved_before[kTileThreads];  // pops
  StackChange<std::int32_t> warps[kTileWarps];
  int reaching;  // closes that pop what earlier tiles have pushed
  BlockTally tally;
  typename Rules<Symbol>::Shared rules;
};

/// Of the tile that is the block's number.
template <class Symbol, class Index>
class TileTreeWriter {
  using Memory = TreeMemory<Symbol, Index>;

 public:
  __device__ TileTreeWriter(const Arguments<Symbol, Index>& arguments, Memory& memory)
      : a_(arguments),
        memory_(memory),
        tile_(blockIdx.x),
        first_(tile_ * kTileItems),
        depth_(arguments.tiles.depth[tile_]),
        thread_(static_cast<int>(threadIdx.x)) {}

  __device__ void run() {
    a_.rules.prepare(memory_.rules);
    memory_.tally.clear();
    if (thread_ == 0) memory_.reaching = 0;
    memory_.stage.symbols.load(a_.text, first_, a_.count);
    __syncthreads();
    const RoleBits roles =
        memory_.stage.symbols.roles(memory_.rules, a_.count - first_ - thread_ * kThreadItems,
                                    a_.tiles.begins_of(tile_ * kTileThreads + thread_));
    const OpenEnds ends = match_in_thread(roles, [](int, int) {});
    const StackChange<std::int32_t> change = ends.change(roles.begins);
    const StackChange<std::int32_t> before =
        block_exclusive_scan<kTileThreads>(change, StackChange<std::int32_t>{}, Compose{}, memory_.warps)
            .before;
    memory_.live[thread_] = ends.opens;
    memory_.bottoms.build(before.opens - before.closes - change.closes);
    __syncthreads();
    const std::uint32_t unserved = find_parents_in_tile(ends.closes, before, find_parents_in_thread(roles));
    if (!reaches_beyond_a_beginning(before.closes)) atomicAdd(&memory_.reaching, __popc(unserved));
    memory_.opens[thread_] = roles.opens;
    memory_.closes[thread_] = roles.closes;
    memory_.begins[thread_] = roles.begins;
    memory_.unserved[thread_] = unserved | ends.lost;
    memory_.height[thread_] = before.opens - before.closes;
    memory_.unserved_before[thread_] = before.closes;
    __syncthreads();
    list_outer_opens(memory_.reaching + 1);
    __syncthreads();
    write();
    memory_.tally.publish(found_, a_.findings);
  }

 private:
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
        memory_.parents.at(thread_, item) = static_cast<Code>(thread_ * kThreadItems + highest_bit(stack));
      } else if (begun) {
        memory_.parents.at(thread_, item) = kNobody;
      } else {
        outer |= bit;
      }
      if ((roles.opens & bit) != 0) stack |= bit;
    }
    return outer;
  }

  /// The elements of `items` that come before the next of `closes` have parent `code`.
  __device__ void set_parents(std::uint32_t& items, std::uint32_t closes, Code code) {
    const std::uint32_t next = closes & (0u - closes);
    for (std::uint32_t run = items & (next - 1); run != 0; run &= run - 1) {
      memory_.parents.at(thread_, lowest_bit(run)) = code;
    }
    items &= ~(next - 1);
  }

  /// Of elements that are in no open of their own thread: the stack after the closes among them, level by
  /// level. Returns the closes that no open of the tile serves.
  __device__ std::uint32_t find_parents_in_tile(std::uint32_t closes, StackChange<std::int32_t> before,
                                                std::uint32_t items) {
    const int levels = __popc(closes) + 1;
    const int served = min(levels, before.opens);
    for_opens_below(memory_.bottoms, memory_.live, thread_, before.opens - before.closes, served,
                    [&](int owner, int open) {
                      set_parents(items, closes, static_cast<Code>(owner * kThreadItems + open));
                      closes &= closes - 1;
                    });
    const std::uint32_t unserved = closes;
    const bool lost = reaches_beyond_a_beginning(before.closes);
    for (int done = served; done < levels; ++done, closes &= closes - 1) {
      const int number = before.closes + done - before.opens;
      set_parents(items, closes, lost ? kNobody : static_cast<Code>(kTileItems + number));
    }
    return unserved;
  }

  __device__ void list_outer_opens(int count) {
    const auto present = static_cast<int>(min(depth_, static_cast<std::int64_t>(count)));
    for_opens_of_pops(a_.tiles, tile_, depth_, 0, present, [&](int number, std::int64_t open) {
      memory_.stage.outer[number] = static_cast<Index>(open);
    });
    for (int number = present + thread_; number < count; number += kTileThreads)
      memory_.stage.outer[number] = -1;
  }

  __device__ void write() {
    const int lane = thread_ % 32;
    for (int owner = thread_ / 32; owner < kTileThreads; owner += kTileWarps) {
      const std::int64_t element = first_ + owner * kThreadItems + lane;
      if (element >= a_.count) continue;
      const Code code = memory_.parents.at(owner, lane);
      const Index parent = code < kTileItems ? static_cast<Index>(first_ + code)
                           : code != kNobody ? memory_.stage.outer[code - kTileItems]
                                             : Index{-1};
      const bool open = (memory_.opens[owner] >> lane & 1) != 0;
      const std::int64_t depth = depth_of(owner, lane);
      if (open) found_.maximum_depth = max(found_.maximum_depth, static_cast<long long>(depth + 1));
      if (a_.outputs.parent != nullptr) a_.outputs.parent[element] = parent;
      if (a_.outputs.depth != nullptr) a_.outputs.depth[element] = static_cast<Index>(depth);
      if (a_.outputs.top != nullptr) a_.outputs.top[element] = open ? static_cast<Index>(element) : parent;
    }
  }

  /// What is left of the stack before the tile, and what the tile has pushed on it.
  __device__ std::int64_t depth_of(int owner, int item) const {
    const std::uint32_t before = (1u << item) - 1;
    const std::uint32_t through = before << 1 | 1;
    const std::uint32_t begins = memory_.begins[owner] & through;
    const std::uint32_t document = begins == 0 ? ~0u : ~((1u << highest_bit(begins)) - 1);
    const int unserved = __popc(memory_.unserved[owner] & through & document);
    const int height = __popc(memory_.opens[owner] & before & document) -
                       __popc(memory_.closes[owner] & through & document) + unserved;
    if (begins != 0) return height;
    const int pops = memory_.unserved_before[owner] + unserved;
    const std::int64_t outer = reaches_beyond_a_beginning(pops) ? 0 : max(depth_ - pops, std::int64_t{0});
    return outer + memory_.height[owner] + memory_.unserved_before[owner] + height;
  }

  const Arguments<Symbol, Index>& a_;
  Memory& memory_;
  const std::int64_t tile_;
  const std::int64_t first_;
  const std::int64_t depth_;  // the stack's size before the tile
  const int thread_;
  Found found_;
};

}  // namespace cumulus::bracket_match
