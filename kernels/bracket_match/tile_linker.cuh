#pragma once

#include <cstdint>

#include "kernels/bracket_match/tile_memory.cuh"

// Matching across tiles.

namespace cumulus::bracket_match {

/// Tiles of a block: one for each warp.
inline constexpr int kLinkedTiles = kTileWarps;

template <class Symbol>
struct LinkMemory {
  union {
    std::uint16_t
        reaching_closes[kTileItems];  // of the tile that the block links: their numbers in it, in order
    std::uint16_t few_closes[kTileWarps][kFewCloses];  // of the tile that each warp links
  };
  int reaching_before[kTileWarps];
  int first_beginning;
  BlockTally tally;
  typename Rules<Symbol>::Shared rules;
};

/// Pairs the closes of the block's tiles with the opens of earlier tiles.
template <class Symbol, class Index>
class TileLinker {
  using Memory = LinkMemory<Symbol>;

 public:
  __device__ TileLinker(const Arguments<Symbol, Index>& arguments, Memory& memory)
      : a_(arguments), memory_(memory), thread_(static_cast<int>(threadIdx.x)) {}

  __device__ void run() {
    memory_.tally.clear();
    const std::int64_t first_tile = std::int64_t{blockIdx.x} * kLinkedTiles;
    int own_pops = 0;
    bool prepared = false;
    for (int i = 0; i < kLinkedTiles; ++i) {
      const std::int64_t tile = first_tile + i;
      const int pops = tile < a_.tiles.count ? a_.tiles.change[tile].closes : 0;
      if (i == thread_ / 32) own_pops = pops;
      if (pops <= kFewCloses) continue;
      if (!prepared) a_.rules.prepare(memory_.rules);
      prepared = true;
      enter(tile);
      link_by_block();
      __syncthreads();
    }
    enter(first_tile + thread_ / 32);
    if (own_pops > 0 && own_pops <= kFewCloses) link_by_warp(own_pops);
    __syncthreads();
    memory_.tally.publish(found_, a_.findings);
  }

 private:
  __device__ void enter(std::int64_t tile) {
    tile_ = tile;
    first_ = tile * kTileItems;
  }

  __device__ void link_by_block() {
    if (thread_ == 0) memory_.first_beginning = kTileItems;
    const int closes = list_reaching_closes();
    const auto close = [&](int number) { return first_ + memory_.reaching_closes[number]; };
    const std::int64_t depth = a_.tiles.depth[tile_];
    const auto served = static_cast<int>(min(depth, static_cast<std::int64_t>(closes)));
    for_opens_below_tile(a_.tiles, tile_, depth, served,
                         [&](int number, std::int64_t open) { pair(memory_.rules, open, close(number)); });
    for (int number = served + thread_; number < closes; number += kTileThreads) lose(close(number));
    if (depth > closes) meet_first_beginning();
  }

  /// No document begins in a tile of few pops.
  __device__ void link_by_warp(int closes) {
    const int lane = thread_ % 32;
    std::uint16_t* numbers = memory_.few_closes[thread_ / 32];
    list_few_closes(numbers);
    const auto close = [&](int number) { return first_ + numbers[number]; };
    const std::int64_t depth = a_.tiles.depth[tile_];
    const auto served = static_cast<int>(min(depth, static_cast<std::int64_t>(closes)));
    for_opens_of_pops(a_.tiles, tile_, depth, 0, served,
                      [&](int number, std::int64_t open) { pair(a_.rules, open, close(number)); });
    for (int number = served + lane; number < closes; number += 32) lose(close(number));
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

  /// Returns how many there are.
  __device__ int list_reaching_closes() {
    const int lane = thread_ % 32;
    const int warp = thread_ / 32;
    std::uint32_t closes = a_.tiles.reaching_closes[tile_ * kTileThreads + thread_];
    const int through = warp_prefix_sum(__popc(closes));
    if (lane == 31) memory_.reaching_before[warp] = through;
    __syncthreads();
    int number = through - __popc(closes);
    int total = 0;
    for (int other = 0; other < kTileWarps; ++other) {
      if (other < warp) number += memory_.reaching_before[other];
      total += memory_.reaching_before[other];
    }
    for (; closes != 0; closes &= closes - 1, ++number) {
      memory_.reaching_closes[number] =
          static_cast<std::uint16_t>(thread_ * kThreadItems + lowest_bit(closes));
    }
    __syncthreads();
    return total;
  }

  template <class AnyRules>
  __device__ void pair(const AnyRules& rules, std::int64_t open, std::int64_t close) {
    if (!rules.fit(a_.text[open], a_.text[close])) return lose(close);
    found_.unmatched -= 2;
    if (a_.outputs.partner == nullptr) return;
    a_.outputs.partner[close] = static_cast<Index>(open);
    a_.outputs.partner[open] = static_cast<Index>(close);
  }

  __device__ void lose(std::int64_t close) { found_.meet(2 * close + kCloseFault); }

  /// Something is left below the tile: if a document begins in the tile, the one before is unclosed there.
  __device__ void meet_first_beginning() {
    const std::uint32_t begins = a_.tiles.begins_of(tile_ * kTileThreads + thread_);
    if (begins != 0) atomicMin(&memory_.first_beginning, thread_ * kThreadItems + lowest_bit(begins));
    __syncthreads();
    if (memory_.first_beginning < kTileItems) {
      found_.meet(2 * (first_ + memory_.first_beginning) + kUnclosedFault);
    }
  }

  const Arguments<Symbol, Index>& a_;
  Memory& memory_;
  std::int64_t tile_ = 0;
  std::int64_t first_ = 0;
  const int thread_;
  Found found_;
};

}  // namespace cumulus::bracket_match
