#pragma once

#include "kernels/sampling_table/sampling_table_rows.cuh"

// The shared memory of a block whose threads have 16 neighbouring cells each: see
// sampling_table_dense_rows.cuh.

namespace cumulus::sampling_rows {

/// What is built beside the lower bounds: nothing, a guide whose entries are one number, or guide and trees.
enum class DenseLookup { kNone, kCutpoints, kTrees };

inline constexpr std::uint32_t kOwn = 16;  // cells of a thread, entries of a thread
inline constexpr std::uint32_t kMostDenseCells = 16384;

/// Where word i lies so that 16 neighbours of a thread and 4 of a lane are both read without conflicts. Four
/// words from a multiple of four on stay neighbours.
__device__ inline std::uint32_t word_place(std::uint32_t i) { return i ^ (i >> 3 & 28); }
__device__ inline std::uint32_t quad_place(std::uint32_t quad) { return word_place(quad * kQuad); }

/// The shared memory of a block of kThreads, its parts in other places than in
/// sampling_table_row_bounds.cuh: cells and slots at word_place of their numbers, a slot's holder in its
/// upper half. The slots come last, so that all others' places are constants.
template <int kThreads>
struct DenseOnChip {
  static constexpr std::uint32_t kCells = kThreads * kOwn;
  OnChip chip;
  std::uint32_t* queued;
  std::uint16_t* queue;  ///< Nodes of larger trees, `*queued` of them.

  static constexpr std::uint32_t kQueue = kCells + 4;

  /// The first slot.
  CUMULUS_HOST_DEVICE static constexpr std::uint32_t slots_at(DenseLookup lookup) {
    return lookup == DenseLookup::kTrees ? kQueue + kCells / 2 : kCells;
  }
  static std::size_t bytes(std::uint32_t guide_size, DenseLookup lookup) {
    return (slots_at(lookup) + (lookup == DenseLookup::kNone ? 0 : guide_size)) * sizeof(std::uint32_t);
  }
  __device__ DenseOnChip(std::uint32_t* words, DenseLookup lookup)
      : chip(words, 0), queued(words + kCells), queue(reinterpret_cast<std::uint16_t*>(words + kQueue)) {
    chip.slots = words + slots_at(lookup);
  }
};

inline bool dense_fits(std::uint32_t count, std::uint32_t guide_size) {
  return count % kOwn == 0 && count <= kMostDenseCells && guide_size % 32 == 0 &&
         guide_size <= 2 * kMostDenseCells;
}

/// quad_place of quad q of thread `thread`, each of which has kOwn words: a place and what its quads differ
/// from it in are known once for all arrays.
__device__ inline std::uint32_t own_quad_place(std::uint32_t thread, std::uint32_t q) {
  return (thread * kOwn ^ (2 * thread & 28)) ^ q * kQuad;
}
/// quad_place of quad q * 32 + lane of the warp's.
__device__ inline std::uint32_t warp_quad_place(std::uint32_t thread, std::uint32_t q) {
  const std::uint32_t lane = thread % 32;
  return ((thread / 32 * 32 * kOwn + (lane * kQuad ^ (lane >> 1 & 12))) ^ (q % 2 * 16)) + q * 32 * kQuad;
}

/// Stores a warp's words, kOwn of each lane, in the order of memory; `staged` is shared memory, of which the
/// warp has its share in `to`, from `tile` on. Lanes at or behind `end` have none.
__device__ inline void store_words(std::uint32_t* staged, const std::uint32_t (&words)[kOwn],
                                   std::uint32_t tile, std::uint32_t end, std::uint32_t* to) {
  constexpr std::uint32_t kQuads = kOwn / kQuad;
  const std::uint32_t thread = threadIdx.x;
  if (tile + thread * kOwn < end) {
#pragma unroll
    for (std::uint32_t q = 0; q < kQuads; ++q) {
      *reinterpret_cast<uint4*>(staged + tile + own_quad_place(thread, q)) =
          make_uint4(words[4 * q], words[4 * q + 1], words[4 * q + 2], words[4 * q + 3]);
    }
  }
  __syncwarp();
  const std::uint32_t first = tile + thread / 32 * 32 * kOwn;
  std::uint32_t* const out = to + first + thread % 32 * kQuad;
  const auto store = [&](std::uint32_t q) {
    *reinterpret_cast<uint4*>(out + q * 32 * kQuad) =
        *reinterpret_cast<const uint4*>(staged + tile + warp_quad_place(thread, q));
  };
  if (first + 32 * kOwn <= end) {
#pragma unroll
    for (std::uint32_t q = 0; q < kQuads; ++q) store(q);
  } else {
    for (std::uint32_t q = 0; q < kQuads; ++q) {
      if (first + (q * 32 + thread % 32) * kQuad < end) store(q);
    }
  }
}

/// Before anything else; the block must meet before it goes on.
template <int kThreads, DenseLookup kLookup>
__device__ void clear_dense(const DenseOnChip<kThreads>& dense, std::uint32_t guide_size) {
  if constexpr (kLookup != DenseLookup::kNone) {
    for (std::uint32_t i = threadIdx.x; i < guide_size / kQuad; i += kThreads) {
      reinterpret_cast<uint4*>(dense.chip.slots)[i] = make_uint4(0, 0, 0, 0);
    }
  }
  if constexpr (kLookup == DenseLookup::kTrees) {
    if (threadIdx.x == 0) *dense.queued = 0;
  }
}

}  // namespace cumulus::sampling_rows
