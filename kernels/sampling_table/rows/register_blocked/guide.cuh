#pragma once

#include "kernels/sampling_table/rows/register_blocked/memory.cuh"

// Guide and trees of a distribution of which each thread has 16 neighbouring cells.

namespace cumulus::sampling_table {

/// Stores to shared memory where `wanted`, without a branch, after which a warp would have to meet.
__device__ inline void store_if(bool wanted, std::uint32_t address, std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 0; @p st.shared.u16 [%1], %2; }"
               :
               : "r"(static_cast<unsigned>(wanted)), "r"(address), "h"(static_cast<std::uint16_t>(value))
               : "memory");
#endif
}

/// Notes in the slots which of the cells from `first` on hold smallest x of guide cells. `after` is the
/// bound after them.
__device__ inline void note_thread_cells(const Slots& slots, std::uint32_t guide_size, std::uint32_t first,
                                         const std::uint32_t (&bounds)[kThreadCells], std::uint32_t after) {
  // The upper half of a bound times guide_size and this is half the address of a slot, that of the first
  // guide cell whose smallest x is not below the bound. kEmptyTail counts as 2^32.
  const auto half = static_cast<std::uint32_t>(__cvta_generic_to_shared(slots.memory)) / 2;
  const std::uint64_t up = (std::uint64_t{half} + 1 << 32) - guide_size;
  auto begin = static_cast<std::uint32_t>((std::uint64_t{bounds[0]} * guide_size + up) >> 32);
#pragma unroll
  for (std::uint32_t k = 0; k < kThreadCells; ++k) {
    const std::uint32_t bound = k + 1 < kThreadCells ? bounds[(k + 1) % kThreadCells] : after;
    const auto next = static_cast<std::uint32_t>((std::uint64_t{bound} * guide_size + up) >> 32);
    store_if(begin != next, Slots::place(begin), first + k);
    begin = next;
  }
}

/// The larger in each half.
__device__ inline std::uint32_t larger_halves(std::uint32_t a, std::uint32_t b) { return __vmaxu2(a, b); }
__device__ inline std::uint32_t larger_halves(const uint4& four) {
  return larger_halves(larger_halves(four.x, four.y), larger_halves(four.z, four.w));
}
__device__ inline std::uint32_t larger_half(std::uint32_t word) { return max(word & 0xFFFF, word >> 16); }

/// The cells that hold the smallest x of a thread's guide cells, of which g is the first, and of that after
/// them; after the last it is `last`. The whole warp comes here; `warp_at` is its first guide cell.
__device__ inline void find_first_cells(const Slots& slots, std::uint32_t guide_size, std::uint32_t warp_at,
                                        std::uint32_t last, std::uint32_t (&cells)[kThreadCells + 1]) {
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t g = warp_at + lane * kThreadCells;
  uint4 low = {};
  uint4 high = {};
  if (g < guide_size) {
    low = slots.eight(g);
    high = slots.eight(g + 8);
  }
  std::uint32_t after = lane == 31 && g + kThreadCells < guide_size ? slots[g + kThreadCells] : 0;
  const std::uint32_t of_next = __shfl_down_sync(kFullWarp, low.x & 0xFFFF, 1);
  if (lane < 31) after = of_next;

  // Mostly there is one in the 256 slots before the warp's; after 0 none is needed.
  std::uint32_t before = 0;
  for (std::uint32_t at = warp_at; at > 0 && before == 0;) {
    at -= 256;
    before = largest_of_warp(larger_half(larger_halves(slots.any_eight(at))));
  }
  const std::uint32_t own = larger_half(larger_halves(larger_halves(low), larger_halves(high)));
  const std::uint32_t lanes_before = __ballot_sync(kFullWarp, own != 0) & ((1u << lane) - 1);
  const std::uint32_t of_lanes = __shfl_sync(kFullWarp, own, 31 - __clz(static_cast<int>(lanes_before)) & 31);
  std::uint32_t cell = lanes_before != 0 ? of_lanes : before;
  const std::uint32_t words[kThreadCells / 2] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (std::uint32_t k = 0; k < kThreadCells; ++k) {
    cell = max(cell, k % 2 == 0 ? words[k / 2] & 0xFFFF : words[k / 2] >> 16);
    cells[k] = cell;
  }
  cells[kThreadCells] = g + kThreadCells == guide_size ? last : max(cell, after);
}

