#pragma once

#include "kernels/sampling_table/rows/register_blocked/memory.cuh"

// The trees of a distribution of which each thread has 16 neighbouring cells. Edge j lies between cells j - 1
// and j; where both overlap a guide cell of more than few cells there is node j. The difference at an edge is
// that of the keys there, as far as they are in one guide cell. The tree of a guide cell is the Cartesian
// tree of its edges' differences: the parent of a node is the smaller one of the nearest larger ones on both
// sides.

namespace cumulus::sampling_table {

/// A thread's edges; bit k of a mask is edge k.
struct ThreadEdges {
  std::uint32_t differences[kThreadCells];  ///< 0 where there is no node.
  std::uint32_t nodes = 0;
  std::uint32_t starts = 0;  ///< Edges with which a tree begins, or which are in none.
};

/// The last cell with the lower bound of cell j.
template <class LowerAt>
__device__ std::uint32_t last_like(const LowerAt& lower_at, std::uint32_t j, std::uint32_t count) {
  const std::uint32_t own = lower_at(j);
  if (j + 1 >= count || lower_at(j + 1) != own) return j;
  std::uint32_t last = j;
  std::uint32_t step = 1;
  for (; last + step < count && lower_at(last + step) == own; step *= 2) last += step;
  for (; step > 0; step /= 2) {
    if (last + step < count && lower_at(last + step) == own) last += step;
  }
  return last;
}

/// The block turns lower bounds in shared memory into the nodes of crowded guide cells.
template <int kThreads>
class RegisterBlockedTrees {
 public:
  __device__ RegisterBlockedTrees(const Target& target,
                                  const RegisterBlockedMemory<kThreads, RowLookup::kTrees>& memory)
      : target_(target),
        crowded_(memory.crowded(target.guide_size)),
        differences_(memory.lower()),
        words_(memory.staged()),
        edges_(memory.edges()) {}

  /// The block has met since the guide was written, and meets here when all but words has been read.
  __device__ void write() const {
    ThreadEdges own;
    find_edges(own);
    write_words(own);
    __syncthreads();  // lower bounds have been read
    publish_edges(own);
    __syncthreads();
#pragma unroll 1
    for (std::uint32_t nodes = own.nodes; nodes != 0; nodes &= nodes - 1) link(own, lowest(nodes));
    __syncthreads();
    if (target_.method != Method::kRadixForest) return;
    auto* const nodes = reinterpret_cast<uint4*>(target_.nodes);
    for (std::uint32_t quad = threadIdx.x; quad < target_.count / kQuad; quad += kThreads) {
      const uint4 words = *reinterpret_cast<const uint4*>(words_ + word_place(quad * kQuad));
      if ((words.x | words.y | words.z | words.w) != 0) nodes[quad] = words;  // the others are zeros already
    }
  }

 private:
  static constexpr std::uint32_t kLeafBit = sampling::detail::leaf_bit(kMaxRegisterBlockedCells);
  static constexpr std::uint32_t kNoEdge = ~0u;

  __device__ void find_edges(ThreadEdges& own) const {
    const std::uint32_t* const lower = differences_;
    const auto lower_at = [=](std::uint32_t i) { return lower[word_place(i)]; };
    const std::uint32_t first = threadIdx.x * kThreadCells;
    std::uint32_t before = first > 0 && first < target_.count ? lower_at(first - 1) : 0;
#pragma unroll
    for (std::uint32_t k = 0; k < kThreadCells; ++k) {
      const std::uint32_t j = first + k;
      const std::uint32_t bound = j < target_.count ? lower_at(j) : sampling::kEmptyTail;
      const std::uint64_t key = std::uint64_t{bound} * target_.guide_size;
      const std::uint64_t key_before = std::uint64_t{before} * target_.guide_size;
      const auto g = static_cast<std::uint32_t>(key >> 32);
      const auto place = static_cast<std::uint32_t>(key);
      const bool same_cell = j > 0 && g == key_before >> 32;
      const bool in_tree = bound != sampling::kEmptyTail && (crowded_[g / 32] >> g % 32 & 1) != 0;
      const bool node = in_tree && place >= target_.guide_size && bound != before;
      own.differences[k] = node ? place ^ (same_cell ? static_cast<std::uint32_t>(key_before) : 0) : 0;
      own.nodes |= node ? 1u << k : 0;
      own.starts |= in_tree && same_cell ? 0 : 1u << k;
      before = bound;
    }
  }

  /// As if all children were cells.
  __device__ void write_words(const ThreadEdges& own) const {
    const std::uint32_t* const lower = differences_;
    const auto lower_at = [=](std::uint32_t i) { return lower[word_place(i)]; };
#pragma unroll
    for (std::uint32_t q = 0; q < kThreadCells / kQuad; ++q) {
      *reinterpret_cast<uint4*>(words_ + thread_quad_place(threadIdx.x, q)) = make_uint4(0, 0, 0, 0);
    }
#pragma unroll 1
    for (std::uint32_t nodes = own.nodes; nodes != 0; nodes &= nodes - 1) {
      const std::uint32_t j = threadIdx.x * kThreadCells + lowest(nodes);
      words_[word_place(j)] = (j - 1) | kLeafBit | (last_like(lower_at, j, target_.count) | kLeafBit) << 16;
    }
  }

