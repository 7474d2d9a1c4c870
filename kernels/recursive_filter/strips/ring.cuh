#pragma once

#include "kernels/primitives/mbarrier.cuh"
#include "kernels/recursive_filter/strips/arguments.h"
#include "kernels/recursive_filter/strips/tile.cuh"

// The stages of a strip, and the ring of its tiles.

namespace cumulus::recursive_filter {

/// The stages of a tile: each is a team with a thread for each line, but kGather waits longest and has two
/// teams, which take alternate tiles. Of one channel a team is two warps, and every other one has the same
/// two of the four schedulers; the order divides the work among them. Of several channels kLoad stores, too:
/// a slot is free when its tile is stored.
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

template <int Channels>
struct StripTeams {
  static constexpr int kLines = strip_tile_side(Channels) * Channels;
  static constexpr int kBeforeGather =
      static_cast<int>(Channels == 1 ? StripStage::kGather : StripStage::kStore);
  static constexpr int kGatherTeams = 2;
  static constexpr int kThreads = (kBeforeGather + kGatherTeams) * kLines;

  static __device__ int team() { return static_cast<int>(threadIdx.x) / kLines; }
  static __device__ StripStage stage() {
    return team() < kBeforeGather ? static_cast<StripStage>(team()) : StripStage::kGather;
  }
  static __device__ int gather_team() { return team() - kBeforeGather; }
  /// The column or row of a tile that the thread has.
  static __device__ int line() { return static_cast<int>(threadIdx.x) % kLines; }
};

/// A tile of the strip, counted from the first that is loaded, and its place in the ring.
template <int kSlots>
struct RingPlace {
  int tile, slot;
  std::uint32_t round;  // how often the slot has been used

  __device__ explicit RingPlace(int of_tile)
      : tile(of_tile), slot(of_tile % kSlots), round(static_cast<std::uint32_t>(of_tile / kSlots)) {}
  __device__ void advance(int tiles) {
    tile += tiles;
    slot += tiles;
    if (slot < kSlots) return;
    slot -= kSlots;
    ++round;
  }
};

/// Where a block's neighbours' words lie, see StripStates. Of one channel they are few and stay in registers.
template <int Channels>
struct NeighbourTable {
  int first_words[2][kMaxStripWindowTiles<Channels>];
};
template <>
struct NeighbourTable<1> {};

/// A block's shared memory.
template <int Order, int Channels>
struct alignas(16) StripMemory : NeighbourTable<Channels> {
  using Tile = StripTile<Order, Channels>;
  static constexpr int kLines = StripTeams<Channels>::kLines;
  static constexpr int kSlots = strip_slots(Order, Channels, sizeof(Tile));
  using Place = RingPlace<kSlots>;

  Tile tiles[kSlots];
  float carries[2][2 * Order * kLines];  // of rows, from kGather to kCausalRows
  Mbarrier done[kStripStages][kSlots];   // with the tile in the slot

  __device__ void init() {
    const int barrier = static_cast<int>(threadIdx.x);
    if (barrier < kStripStages * kSlots) done[barrier / kSlots][barrier % kSlots].init(kLines);
  }
  __device__ void await(StripStage stage, const Place& at) {
    done[static_cast<int>(stage)][at.slot].wait(at.round);
  }
  /// By all threads of the team, once the copies that they have begun are there.
  __device__ void arrive_when_copied(StripStage stage, const Place& at) {
    done[static_cast<int>(stage)][at.slot].arrive_when_copied();
  }
  /// By all threads of the team.
  __device__ void arrive(StripStage stage, const Place& at) {
    done[static_cast<int>(stage)][at.slot].arrive();
  }
};
static_assert(sizeof(StripMemory<kMaxStripOrder, 1>) == kStripSharedBytes && kStripSharedBytes <= 227 * 1024);
static_assert(sizeof(StripMemory<kMaxStripOrder, 4>) <= kStripSharedBytes);

}  // namespace cumulus::recursive_filter
