#pragma once

#include <cstdint>

#include "kernels/bracket_match/match/stack_lookup.cuh"
#include "kernels/bracket_match/match/tile_symbols.cuh"
#include "kernels/primitives/warp_scan.cuh"

// What a block keeps of its tile in shared memory.

namespace cumulus::bracket_match {

/// Where the results go; null: not requested.
template <class Index>
struct DeviceOutputs {
  Index* partner;
  Index* parent;
  Index* depth;
  Index* top;
};

/// Prefetches the memory around `global`.
__device__ inline void prefetch_to_l2(const void* global) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(global)));
}

template <class Symbol, class Index>
struct Arguments {
  const Symbol* text;
  std::int64_t count;
  Rules<Symbol> rules;
  DeviceTiles tiles;
  DeviceOutputs<Index> outputs;
  Findings* findings;
  bool exact_kinds;  // different kinds are so in the lists of what tiles leave

  /// Prefetches a tile's text. By a whole warp.
  __device__ void prefetch_text(std::int64_t tile) const {
    constexpr int kLineItems = 128 / static_cast<int>(sizeof(Symbol));
    const std::int64_t end = min((tile + 1) * kTileItems, count);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (std::int64_t line = tile * kTileItems + lane * kLineItems; line < end; line += 32 * kLineItems) {
      prefetch_to_l2(text + line);
    }
  }

  __device__ bool begins_at(std::int64_t element) const {
    return (tiles.begins_of(element / 32) >> (element % 32) & 1) != 0;
  }
};

/// A number of an element of the tile below kTileItems; or kTileItems + j, the open at level (depth before
/// the tile) - j of the stack; or kNobody.
using Code = std::uint16_t;
inline constexpr Code kNobody = 0xFFFF;

/// A code for each element of a tile, laid out as TileSymbols' columns are.
template <int kThreads = kTileThreads>
struct TileCodes {
  static constexpr int kStride = kThreads + 2;
  Code codes[kThreadItems * kStride];

  __device__ Code& at(int thread, int item) { return codes[item * kStride + thread]; }
  __device__ void clear() {
    auto* words = reinterpret_cast<std::uint32_t*>(codes);
    for (int i = static_cast<int>(threadIdx.x); i < kThreadItems * kStride / 2; i += kThreads) words[i] = ~0u;
  }
};

/// Where a document begins it pops more than a tile can push. What comes after it in the tile then reaches
/// further out of the tile than its elements are many: which distinguishes it from what pops a real open.
inline constexpr std::int32_t kPopsOfABeginning = 2 * kTileItems + 1;
__device__ inline bool reaches_beyond_a_beginning(std::int32_t closes) { return closes > kTileItems; }

/// As one store of 16 bytes, or two.
template <class Index>
struct alignas(16) FourIndices {
  Index of[4];
};

/// What a thread's elements leave to others, a bit each.
struct OpenEnds {
  std::uint32_t opens = 0;     // not popped: of the last document in the thread
  std::uint32_t closes = 0;    // that pop what threads before have pushed: before the first beginning
  std::uint32_t lost = 0;      // closes after it that find nothing
  std::uint32_t unclosed = 0;  // beginnings where the thread's own stack is not empty

  __device__ StackChange<std::int32_t> change(std::uint32_t begins) const {
    return {__popc(closes) + (begins != 0 ? kPopsOfABeginning : 0), __popc(opens)};
  }
};

/// Matches the elements of one thread: the set bits of the opens are its stack. Calls pair(open, close).
template <class Pair>
__device__ OpenEnds match_in_thread(const RoleBits& roles, const Pair& pair) {
  OpenEnds ends;
  std::uint32_t done = 0;  // the elements of documents before
  for (std::uint32_t begins = roles.begins;; begins &= begins - 1) {
    const std::uint32_t begin = begins & (0u - begins);
    const std::uint32_t document = begin == 0 ? ~done : (begin - 1) & ~done;
    ends.opens = roles.opens & document;
    std::uint32_t left = roles.closes & document;
    // Closes below the lowest open that is left find nothing: each time round is a pair.
    for (std::uint32_t rest = left & (0u - ends.opens); rest != 0;) {
      const std::uint32_t others = rest - 1;  // but for bits below the first close
      const std::uint32_t close = rest & ~others;
      const int open = highest_bit(ends.opens & others & ~rest);
      ends.opens ^= 1u << open;
      left ^= close;
      pair(open, highest_bit(close));
      rest &= others & (0u - ends.opens);
    }
    (begins == roles.begins ? ends.closes : ends.lost) |= left;
    if (begin == 0) return ends;
    if (ends.opens != 0) ends.unclosed |= begin;
    done = begin - 1;
  }
}

