#pragma once

// Guides, trees and alias columns of one distribution, by one block.

#include <cub/block/block_scan.cuh>

#include "kernels/sampling_table/sampling_table_alias.h"
#include "kernels/sampling_table/sampling_table_target.h"
#include "kernels/sampling_table/sampling_table_trees.h"

namespace cumulus::sampling_lookup {

using sampling::Method;
using sampling_layout::Target;

struct GuideWriter {
  std::byte* guide;
  std::uint64_t entry_bytes;

  __device__ void write(std::uint32_t g, std::uint64_t value) const {
    if (entry_bytes == 2) {
      reinterpret_cast<std::uint16_t*>(guide)[g] = static_cast<std::uint16_t>(value);
    } else if (entry_bytes == 4) {
      reinterpret_cast<std::uint32_t*>(guide)[g] = static_cast<std::uint32_t>(value);
    } else {
      reinterpret_cast<std::uint64_t*>(guide)[g] = value;
    }
  }
};

/// The warp writes its lanes' guide entries; a cell with many is written by all lanes together.
/// Every lane of the warp comes here.
__device__ inline void write_guide_ranges(const sampling_trees::GuideFill& fill, const GuideWriter& guide) {
  constexpr std::uint32_t kAlone = 8;
  const std::uint32_t begin = fill.range.begin;
  const std::uint32_t inner_end = fill.range.end > begin ? fill.range.end - 1 : begin;
  const bool together = inner_end > begin + kAlone;
  if (!together) {
    for (std::uint32_t g = begin; g < inner_end; ++g) guide.write(g, fill.inner);
  }
  if (fill.range.end > begin) guide.write(inner_end, fill.last);
  const std::uint32_t lane = threadIdx.x % 32;
  for (unsigned waiting = __ballot_sync(~0u, together); waiting != 0; waiting &= waiting - 1) {
    const int source = __ffs(static_cast<int>(waiting)) - 1;
    const std::uint32_t end = __shfl_sync(~0u, inner_end, source);
    const std::uint64_t value = __shfl_sync(~0u, fill.inner, source);
    const std::uint32_t first = __shfl_sync(~0u, begin, source);
    for (std::uint32_t g = first + lane; g < end; g += 32) guide.write(g, value);
  }
}

/// Zeros for a distribution without mass.
template <int kThreads>
__device__ void clear_words(std::byte* begin, std::uint64_t bytes) {
  // An odd number of entries of two bytes: the last is no whole word.
  for (std::uint64_t i = threadIdx.x; i < bytes / 2; i += kThreads) {
    reinterpret_cast<std::uint16_t*>(begin)[i] = 0;
  }
}

template <class Word, class Forest>
__device__ void write_pair(const Target& target, const Forest& forest, std::uint32_t j) {
  Word word = 0;
  if (forest.has_node(j)) {
    const auto node = forest.node(j, sampling::detail::leaf_bit(target.count));
    word = static_cast<Word>(node.left | static_cast<std::uint64_t>(node.right) << 4 * sizeof(Word));
  }
  reinterpret_cast<Word*>(target.nodes)[j] = word;
}

/// The block writes the guide, and the nodes of kRadixForest; `visit(i, lower)` sees each cell.
template <int kThreads, class LowerAt, class Visit>
__device__ void write_guide_and_forest(const Target& target, const LowerAt& lower_at, bool has_mass,
                                       const Visit& visit) {
  const sampling_trees::RadixForest<LowerAt> forest(lower_at, target.count, target.guide_size);
  const bool guided = has_mass && sampling::has_guide(target.method);
  const bool trees = has_mass && target.method == Method::kRadixForest;
  const GuideWriter guide{target.guide, sampling::guide_entry_bytes(target.method, target.count)};
  for (std::uint32_t first = 0; first < target.count; first += kThreads) {
    const std::uint32_t i = first + threadIdx.x;
    sampling_trees::GuideFill fill{{0, 0}, 0, 0};
    if (i < target.count) {
      const std::uint32_t lower = lower_at(i);
      visit(i, lower);
      if (guided) {
        const std::uint32_t next = i + 1 < target.count ? lower_at(i + 1) : sampling::kEmptyTail;
        fill =
            sampling_trees::guide_fill(target.method, forest, sampling::detail::cell_between(i, lower, next),
                                       target.count, target.guide_size);
      }
      if (trees && target.count <= sampling::kNarrowCells) {
        write_pair<std::uint32_t>(target, forest, i);
      } else if (trees) {
        write_pair<std::uint64_t>(target, forest, i);
      }
    }
    if (guided) write_guide_ranges(fill, guide);
  }
  if (has_mass) return;
  clear_words<kThreads>(target.guide, target.guide_bytes());
  clear_words<kThreads>(target.nodes, target.node_bytes());
}

/// The cells of a thread that goes through neighbours.
struct Chunk {
  std::uint32_t begin;
  std::uint32_t end;
};
template <int kThreads>
__device__ Chunk chunk_of(std::uint32_t count) {
  const std::uint32_t length = (count + kThreads - 1) / kThreads;
  const std::uint32_t begin = min(threadIdx.x * length, count);
  return {begin, min(begin + length, count)};
}

/// Reads lower bounds from global memory.
struct LowerIn {
  const std::uint32_t* lower;
  __device__ std::uint32_t operator()(std::uint32_t i) const { return lower[i]; }
};

/// Until the last pass an entry's `alias` is the surplus before its cell, its `split` what first_pass says.
template <int kThreads>
__device__ void write_alias(const Target& target) {
  using Scan = cub::BlockScan<std::uint64_t, kThreads>;
  __shared__ typename Scan::TempStorage storage;
  __shared__ std::uint32_t first_heavy[kThreads];  // of each chunk; `count` where it has none
  auto* entries = reinterpret_cast<sampling::detail::AliasEntry*>(target.nodes);
  const auto surplus_at = [entries](std::uint32_t i) { return static_cast<std::uint64_t>(entries[i].alias); };
  const sampling_alias::AliasColumns columns(LowerIn{target.lower}, surplus_at, target.count);
  const Chunk chunk = chunk_of<kThreads>(target.count);

  std::uint64_t surplus = 0;
  std::uint32_t heavy = target.count;
  for (std::uint32_t i = chunk.end; i-- > chunk.begin;) {
    surplus += columns.surplus(i);
    if (columns.heavy(i)) heavy = i;
  }
  first_heavy[threadIdx.x] = heavy;
  Scan(storage).ExclusiveSum(surplus, surplus);
  for (std::uint32_t i = chunk.begin; i < chunk.end; ++i) {
    entries[i].alias = static_cast<std::uint32_t>(surplus);
    surplus += columns.surplus(i);
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < target.count; i += kThreads)
    entries[i].split = columns.first_pass(i);
  __syncthreads();
  std::uint32_t next_heavy = target.count;
  for (unsigned thread = threadIdx.x + 1; thread < kThreads && next_heavy == target.count; ++thread) {
    next_heavy = first_heavy[thread];
  }
  for (std::uint32_t i = chunk.end; i-- > chunk.begin;) {
    entries[i] = columns.entry(i, entries[i].split, next_heavy);
    if (columns.heavy(i)) next_heavy = i;
  }
}

/// The block writes the nodes of kRadixForest4, kQuaternaryTree or kAlias of a distribution with mass.
template <int kThreads>
__device__ void write_other_nodes(const Target& target) {
  const LowerIn lower{target.lower};
  if (target.method == Method::kAlias) {
    write_alias<kThreads>(target);
  } else if (target.method == Method::kRadixForest4) {
    const sampling_trees::RadixForest<LowerIn> forest(lower, target.count, target.guide_size);
    auto* nodes = reinterpret_cast<sampling::detail::Node4*>(target.nodes);
    for (std::uint32_t j = threadIdx.x; j < target.count; j += kThreads) {
      nodes[j] =
          forest.has_node(j) ? sampling_trees::node_of_four(forest, lower, j) : sampling::detail::Node4{};
    }
  } else {
    auto* bounds = reinterpret_cast<std::uint32_t*>(target.nodes);
    for (std::uint32_t level = 1; level < sampling::quaternary_levels(target.count); ++level) {
      const std::uint32_t offset = sampling::detail::quaternary_offset(level);
      for (std::uint32_t e = threadIdx.x; e < 1u << 2 * level; e += kThreads) {
        bounds[offset + e] = sampling_trees::quaternary_bound(lower, target.count, level, e);
      }
    }
  }
}

}  // namespace cumulus::sampling_lookup
