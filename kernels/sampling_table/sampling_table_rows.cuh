#pragma once

// One distribution of up to 32768 cells by one block, which goes through memory once: masses come in, lower
// bounds, guide and radix trees go out.

#include "kernels/primitives/warp_scan.cuh"
#include "kernels/sampling_table/sampling_table_arithmetic.h"
#include "kernels/sampling_table/sampling_table_target.h"
#include "kernels/sampling_table/sampling_table_trees.h"

namespace cumulus::sampling_rows {

using namespace sampling_arithmetic;
using sampling::Method;
using sampling_layout::Target;

inline constexpr unsigned kWholeWarp = ~0u;
/// Neighbouring cells of a lane, and of a warp, at a time.
inline constexpr std::uint32_t kQuad = 4;
inline constexpr std::uint32_t kChunk = 32 * kQuad;

/// The chunks of `count` items that a warp of the block goes through, one after another.
struct WarpChunks {
  std::uint32_t begin;
  std::uint32_t end;

  template <int kThreads>
  static __device__ WarpChunks of(std::uint32_t count) {
    constexpr std::uint32_t kWarps = kThreads / 32;
    const std::uint32_t chunks = (count + kChunk - 1) / kChunk;
    const std::uint32_t each = (chunks + kWarps - 1) / kWarps;
    const std::uint32_t begin = min(threadIdx.x / 32 * each, chunks);
    return {begin, min(begin + each, chunks)};
  }
};

/// Shared memory of a block besides: the row's cells, what is known of guide cells, and the edges between
/// cells.
///
/// `cells` has first what the masses come from, then the lower bounds, padded to whole chunks.
///
/// `slots` has a word for each guide cell: below, 1 + the cell that holds its smallest x, where that cell
/// holds the smallest x of no guide cell before; above, what the forest has found out (see write_forest).
///
/// Edge i, between cells i - 1 and i, is a byte: 0x80 where no guide cell overlaps both beyond the smallest
/// x, and if there is a node, 1 + the highest bit in which the keys differ that it parts. The tree of a guide
/// cell is the Cartesian tree of those. `groups` and `chunks` hold
/// for 16 and 128 edges the largest and where it is, so that a search can leap; all ones where it cannot.
struct OnChip {
  std::uint32_t* cells;
  std::uint32_t* slots;
  std::uint32_t* groups;
  std::uint32_t* chunks;
  unsigned char* edges;

  static constexpr std::uint32_t kGroup = 16;

  CUMULUS_HOST_DEVICE static std::uint32_t quads_of(std::uint32_t count) {
    return (count + kQuad - 1) / kQuad;
  }
  CUMULUS_HOST_DEVICE static std::uint32_t chunks_of(std::uint32_t count) {
    return (count + kChunk - 1) / kChunk;
  }
  CUMULUS_HOST_DEVICE static std::size_t bytes(std::uint32_t count, std::uint32_t guide_size) {
    const std::size_t words = quads_of(guide_size) * kQuad +
                              chunks_of(count) * (kChunk + kChunk / kGroup + 1) + 1 + quads_of(count);
    return words * sizeof(std::uint32_t);
  }
  /// Where only the lower bounds are built.
  CUMULUS_HOST_DEVICE static std::size_t bytes_of_cells(std::uint32_t count) {
    return chunks_of(count) * kChunk * sizeof(std::uint32_t);
  }