/// The threads' bottoms (the tile's height after their closes), and minima over pairs, fours, ... of threads.
template <int kThreads = kTileThreads>
struct BottomTree {
  std::int32_t nodes[2 * kThreads];

  __device__ std::int32_t bottom(int thread) const { return nodes[kThreads + thread]; }

  /// The thread's own alone, which is all that bottom() needs.
  __device__ void set(std::int32_t bottom) { nodes[kThreads + static_cast<int>(threadIdx.x)] = bottom; }

  /// Synchronizes the block once, before the last levels, which the caller has to follow by another.
  __device__ void build(std::int32_t bottom) {
    int node = kThreads + static_cast<int>(threadIdx.x);
    nodes[node] = bottom;
#pragma unroll
    for (int span = 1; span < 32; span *= 2) {
      bottom = min(bottom, __shfl_xor_sync(kFullWarp, bottom, span));
      node /= 2;
      if (threadIdx.x % (2 * span) == 0) nodes[node] = bottom;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int above = kThreads / 32 - 1; above > 0; --above)
        nodes[above] = min(nodes[2 * above], nodes[2 * above + 1]);
    }
  }

  /// The last thread before `thread` whose bottom is below `level`; there must be one.
  __device__ int last_below(int thread, std::int32_t level) const {
    int node = kThreads + thread;
    while (node % 2 == 0 || nodes[node - 1] >= level) node /= 2;
    --node;
    while (node < kThreads) {
      node = 2 * node + 1;
      if (nodes[node] >= level) --node;
    }
    return node - kThreads;
  }
};

/// Calls body(owner, open) for the `count` levels from `level` downwards of the stack before thread `thread`:
/// the thread that has pushed there, and the number of the open in it. `live` are the opens that threads
/// leave.
template <class Body>
__device__ void for_opens_below(const BottomTree<>& bottoms, const std::uint32_t* live, int thread,
                                std::int32_t level, int count, const Body& body) {
  for (int done = 0; done < count;) {
    thread = bottoms.last_below(thread, level);
    const std::int32_t bottom = bottoms.bottom(thread);
    std::uint32_t stack = lowest_set_bits(live[thread], level - bottom);
    const int end = min(count, done + level - bottom);
    level = bottom;
    for (; done < end; ++done) {
      const int open = highest_bit(stack);
      stack ^= 1u << open;
      body(thread, open);
    }
  }
}

/// What a thread has found, for the findings.
struct Found {
  int unmatched = 0;
  unsigned long long first_fault = kNoFault;
  long long maximum_depth = 0;

  __device__ void record(std::int64_t fault) {
    first_fault = min(first_fault, static_cast<unsigned long long>(fault));
  }
};

/// Gathers it over a block.
struct BlockTally {
  Found sum;

  __device__ void clear() {
    if (threadIdx.x == 0) sum = Found{};
  }
  /// By the whole block, after the one that cleared; synchronizes.
  __device__ void publish(Found found, Findings* findings) {
    found.unmatched = warp_sum(found.unmatched);
    if (threadIdx.x % 32 == 0 && found.unmatched != 0) atomicAdd(&sum.unmatched, found.unmatched);
    if (found.first_fault != kNoFault) atomicMin(&sum.first_fault, found.first_fault);
    if (__any_sync(kFullWarp, found.maximum_depth > 0)) {
      const long long deepest = warp_max(found.maximum_depth);
      if (threadIdx.x % 32 == 0) atomicMax(&sum.maximum_depth, deepest);
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    if (sum.unmatched != 0) {
      atomicAdd(&findings->unmatched, static_cast<unsigned long long>(static_cast<long long>(sum.unmatched)));
    }
    // As complements, so that zeros say that there is none.
    if (sum.first_fault != kNoFault) atomicMax(&findings->first_fault, ~sum.first_fault);
    if (sum.maximum_depth > 0) atomicMax(&findings->maximum_depth, sum.maximum_depth);
  }
};

}  // namespace cumulus::bracket_match
