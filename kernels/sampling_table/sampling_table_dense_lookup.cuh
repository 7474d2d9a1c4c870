#pragma once

#include "kernels/sampling_table/sampling_table_dense_chip.cuh"

// Guide and trees of a distribution of which each thread has 16 neighbouring cells.

namespace cumulus::sampling_rows {

/// 1 + the highest bit that is set; 0 of 0.
__device__ inline std::uint32_t bits_of(std::uint32_t word) {
#if defined(__CUDA_ARCH__)
  std::uint32_t highest = 0;
  asm("bfind.u32 %0, %1;" : "=r"(highest) : "r"(word));
  return highest + 1;
#else
  return 32 - static_cast<std::uint32_t>(__clz(static_cast<int>(word)));
#endif
}

/// Four edges or nodes at once, one in each byte; flags are in the highest bits.
inline constexpr std::uint32_t kFlags = 0x80808080u;

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

/// Notes holders in the upper halves of the slots and, with kTrees, the edges behind a thread's cells.
template <bool kTrees>
__device__ void note_own(const OnChip& chip, std::uint32_t guide_size, std::uint32_t first,
                         const std::uint32_t (&bounds)[kOwn], std::uint32_t behind) {
  std::uint32_t edges[kOwn / kQuad] = {};
  PlaceInGuide own(bounds[0], guide_size);
#pragma unroll
  for (std::uint32_t k = 0; k < kOwn; ++k) {
    const PlaceInGuide next(k + 1 < kOwn ? bounds[(k + 1) % kOwn] : behind, guide_size);
    store_if(own.begin < next.begin,
             reinterpret_cast<std::uint16_t*>(chip.slots) + 2 * word_place(own.begin) + 1, first + k);
    if constexpr (kTrees) {
      const bool boundary = own.cell != next.cell;
      const std::uint32_t differing = next.place ^ (boundary ? 0 : own.place);
      const std::uint32_t bit = bits_of(next.inside ? differing : 0);
      edges[k / kQuad] += (bit + (boundary ? kBoundary : 0)) << 8 * (k % kQuad);
    }
    own = next;
  }
  if constexpr (kTrees) {
    *reinterpret_cast<uint4*>(chip.edges + first) = make_uint4(edges[0], edges[1], edges[2], edges[3]);
    std::uint32_t largest = ~0u;
    if (((edges[0] | edges[1] | edges[2] | edges[3]) & kFlags) == 0) {
      largest = 0;
      for (std::uint32_t k = 0; k < kOwn; ++k) {
        largest = max(largest, (edges[k / kQuad] >> 8 * (k % kQuad) & 0xFFu) << 16 | (first + k + 1));
      }
    }
    chip.groups[first / OnChip::kGroup] = largest;
  }
}

/// The largest of each eight groups. The block must have met since note_own.
template <int kThreads>
__device__ void note_chunks(const OnChip& chip, std::uint32_t count) {
  for (std::uint32_t chunk = threadIdx.x; chunk < OnChip::chunks_of(count); chunk += kThreads) {
    std::uint32_t largest = (chunk + 1) * kChunk > count ? ~0u : 0;
    for (std::uint32_t g = 0; g < kChunk / OnChip::kGroup && largest != ~0u; ++g) {
      largest = max(largest, chip.groups[chunk * (kChunk / OnChip::kGroup) + g]);
    }
    chip.chunks[chunk] = largest;
  }
}

__device__ inline std::uint32_t nodes_among(std::uint32_t edges) {
  return ((edges & ~kFlags) + ~kFlags) & kFlags;
}
/// Flags where the bit of `a` is at least that of `b`.
__device__ inline std::uint32_t not_below(std::uint32_t a, std::uint32_t b) {
  return ((a | kFlags) - (b & ~kFlags)) & kFlags;
}

/// All ones where flag k is set.
__device__ inline std::uint32_t mask_of(std::uint32_t flags, std::uint32_t k) {
#if defined(__CUDA_ARCH__)
  // 8 and more: not the byte, but its highest bit, eight times; __byte_perm leaves the 8 out.
  std::uint32_t mask = 0;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(mask) : "r"(flags), "r"(0x1111u * (8 + k)));
  return mask;
#else
  return (flags >> (8 * k + 7) & 1) != 0 ? ~0u : 0;
#endif
}

