#pragma once

#include "kernels/primitives/shared_barrier.cuh"
#include "kernels/recursive_filter/strip_filter.h"

// The stages of a strip's assembly line, and the tiles on it.

namespace cumulus::recursive_filter {

/// What a block's pairs of warps do. A pair's warps are on the same scheduler, which so has the instructions
/// of two stages to hold, not of four; the order puts a long one and a short one on each.
enum class StripStage {
  kCausalColumns,  // and what anticausal runs over the tile, from nothing, leave
  kRowStates,
  kAnticausalColumns,  // given those of the tiles ahead
  kCausalRows,
  kLoad,
  kStore,
  kGather,  // the neighbours' states
  kAnticausalRows,
};
constexpr int kStripStages = 8;
constexpr int kStripThreads = kStripStages * kTile;

__device__ inline StripStage strip_stage() {
  return static_cast<StripStage>(static_cast<int>(threadIdx.x) / 32 % kStripStages);
}
/// The column or row of a tile that the thread has.
__device__ inline int strip_line() {
  const int thread = static_cast<int>(threadIdx.x);
  return thread / (32 * kStripStages) * 32 + thread % 32;
}

/// A tile of the strip, counted from the first that is loaded, and its place in the ring.
struct RingPlace {
  int tile = 0;
  int slot = 0;
  std::uint32_t round = 0;  // of the slot's use

  __device__ RingPlace() {}  // NOLINT(modernize-use-equals-default): a function of the device
  __device__ explicit RingPlace(int of_tile)
      : tile(of_tile),
        slot(of_tile % kStripSlots),
        round(static_cast<std::uint32_t>(of_tile / kStripSlots)) {}
  __device__ void advance() {
    ++tile;
    if (++slot < kStripSlots) return;
    slot = 0;
    ++round;
  }
};

/// A block's shared memory. The four floats behind a tile's row hold what one stage tells another: of a
/// column, the anticausal state that its run left; of a row, the one that kAnticausalRows begins with.
template <int Order>
struct alignas(16) StripMemory {
  TilePixels tiles[kStripSlots];
  float carries[2][2 * Order * kTile];  // of rows, on their way from kGather to kCausalRows
  int neighbours[2 * kMostStripWindow + 1];
  SharedBarrier over[kStripStages][kStripSlots];  // the stage, with the tile in the slot

  __device__ void init() {
    if (threadIdx.x >= kStripStages * kStripSlots) return;
    const int stage = static_cast<int>(threadIdx.x) / kStripSlots;
    const bool copies = stage == static_cast<int>(StripStage::kLoad);
    over[stage][threadIdx.x % kStripSlots].init(kTile / 32 + (copies ? kTile : 0));
  }
  __device__ void await(StripStage stage, const RingPlace& at) {
    over[static_cast<int>(stage)][at.slot].wait(at.round);
  }
  /// The tile is loaded only once the copies that this thread has begun are there.
  __device__ void tell_copying(const RingPlace& at) {
    over[static_cast<int>(StripStage::kLoad)][at.slot].arrive_after_copies();
  }
  /// By whole warps.
  __device__ void tell_over(StripStage stage, const RingPlace& at) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) over[static_cast<int>(stage)][at.slot].arrive();
  }
};
static_assert(sizeof(StripMemory<kMostStripOrder>) <= 227 * 1024);

}  // namespace cumulus::recursive_filter