/// The entries of a thread's guide cells as far as those are of few cells; of the others their first cells.
/// Returns a bit for each of these.
__device__ inline std::uint32_t entries_of_few(const std::uint32_t (&cells)[kThreadCells + 1],
                                               std::uint32_t (&entries)[kThreadCells]) {
  using namespace sampling::detail;
  static_assert((kMaxFurther & (kMaxFurther + 1)) == 0, "more than this in one of many shows in all of them");
  std::uint32_t any = 0;
#pragma unroll
  for (std::uint32_t k = 0; k < kThreadCells; ++k) {
    const std::uint32_t further = cells[k + 1] - cells[k];
    entries[k] = cells[k] + (further << kFirstBits);
    any |= further;
  }
  if (any <= kMaxFurther) return 0;
  // Entries still have their first cells: so those need no registers of their own.
  std::uint32_t crowded = 0;
#pragma unroll
  for (std::uint32_t k = 0; k < kThreadCells; ++k) {
    const std::uint32_t first = entries[k] & kFirst;
    if (few_cells(first,
                  k + 1 < kThreadCells ? entries[(k + 1) % kThreadCells] & kFirst : cells[kThreadCells]))
      continue;
    entries[k] = entry_of_cells(first, 0);
    crowded |= 1u << k;
  }
  return crowded;
}

/// Stores 16 entries of 16 bits.
__device__ inline void store_numbers(std::uint16_t* to, const std::uint32_t (&cells)[kThreadCells + 1]) {
#pragma unroll
  for (std::uint32_t h = 0; h < 2; ++h) {
    std::uint32_t packed[kQuad];
#pragma unroll
    for (std::uint32_t k = 0; k < kQuad; ++k) {
      packed[k] = cells[8 * h + 2 * k] | cells[8 * h + 2 * k + 1] << 16;
    }
    reinterpret_cast<uint4*>(to)[h] = make_uint4(packed[0], packed[1], packed[2], packed[3]);
  }
}

/// The slots become the guide, but for the entries of roots; returns whether there may be some in this
/// thread's. The block has met since the slots were written. `last` is the last cell, 0 where there is no
/// mass.
template <int kThreads, RowLookup kLookup>
__device__ bool write_register_blocked_guide(const Target& target,
                                             const RegisterBlockedMemory<kThreads, kLookup>& memory,
                                             std::uint32_t last) {
  bool any_crowded = false;
#pragma unroll 1
  for (std::uint32_t at = threadIdx.x / 32 * kWarpCells; at < target.guide_size;
       at += kThreads * kThreadCells) {
    const std::uint32_t g = at + threadIdx.x % 32 * kThreadCells;
    std::uint32_t cells[kThreadCells + 1];
    find_first_cells(memory.slots(), target.guide_size, at, last, cells);
    if constexpr (kLookup == RowLookup::kTrees) {
      std::uint32_t entries[kThreadCells];
      const std::uint32_t crowded = entries_of_few(cells, entries);
      if (crowded != 0 && g < target.guide_size) {
        atomicOr(memory.crowded(target.guide_size) + g / 32, crowded << g % 32);
        any_crowded = true;
      }
      store_words(memory.staged(), entries, at, target.guide_size,
                  reinterpret_cast<std::uint32_t*>(target.guide));
    } else if constexpr (kLookup == RowLookup::kRanges) {
      std::uint32_t entries[kThreadCells];
#pragma unroll
      for (std::uint32_t k = 0; k < kThreadCells; ++k) entries[k] = cells[k] | cells[k + 1] << 16;
      store_words(memory.lower(), entries, at, target.guide_size,
                  reinterpret_cast<std::uint32_t*>(target.guide));
    } else if (g < target.guide_size) {
      store_numbers(reinterpret_cast<std::uint16_t*>(target.guide) + g, cells);
    }
  }
  return any_crowded;
}

}  // namespace cumulus::sampling_table
