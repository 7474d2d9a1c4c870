#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/bracket_match/stack_lookup.cuh"
#include "kernels/bracket_match/tile_symbols.cuh"

// What a block keeps of its tile in shared memory.

namespace cumulus::bracket_match {

/// Where the results go; null: not asked for.
template <class Index>
struct DeviceOutputs {
  Index* partner;
  Index* parent;
  Index* depth;
  Index* top;
};

template <class Symbol, class Index>
struct Arguments {
  const Symbol* text;
  std::int64_t count;
  Rules<Symbol> rules;
  DeviceTiles tiles;
  DeviceOutputs<Index> outputs;
  Findings* findings;
};

/// A number of an element of the tile below kTileItems; or kTileItems + j, the open at level (depth before
/// the tile) - j of the stack; or kNobody.
using Code = std::uint16_t;
inline constexpr Code kNobody = 0xFFFF;

/// A code for each element of a tile, laid out as TileSymbols' columns are.
struct TileCodes {
  static constexpr int kStride = kTileThreads + 2;
  Code codes[kThreadItems * kStride];

  __device__ Code& at(int thread, int item) { return codes[item * kStride + thread]; }
  __device__ void clear() {
    auto* words = reinterpret_cast<std::uint32_t*>(codes);
    for (int i = static_cast<int>(threadIdx.x); i < kThreadItems * kStride / 2; i += kTileThreads)
      words[i] = ~0u;
  }
};

/// What a thread's elements leave to others, a bit each.
struct OpenEnds {
  std::uint32_t opens;
  std::uint32_t closes;

  __device__ StackChange<std::int32_t> change() const { return {__popc(closes), __popc(opens)}; }
};

/// Matches the elements of one thread: the set bits of the opens are its stack. Calls pair(open, close).
template <class Pair>
__device__ OpenEnds match_in_thread(RoleBits roles, const Pair& pair) {
  OpenEnds ends{roles.opens, 0};
  for (std::uint32_t rest = roles.closes; rest != 0; rest &= rest - 1) {
    const std::uint32_t close = rest & (0u - rest);
    const std::uint32_t stack = ends.opens & (close - 1);
    if (stack == 0) {
      ends.closes |= close;
    } else {
      const int open = highest_bit(stack);
      ends.opens ^= 1u << open;
      pair(open, lowest_bit(close));
    }
  }
  return ends;
}

/// The threads' bottoms (the tile's height after their closes), and minima over pairs, fours, ... of threads.
struct BottomTree {
  std::int32_t nodes[2 * kTileThreads];

  __device__ std::int32_t bottom(int thread) const { return nodes[kTileThreads + thread]; }

  /// Synchronizes the block once, before the last levels, which the caller has to follow by another.
  __device__ void build(std::int32_t bottom) {
    int node = kTileThreads + static_cast<int>(threadIdx.x);
    nodes[node] = bottom;
#pragma unroll
    for (int span = 1; span < 32; span *= 2) {
      bottom = min(bottom, __shfl_xor_sync(kAllLanes, bottom, span));
      node /= 2;
      if (threadIdx.x % (2 * span) == 0) nodes[node] = bottom;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int above = kTileWarps - 1; above > 0; --above)
        nodes[above] = min(nodes[2 * above], nodes[2 * above + 1]);
    }
  }

  /// The last thread before `thread` whose bottom is below `level`; there must be one.
  __device__ int last_below(int thread, std::int32_t level) const {
    int node = kTileThreads + thread;
    while (node % 2 == 0 || nodes[node - 1] >= level) node /= 2;
    --node;
    while (node < kTileThreads) {
      node = 2 * node + 1;
      if (nodes[node] >= level) --node;
    }
    return node - kTileThreads;
  }
};

/// Sums over a block, for the findings.
struct BlockTally {
  int unmatched;
  unsigned long long first_fault;
  long long maximum_depth;

  __device__ void clear() {
    if (threadIdx.x == 0) *this = {0, kNoFault, 0};
  }
  /// By whole warps.
  __device__ void add(int more_unmatched, unsigned long long fault, long long depth) {
    for (int distance = 16; distance > 0; distance /= 2) {
      more_unmatched += __shfl_xor_sync(kAllLanes, more_unmatched, distance);
      fault = min(fault, __shfl_xor_sync(kAllLanes, fault, distance));
      depth = max(depth, __shfl_xor_sync(kAllLanes, depth, distance));
    }
    if (threadIdx.x % 32 != 0) return;
    if (more_unmatched != 0) atomicAdd(&unmatched, more_unmatched);
    if (fault != kNoFault) atomicMin(&first_fault, fault);
    if (depth > 0) atomicMax(&maximum_depth, depth);
  }
  __device__ void publish(Findings* findings) const {
    if (threadIdx.x != 0) return;
    if (unmatched != 0) {
      atomicAdd(&findings->unmatched, static_cast<unsigned long long>(static_cast<long long>(unmatched)));
    }
    if (first_fault != kNoFault) atomicMin(&findings->first_fault, first_fault);
    if (maximum_depth > 0) atomicMax(&findings->maximum_depth, maximum_depth);
  }
};

/// For parents, depths and tops.
template <class Index>
struct TreeMemory {
  TileCodes parents;
  std::uint32_t opens[kTileThreads];
  std::uint32_t closes[kTileThreads];
  std::uint32_t reaching[kTileThreads];  // closes that pop what earlier tiles have pushed
  std::int32_t height[kTileThreads];     // opens less closes of the tile before the thread's elements
  std::int32_t reaching_before[kTileThreads];
};
struct NoTreeMemory {};

template <class Symbol, class Index, bool kTree>
struct ResolveMemory {
  union Stage {
    TileSymbols<Symbol> symbols;              // while the tile is matched in itself
    Index outer[kTree ? kTileItems + 1 : 1];  // then: the opens of the stack before the tile, from the top
  } stage;
  TileCodes partners;
  std::uint16_t reaching_closes[kTileItems];  // their numbers in the tile, in order
  BottomTree bottoms;
  std::uint32_t live[kTileThreads];       // opens that their own thread does not close
  std::uint32_t elsewhere[kTileThreads];  // elements whose partner is not in the tile
  StackChange<std::int32_t> warps[kTileWarps];
  BlockTally tally;
  typename Rules<Symbol>::Shared rules;
  std::conditional_t<kTree, TreeMemory<Index>, NoTreeMemory> tree;
};

}  // namespace cumulus::bracket_match
