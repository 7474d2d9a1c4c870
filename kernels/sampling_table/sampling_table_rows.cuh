#pragma once

#include "kernels/sampling_table/sampling_table_row_bounds.cuh"

// Guide and radix trees of a distribution whose lower bounds are on the chip.

namespace cumulus::sampling_rows {

/// One side of a node: the largest edge, as in OnChip, and whether the side ends where the guide cell does.
struct Side {
  std::uint32_t largest;
  std::uint32_t last;  ///< The edge that was looked at last.
  bool open;
};

inline constexpr std::uint32_t kSteps = 8;  // before it is worth while to leap

/// Goes through the edges behind node j, up to one that is larger than `own`.
__device__ inline Side look_right(const OnChip& chip, std::uint32_t j, std::uint32_t own) {
  std::uint32_t largest = 0;
  std::uint32_t p = j;  // edge p + 1
#pragma unroll 1
  for (; p < j + kSteps; ++p) {
    const std::uint32_t edge = chip.edges[p];
    if (edge > own) return {largest, p + 1, edge >= kBoundary};
    largest = max(largest, edge << 16 | (p + 1));
  }
  const std::uint32_t floor = max(own, 1u) << 16;
#pragma unroll 1
  for (;;) {
    if (p % OnChip::kGroup == 0) {
      std::uint32_t leap = kChunk;
      std::uint32_t of_leap = p % kChunk == 0 ? chip.chunks[p / kChunk] : ~0u;
      if (of_leap >= floor) {
        leap = OnChip::kGroup;
        of_leap = chip.groups[p / OnChip::kGroup];
      }
      if (of_leap < floor) {
        largest = max(largest, of_leap);
        p += leap;
        continue;
      }
    }
    const std::uint32_t edge = chip.edges[p];
    if (edge > own) return {largest, p + 1, edge >= kBoundary};
    ++p;
    largest = max(largest, edge << 16 | p);
  }
}

/// Goes through the edges before node j, whose guide cell does not begin there.
__device__ inline Side look_left(const OnChip& chip, std::uint32_t j, std::uint32_t own) {
  std::uint32_t largest = 0;
  std::uint32_t i = j - 1;  // the edge
#pragma unroll 1
  for (std::uint32_t step = 0; step < kSteps; ++step, --i) {
    const std::uint32_t edge = chip.edge(i);
    const std::uint32_t value = edge & ~kBoundary;
    if (value > own) return {largest, i, false};
    largest = max(largest, value << 16 | i);
    if (edge >= kBoundary) return {largest, i, true};
  }
  const std::uint32_t floor = own << 16;
#pragma unroll 1
  for (;;) {
    if (i % OnChip::kGroup == 0 && i > 0) {
      std::uint32_t leap = kChunk;
      std::uint32_t of_leap = i % kChunk == 0 ? chip.chunks[i / kChunk - 1] : ~0u;
      if (of_leap >= floor) {
        leap = OnChip::kGroup;
        of_leap = chip.groups[i / OnChip::kGroup - 1];
      }
      if (of_leap < floor) {
        largest = max(largest, of_leap);
        i -= leap;
        continue;
      }
    }
    const std::uint32_t edge = chip.edge(i);
    const std::uint32_t value = edge & ~kBoundary;
    if (value > own) return {largest, i, false};
    largest = max(largest, value << 16 | i);
    if (edge >= kBoundary) return {largest, i, true};
    --i;
  }
}

/// The guide cell of node j.
__device__ inline std::uint32_t guide_cell_of(const Target& target, const OnChip& chip, std::uint32_t j) {
  return __umulhi(chip.cells[j], target.guide_size);
}

inline constexpr std::uint32_t kLeaf = 0x8000;

/// Writes the nodes, and into the slots the roots: kLeaf and the node where it parts two cells only.
template <int kThreads>
__device__ void write_forest(const Target& target, const OnChip& chip) {
  for (std::uint32_t j = threadIdx.x; j < target.count; j += kThreads) {
    const std::uint32_t edge = chip.edge(j);
    const std::uint32_t own = edge & ~kBoundary;
    std::uint32_t word = 0;
    if (own > 0) {
      const Side right = look_right(chip, j, own);
      const Side left = edge >= kBoundary ? Side{0, j, true} : look_left(chip, j, own);
      const std::uint32_t right_child =
          right.largest >> 16 > 0 ? right.largest & 0xFFFFu : kLeaf | (right.last - 1);
      const std::uint32_t left_child = left.largest >> 16 > 0 ? left.largest & 0xFFFFu : kLeaf | (j - 1);
      word = left_child | right_child << 16;
      if (left.open && right.open) {
        const bool two_cells = right_child == (kLeaf | j) && left_child >= kLeaf;
        chip.set_root(guide_cell_of(target, chip, j), two_cells ? kLeaf | j : j);
      }
    }
    if (target.method == Method::kRadixForest) reinterpret_cast<std::uint32_t*>(target.nodes)[j] = word;
  }
}

/// Notes in the slots the last cell that overlaps each guide cell, where that is not the first.
template <int kThreads>
__device__ void note_last_cells(const Target& target, const OnChip& chip) {
  for (std::uint32_t j = threadIdx.x; j < target.count; j += kThreads) {
    if ((chip.edge(j) & ~kBoundary) == 0) continue;
    const Side right = look_right(chip, j, 0);
    if (!right.open) continue;
    chip.set_root(guide_cell_of(target, chip, j), right.last - 1);
  }
}

/// The slots of a quad of guide cells, of which there are `count`; the others are 0.
__device__ inline void load_slots(const OnChip& chip, std::uint32_t g, std::uint32_t count,
                                  std::uint32_t (&slots)[kQuad]) {
  load_quad(chip.slots + (g < count ? g : 0), slots);
#pragma unroll
  for (std::uint32_t& slot : slots) slot = g < count ? slot : 0;
}

/// `store(g, cells, roots)` sees each quad of guide cells whose first, g, is one: the cell that holds the
/// smallest x of each, and what the upper half of its slot says. Every thread of the block comes here.
template <int kThreads, class Store>
__device__ void fill_guide(std::uint32_t count, const OnChip& chip, const Store& store) {
  constexpr std::uint32_t kWarps = kThreads / 32;
  constexpr std::uint32_t kHolder = 0xFFFF;
  __shared__ std::uint32_t holders[kWarps];
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  const WarpChunks chunks = WarpChunks::of<kThreads>(count);
  std::uint32_t slots[kQuad];

  std::uint32_t holder = 0;
  for (std::uint32_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
    load_slots(chip, chunk * kChunk + lane * kQuad, count, slots);
#pragma unroll
    for (const std::uint32_t slot : slots) holder = max(holder, slot & kHolder);
  }
  holder = warp_max(holder);
  if (lane == 0) holders[warp] = holder;
  __syncthreads();
  holder = max(1u, warp_max(lane < warp ? holders[lane] : 0));  // 1: without mass, zeros

  for (std::uint32_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
    const std::uint32_t g = chunk * kChunk + lane * kQuad;
    load_slots(chip, g, count, slots);
    std::uint32_t cells[kQuad];
    std::uint32_t roots[kQuad];
    std::uint32_t own = 0;
#pragma unroll
    for (std::uint32_t k = 0; k < kQuad; ++k) {
      own = max(own, slots[k] & kHolder);
      cells[k] = own;
      roots[k] = slots[k] >> 16;
    }
    const std::uint32_t through = max(holder, warp_prefix_max(own));
    const std::uint32_t of_lane_before = __shfl_up_sync(kWholeWarp, through, 1);
    const std::uint32_t before = lane > 0 ? of_lane_before : holder;
    holder = __shfl_sync(kWholeWarp, through, 31);
#pragma unroll
    for (std::uint32_t& cell : cells) cell = max(before, cell) - 1;
    if (g < count) store(g, cells, roots);
  }
}

/// The slots become the guide. Every thread of the block comes here.
template <int kThreads>
__device__ void write_guide(const Target& target, const OnChip& chip) {
  using sampling::detail::kRootNumberBits;
  using sampling::detail::RootKind;
  const std::uint32_t count = target.guide_size;
  auto* const words = reinterpret_cast<std::uint32_t*>(target.guide);
  auto* const numbers = reinterpret_cast<std::uint16_t*>(target.guide);
  if (target.method == Method::kRadixForest || target.method == Method::kRadixForest4) {
    constexpr std::uint32_t kTwoCells = static_cast<std::uint32_t>(RootKind::kTwoCells) << kRootNumberBits;
    constexpr std::uint32_t kNode = static_cast<std::uint32_t>(RootKind::kNode) << kRootNumberBits;
    fill_guide<kThreads>(count, chip, [=](std::uint32_t g, const auto& cells, const auto& roots) {
      std::uint32_t entries[kQuad];
#pragma unroll
      for (std::uint32_t k = 0; k < kQuad; ++k) {
        const std::uint32_t root = (roots[k] >= kLeaf ? kTwoCells : kNode) | (roots[k] & ~kLeaf);
        entries[k] = roots[k] == 0 ? cells[k] : root;
      }
      store_quad(words + g, entries, count - g);
    });
  } else if (target.method == Method::kBalancedForest) {
    fill_guide<kThreads>(count, chip, [=](std::uint32_t g, const auto& cells, const auto& roots) {
      std::uint32_t entries[kQuad];
#pragma unroll
      for (std::uint32_t k = 0; k < kQuad; ++k) {
        entries[k] = cells[k] | (roots[k] == 0 ? cells[k] : roots[k]) << 16;
      }
      store_quad(words + g, entries, count - g);
    });
  } else {
    fill_guide<kThreads>(count, chip, [=](std::uint32_t g, const auto& cells, const auto&) {
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

/// Before anything else that uses the slots of `chip`; the block must meet before it does.
template <int kThreads>
__device__ void clear_slots(const OnChip& chip, std::uint32_t guide_size) {
  for (std::uint32_t i = threadIdx.x; i < OnChip::quads_of(guide_size); i += kThreads) {
    reinterpret_cast<uint4*>(chip.slots)[i] = make_uint4(0, 0, 0, 0);
  }
  if (threadIdx.x == 0) chip.edges[-1] = static_cast<unsigned char>(kBoundary);
}

/// The block turns `chip.cells`, of which `mass_of` makes masses, into lower bounds and, with `lookup`, the
/// guide and the nodes of kRadixForest. The block must have met since the cells were written and the slots
/// cleared.
template <int kThreads, class MassOf>
__device__ Tally build_distribution(const Target& target, const OnChip& chip, bool lookup,
                                    const MassOf& mass_of) {
  const Method method = target.method;
  const bool forest = method == Method::kRadixForest || method == Method::kRadixForest4;
  const WarpTallies tallies = tally_warps<kThreads>(chip.cells, target.count, mass_of);
  const auto visit = [&](std::uint32_t cell, const std::uint32_t(&bounds)[kQuad], std::uint32_t behind) {
    if (lookup) note_quad(target, chip, forest || method == Method::kBalancedForest, cell, bounds, behind);
  };
  write_bounds<kThreads>(chip.cells, target.count, BoundScale(tallies.all), tallies.before, mass_of,
                         target.lower, visit);
  if (!lookup) return tallies.all;
  __syncthreads();
  if (forest) {
    write_forest<kThreads>(target, chip);
    __syncthreads();
  } else if (method == Method::kBalancedForest) {
    note_last_cells<kThreads>(target, chip);
    __syncthreads();
  }
  write_guide<kThreads>(target, chip);
  return tallies.all;
}

}  // namespace cumulus::sampling_rows