  __device__ OnChip(std::uint32_t* words, std::uint32_t count, std::uint32_t guide_size)
      : cells(words),
        slots(cells + chunks_of(count) * kChunk),
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

/// A lower bound in units of 2^-32 of a guide cell.
struct Key {
  std::uint32_t lower;
  std::uint32_t cell;   ///< The guide cell.
  std::uint32_t place;  ///< Within it.
  /// The first guide cell whose smallest x is not below the bound.
  std::uint32_t begin;
  bool inside;  ///< The bound is not the smallest x of its guide cell.
};

__device__ inline Key key_of(std::uint32_t lower, std::uint32_t guide_size) {
  const std::uint64_t key = static_cast<std::uint64_t>(lower) * guide_size;
  const bool tail = lower == sampling::kEmptyTail;
  const std::uint32_t cell = tail ? guide_size : static_cast<std::uint32_t>(key >> 32);
  const std::uint32_t place = tail ? 0 : static_cast<std::uint32_t>(key);
  const bool inside = place >= guide_size;
  return {lower, cell, place, cell + (inside ? 1 : 0), inside};
}

__device__ inline std::uint32_t edge_between(const Key& before, const Key& key) {
  const bool boundary = before.cell != key.cell;
  const std::uint32_t differing = key.place ^ (boundary ? 0 : before.place);
  const std::uint32_t bit =
      key.inside ? 32 - static_cast<std::uint32_t>(__clz(static_cast<int>(differing))) : 0;
  return before.lower == key.lower ? 0 : bit + (boundary ? kBoundary : 0);
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

/// The largest of the block's values, to every thread.
template <int kWarps>
__device__ std::uint32_t largest_of_block(std::uint32_t value) {
  __shared__ std::uint32_t of_warps[kWarps];
  const unsigned lane = threadIdx.x % 32;
  value = warp_max(value);
  if (lane == 0) of_warps[threadIdx.x / 32] = value;
  __syncthreads();
  return warp_max(lane < kWarps ? of_warps[lane] : 0);
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

/// Notes the edges behind a quad of cells, whose first is `cell`; every lane of the warp comes here.
__device__ inline void note_edges(const OnChip& chip, std::uint32_t cell, std::uint32_t count,
                                  const std::uint32_t (&edge)[kQuad]) {
  std::uint32_t largest = 0;
#pragma unroll
  for (std::uint32_t k = 0; k < kQuad; ++k) {
    largest = max(largest, edge[k] >= kBoundary ? ~0u : edge[k] << 16 | (cell + k + 1));
  }
  if (cell >= count) largest = ~0u;
  if (cell < count) {
    *reinterpret_cast<std::uint32_t*>(chip.edges + cell) =
        edge[0] | edge[1] << 8 | edge[2] << 16 | edge[3] << 24;
  }
  largest = max(largest, __shfl_xor_sync(kWholeWarp, largest, 1));
  largest = max(largest, __shfl_xor_sync(kWholeWarp, largest, 2));
  if (threadIdx.x % 4 == 0) chip.groups[cell / OnChip::kGroup] = largest;
#pragma unroll
  for (unsigned step = 4; step < 32; step *= 2)
    largest = max(largest, __shfl_xor_sync(kWholeWarp, largest, step));
  if (threadIdx.x % 32 == 0) chip.chunks[cell / kChunk] = largest;
}

__device__ inline void load_quad(const std::uint32_t* from, std::uint32_t (&words)[kQuad]) {
  const uint4 loaded = *reinterpret_cast<const uint4*>(from);
  words[0] = loaded.x;
  words[1] = loaded.y;
  words[2] = loaded.z;
  words[3] = loaded.w;
}

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

/// `mass_of(word, i)` is the tally of cell i, of which `cells` has `word`; of nothing behind the last. The
/// block must have met since `cells` was written.
template <int kThreads, class MassOf>
__device__ WarpTallies tally_warps(const std::uint32_t* cells, std::uint32_t count, const MassOf& mass_of) {
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
    load_quad(cells + cell, words);
#pragma unroll
    for (std::uint32_t k = 0; k < kQuad; ++k) own = own + mass_of(words[k], cell + k);
  }
#pragma unroll
  for (unsigned step = 16; step > 0; step /= 2) {
    own.sum += __shfl_xor_sync(kWholeWarp, own.sum, step);
    own.positive += __shfl_xor_sync(kWholeWarp, own.positive, step);
  }
  if (lane == 0) {
    sums[warp] = own.sum;
    numbers[warp] = own.positive;
  }
  __syncthreads();
  const std::uint64_t sum = warp_prefix_sum(lane < kWarps ? sums[lane] : std::uint64_t{0});
  const std::uint32_t number = warp_prefix_sum(lane < kWarps ? numbers[lane] : std::uint32_t{0});
  const Tally through{__shfl_sync(kWholeWarp, sum, warp), __shfl_sync(kWholeWarp, number, warp)};
  return {{through.sum - own.sum, through.positive - own.positive},
          {__shfl_sync(kWholeWarp, sum, 31), __shfl_sync(kWholeWarp, number, 31)}};
}

/// Turns the warp's cells into lower bounds, here and in `lower`; `visit(cell, bounds, behind)` sees each
/// quad, with the bound of the cell behind it, on all lanes at once. `before` is the tally before the warp's
/// chunks.
template <int kThreads, class MassOf, class Visit>
__device__ void write_bounds(std::uint32_t* cells, std::uint32_t count, const BoundScale& scale, Tally before,
                             const MassOf& mass_of, std::uint32_t* lower, const Visit& visit) {
  const unsigned lane = threadIdx.x % 32;
  const WarpChunks chunks = WarpChunks::of<kThreads>(count);
  std::uint32_t first_bound = scale.lower_bound(before);
  for (std::uint32_t chunk = chunks.begin; chunk < chunks.end; ++chunk) {
    const std::uint32_t cell = chunk * kChunk + lane * kQuad;
    std::uint32_t bounds[kQuad];
    load_quad(cells + cell, bounds);
    Tally masses[kQuad];
    std::uint64_t own = 0;
#pragma unroll
    for (std::uint32_t k = 0; k < kQuad; ++k) {
      masses[k] = mass_of(bounds[k], cell + k);
      own += packed(masses[k]);
    }
    const std::uint64_t through = warp_prefix_sum(own);
    Tally tally = before + unpacked(through - own);
    std::uint32_t behind[kQuad];
#pragma unroll
    for (std::uint32_t k = 0; k < kQuad; ++k) {
      tally = tally + masses[k];
      behind[k] = scale.lower_bound(tally);
    }
    const std::uint32_t of_lane_before = __shfl_up_sync(kWholeWarp, behind[kQuad - 1], 1);
    bounds[0] = lane > 0 ? of_lane_before : first_bound;
#pragma unroll
    for (std::uint32_t k = 1; k < kQuad; ++k) bounds[k] = behind[k - 1];
    *reinterpret_cast<uint4*>(cells + cell) = make_uint4(bounds[0], bounds[1], bounds[2], bounds[3]);
    if (cell < count) store_quad(lower + cell, bounds, count - cell);
    visit(cell, bounds, behind[kQuad - 1]);
    first_bound = __shfl_sync(kWholeWarp, behind[kQuad - 1], 31);
    before = before + unpacked(__shfl_sync(kWholeWarp, through, 31));
  }
}

/// Notes on the chip what the guide and the trees come from.
__device__ inline void note_quad(const Target& target, const OnChip& chip, bool trees, std::uint32_t cell,
                                 const std::uint32_t (&bounds)[kQuad], std::uint32_t behind) {
  std::uint32_t edge[kQuad];
  Key key = key_of(bounds[0], target.guide_size);
#pragma unroll
  for (std::uint32_t k = 0; k < kQuad; ++k) {
    const Key next = key_of(k + 1 < kQuad ? bounds[(k + 1) % kQuad] : behind, target.guide_size);
    if (key.begin < next.begin) chip.set_holder(key.begin, cell + k);
    edge[k] = edge_between(key, next);
    key = next;
  }
  if (trees) note_edges(chip, cell, target.count, edge);
}

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
