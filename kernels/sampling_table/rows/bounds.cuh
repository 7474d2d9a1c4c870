#pragma once

// One distribution of up to 32768 cells by one block, which goes through memory once: masses come in, lower
// bounds, guide and radix trees go out.

#include "kernels/core/div.h"
#include "kernels/primitives/warp.cuh"
#include "kernels/primitives/warp_scan.cuh"
#include "kernels/sampling_table/format/target.h"
#include "kernels/sampling_table/rows/block/block.h"
#include "kernels/sampling_table/search/trees.h"
#include "kernels/sampling_table/weights/arithmetic.h"

namespace cumulus::sampling_table {

using sampling::Method;

/// The chunks of `count` items that a warp of the block goes through, one after another.
struct WarpChunks {
  std::uint32_t begin;
  std::uint32_t end;

  template <int kThreads>
  static __device__ WarpChunks of(std::uint32_t count) {
    constexpr std::uint32_t kWarps = kThreads / 32;
    const std::uint32_t chunks = chunks_of(count);
    const std::uint32_t each = divide_up(chunks, kWarps);
    const std::uint32_t begin = min(threadIdx.x / 32 * each, chunks);
    return {begin, min(begin + each, chunks)};
  }
};

/// Dynamic shared memory of a block: the row's cells, and a slot for each guide cell.
///
/// `cells` has first the words that the masses are made of, then the lower bounds, padded to whole chunks.
///
/// `slots` has a word for each guide cell: 1 + the cell that holds its smallest x, where that cell holds the
/// smallest x of no guide cell before.
struct BlockMemory {
  std::uint32_t* cells;
  std::uint32_t* slots;

