#pragma once

// One distribution of up to 32768 cells by one block, which goes through memory once: masses come in, lower
// bounds, guide and radix trees go out.

#include "kernels/sampling_table/sampling_table_arithmetic.h"
#include "kernels/sampling_table/sampling_table_target.h"
#include "kernels/sampling_table/sampling_table_trees.h"

namespace cumulus::sampling_rows {

using namespace sampling_arithmetic;
using sampling::Method;
using sampling_layout::Target;

inline constexpr unsigned kWholeWarp = ~0u;
/// Neighbouring cells of a thread, and of a warp.
inline constexpr std::uint32_t kQuad = 4;
inline constexpr std::uint32_t kChunk = 32 * kQuad;

/// The cells of a block of kThreads: warp w has kQuads chunks in a row, of each chunk a lane has a quad.
template <int kThreads, int kQuads>
struct Shape {
  static constexpr std::uint32_t kWarps = kThreads / 32;
  static constexpr std::uint32_t kCells = kThreads * kQuads * kQuad;

  __device__ static std::uint32_t first_cell(int quad) {
    return (threadIdx.x / 32 * kQuads + static_cast<std::uint32_t>(quad)) * kChunk + threadIdx.x % 32 * kQuad;
  }
};

/// Shared memory of a block besides: what is known of guide cells, and the edges between cells.
///
/// `slots` has a word for each guide cell: below, 1 + the cell that holds its smallest x, where that cell
/// holds the smallest x of no guide cell before; above, what the forest has found out (see write_forest).
///
/// Edge i, between cells i - 1 and i, is a byte: 0x80 where no guide cell overlaps both beyond the smallest x,
/// and if there is a node, 1 + the highest bit in which the keys differ that it parts. The tree of a guide
/// cell is the Cartesian tree of those. `groups` and `chunks` hold for 16 and 128 edges the largest and where
/// it is, so that a search can leap; all ones where it cannot.
struct OnChip {
  std::uint32_t* slots;
  std::uint32_t* groups;
  std::uint32_t* chunks;
  unsigned char* edges;

  static constexpr std::uint32_t kGroup = 16;

  CUMULUS_HOST_DEVICE static std::uint32_t quads_of(std::uint32_t count) { return (count + kQuad - 1) / kQuad; }
  CUMULUS_HOST_DEVICE static std::uint32_t chunks_of(std::uint32_t count) { return (count + kChunk - 1) / kChunk; }
  CUMULUS_HOST_DEVICE static std::size_t bytes(std::uint32_t count, std::uint32_t guide_size) {
    const std::size_t words = quads_of(guide_size) * kQuad + chunks_of(count) * (kChunk / kGroup + 1) + 1 + quads_of(count);
    return words * sizeof(std::uint32_t);
  }

  __device__ OnChip(std::uint32_t* words, std::uint32_t count, std::uint32_t guide_size)
      : slots(words),
        groups(slots + quads_of(guide_size) * kQuad),
        chunks(groups + chunks_of(count) * (kChunk / kGroup)),
        edges(reinterpret_cast<unsigned char*>(chunks + chunks_of(count) + 1)) {}

