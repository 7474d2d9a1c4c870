#pragma once

#include "kernels/sampling_table/rows/block/lookup.cuh"
#include "kernels/sampling_table/rows/register_blocked/register_blocked.h"

// The shared memory of a block whose threads have 16 neighbouring cells each: see
// rows/register_blocked/cells.cuh.

namespace cumulus::sampling_table {

inline constexpr std::uint32_t kWarpCells = 32 * kThreadCells;

/// Where word i lies so that 16 neighbours of a thread and 4 of a lane are both read without conflicts. Four
/// words from a multiple of four on stay neighbours.
__device__ inline std::uint32_t word_place(std::uint32_t i) { return i ^ (i >> 3 & 28); }
/// Of quad q of thread `thread`, each of which has kThreadCells words.
__device__ inline std::uint32_t thread_quad_place(std::uint32_t thread, std::uint32_t q) {
  return (thread * kThreadCells ^ (2 * thread & 28)) ^ q * kQuad;
}
/// Of quad q * 32 + lane of the warp's.
__device__ inline std::uint32_t warp_quad_place(std::uint32_t thread, std::uint32_t q) {
  const std::uint32_t lane = thread % 32;
  return ((thread / 32 * kWarpCells + (lane * kQuad ^ (lane >> 1 & 12))) ^ (q % 2 * 16)) + q * 32 * kQuad;
}

/// A number of 16 bits for each guide cell: the cell that holds its smallest x, where that holds the smallest
/// x of no guide cell before; else 0. Neither 16 neighbours of a thread nor the same of 16 of each lane are
/// in each other's way.
struct Slots {
  std::byte* memory;  ///< On kSlotAlignment bytes.

  /// The address of the slot whose address would be `2 * half` if slots were in their order.
  __device__ static std::uint32_t place(std::uint32_t half) { return half << 1 ^ (half >> 2 & 0x70); }

  __device__ std::uint32_t operator[](std::uint32_t g) const {
    return *reinterpret_cast<const std::uint16_t*>(memory + place(g));
  }
  /// Eight neighbours, two in a word, from a multiple of eight on.
  __device__ uint4 eight(std::uint32_t g) const { return *reinterpret_cast<const uint4*>(memory + place(g)); }
  /// Eight for each lane of a warp, in any order, of the 256 slots from a multiple of 256 on.
  __device__ uint4 any_eight(std::uint32_t g) const {
    return *reinterpret_cast<const uint4*>(memory + 2 * g + threadIdx.x % 32 * sizeof(uint4));
  }
  template <int kThreads>
  __device__ void clear(std::uint32_t guide_size) const {
#pragma unroll 1
    for (std::uint32_t i = threadIdx.x; i < slot_bytes(guide_size) / sizeof(uint4); i += kThreads) {
      reinterpret_cast<uint4*>(memory)[i] = make_uint4(0, 0, 0, 0);
    }
  }
};

/// What threads publish to their block about the edges between their cells: see
/// rows/register_blocked/trees.cuh.
template <int kThreads>
struct BlockEdges {
  static constexpr std::uint32_t kWarps = kThreads / 32;
  /// Bit t of words[b][w]: thread t of warp w has a difference with a bit above b, or a tree that begins.
  std::uint32_t words[32][kWarps];
  std::uint16_t starts[kThreads];  ///< ThreadEdges::starts.
};
static_assert(sizeof(BlockEdges<1024>) == edge_bytes(1024));

/// The shared memory of a block of kThreads that builds a distribution.
template <int kThreads, RowLookup kLookup>
struct RegisterBlockedMemory {
  static constexpr std::uint32_t kCells = kThreads * kThreadCells;
  static constexpr bool kTrees = kLookup == RowLookup::kTrees;
  static constexpr std::uint32_t kWords = kCells * (kTrees ? 2 : 1);

  std::byte* memory;  ///< On kSlotAlignment bytes.

  /// The lower bounds, at word_place.
  __device__ std::uint32_t* lower() const { return reinterpret_cast<std::uint32_t*>(memory); }
  /// Entries on their way to memory; each warp has a part of its own.
  __device__ std::uint32_t* staged() const { return lower() + kCells; }
  __device__ Slots slots() const { return {memory + kWords * sizeof(std::uint32_t)}; }
  /// Where slots have been.
  __device__ BlockEdges<kThreads>& edges() const {
    return *reinterpret_cast<BlockEdges<kThreads>*>(slots().memory);
  }
  /// A bit for each guide cell: whether it may have a tree.
  __device__ std::uint32_t* crowded(std::uint32_t guide_size) const {
    return reinterpret_cast<std::uint32_t*>(slots().memory +
                                            slot_or_edge_bytes(kThreads, kLookup, guide_size));
  }

  /// Before a distribution; the block must meet before it goes on.
  __device__ void clear(std::uint32_t guide_size) const {
    if constexpr (kLookup != RowLookup::kNone) slots().template clear<kThreads>(guide_size);
    if constexpr (kTrees) {
      for (std::uint32_t i = threadIdx.x; i < guide_size / 32; i += kThreads) crowded(guide_size)[i] = 0;
    }
  }
};

/// Stores a warp's words, kThreadCells of each lane, in the order of memory; `staged` is the block's shared
/// memory. `first` is the number of the warp's first; lanes at or after `end` have none.
__device__ inline void store_words(std::uint32_t* staged, const std::uint32_t (&words)[kThreadCells],
                                   std::uint32_t first, std::uint32_t end, std::uint32_t* to) {
  constexpr std::uint32_t kQuads = kThreadCells / kQuad;
  const std::uint32_t thread = threadIdx.x;
  const std::uint32_t lane = thread % 32;
  __syncwarp();  // what was staged before is stored
#pragma unroll
  for (std::uint32_t q = 0; q < kQuads; ++q) {
    *reinterpret_cast<uint4*>(staged + thread_quad_place(thread, q)) =
        make_uint4(words[4 * q], words[4 * q + 1], words[4 * q + 2], words[4 * q + 3]);
  }
  __syncwarp();
  std::uint32_t* const out = to + first + lane * kQuad;
  const auto store = [&](std::uint32_t q) {
    *reinterpret_cast<uint4*>(out + q * 32 * kQuad) =
        *reinterpret_cast<const uint4*>(staged + warp_quad_place(thread, q));
  };
  if (first + kWarpCells <= end) {
#pragma unroll
    for (std::uint32_t q = 0; q < kQuads; ++q) store(q);
  } else {
    for (std::uint32_t q = 0; q < kQuads; ++q) {
      if (first + (q * 32 + lane) * kQuad < end) store(q);
    }
  }
}

}  // namespace cumulus::sampling_table