/// What lies on one side of four nodes, of which `own` has the edges, and `next` those next to them, then the
/// next, and the third; flags.
struct NodeSide {
  std::uint32_t one;   ///< The next edge belongs to the node's subtree.
  std::uint32_t two;   ///< And the second.
  std::uint32_t far;   ///< The child is the second.
  std::uint32_t open;  ///< The side ends where the guide cell does.
  std::uint32_t done;  ///< No more than two belong to it.

  /// `ends[i]`: the guide cell ends before edge i of the side.
  __device__ NodeSide(std::uint32_t own, const std::uint32_t (&next)[3], const std::uint32_t (&ends)[3]) {
    const std::uint32_t larger[3] = {not_below(next[0], own), not_below(next[1], own),
                                     not_below(next[2], own)};
    const std::uint32_t node[3] = {nodes_among(next[0]) & ~ends[0], nodes_among(next[1]) & ~ends[1],
                                   nodes_among(next[2]) & ~ends[2]};
    one = node[0] & ~larger[0];
    two = one & node[1] & ~larger[1];
    far = two & not_below(next[1], next[0]);
    open = (ends[0] | (one & ends[1]) | (two & ends[2])) & kFlags;
    done = open | (node[0] & larger[0]) | (one & node[1] & larger[1]) | (two & node[2] & larger[2]);
  }
};

/// Nodes j to j + 3: those both of whose sides are done.
struct NodeQuad {
  std::uint32_t nodes;  ///< All that there are.
  std::uint32_t done;
  std::uint32_t roots;  ///< Of those that are done.
  NodeSide left;
  NodeSide right;

  /// `before`, `own`, `behind` are the bytes of edges j - 3 to j, j + 1 to j + 4, j + 5 to j + 8.
  __device__ static NodeQuad of(std::uint32_t before, std::uint32_t own, std::uint32_t behind) {
    const std::uint32_t edges = __byte_perm(before, own, 0x6543);
    const std::uint32_t lefts[3] = {__byte_perm(before, own, 0x5432), __byte_perm(before, own, 0x4321),
                                    before};
    const std::uint32_t rights[3] = {own, __byte_perm(own, behind, 0x4321), __byte_perm(own, behind, 0x5432)};
    // A guide cell begins at the boundary; where that is no node, behind it.
    const std::uint32_t begins[3] = {edges | (lefts[0] & ~nodes_among(lefts[0])),
                                     lefts[0] | (lefts[1] & ~nodes_among(lefts[1])),
                                     lefts[1] | (lefts[2] & ~nodes_among(lefts[2]))};
    const NodeSide left(edges, lefts, begins);
    const NodeSide right(edges, rights, rights);
    const std::uint32_t nodes = nodes_among(edges);
    const std::uint32_t done = nodes & left.done & right.done;
    return {nodes, done, done & left.open & right.open, left, right};
  }
};

/// The word of node j, both of whose children are cells, is this many times j, and as much.
inline constexpr std::uint32_t kPairStep = 0x00010001u;
inline constexpr std::uint32_t kPairBase = 0x80007FFFu;

/// In a slot, beside the number of a root: whether it parts two cells only.
inline constexpr std::uint32_t kPairRoot = static_cast<std::uint32_t>(sampling::detail::RootKind::kTwoCells) << 14;
inline constexpr std::uint32_t kNodeRoot = static_cast<std::uint32_t>(sampling::detail::RootKind::kNode) << 14;

/// A node by the searches of sampling_table_rows.cuh.
__device__ inline std::uint32_t searched_node(const OnChip& chip, std::uint32_t j, bool& root) {
  const std::uint32_t edge = chip.edge(j);
  const std::uint32_t own = edge & ~kBoundary;
  const Side right = look_right(chip, j, own);
  const Side left = edge >= kBoundary ? Side{0, j, true} : look_left(chip, j, own);
  const std::uint32_t right_child =
      right.largest >> 16 > 0 ? right.largest & 0xFFFFu : kLeaf | (right.last - 1);
  const std::uint32_t left_child = left.largest >> 16 > 0 ? left.largest & 0xFFFFu : kLeaf | (j - 1);
  root = left.open && right.open;
  return left_child | right_child << 16;
}

