#pragma once

// Guides, trees and alias columns of one distribution, on the CPU.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cumulus/sampling.h"
#include "kernels/sampling_table/sampling_table_alias.h"
#include "kernels/sampling_table/sampling_table_target.h"
#include "kernels/sampling_table/sampling_table_trees.h"

namespace cumulus::sampling_lookup {

using sampling::Method;
using sampling_layout::Target;

/// Reads lower bounds from memory.
struct LowerIn {
  const std::uint32_t* lower;
  std::uint32_t operator()(std::uint32_t i) const { return lower[i]; }
};
using Forest = sampling_trees::RadixForest<LowerIn>;

inline Forest forest_of(const Target& target) {
  return {LowerIn{target.lower}, target.count, target.guide_size};
}

/// The guide entries whose smallest x lies in cells [first, last).
template <class Entry>
void write_guide(const Target& target, std::uint32_t first, std::uint32_t last) {
  const Forest forest = forest_of(target);
  auto* guide = reinterpret_cast<Entry*>(target.guide);
  for (std::uint32_t i = first; i < last; ++i) {
    const auto cell = sampling::detail::cell_at(target.lower, target.count, i);
    const auto fill =
        sampling_trees::guide_fill(target.method, forest, cell, target.count, target.guide_size);
    if (fill.range.begin == fill.range.end) continue;
    std::fill(guide + fill.range.begin, guide + fill.range.end - 1, static_cast<Entry>(fill.inner));
    guide[fill.range.end - 1] = static_cast<Entry>(fill.last);
  }
}

inline void write_guide(const Target& target, std::uint32_t first, std::uint32_t last) {
  switch (sampling::guide_entry_bytes(target.method, target.count)) {
    case 2:
      return write_guide<std::uint16_t>(target, first, last);
    case 4:
      return write_guide<std::uint32_t>(target, first, last);
    default:
      return write_guide<std::uint64_t>(target, first, last);
  }
}

template <class Word>
void write_pairs(const Target& target, std::uint32_t first, std::uint32_t last) {
  const Forest forest = forest_of(target);
  const std::uint32_t leaf = sampling::detail::leaf_bit(target.count);
  auto* nodes = reinterpret_cast<Word*>(target.nodes);
  for (std::uint32_t j = first; j < last; ++j) {
    nodes[j] = 0;
    if (!forest.has_node(j)) continue;
    const auto node = forest.node(j, leaf);
    nodes[j] = static_cast<Word>(node.left | std::uint64_t{node.right} << 4 * sizeof(Word));
  }
}

inline void write_nodes_of_four(const Target& target, std::uint32_t first, std::uint32_t last) {
  const Forest forest = forest_of(target);
  auto* nodes = reinterpret_cast<sampling::detail::Node4*>(target.nodes);
  for (std::uint32_t j = first; j < last; ++j) {
    nodes[j] = forest.has_node(j) ? sampling_trees::node_of_four(forest, LowerIn{target.lower}, j)
                                  : sampling::detail::Node4{};
  }
}

/// `loop(count, body)` calls body(first, last) on parts of [0, count), whether one after another or at once.
template <class Loop>
void write_quaternary_tree(const Target& target, const Loop& loop) {
  const LowerIn lower{target.lower};
  for (std::uint32_t level = 1; level < sampling::quaternary_levels(target.count); ++level) {
    auto* bounds =
        reinterpret_cast<std::uint32_t*>(target.nodes) + sampling::detail::quaternary_offset(level);
    loop(std::uint32_t{1} << 2 * level, [&](std::uint32_t first, std::uint32_t last) {
      for (std::uint32_t e = first; e < last; ++e) {
        bounds[e] = sampling_trees::quaternary_bound(lower, target.count, level, e);
      }
    });
  }
}

/// Until the last pass an entry's `alias` is the surplus before its cell, its `split` what first_pass says.
template <class Loop>
void write_alias(const Target& target, const Loop& loop) {
  auto* entries = reinterpret_cast<sampling::detail::AliasEntry*>(target.nodes);
  const auto surplus_at = [entries](std::uint32_t i) { return std::uint64_t{entries[i].alias}; };
  const sampling_alias::AliasColumns columns(LowerIn{target.lower}, surplus_at, target.count);
  std::uint64_t surplus = 0;
  for (std::uint32_t i = 0; i < target.count; ++i) {
    entries[i].alias = static_cast<std::uint32_t>(surplus);
    surplus += columns.surplus(i);
  }
  loop(target.count, [&](std::uint32_t first, std::uint32_t last) {
    for (std::uint32_t i = first; i < last; ++i) entries[i].split = columns.first_pass(i);
  });
  std::uint32_t next_heavy = target.count;
  for (std::uint32_t i = target.count; i-- > 0;) {
    entries[i] = columns.entry(i, entries[i].split, next_heavy);
    if (columns.heavy(i)) next_heavy = i;
  }
}

template <class Loop>
void write_nodes(const Target& target, const Loop& loop) {
  const bool narrow = target.count <= sampling::kNarrowCells;
  switch (target.method) {
    case Method::kRadixForest:
      return loop(target.count, [&](std::uint32_t first, std::uint32_t last) {
        return narrow ? write_pairs<std::uint32_t>(target, first, last)
                      : write_pairs<std::uint64_t>(target, first, last);
      });
    case Method::kRadixForest4:
      return loop(target.count,
                  [&](std::uint32_t first, std::uint32_t last) { write_nodes_of_four(target, first, last); });
    case Method::kQuaternaryTree:
      return write_quaternary_tree(target, loop);
    case Method::kAlias:
      return write_alias(target, loop);
    default:
      return;
  }
}

/// All that the method keeps beside the lower bounds; zeros where there is no mass.
template <class Loop>
void write_lookup(const Target& target, const Loop& loop) {
  if (target.lower[0] == sampling::kEmptyTail) {
    std::fill_n(target.guide, target.guide_bytes(), std::byte{0});
    std::fill_n(target.nodes, target.node_bytes(), std::byte{0});
    return;
  }
  if (sampling::has_guide(target.method)) {
    loop(target.count, [&](std::uint32_t first, std::uint32_t last) { write_guide(target, first, last); });
  }
  write_nodes(target, loop);
}

}  // namespace cumulus::sampling_lookup
