#pragma once

#include "kernels/sampling_table/sampling_table_dense_edges.cuh"

// Guide and trees of a distribution of which each thread has 16 neighbouring cells.

namespace cumulus::sampling_rows {

/// Stores to shared memory where `wanted`, without a branch, after which a warp would have to meet.
__device__ inline void store_if(bool wanted, std::uint16_t* to, std::uint32_t value) {
#if defined(__CUDA_ARCH__)
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %0, 0; @p st.shared.u16 [%1], %2; }"
               :
               : "r"(static_cast<unsigned>(wanted)), "r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
                 "h"(static_cast<std::uint16_t>(value))
               : "memory");
#else
  if (wanted) *to = static_cast<std::uint16_t>(value);
#endif
}

/// Key without its lower bound, so that kEmptyTail needs no case of its own: it counts as 2^32, which is the
/// edge behind the last guide cell.
struct PlaceInGuide {
  std::uint32_t cell;
  std::uint32_t place;
  std::uint32_t begin;
  bool inside;

  __device__ PlaceInGuide(std::uint32_t lower, std::uint32_t guide_size) {
    const std::uint32_t one_more = lower == sampling::kEmptyTail ? guide_size : 0;
    const std::uint64_t key = static_cast<std::uint64_t>(lower) * guide_size + one_more;
    cell = static_cast<std::uint32_t>(key >> 32);
    place = static_cast<std::uint32_t>(key);
    inside = place >= guide_size;
    begin = cell + (inside ? 1 : 0);
  }
};

/// Notes holders in the upper halves of the slots.
__device__ inline void note_own(const OnChip& chip, std::uint32_t guide_size, std::uint32_t first,
                                const std::uint32_t (&bounds)[kOwn], std::uint32_t behind) {
  PlaceInGuide own(bounds[0], guide_size);
#pragma unroll
  for (std::uint32_t k = 0; k < kOwn; ++k) {
    const PlaceInGuide next(k + 1 < kOwn ? bounds[(k + 1) % kOwn] : behind, guide_size);
    store_if(own.begin < next.begin,
             reinterpret_cast<std::uint16_t*>(chip.slots) + 2 * word_place(own.begin) + 1, first + k);
    own = next;
  }
}

/// In a slot, beside the number of a root: whether it parts two cells only.
inline constexpr std::uint32_t kPairRoot = static_cast<std::uint32_t>(sampling::detail::RootKind::kTwoCells)
                                           << 14;
inline constexpr std::uint32_t kNodeRoot = static_cast<std::uint32_t>(sampling::detail::RootKind::kNode)
                                           << 14;

/// The upper (1) or lower (0) half of a slot.
__device__ inline std::uint16_t* slot_half(const OnChip& chip, std::uint32_t place, std::uint32_t half) {
  return reinterpret_cast<std::uint16_t*>(chip.slots) + 2 * place + half;
}

/// The lower bounds around a thread's: the four before and the four behind. Where there are none, such as
/// make no edge odd by themselves.
struct BoundsAround {
  std::uint32_t before[kQuad] = {1, 3, 5, 7};
  std::uint32_t behind[kQuad] = {sampling::kEmptyTail, sampling::kEmptyTail - 1, sampling::kEmptyTail - 2, 0};

  __device__ BoundsAround(const OnChip& chip, std::uint32_t thread, std::uint32_t count) {
    if (thread > 0) load_quad(chip.cells + own_quad_place(thread - 1, kOwn / kQuad - 1), before);
    if ((thread + 1) * kOwn < count) load_quad(chip.cells + own_quad_place(thread + 1, 0), behind);
  }
  __device__ std::uint32_t at(int i, const std::uint32_t (&own)[kOwn]) const {
    return i < 0 ? before[i + 4] : i < static_cast<int>(kOwn) ? own[i] : behind[i - static_cast<int>(kOwn)];
  }
};

/// The edges that are odd; notes the last cell with mass, which no boundary follows, as last of its guide
/// cell.
__device__ inline std::uint32_t find_odd_edges(const OnChip& chip, std::uint32_t count,
                                               std::uint32_t guide_size, std::uint32_t first) {
  const auto lower_at = [&](std::uint32_t i) {
    return i < count ? chip.cells[word_place(i)] : sampling::kEmptyTail;
  };
  const std::uint32_t begin = first > 0 ? first - EdgeBits::kAround : 1;
  std::uint32_t odd = 0;
  std::uint32_t before = lower_at(begin - 1);
#pragma unroll 1
  for (std::uint32_t j = begin; j < first + kOwn + EdgeBits::kAround; ++j) {
    const std::uint32_t lower = lower_at(j);
    const PlaceInGuide own(lower, guide_size);
    if (lower == before || lower == sampling::kEmptyTail || !own.inside) {
      odd |= EdgeBits::bit(static_cast<int>(j - first));
    }
    const bool ends = lower == sampling::kEmptyTail && before != lower && j > first && j <= first + kOwn;
    store_if(ends, slot_half(chip, word_place(__umulhi(before, guide_size)), 1), j - 1);
    before = lower;
  }
  return odd;
}