__device__ inline void set_root_if(bool wanted, const OnChip& chip, std::uint32_t guide_size,
                                   std::uint32_t lower, std::uint32_t root) {
  const std::uint32_t place = word_place(__umulhi(lower, guide_size));
  store_if(wanted, reinterpret_cast<std::uint16_t*>(chip.slots) + 2 * place, root);
}

/// Writes the nodes of trees of one and two, zeros elsewhere, and queues the others.
template <int kThreads>
__device__ void write_small_trees(const Target& target, const DenseOnChip<kThreads>& dense, bool store) {
  const OnChip& chip = dense.chip;
  const auto* const words = reinterpret_cast<const std::uint32_t*>(chip.edges);
  auto* const nodes = reinterpret_cast<std::uint32_t*>(target.nodes);
  for (std::uint32_t j = threadIdx.x * kQuad; j < target.count; j += kThreads * kQuad) {
    const std::uint32_t quad = j / kQuad;
    // Edge 0 is a boundary, and so is the one behind the last cell.
    const NodeQuad of = NodeQuad::of(quad > 0 ? words[quad - 1] : kBoundary << 24, words[quad],
                                     j + kQuad < target.count ? words[quad + 1] : kFlags);
    const std::uint32_t pairs = of.roots & ~of.left.one & ~of.right.one;
    std::uint32_t lower[kQuad];
    load_quad(chip.cells + quad_place(quad), lower);
    std::uint32_t out[kQuad];
#pragma unroll
    for (std::uint32_t k = 0; k < kQuad; ++k) {
      const std::uint32_t flag = 0x80u << 8 * k;
      const std::uint32_t node = j + k;
      // Of both cells; of the next nodes; of the second ones.
      std::uint32_t word = node * kPairStep + kPairBase;
      word -= (mask_of(of.left.one, k) & kLeaf) + (mask_of(of.right.one, k) & (kLeaf - 1) << 16);
      word += mask_of(of.left.far, k) + (mask_of(of.right.far, k) & 0x10000u);
      out[k] = word & mask_of(of.done, k);
      set_root_if((of.roots & flag) != 0, chip, target.guide_size, lower[k],
                  node + kNodeRoot - (mask_of(pairs, k) & (kNodeRoot - kPairRoot)));
    }
    if (store) {
      *reinterpret_cast<uint4*>(nodes + j) = make_uint4(out[0], out[1], out[2], out[3]);
    }
    const std::uint32_t rest = of.nodes & ~of.done;
    if (rest != 0) {
      std::uint32_t at = atomicAdd(dense.queued, static_cast<std::uint32_t>(__popc(rest)));
#pragma unroll
      for (std::uint32_t k = 0; k < kQuad; ++k) {
        const std::uint32_t waits = rest >> (8 * k + 7) & 1;
        store_if(waits != 0, dense.queue + at, j + k);
        at += waits;
      }
    }
  }
}

/// The block must have met since write_small_trees.
template <int kThreads>
__device__ void write_large_trees(const Target& target, const DenseOnChip<kThreads>& dense, bool store) {
  auto* const nodes = reinterpret_cast<std::uint32_t*>(target.nodes);
  const std::uint32_t queued = *dense.queued;
  for (std::uint32_t i = threadIdx.x; i < queued; i += kThreads) {
    const std::uint32_t j = dense.queue[i];
    bool root = false;
    const std::uint32_t word = searched_node(dense.chip, j, root);
    if (store) nodes[j] = word;
    const bool two_cells = word == j * kPairStep + kPairBase;
    set_root_if(root, dense.chip, target.guide_size, dense.chip.cells[word_place(j)],
                j + (two_cells ? kPairRoot : kNodeRoot));
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
