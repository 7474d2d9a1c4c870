#pragma once

#include <cstdint>

#include "kernels/bracket_match/tile_memory.cuh"

// Matching across tiles.

namespace cumulus::bracket_match {

template <class Symbol>
struct LinkMemory {
  std::uint16_t reaching_closes[kTileItems];  // their numbers in the tile, in order
  int reaching_before[kTileWarps];
  int first_beginning;
  BlockTally tally;
  typename Rules<Symbol>::Shared rules;
};

/// Pairs the closes of the tile that is the block's number with the opens of earlier tiles.
template <class Symbol, class Index>
class TileLinker {
  using Memory = LinkMemory<Symbol>;

 public:
  __device__ TileLinker(const Arguments<Symbol, Index>& arguments, Memory& memory)
      : a_(arguments),
        memory_(memory),
        tile_(blockIdx.x),
        first_(tile_ * kTileItems),
        thread_(static_cast<int>(threadIdx.x)) {}

  __device__ void run() {
    if (a_.tiles.change[tile_].closes == 0) return;
    a_.rules.prepare(memory_.rules);
    memory_.tally.clear();
    if (thread_ == 0) memory_.first_beginning = kTileItems;
    const int closes = list_reaching_closes();
    const std::int64_t depth = a_.tiles.depth[tile_];
    const auto served = static_cast<int>(min(depth, static_cast<std::int64_t>(closes)));
    for_opens_below_tile(a_.tiles, tile_, depth, served,
                         [&](int number, std::int64_t open) { pair(open, close(number)); });
    for (int number = served + thread_; number < closes; number += kTileThreads) lose(close(number));
    if (depth > closes) meet_first_beginning();
    memory_.tally.publish(found_, a_.findings);
  }

 private:
  __device__ std::int64_t close(int number) const { return first_ + memory_.reaching_closes[number]; }

  /// Returns how many there are.
  __device__ int list_reaching_closes() {
    const int lane = thread_ % 32;
    const int warp = thread_ / 32;
    std::uint32_t closes = a_.tiles.reaching_closes[tile_ * kTileThreads + thread_];
    int through = __popc(closes);
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int before = __shfl_up_sync(kAllLanes, through, distance);
      if (lane >= distance) through += before;
    }
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

  __device__ void pair(std::int64_t open, std::int64_t close) {
    if (!memory_.rules.fit(a_.text[open], a_.text[close])) return lose(close);
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
  const std::int64_t tile_;
  const std::int64_t first_;
  const int thread_;
  Found found_;
};

}  // namespace cumulus::bracket_match
