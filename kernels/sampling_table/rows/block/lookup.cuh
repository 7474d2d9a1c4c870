#pragma once

#include "kernels/sampling_table/rows/bounds.cuh"

// Guide and radix trees of a distribution whose lower bounds are in shared memory.

namespace cumulus::sampling_table {

inline constexpr std::uint32_t kLeaf = sampling::detail::leaf_bit(sampling::kNarrowCells);

/// Reads lower bounds from shared memory.
struct SharedLower {
  const std::uint32_t* cells;
  __device__ std::uint32_t operator()(std::uint32_t i) const { return cells[i]; }
};
using SharedForest = RadixForest<SharedLower>;

/// Writes the nodes.
template <int kThreads>
__device__ void write_block_nodes(const Target& target, const SharedForest& forest) {
  auto* const nodes = reinterpret_cast<std::uint32_t*>(target.nodes);
  for (std::uint32_t j = threadIdx.x; j < target.count; j += kThreads) {
    sampling::detail::NodePair node{0, 0};
    if (forest.has_node(j)) node = forest.node(j, kLeaf);
    nodes[j] = node.left | node.right << 16;
  }
}

/// The slots of a quad of guide cells, of which there are `count`; the others are 0.
__device__ inline void load_slots(const BlockMemory& memory, std::uint32_t g, std::uint32_t count,
                                  std::uint32_t (&slots)[kQuad]) {
  load_quad(memory.slots + (g < count ? g : 0), slots);
#pragma unroll
  for (std::uint32_t& slot : slots) slot = g < count ? slot : 0;
}

/// `store(g, cells)` sees each quad of guide cells whose first, g, is one: the cell that holds the smallest x
/// of each. Every thread of the block comes here.
template <int kThreads, class Store>
__device__ void fill_guide(std::uint32_t count, const BlockMemory& memory, const Store& store) {
  constexpr std::uint32_t kWarps = kThreads / 32;
  __shared__ std::uint32_t holders[kWarps];
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  const WarpChunks chunks = WarpChunks::of<kThreads>(count);
  std::uint32_t slots[kQuad];

  std::uint32_t holder = 0;
  for (std::uint32_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
    load_slots(memory, chunk * kChunk + lane * kQuad, count, slots);
#pragma unroll
    for (const std::uint32_t slot : slots) holder = max(holder, slot);
  }
  holder = warp_max(holder);
  if (lane == 0) holders[warp] = holder;
  __syncthreads();
  holder = max(1u, warp_max(lane < warp ? holders[lane] : 0));  // 1: without mass, zeros

  for (std::uint32_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
    const std::uint32_t g = chunk * kChunk + lane * kQuad;
    load_slots(memory, g, count, slots);
    std::uint32_t cells[kQuad];
    std::uint32_t own = 0;
#pragma unroll
    for (std::uint32_t k = 0; k < kQuad; ++k) {
      own = max(own, slots[k]);
      cells[k] = own;
    }
    const std::uint32_t through = max(holder, warp_inclusive_max(own));
    const std::uint32_t of_lane_before = __shfl_up_sync(kFullWarp, through, 1);
    const std::uint32_t before = lane > 0 ? of_lane_before : holder;
    holder = __shfl_sync(kFullWarp, through, 31);
#pragma unroll
    for (std::uint32_t& cell : cells) cell = max(before, cell) - 1;
    if (g < count) store(g, cells);
  }
}

/// The slots become the guide. Every thread of the block comes here.
template <int kThreads>
__device__ void write_block_guide(const Target& target, const BlockMemory& memory,
                                  const SharedForest& forest) {
  const std::uint32_t count = target.guide_size;
  if (sampling::guide_entry_bytes(target.method, target.count) == sizeof(std::uint32_t)) {
    auto* const words = reinterpret_cast<std::uint32_t*>(target.guide);
    const bool has_mass = memory.cells[0] != sampling::kEmptyTail;
    fill_guide<kThreads>(count, memory, [=, &forest](std::uint32_t g, const auto& cells) {
      std::uint32_t entries[kQuad] = {};
#pragma unroll
      for (std::uint32_t k = 0; k < kQuad; ++k) {
        if (!has_mass || g + k >= count) continue;
        entries[k] =
            static_cast<std::uint32_t>(guide_entry(target.method, forest, cells[k], g + k, target.count));
      }
      store_quad(words + g, entries, count - g);
    });
  } else {
    auto* const numbers = reinterpret_cast<std::uint16_t*>(target.guide);
    fill_guide<kThreads>(count, memory, [=](std::uint32_t g, const auto& cells) {
      if (count - g >= kQuad && reinterpret_cast<std::uintptr_t>(numbers + g) % 8 == 0) {
        *reinterpret_cast<uint2*>(numbers + g) =
            make_uint2(cells[0] | cells[1] << 16, cells[2] | cells[3] << 16);
        return;
      }
#pragma unroll
      for (std::uint32_t k = 0; k < kQuad; ++k) {
        if (g + k < count) numbers[g + k] = static_cast<std::uint16_t>(cells[k]);
      }
    });
  }
}

/// Before anything else that uses the slots of `memory`; the block must meet before it does.
template <int kThreads>
__device__ void clear_slots(const BlockMemory& memory, std::uint32_t guide_size) {
  for (std::uint32_t i = threadIdx.x; i < quads_of(guide_size); i += kThreads) {
    reinterpret_cast<uint4*>(memory.slots)[i] = make_uint4(0, 0, 0, 0);
  }
}

/// The block turns `memory.cells`, of which `mass_of` makes masses, into lower bounds and, with `lookup`, the
/// guide and the nodes of kRadixForest. The block must have met since the cells were written and the slots
/// cleared.
template <int kThreads, class MassOf>
__device__ Tally build_distribution(const Target& target, const BlockMemory& memory, bool lookup,
                                    const MassOf& mass_of) {
  const WarpTallies tallies = tally_warps<kThreads>(SharedCells{memory.cells}, target.count, mass_of);
  const auto visit = [&](std::uint32_t cell, const std::uint32_t(&bounds)[kQuad], std::uint32_t after) {
    if (lookup) note_quad(memory, target.guide_size, cell, bounds, after);
  };
  const CellRange<SharedCells> range{{memory.cells}, target.count, target.lower};
  write_bounds<kThreads>(range, BoundScale(tallies.all), tallies.before, mass_of, visit);
  if (!lookup) return tallies.all;
  __syncthreads();
  const SharedForest forest({memory.cells}, target.count, target.guide_size);
  if (target.method == Method::kRadixForest) write_block_nodes<kThreads>(target, forest);
  write_block_guide<kThreads>(target, memory, forest);
  return tallies.all;
}

}  // namespace cumulus::sampling_table
