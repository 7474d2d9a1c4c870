#pragma once

#include "kernels/primitives/mbarrier.cuh"
#include "kernels/recursive_filter/strips/arguments.h"
#include "kernels/recursive_filter/strips/tile.cuh"

// The stages of a strip's assembly line, and the tiles on it.

namespace cumulus::recursive_filter {

/// What a tile goes through: each a pair of warps, but to hear from the neighbours takes longer, and two
/// pairs take turns. Every other pair has the same two of the four schedulers; the order divides the work
/// among them.
enum class StripStage {
  kCausalColumns,  // and what anticausal runs over the tile, from nothing, leave
  kRowStates,
  kCausalRows,
  kAnticausalColumns,  // given those of the tiles ahead
  kLoad,
  kAnticausalRows,
  kStore,
  kGather,  // the neighbours' states
};
constexpr int kStripStages = 8;
constexpr int kGatheringPairs = 2;
constexpr int kStripPairs = kStripStages - 1 + kGatheringPairs;
constexpr int kStripThreads = kStripPairs * kTile;

__device__ inline int strip_pair() { return static_cast<int>(threadIdx.x) / kTile; }
__device__ inline StripStage strip_stage() {
  return static_cast<StripStage>(min(strip_pair(), static_cast<int>(StripStage::kGather)));
}
/// The column or row of a tile that the thread has.
__device__ inline int strip_line() { return static_cast<int>(threadIdx.x) % kTile; }

/// A tile of the strip, counted from the first that is loaded, and its place in the ring.
struct RingPlace {
  int tile, slot;
  std::uint32_t round;  // of the slot's use

  __device__ explicit RingPlace(int of_tile)
      : tile(of_tile),
        slot(of_tile % kStripSlots),
        round(static_cast<std::uint32_t>(of_tile / kStripSlots)) {}
  __device__ void advance(int tiles) {
    tile += tiles;
    slot += tiles;
    if (slot < kStripSlots) return;
    slot -= kStripSlots;
    ++round;
  }
};

/// A block's shared memory.
template <int Order>
struct alignas(16) StripMemory {
  StripTile tiles[kStripSlots];
  float carries[2][2 * Order * kTile];       // of rows, on their way from kGather to kCausalRows
  Mbarrier over[kStripStages][kStripSlots];  // the stage, with the tile in the slot

  __device__ void init() {
    const int barrier = static_cast<int>(threadIdx.x);
    if (barrier < kStripStages * kStripSlots) over[barrier / kStripSlots][barrier % kStripSlots].init(kTile);
  }
  __device__ void await(StripStage stage, const RingPlace& at) {
    over[static_cast<int>(stage)][at.slot].wait(at.round);
  }
  /// By all threads of the pair.
  __device__ void tell_over(StripStage stage, const RingPlace& at) {
    over[static_cast<int>(stage)][at.slot].arrive();
  }
};
static_assert(sizeof(StripMemory<kMostStripOrder>) <= 227 * 1024);

}  // namespace cumulus::recursive_filter