  __device__ unsigned char edge(std::uint32_t i) const { return edges[static_cast<int>(i) - 1]; }
  __device__ void set_holder(std::uint32_t g, std::uint32_t cell) const {
    reinterpret_cast<std::uint16_t*>(slots)[2 * g] = static_cast<std::uint16_t>(cell + 1);
  }
  __device__ void set_root(std::uint32_t g, std::uint32_t root) const {
    reinterpret_cast<std::uint16_t*>(slots)[2 * g + 1] = static_cast<std::uint16_t>(root);
  }
};

inline constexpr std::uint32_t kBoundary = 0x80;

/// The lower bound of a cell in units of 2^-32 of a guide cell.
__device__ inline std::uint64_t key_of(std::uint32_t lower, std::uint32_t guide_size) {
  const std::uint64_t key = static_cast<std::uint64_t>(lower) * guide_size;
  return lower == sampling::kEmptyTail ? static_cast<std::uint64_t>(guide_size) << 32 : key;
}

/// The first guide cell whose smallest x is not below the bound with this key.
__device__ inline std::uint32_t first_guide_cell(std::uint64_t key, std::uint32_t guide_size) {
  return static_cast<std::uint32_t>(key >> 32) + (static_cast<std::uint32_t>(key) >= guide_size ? 1 : 0);
}

__device__ inline std::uint32_t edge_between(std::uint64_t before, std::uint64_t key, std::uint32_t guide_size) {
  if (before == key) return 0;
  const bool boundary = before >> 32 != key >> 32;
  const auto place = static_cast<std::uint32_t>(key);
  const std::uint32_t differing = place ^ (boundary ? 0 : static_cast<std::uint32_t>(before));
  const std::uint32_t bit = place >= guide_size ? 32 - static_cast<std::uint32_t>(__clz(static_cast<int>(differing))) : 0;
  return bit | (boundary ? kBoundary : 0);
}

/// Tallies of a warp's chunk in one word: their number in the upper 8 bits, the sum, at most 2^55, below.
inline constexpr int kCountShift = 56;
__device__ inline std::uint64_t packed(std::uint64_t mass) {
  return mass > 0 ? mass | std::uint64_t{1} << kCountShift : 0;
}
__device__ inline Tally unpacked(std::uint64_t word) {
  return {word & ((std::uint64_t{1} << kCountShift) - 1), static_cast<std::uint32_t>(word >> kCountShift)};
}
__device__ inline Tally operator+(const Tally& a, const Tally& b) {
  return {a.sum + b.sum, a.positive + b.positive};
}

__device__ inline std::uint64_t scan_warp(std::uint64_t value) {
  const unsigned lane = threadIdx.x % 32;
#pragma unroll
  for (unsigned step = 1; step < 32; step *= 2) {
    const std::uint64_t other = __shfl_up_sync(kWholeWarp, value, step);
    if (lane >= step) value += other;
  }
  return value;
}
__device__ inline std::uint32_t scan_warp(std::uint32_t value) {
  const unsigned lane = threadIdx.x % 32;
#pragma unroll
  for (unsigned step = 1; step < 32; step *= 2) {
    const std::uint32_t other = __shfl_up_sync(kWholeWarp, value, step);
    if (lane >= step) value += other;
  }
  return value;
}
__device__ inline std::uint32_t largest_of_warp(std::uint32_t value) {
#pragma unroll
  for (unsigned step = 16; step > 0; step /= 2) value = max(value, __shfl_xor_sync(kWholeWarp, value, step));
  return value;
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

__device__ inline bool on_16_bytes(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; }

/// Stores the first `valid` of four words.
__device__ inline void store_quad(std::uint32_t* to, const std::uint32_t (&words)[kQuad], std::uint32_t valid) {
  if (valid >= kQuad && on_16_bytes(to)) {
    *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
    return;
  }
#pragma unroll
  for (std::uint32_t k = 0; k < kQuad; ++k) {
    if (k < valid) to[k] = words[k];
  }
}

/// Notes the edges behind a quad of cells, whose first is `cell`; every lane of the warp comes here.
__device__ inline void note_edges(const OnChip& chip, std::uint32_t cell, std::uint32_t count, const std::uint32_t (&edge)[kQuad]) {
  std::uint32_t largest = 0;
  std::uint32_t word = 0;
#pragma unroll
  for (std::uint32_t k = 0; k < kQuad; ++k) {
    word |= edge[k] << 8 * k;
    largest = max(largest, edge[k] >= kBoundary ? ~0u : edge[k] << 16 | (cell + k + 1));
  }
  if (cell >= count) largest = ~0u;
  if (cell < count) *reinterpret_cast<std::uint32_t*>(chip.edges + cell) = word;
  largest = max(largest, __shfl_xor_sync(kWholeWarp, largest, 1));
  largest = max(largest, __shfl_xor_sync(kWholeWarp, largest, 2));
  const unsigned lane = threadIdx.x % 32;
  if (lane % 4 == 0 && cell - cell % kChunk < count) chip.groups[cell / OnChip::kGroup] = largest;
#pragma unroll
  for (unsigned step = 4; step < 32; step *= 2) largest = max(largest, __shfl_xor_sync(kWholeWarp, largest, step));
  if (lane == 0 && cell < count) chip.chunks[cell / kChunk] = largest;
}

/// The block turns masses into lower bounds. `mass_at(quad, k)` is the mass of cell Shape::first_cell(quad) + k,
/// 0 behind the last.
template <int kThreads, int kQuads, class MassAt>
__device__ Tally write_bounds(const Target& target, const OnChip& chip, const MassAt& mass_at) {
  using Cells = Shape<kThreads, kQuads>;
  __shared__ std::uint64_t sums[Cells::kWarps];
  __shared__ std::uint32_t numbers[Cells::kWarps];
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;

  Tally before[kQuads];
  Tally of_warp;
#pragma unroll
  for (int quad = 0; quad < kQuads; ++quad) {
    std::uint64_t own = 0;
#pragma unroll
    for (std::uint32_t k = 0; k < kQuad; ++k) own += packed(mass_at(quad, k));
    const std::uint64_t through = scan_warp(own);
    before[quad] = of_warp + unpacked(through - own);
    of_warp = of_warp + unpacked(__shfl_sync(kWholeWarp, through, 31));
  }
  if (lane == 0) {
    sums[warp] = of_warp.sum;
    numbers[warp] = of_warp.positive;
  }
  __syncthreads();
  const std::uint64_t sum = scan_warp(lane < Cells::kWarps ? sums[lane] : 0);
  const std::uint32_t number = scan_warp(lane < Cells::kWarps ? numbers[lane] : 0);
  const Tally all{__shfl_sync(kWholeWarp, sum, 31), __shfl_sync(kWholeWarp, number, 31)};
  Tally warps_before{__shfl_sync(kWholeWarp, sum, warp - 1), __shfl_sync(kWholeWarp, number, warp - 1)};
  if (warp == 0) warps_before = {};

  const BoundScale scale(all);
  const bool guided = sampling::has_guide(target.method);
  const bool trees = target.method == Method::kRadixForest || target.method == Method::kRadixForest4 || target.method == Method::kBalancedForest;
#pragma unroll
  for (int quad = 0; quad < kQuads; ++quad) {
    const std::uint32_t cell = Cells::first_cell(quad);
    Tally tally = warps_before + before[quad];
    std::uint32_t lower[kQuad];
    std::uint32_t edge[kQuad];
    std::uint32_t bound = scale.lower_bound(tally);
    std::uint64_t key = key_of(bound, target.guide_size);
    std::uint32_t begin = first_guide_cell(key, target.guide_size);
#pragma unroll
    for (std::uint32_t k = 0; k < kQuad; ++k) {
      lower[k] = bound;
      tally.add(mass_at(quad, k));
      bound = scale.lower_bound(tally);
      const std::uint64_t next_key = key_of(bound, target.guide_size);
      const std::uint32_t end = first_guide_cell(next_key, target.guide_size);
      if (guided && begin < end) chip.set_holder(begin, cell + k);
      edge[k] = edge_between(key, next_key, target.guide_size);
      key = next_key;
      begin = end;
    }
    if (cell < target.count) store_quad(target.lower + cell, lower, target.count - cell);
    if (trees) note_edges(chip, cell, target.count, edge);
  }
  return all;
}

/// One side of a node: the largest edge, as in OnChip, and whether the side ends where the guide cell does.
struct Side {
  std::uint32_t largest;
  std::uint32_t last;  ///< The edge that was looked at last.
  bool open;
};

/// Goes through the edges behind node j, up to one that is larger than `own`.
__device__ inline Side look_right(const OnChip& chip, std::uint32_t j, std::uint32_t own) {
  const std::uint32_t floor = max(own, 1u) << 16;
  std::uint32_t largest = 0;
  std::uint32_t p = j;  // edge p + 1
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
  const std::uint32_t floor = own << 16;
  std::uint32_t largest = 0;
  int p = static_cast<int>(j) - 2;  // edge p + 1
  for (;;) {
    if (p % static_cast<int>(OnChip::kGroup) == OnChip::kGroup - 1) {
      const auto at = static_cast<std::uint32_t>(p);
      std::uint32_t leap = kChunk;
      std::uint32_t of_leap = at % kChunk == kChunk - 1 ? chip.chunks[at / kChunk] : ~0u;
      if (of_leap >= floor) {
        leap = OnChip::kGroup;
        of_leap = chip.groups[at / OnChip::kGroup];
      }
      if (of_leap < floor) {
        largest = max(largest, of_leap);
        p -= static_cast<int>(leap);
        continue;
      }
    }
    const std::uint32_t edge = chip.edges[p];
    const std::uint32_t value = edge & ~kBoundary;
    if (value > own) return {largest, static_cast<std::uint32_t>(p + 1), false};
    largest = max(largest, value << 16 | static_cast<std::uint32_t>(p + 1));
    if (edge >= kBoundary) return {largest, static_cast<std::uint32_t>(p + 1), true};
    --p;
  }
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
      const std::uint32_t right_child = right.largest >> 16 > 0 ? right.largest & 0xFFFFu : kLeaf | (right.last - 1);
      const std::uint32_t left_child = left.largest >> 16 > 0 ? left.largest & 0xFFFFu : kLeaf | (j - 1);
      word = left_child | right_child << 16;
      if (left.open && right.open) {
        const auto g = static_cast<std::uint32_t>(static_cast<std::uint64_t>(target.lower[j]) * target.guide_size >> 32);
        const bool two_cells = right_child == (kLeaf | j) && left_child >= kLeaf;
        chip.set_root(g, two_cells ? kLeaf | j : j);
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
    const auto g = static_cast<std::uint32_t>(static_cast<std::uint64_t>(target.lower[j]) * target.guide_size >> 32);
    chip.set_root(g, right.last - 1);
  }
}

__device__ inline std::uint32_t guide_entry(Method method, std::uint32_t cell, std::uint32_t root) {
  using sampling::detail::RootKind;
  using sampling::detail::kRootNumberBits;
  if (method == Method::kBalancedForest) return cell | (root > 0 ? root : cell) << 16;
  if (root == 0) return cell;
  const RootKind kind = root >= kLeaf ? RootKind::kTwoCells : RootKind::kNode;
  return static_cast<std::uint32_t>(kind) << kRootNumberBits | (root & ~kLeaf);
}

/// The slots become the guide. Every thread of the block comes here.
template <int kThreads>
__device__ void write_guide(const Target& target, const OnChip& chip) {
  constexpr std::uint32_t kWarps = kThreads / 32;
  __shared__ std::uint32_t holders[kWarps];
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  const std::uint32_t chunks = OnChip::chunks_of(target.guide_size);
  const std::uint32_t chunks_of_warp = (chunks + kWarps - 1) / kWarps;
  const std::uint32_t first = min(warp * chunks_of_warp, chunks);
  const std::uint32_t last = min(first + chunks_of_warp, chunks);
  const auto slots_at = [&](std::uint32_t g) {
    return g < target.guide_size ? *reinterpret_cast<const uint4*>(chip.slots + g) : make_uint4(0, 0, 0, 0);
  };

  std::uint32_t holder = 0;
  for (std::uint32_t chunk = first; chunk < last; ++chunk) {
    const uint4 slots = slots_at(chunk * kChunk + lane * kQuad);
    holder = max(holder, max(max(slots.x & 0xFFFFu, slots.y & 0xFFFFu), max(slots.z & 0xFFFFu, slots.w & 0xFFFFu)));
  }
  holder = largest_of_warp(holder);
  if (lane == 0) holders[warp] = holder;
  __syncthreads();
  holder = max(1u, largest_of_warp(lane < warp ? holders[lane] : 0));  // 1: without mass, zeros

  const bool narrow = sampling::guide_entry_bytes(target.method, target.count) == 2;
  for (std::uint32_t chunk = first; chunk < last; ++chunk) {
    const std::uint32_t g = chunk * kChunk + lane * kQuad;
    const uint4 loaded = slots_at(g);
    const std::uint32_t slots[kQuad] = {loaded.x, loaded.y, loaded.z, loaded.w};
    std::uint32_t cells[kQuad];
    std::uint32_t own = 0;
#pragma unroll
    for (std::uint32_t k = 0; k < kQuad; ++k) {
      own = max(own, slots[k] & 0xFFFFu);
      cells[k] = own;
    }
#pragma unroll
    for (unsigned step = 1; step < 32; step *= 2) {
      const std::uint32_t other = __shfl_up_sync(kWholeWarp, own, step);
      if (lane >= step) own = max(own, other);
    }
    std::uint32_t before = __shfl_up_sync(kWholeWarp, own, 1);
    before = max(holder, lane > 0 ? before : 0);
    holder = max(holder, __shfl_sync(kWholeWarp, own, 31));
    if (g >= target.guide_size) continue;
    const std::uint32_t valid = target.guide_size - g;
    std::uint32_t entries[kQuad];
#pragma unroll
    for (std::uint32_t k = 0; k < kQuad; ++k) {
      const std::uint32_t cell = max(before, cells[k]) - 1;
      entries[k] = narrow ? cell : guide_entry(target.method, cell, slots[k] >> 16);
    }
    if (!narrow) {
      store_quad(reinterpret_cast<std::uint32_t*>(target.guide) + g, entries, valid);
      continue;
    }
    auto* to = reinterpret_cast<std::uint16_t*>(target.guide) + g;
    if (valid >= kQuad && reinterpret_cast<std::uintptr_t>(to) % 8 == 0) {
      *reinterpret_cast<uint2*>(to) = make_uint2(entries[0] | entries[1] << 16, entries[2] | entries[3] << 16);
      continue;
    }
#pragma unroll
    for (std::uint32_t k = 0; k < kQuad; ++k) {
      if (k < valid) to[k] = static_cast<std::uint16_t>(entries[k]);
    }
  }
}

/// Before anything else that uses `chip`; the block must meet before it is used.
template <int kThreads>
__device__ void clear(const OnChip& chip, std::uint32_t guide_size) {
  for (std::uint32_t i = threadIdx.x; i < OnChip::quads_of(guide_size); i += kThreads) {
    reinterpret_cast<uint4*>(chip.slots)[i] = make_uint4(0, 0, 0, 0);
  }
  if (threadIdx.x == 0) chip.edges[-1] = static_cast<unsigned char>(kBoundary);
}

/// All of a distribution but the nodes that write_other_nodes writes.
template <int kThreads, int kQuads, class MassAt>
__device__ Tally build_distribution(const Target& target, const OnChip& chip, const MassAt& mass_at) {
  const Tally all = write_bounds<kThreads, kQuads>(target, chip, mass_at);
  if (!sampling::has_guide(target.method)) return all;
  __syncthreads();
  if (target.method == Method::kRadixForest || target.method == Method::kRadixForest4) {
    write_forest<kThreads>(target, chip);
    __syncthreads();
  } else if (target.method == Method::kBalancedForest) {
    note_last_cells<kThreads>(target, chip);
    __syncthreads();
  }
  write_guide<kThreads>(target, chip);
  return all;
}

}  // namespace cumulus::sampling_rows
