#pragma once

#include <cstdint>

#include "kernels/primitives/mbarrier.cuh"

// A ring of slots in shared memory through which items go, stage by stage, each stage another warp or group
// of warps of the block: producer warps fill slots, with TMA or by threads, consumer warps wait for them.
//
// Why it makes progress: the items' order is the same in all stages, and a stage waits for an item's earlier
// stage, or, the first one, for the last stage of the item kSlots before. So the stage with the oldest
// unfinished item never waits, and all warps of a block are resident.
// Why nothing is overwritten while it is read: the first stage waits for the last stage of the slot's item
// before it fills the slot again. Why phases cannot be mistaken: a slot's barrier of a stage ends a phase
// once an item; nobody is more than one phase behind, since the slot is not filled again before all stages
// are over.

namespace cumulus {

/// An item and its place in the ring.
template <int kSlots>
struct RingPlace {
  int item, slot;
  std::uint32_t phase;  // of the slot's use

  __device__ explicit RingPlace(int of_item)
      : item(of_item), slot(of_item % kSlots), phase(static_cast<std::uint32_t>(of_item / kSlots)) {}
  /// By at most kSlots items.
  __device__ void advance(int items) {
    item += items;
    slot += items;
    if (slot < kSlots) return;
    slot -= kSlots;
    ++phase;
  }
};

/// In shared memory. Stage is an enumeration from 0 on.
template <class Stage, int kStages, int kSlots>
struct StageRing {
  using Place = RingPlace<kSlots>;

  Mbarrier over[kStages][kSlots];  // the stage, with the item in the slot

  /// By one thread a stage and slot, before the block meets: a stage is over with so many arrivals.
  __device__ void init(Stage stage, int slot, int arrivals) { of(stage, slot).init(arrivals); }
  __device__ void wait(Stage stage, const Place& at) { of(stage, at.slot).wait(at.phase); }
  __device__ void arrive(Stage stage, const Place& at) { of(stage, at.slot).arrive(); }
  /// For a stage that asynchronous copies end: they count their bytes at barrier(stage, at).
  __device__ void arrive_expect_bytes(Stage stage, const Place& at, int bytes) {
    of(stage, at.slot).arrive_expect_bytes(bytes);
  }
  __device__ const Mbarrier& barrier(Stage stage, const Place& at) const {
    return over[static_cast<int>(stage)][at.slot];
  }

 private:
  __device__ Mbarrier& of(Stage stage, int slot) { return over[static_cast<int>(stage)][slot]; }
};

}  // namespace cumulus