  __device__ void publish_edges(const ThreadEdges& own) const {
    std::uint32_t any = own.starts != 0 ? ~0u : 0;
#pragma unroll
    for (std::uint32_t q = 0; q < kThreadCells / kQuad; ++q) {
      const std::uint32_t* const quad = own.differences + q * kQuad;
      *reinterpret_cast<uint4*>(differences_ + thread_quad_place(threadIdx.x, q)) =
          make_uint4(quad[0], quad[1], quad[2], quad[3]);
      any |= quad[0] | quad[1] | quad[2] | quad[3];
    }
    edges_.starts[threadIdx.x] = static_cast<std::uint16_t>(own.starts);
    std::uint32_t of_lane = 0;
#pragma unroll
    for (std::uint32_t bit = 0; bit < 32; ++bit) {
      const std::uint32_t threads = __ballot_sync(kFullWarp, own.starts != 0 || any >> bit >> 1 != 0);
      if (threadIdx.x % 32 == bit) of_lane = threads;
    }
    edges_.words[threadIdx.x % 32][threadIdx.x / 32] = of_lane;
  }

  /// Makes the thread's node k its parent's child, or its tree's root.
  __device__ void link(const ThreadEdges& own, std::uint32_t k) const {
    const std::uint32_t j = threadIdx.x * kThreadCells + k;
    const std::uint32_t difference = differences_[word_place(j)];
    const std::uint32_t larger = larger_of(threadIdx.x, difference);
    const std::uint32_t left = nearest_on_left(own.starts, larger, k, difference);
    const std::uint32_t right = nearest_on_right(own.starts, larger, k, difference);
    if (left == kNoEdge && right == kNoEdge) {
      const std::uint32_t g = __umulhi(target_.lower[j], target_.guide_size);
      reinterpret_cast<std::uint32_t*>(target_.guide)[g] = sampling::detail::entry_of_root(j);
      return;
    }
    const bool below_left = right == kNoEdge || (left != kNoEdge && differences_[word_place(left)] <
                                                                        differences_[word_place(right)]);
    const std::uint32_t parent = below_left ? left : right;
    reinterpret_cast<std::uint16_t*>(words_ + word_place(parent))[below_left ? 1 : 0] =
        static_cast<std::uint16_t>(j);
  }

  /// The nearest edge of the same tree before the thread's edge k with a larger difference; of its own
  /// thread's `larger` are.
  __device__ std::uint32_t nearest_on_left(std::uint32_t starts, std::uint32_t larger, std::uint32_t k,
                                           std::uint32_t difference) const {
    const std::uint32_t starts_before = starts & ((2u << k) - 1);
    const std::uint32_t begin = starts_before != 0 ? highest(starts_before) : 0;
    const std::uint32_t found = larger & ((1u << k) - 1) & ~((1u << begin) - 1);
    if (found != 0) return threadIdx.x * kThreadCells + highest(found);
    if (starts_before != 0) return kNoEdge;
    const std::uint32_t bit = highest(difference);
    std::uint32_t warp = threadIdx.x / 32;
    std::uint32_t threads = edges_.words[bit][warp] & ((1u << threadIdx.x % 32) - 1);
    while (threads == 0 && warp > 0) threads = edges_.words[bit][--warp];
    if (threads == 0) return kNoEdge;
    const std::uint32_t thread = warp * 32 + highest(threads);
    const std::uint32_t of_thread = larger_of(thread, difference);
    if (of_thread <= (edges_.starts[thread] & ~of_thread)) return kNoEdge;  // a start comes first
    return thread * kThreadCells + highest(of_thread);
  }

  /// And after it.
  __device__ std::uint32_t nearest_on_right(std::uint32_t starts, std::uint32_t larger, std::uint32_t k,
                                            std::uint32_t difference) const {
    const std::uint32_t after = ~((2u << k) - 1);
    const std::uint32_t starts_after = starts & after;
    const std::uint32_t found = larger & after & ((starts_after & (0u - starts_after)) - 1);
    if (found != 0) return threadIdx.x * kThreadCells + lowest(found);
    if (starts_after != 0) return kNoEdge;
    constexpr std::uint32_t kWarps = kThreads / 32;
    const std::uint32_t bit = highest(difference);
    std::uint32_t warp = threadIdx.x / 32;
    std::uint32_t threads = edges_.words[bit][warp] & ~((2u << threadIdx.x % 32) - 1);
    while (threads == 0 && warp + 1 < kWarps) threads = edges_.words[bit][++warp];
    if (threads == 0) return kNoEdge;
    const std::uint32_t thread = warp * 32 + lowest(threads);
    const std::uint32_t of_thread = larger_of(thread, difference);
    const std::uint32_t starts_there = edges_.starts[thread];
    const std::uint32_t in_tree = of_thread & ((starts_there & (0u - starts_there)) - 1);
    return in_tree != 0 ? thread * kThreadCells + lowest(in_tree) : kNoEdge;
  }

  /// The edges of a thread with larger differences.
  __device__ std::uint32_t larger_of(std::uint32_t thread, std::uint32_t difference) const {
    std::uint32_t larger = 0;
#pragma unroll
    for (std::uint32_t q = 0; q < kThreadCells / kQuad; ++q) {
      std::uint32_t quad[kQuad];
      load_quad(differences_ + thread_quad_place(thread, q), quad);
#pragma unroll
      for (std::uint32_t k = 0; k < kQuad; ++k) larger |= quad[k] > difference ? 1u << (q * kQuad + k) : 0;
    }
    return larger;
  }

  __device__ static std::uint32_t highest(std::uint32_t mask) {
    return 31 - static_cast<std::uint32_t>(__clz(static_cast<int>(mask)));
  }
  __device__ static std::uint32_t lowest(std::uint32_t mask) {
    return static_cast<std::uint32_t>(__ffs(static_cast<int>(mask))) - 1;
  }

  const Target& target_;
  const std::uint32_t* crowded_;
  std::uint32_t* differences_;  ///< Lower bounds at first.
  std::uint32_t* words_;        ///< Of nodes.
  BlockEdges<kThreads>& edges_;
};

}  // namespace cumulus::sampling_table