/// Writes the nodes with at most two others of their subtree on each side, and queues the others. The bounds
/// are on the chip, too, and the block has met since.
template <int kThreads>
__device__ void write_small_trees(const Target& target, const DenseOnChip<kThreads>& dense,
                                  const std::uint32_t (&bounds)[kOwn], bool store) {
  constexpr int kAround = EdgeBits::kAround;
  constexpr int kCells = static_cast<int>(kOwn);
  const OnChip& chip = dense.chip;
  const std::uint32_t guide_size = target.guide_size;
  const std::uint32_t first = threadIdx.x * kOwn;
  if (first >= target.count) return;
  const bool last = first + kOwn >= target.count;
  const BoundsAround around(chip, threadIdx.x, target.count);
  EdgeBits edges;
  std::uint32_t words[kOwn];
  std::uint32_t places[kOwn];  // of the slots of the cells' guide cells
  std::uint32_t least = ~0u;
  EdgeWalk walk(static_cast<std::uint64_t>(around.at(-kAround - 1, bounds)) * guide_size);
#pragma unroll
  for (int i = -kAround; i < kCells + kAround; ++i) {
    const std::uint64_t key = static_cast<std::uint64_t>(around.at(i, bounds)) * guide_size;
    std::uint32_t outside[3] = {};
    if (i >= 0 && i < kCells) {
      places[i] = word_place(static_cast<std::uint32_t>(key >> 32));
      words[i] = (first + static_cast<std::uint32_t>(i)) * kPairStep + kPairBase;
    }
    const auto step = [&](auto notes, std::uint16_t* last_of_cell) {
      return walk.step<decltype(notes)::value>(key, EdgeBits::bit(i), edges,
                                               i >= 0 && i < kCells ? words[i] : outside[0],
                                               i >= 1 && i <= kCells ? words[i - 1] : outside[1],
                                               i >= 2 && i <= kCells + 1 ? words[i - 2] : outside[2],
                                               last_of_cell, first + static_cast<std::uint32_t>(i) - 1);
    };
    const std::uint32_t difference = i < -1 || i > kCells + 1 ? walk.look(key, EdgeBits::bit(i), edges)
                                     : i >= 1 && i <= kCells
                                         ? step(std::true_type{}, slot_half(chip, places[i - 1], 1))
                                         : step(std::false_type{}, nullptr);
    least = min(least, difference);
    if (i % 4 == 0) part_steps(guide_size);
  }
  if (first == 0) {
    edges.boundary |= EdgeBits::bit(0);
    edges.odd |= EdgeBits::bit(0);
  }
  if (last) {
    store_if(bounds[kCells - 1] != sampling::kEmptyTail, slot_half(chip, places[kCells - 1], 1),
             target.count - 1);
    edges.boundary |= EdgeBits::bit(kCells);
    edges.odd |= EdgeBits::bit(kCells);
  }
  const bool tail = (last ? bounds[kCells - 1] : around.behind[kAround - 1]) == sampling::kEmptyTail;
  if (least < guide_size || tail) edges.odd |= find_odd_edges(chip, target.count, guide_size, first);
  if (edges.odd != 0) {
#pragma unroll
    for (int k = 0; k < kCells; ++k) words[k] = (edges.odd & EdgeBits::bit(k)) != 0 ? 0 : words[k];
  }
  if (store) {
    auto* const nodes = reinterpret_cast<uint4*>(reinterpret_cast<std::uint32_t*>(target.nodes) + first);
#pragma unroll
    for (int q = 0; q < kCells / 4; ++q) {
      nodes[q] = make_uint4(words[4 * q], words[4 * q + 1], words[4 * q + 2], words[4 * q + 3]);
    }
  }
  const KnownNodes known(edges);
#pragma unroll
  for (int k = 0; k < kCells; ++k) {
    const std::uint32_t number = first + static_cast<std::uint32_t>(k);
    store_if((known.roots & EdgeBits::bit(k)) != 0, slot_half(chip, places[k], 0),
             (known.pairs & EdgeBits::bit(k)) != 0 ? number + kPairRoot : number + kNodeRoot);
  }
  std::uint32_t rest = known.unknown >> kAround & ((1u << kCells) - 1);
  if (rest == 0) return;
  std::uint32_t at = atomicAdd(dense.queued, static_cast<std::uint32_t>(__popc(rest)));
  for (; rest != 0; rest &= rest - 1) {
    dense.queue[at++] =
        static_cast<std::uint16_t>(first + static_cast<std::uint32_t>(__ffs(static_cast<int>(rest))) - 1);
  }
}

