#pragma once

#include "kernels/primitives/mbarrier.cuh"
#include "kernels/recursive_filter/strips/arguments.h"
#include "kernels/recursive_filter/strips/tile.cuh"

// The stages of a strip, and the ring of its tiles.

namespace cumulus::recursive_filter {

/// The stages of a tile: each is a team of two warps, but kGather waits longest and has two teams, which
/// take alternate tiles. Every other team has the same two of the four schedulers; the order divides the
/// work among them.
enum class StripStage {
  kCausalColumns,  // and anticausal zero-state responses
  kRowStates,
  kCausalRows,
  kAnticausalColumns,  // with the carries from the tiles below
  kLoad,
  kAnticausalRows,
  kStore,
  kGather,  // carries of rows, from the neighbours
};
constexpr int kGatherTeams = 2;
constexpr int kStripTeams = kStripStages - 1 + kGatherTeams;
constexpr int kStripThreads = kStripTeams * kTile;

__device__ inline int strip_team() { return static_cast<int>(threadIdx.x) / kTile; }
__device__ inline StripStage strip_stage() {
  return static_cast<StripStage>(min(strip_team(), static_cast<int>(StripStage::kGather)));
}
/// The column or row of a tile that the thread has.
__device__ inline int strip_line() { return static_cast<int>(threadIdx.x) % kTile; }

/// A tile of the strip, counted from the first that is loaded, and its place in the ring.
struct RingPlace {
  int tile, slot;
  std::uint32_t round;  // how often the slot has been used

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
  float carries[2][2 * Order * kTile];       // of rows, from kGather to kCausalRows
  Mbarrier done[kStripStages][kStripSlots];  // with the tile in the slot

  __device__ void init() {
    const int barrier = static_cast<int>(threadIdx.x);
    if (barrier < kStripStages * kStripSlots) done[barrier / kStripSlots][barrier % kStripSlots].init(kTile);
  }
  __device__ void await(StripStage stage, const RingPlace& at) {
    done[static_cast<int>(stage)][at.slot].wait(at.round);
  }
  /// By all threads of the team.
  __device__ void arrive(StripStage stage, const RingPlace& at) {
    done[static_cast<int>(stage)][at.slot].arrive();
  }
};
static_assert(sizeof(StripMemory<kMaxStripOrder>) == kStripSharedBytes && kStripSharedBytes <= 227 * 1024);

}  // namespace cumulus::recursive_filter
