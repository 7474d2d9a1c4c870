#pragma once

#include "kernels/sampling_table/sampling_table_rows.cuh"

// The shared memory of a block whose threads have 16 neighbouring cells each: see
// sampling_table_dense_rows.cuh.

namespace cumulus::sampling_rows {

/// What is built beside the lower bounds: nothing, a guide whose entries are one number, or guide and trees.
enum class DenseLookup { kNone, kCutpoints, kTrees };

inline constexpr std::uint32_t kOwn = 16;  // cells of a thread, entries of a thread
inline constexpr std::uint32_t kMostDenseCells = 16384;

/// The block's shared memory, its parts in other places than in sampling_table_row_bounds.cuh: cells and
/// slots at word_place of their numbers, a slot's holder in its upper half, the edges on 16 bytes.
struct DenseOnChip {
  OnChip chip;
  std::uint32_t* queued;
  std::uint16_t* queue;  ///< Nodes of larger trees, `*queued` of them.

  CUMULUS_HOST_DEVICE static bool fits(std::uint32_t count, std::uint32_t guide_size) {
    return count % kOwn == 0 && count <= kMostDenseCells && guide_size % 32 == 0 &&
           guide_size <= 2 * kMostDenseCells;
  }
  CUMULUS_HOST_DEVICE static std::size_t words_before_queue(std::uint32_t count, std::uint32_t guide_size) {
    const std::uint32_t chunks = OnChip::chunks_of(count);
    return std::size_t{chunks} * (kChunk + kChunk / OnChip::kGroup + kChunk / 4 + 1) + guide_size + 4 + 1;
  }
  CUMULUS_HOST_DEVICE static std::size_t bytes(std::uint32_t count, std::uint32_t guide_size,
                                               DenseLookup lookup) {
    return words_before_queue(count, guide_size) * sizeof(std::uint32_t) +
           (lookup == DenseLookup::kTrees ? std::size_t{count} * sizeof(std::uint16_t) : 0);
  }
  __device__ DenseOnChip(std::uint32_t* words, std::uint32_t count, std::uint32_t guide_size)
      : chip(words, count, guide_size) {
    const std::uint32_t chunks = OnChip::chunks_of(count);
    std::uint32_t* const edges = chip.slots + guide_size + 4;
    chip.edges = reinterpret_cast<unsigned char*>(edges);
    chip.groups = edges + chunks * (kChunk / 4);
    chip.chunks = chip.groups + chunks * (kChunk / OnChip::kGroup);
    queued = chip.chunks + chunks;
    queue = reinterpret_cast<std::uint16_t*>(queued + 1);
  }
};

/// Where word i lies so that 16 neighbours of a thread and 4 of a lane are both read without conflicts. Four
/// words from a multiple of four on stay neighbours.
__device__ inline std::uint32_t word_place(std::uint32_t i) { return i ^ (i >> 3 & 28); }
__device__ inline std::uint32_t quad_place(std::uint32_t quad) { return word_place(quad * kQuad); }

/// Stores a warp's words, kOwn of each lane, in the order of memory; `staged` is shared memory, of which the
/// warp has the words from `first` on. Lanes at or behind `end` have none.
__device__ inline void store_words(std::uint32_t* staged, const std::uint32_t (&words)[kOwn],
                                   std::uint32_t first_of_warp, std::uint32_t end, std::uint32_t* to) {
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t quad = first_of_warp / kQuad + lane * (kOwn / kQuad);
  if (first_of_warp + lane * kOwn < end) {
#pragma unroll
    for (std::uint32_t q = 0; q < kOwn / kQuad; ++q) {
      *reinterpret_cast<uint4*>(staged + quad_place(quad + q)) =
          make_uint4(words[4 * q], words[4 * q + 1], words[4 * q + 2], words[4 * q + 3]);
    }
  }
  __syncwarp();
#pragma unroll
  for (std::uint32_t q = 0; q < kOwn / kQuad; ++q) {
    const std::uint32_t i = first_of_warp + (q * 32 + lane) * kQuad;
    if (i < end) {
      *reinterpret_cast<uint4*>(to + i) = *reinterpret_cast<const uint4*>(staged + quad_place(i / kQuad));
    }
  }
}

/// Before anything else; the block must meet before it goes on.
template <int kThreads>
__device__ void clear_dense(const DenseOnChip& dense, std::uint32_t guide_size) {
  clear_slots<kThreads>(dense.chip, guide_size);
  if (threadIdx.x == 0) *dense.queued = 0;
}

}  // namespace cumulus::sampling_rows