/// The block must have met since write_small_trees.
template <int kThreads>
__device__ void write_large_trees(const Target& target, const DenseOnChip<kThreads>& dense, bool store) {
  const std::uint32_t* const cells = dense.chip.cells;
  const auto lower_at = [=](std::uint32_t i) { return cells[word_place(i)]; };
  const sampling_trees::RadixForest forest(lower_at, target.count, target.guide_size);
  auto* const nodes = reinterpret_cast<std::uint32_t*>(target.nodes);
  const std::uint32_t queued = *dense.queued;
  for (std::uint32_t i = threadIdx.x; i < queued; i += kThreads) {
    const std::uint32_t j = dense.queue[i];
    bool root = false;
    const sampling::detail::NodePair node = forest.node(j, kLeaf, root);
    const std::uint32_t word = node.left | node.right << 16;
    if (store) nodes[j] = word;
    const bool two_cells = word == j * kPairStep + kPairBase;
    const auto cell = static_cast<std::uint32_t>(std::uint64_t{lower_at(j)} * target.guide_size >> 32);
    store_if(root, slot_half(dense.chip, word_place(cell), 0), j + (two_cells ? kPairRoot : kNodeRoot));
  }
}

/// The largest of the block's threads before, and of all. The block meets here, twice.
template <int kThreads>
__device__ std::uint32_t largest_before(std::uint32_t own, std::uint32_t& all) {
  constexpr unsigned kWarps = kThreads / 32;
  __shared__ std::uint32_t of_warps[kWarps];
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  const std::uint32_t through = warp_prefix_max(own);
  const std::uint32_t of_lanes = __shfl_up_sync(kWholeWarp, through, 1);
  __syncthreads();
  if (lane == 31) of_warps[warp] = through;
  __syncthreads();
  const std::uint32_t warps = warp_prefix_max(lane < kWarps ? of_warps[lane] : 0);
  const std::uint32_t of_warps_before = __shfl_sync(kWholeWarp, warps, (warp + 31) % 32);
  all = __shfl_sync(kWholeWarp, warps, 31);
  return max(lane > 0 ? of_lanes : 0, warp > 0 ? of_warps_before : 0);
}

/// The slots become the guide. Every thread of the block comes here, which has met since they were written.
template <int kThreads, bool kTrees>
__device__ void write_dense_guide(const Target& target, const OnChip& chip) {
  using sampling::detail::kRootNumberBits;
  std::uint32_t carried = 0;
  for (std::uint32_t tile = 0; tile < target.guide_size; tile += kThreads * kOwn) {
    const std::uint32_t g = tile + threadIdx.x * kOwn;
    std::uint32_t slots[kOwn];
#pragma unroll
    for (std::uint32_t q = 0; q < kOwn / kQuad; ++q) {
      std::uint32_t quad[kQuad] = {};
      if (g < target.guide_size) load_quad(chip.slots + tile + own_quad_place(threadIdx.x, q), quad);
#pragma unroll
      for (std::uint32_t k = 0; k < kQuad; ++k) slots[q * kQuad + k] = quad[k];
    }
    std::uint32_t own = 0;
#pragma unroll
    for (const std::uint32_t slot : slots) own = max(own, slot);
    std::uint32_t all = 0;
    std::uint32_t holder = max(carried, largest_before<kThreads>(own, all));
    carried = max(carried, all);
    std::uint32_t entries[kOwn];
#pragma unroll
    for (std::uint32_t k = 0; k < kOwn; ++k) {
      holder = max(holder, slots[k]);
      const std::uint32_t cell = holder >> 16;
      if constexpr (kTrees) {
        // A root's lower 14 bits are its number, the upper two its kind.
        const std::uint32_t root = slots[k] & 0xFFFFu;
        entries[k] = root == 0 ? cell : root + (root >> 14) * ((1u << kRootNumberBits) - (1u << 14));
      } else {
        entries[k] = cell;
      }
    }
    if constexpr (kTrees) {
      store_words(chip.slots, entries, tile, target.guide_size,
                  reinterpret_cast<std::uint32_t*>(target.guide));
    } else if (g < target.guide_size) {
      auto* const out = reinterpret_cast<uint4*>(reinterpret_cast<std::uint16_t*>(target.guide) + g);
#pragma unroll
      for (std::uint32_t h = 0; h < 2; ++h) {
        std::uint32_t packed[kQuad];
#pragma unroll
        for (std::uint32_t k = 0; k < kQuad; ++k) {
          packed[k] = entries[8 * h + 2 * k] | entries[8 * h + 2 * k + 1] << 16;
        }
        out[h] = make_uint4(packed[0], packed[1], packed[2], packed[3]);
      }
    }
  }
}

}  // namespace cumulus::sampling_rows