  __device__ BlockMemory(std::uint32_t* words, std::uint32_t count)
      : cells(words), slots(cells + chunks_of(count) * kChunk) {}
};

/// The first guide cell whose smallest x is not below a lower bound; of kEmptyTail the number of guide cells.
__device__ inline std::uint32_t first_guide_cell(std::uint32_t lower, std::uint32_t guide_size) {
  const std::uint64_t key = static_cast<std::uint64_t>(lower) * guide_size;
  const bool inside = static_cast<std::uint32_t>(key) >= guide_size;
  return lower == sampling::kEmptyTail ? guide_size
                                       : static_cast<std::uint32_t>(key >> 32) + (inside ? 1 : 0);
}

/// Tallies of a warp's chunk in one word: their number in the upper 8 bits, the sum, at most 2^55, below.
inline constexpr int kCountShift = 56;
__device__ inline std::uint64_t packed(const Tally& tally) {
  return tally.sum + (static_cast<std::uint64_t>(tally.positive) << kCountShift);
}
__device__ inline Tally unpacked(std::uint64_t word) {
  return {word & ((std::uint64_t{1} << kCountShift) - 1), static_cast<std::uint32_t>(word >> kCountShift)};
}
__device__ inline Tally operator+(const Tally& a, const Tally& b) {
  return {a.sum + b.sum, a.positive + b.positive};
}

/// The largest of the warp's values, by one instruction where there is such a one.
__device__ inline std::uint32_t largest_of_warp(std::uint32_t value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return __reduce_max_sync(kFullWarp, value);
#else
  return warp_max(value);
#endif
}

/// The largest of the block's values, to every thread.
template <int kWarps>
__device__ std::uint32_t largest_of_block(std::uint32_t value) {
  __shared__ std::uint32_t of_warps[kWarps];
  const unsigned lane = threadIdx.x % 32;
  value = largest_of_warp(value);
  if (lane == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  return largest_of_warp(lane < kWarps ? of_warps[lane] : 0);
}

__device__ inline bool on_16_bytes(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
}

/// Stores the first `valid` of four words.
__device__ inline void store_quad(std::uint32_t* to, const std::uint32_t (&words)[kQuad],
                                  std::uint32_t valid) {
  if (valid >= kQuad && on_16_bytes(to)) {
    *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
    return;
  }
#pragma unroll
  for (std::uint32_t k = 0; k < kQuad; ++k) {
    if (k < valid) to[k] = words[k];
  }
}

__device__ inline void load_quad(const std::uint32_t* from, std::uint32_t (&words)[kQuad]) {
  const uint4 loaded = *reinterpret_cast<const uint4*>(from);
  words[0] = loaded.x;
  words[1] = loaded.y;
  words[2] = loaded.z;
  words[3] = loaded.w;
}

/// The words of cells that a block has in shared memory.
struct SharedCells {
  std::uint32_t* words;

  __device__ void load(std::uint32_t cell, std::uint32_t (&quad)[kQuad]) const {
    load_quad(words + cell, quad);
  }
  __device__ void store(std::uint32_t cell, const std::uint32_t (&quad)[kQuad]) const {
    *reinterpret_cast<uint4*>(words + cell) = make_uint4(quad[0], quad[1], quad[2], quad[3]);
  }
};

/// Of cells that a block keeps nowhere: their masses follow from their numbers alone.
struct NoCells {
  __device__ void load(std::uint32_t /*cell*/, std::uint32_t (&quad)[kQuad]) const {
#pragma unroll
    for (std::uint32_t& word : quad) word = 0;
  }
  __device__ void store(std::uint32_t /*cell*/, const std::uint32_t (&/*quad*/)[kQuad]) const {}
};

/// Cells, and where in memory their lower bounds go.
template <class Cells>
struct CellRange {
  Cells cells;
  std::uint32_t count;
  std::uint32_t* lower;
};

/// The tally of a cell of which `cells` has the weight's bits.
struct WeightTally {
  std::uint32_t exponent;

  __device__ Tally operator()(std::uint32_t bits, std::uint32_t /*cell*/) const {
    return {integer_weight(bits, exponent), min(bits, 1u)};
  }
};

/// The tallies before a warp's chunks, and of all of the block's.
struct WarpTallies {
  Tally before;
  Tally all;
};

/// `mass_of(word, i)` is the tally of cell i, of which `cells` has `word`; of nothing after the last. The
/// block must have met since `cells` was written.
template <int kThreads, class Cells, class MassOf>
__device__ WarpTallies tally_warps(const Cells& cells, std::uint32_t count, const MassOf& mass_of) {
  constexpr unsigned kWarps = kThreads / 32;
  __shared__ std::uint64_t sums[kWarps];
  __shared__ std::uint32_t numbers[kWarps];
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  const WarpChunks chunks = WarpChunks::of<kThreads>(count);
  Tally own;
  for (std::uint32_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
    const std::uint32_t cell = chunk * kChunk + lane * kQuad;
    std::uint32_t words[kQuad];
    cells.load(cell, words);
#pragma unroll
    for (std::uint32_t k = 0; k < kQuad; ++k) own = own + mass_of(words[k], cell + k);
  }
#pragma unroll
  for (unsigned step = 16; step > 0; step /= 2) {
    own.sum += __shfl_xor_sync(kFullWarp, own.sum, step);
    own.positive += __shfl_xor_sync(kFullWarp, own.positive, step);
  }
  if (lane == 0) {
    sums[warp] = own.sum;
    numbers[warp] = own.positive;
  }
  __syncthreads();
  const std::uint64_t sum = warp_inclusive_sum(lane < kWarps ? sums[lane] : std::uint64_t{0});
  const std::uint32_t number = warp_inclusive_sum(lane < kWarps ? numbers[lane] : std::uint32_t{0});
  const Tally through{__shfl_sync(kFullWarp, sum, warp), __shfl_sync(kFullWarp, number, warp)};
  return {{through.sum - own.sum, through.positive - own.positive},
          {__shfl_sync(kFullWarp, sum, 31), __shfl_sync(kFullWarp, number, 31)}};
}

/// Turns the warp's cells into lower bounds, in their place and in memory; `visit(cell, bounds, after)` sees
/// each quad, with the bound of the cell after it, on all lanes at once. `before` is the tally before the
/// warp's chunks.
template <int kThreads, class Cells, class MassOf, class Visit>
__device__ void write_bounds(const CellRange<Cells>& range, const BoundScale& scale, Tally before,
                             const MassOf& mass_of, const Visit& visit) {
  const unsigned lane = threadIdx.x % 32;
  const std::uint32_t count = range.count;
  const WarpChunks chunks = WarpChunks::of<kThreads>(count);
  std::uint32_t first_bound = scale.lower_bound(before);
  for (std::uint32_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
    const std::uint32_t cell = chunk * kChunk + lane * kQuad;
    std::uint32_t bounds[kQuad];
    range.cells.load(cell, bounds);
    Tally masses[kQuad];
    std::uint64_t own = 0;
#pragma unroll
    for (std::uint32_t k = 0; k < kQuad; ++k) {
      masses[k] = mass_of(bounds[k], cell + k);
      own += packed(masses[k]);
    }
    const std::uint64_t through = warp_inclusive_sum(own);
    Tally tally = before + unpacked(through - own);
    std::uint32_t after[kQuad];
#pragma unroll
    for (std::uint32_t k = 0; k < kQuad; ++k) {
      tally = tally + masses[k];
      after[k] = scale.lower_bound(tally);
    }
    const std::uint32_t of_lane_before = __shfl_up_sync(kFullWarp, after[kQuad - 1], 1);
    bounds[0] = lane > 0 ? of_lane_before : first_bound;
#pragma unroll
    for (std::uint32_t k = 1; k < kQuad; ++k) bounds[k] = after[k - 1];
    range.cells.store(cell, bounds);
    if (cell < count) store_quad(range.lower + cell, bounds, count - cell);
    visit(cell, bounds, after[kQuad - 1]);
    first_bound = __shfl_sync(kFullWarp, after[kQuad - 1], 31);
    before = before + unpacked(__shfl_sync(kFullWarp, through, 31));
  }
}

/// Notes in the slots which cells hold the smallest x of guide cells.
__device__ inline void note_quad(const BlockMemory& memory, std::uint32_t guide_size, std::uint32_t cell,
                                 const std::uint32_t (&bounds)[kQuad], std::uint32_t after) {
  std::uint32_t begin = first_guide_cell(bounds[0], guide_size);
#pragma unroll
  for (std::uint32_t k = 0; k < kQuad; ++k) {
    const std::uint32_t next = first_guide_cell(k + 1 < kQuad ? bounds[(k + 1) % kQuad] : after, guide_size);
    if (begin < next) memory.slots[begin] = cell + k + 1;
    begin = next;
  }
}

}  // namespace cumulus::sampling_table
