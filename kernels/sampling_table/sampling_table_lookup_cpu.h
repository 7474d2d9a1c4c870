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

/// A cell's stored lower bound as mass; that of the cell behind the last is all of it.
inline std::uint64_t mass_before(const Target& target, std::uint32_t i) {
  const std::uint32_t lower = i < target.count ? target.lower[i] : sampling::kEmptyTail;
  return lower == sampling::kEmptyTail ? sampling::kWholeMass : lower;
}

/// The guide of cutpoints: each cell notes itself where it begins, the last of those that begin together
/// stays; what lies between belongs to the one before. No branch depends on the weights.
template <class Entry>
void write_cutpoints(const Target& target) {
  auto* guide = reinterpret_cast<Entry*>(target.guide);
  std::fill_n(guide, target.guide_size, Entry{0});
  for (std::uint32_t i = 0; i < target.count; ++i) {
    const std::uint32_t begin =
        sampling_trees::guide_entries_below(mass_before(target, i), target.guide_size);
    if (begin < target.guide_size) guide[begin] = static_cast<Entry>(i);
  }
  for (std::uint32_t g = 1; g < target.guide_size; ++g) guide[g] = std::max(guide[g], guide[g - 1]);
}

/// Guide and nodes of kRadixForest in one pass over the cells, which meet the trees' nodes from left to
/// right: a node stays open, on a stack, until one comes whose keys differ in a higher bit.
template <class Word>
class ForestWriter {
 public:
  explicit ForestWriter(const Target& target)
      : target_(target),
        guide_(reinterpret_cast<std::uint32_t*>(target.guide)),
        nodes_(reinterpret_cast<Word*>(target.nodes)),
        leaf_bit_(sampling::detail::leaf_bit(target.count)) {}

  void write() {
    std::fill_n(nodes_, target_.count, Word{0});
    std::uint32_t i = 0;
    while (target_.lower[i] == lower_behind(i)) ++i;  // to the first cell with mass
    begin_with(i, 0);
    for (++i; i < target_.count && target_.lower[i] != sampling::kEmptyTail; ++i) {
      const std::uint32_t first = i;  // of those that begin together only the last has mass
      while (target_.lower[i] == lower_behind(i)) ++i;
      add(first, i);
    }
    finish_up_to(target_.guide_size);
  }

 private:
  struct Open {
    std::uint64_t difference;
    std::uint32_t node;
    std::uint32_t left;
  };
  /// Differences grow from the top of the stack down, in their highest bits, of 32.
  static constexpr std::uint32_t kMostOpen = 33;

  std::uint32_t lower_behind(std::uint32_t i) const {
    return i + 1 < target_.count ? target_.lower[i + 1] : sampling::kEmptyTail;
  }

  /// The cells from `first` on begin together; `cell`, the last of them, has mass.
  void add(std::uint32_t first, std::uint32_t cell) {
    const std::uint64_t key = std::uint64_t{target_.lower[cell]} * target_.guide_size;
    const bool at_edge = static_cast<std::uint32_t>(key) < target_.guide_size;  // no x of the cell before it
    finish_up_to(static_cast<std::uint32_t>(key >> 32));
    if (at_edge) return begin_with(cell, key);
    push(first, key);
    last_cell_ = cell;
    last_key_ = key;
    ++leaves_;
  }

  /// The guide cell at hand has this leaf first.
  void begin_with(std::uint32_t cell, std::uint64_t key) {
    first_cell_ = cell;
    last_cell_ = cell;
    last_key_ = key;
    leaves_ = 1;
  }

  void push(std::uint32_t node, std::uint64_t key) {
    const std::uint64_t difference = last_key_ ^ key;
    std::uint32_t left = last_cell_ | leaf_bit_;
    while (open_ > 0 && stack_[open_ - 1].difference < difference) left = close(left);
    stack_[open_++] = {difference, node, left};
  }

  /// Gives the topmost open node its right child, and returns it.
  std::uint32_t close(std::uint32_t right) {
    const Open& top = stack_[--open_];
    nodes_[top.node] = static_cast<Word>(top.left | std::uint64_t{right} << 4 * sizeof(Word));
    return top.node;
  }

  /// Writes the entries of the guide cells up to g, the first of which has the open tree.
  void finish_up_to(std::uint32_t g) {
    using sampling::detail::RootKind;
    if (next_entry_ == g) return;
    std::uint32_t root = last_cell_ | leaf_bit_;
    while (open_ > 0) root = close(root);
    guide_[next_entry_++] = entry(root);
    const std::uint32_t alone = pack(RootKind::kOneCell, last_cell_);
    while (next_entry_ < g) guide_[next_entry_++] = alone;
    begin_with(last_cell_, std::uint64_t{g} << 32);  // it reaches in from the left
  }

  std::uint32_t entry(std::uint32_t root) const {
    using sampling::detail::RootKind;
    if (leaves_ == 1) return pack(RootKind::kOneCell, last_cell_);
    if (leaves_ == 2 && last_cell_ == first_cell_ + 1) return pack(RootKind::kTwoCells, last_cell_);
    return pack(RootKind::kNode, root);
  }
  static std::uint32_t pack(sampling::detail::RootKind kind, std::uint32_t number) {
    return static_cast<std::uint32_t>(kind) << sampling::detail::kRootNumberBits | number;
  }

  const Target& target_;
  std::uint32_t* guide_;
  Word* nodes_;
  std::uint32_t leaf_bit_;
  std::uint32_t next_entry_ = 0;  // that of the guide cell at hand
  std::uint32_t first_cell_ = 0;  // of its leaves
  std::uint32_t last_cell_ = 0;
  std::uint64_t last_key_ = 0;
  std::uint32_t leaves_ = 1;
  Open stack_[kMostOpen] = {};
  std::uint32_t open_ = 0;
};

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
  switch (target.method) {
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

/// Those that are fastest from left to right.
inline bool write_in_one_pass(const Target& target) {
  const bool narrow = target.count <= sampling::kNarrowCells;
  switch (target.method) {
    case Method::kRadixForest:
      narrow ? ForestWriter<std::uint32_t>(target).write() : ForestWriter<std::uint64_t>(target).write();
      return true;
    case Method::kCutpointBinary:
    case Method::kCutpointLinear:
      narrow ? write_cutpoints<std::uint16_t>(target) : write_cutpoints<std::uint32_t>(target);
      return true;
    default:
      return false;
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
  if (write_in_one_pass(target)) return;
  if (sampling::has_guide(target.method)) {
    loop(target.count, [&](std::uint32_t first, std::uint32_t last) { write_guide(target, first, last); });
  }
  write_nodes(target, loop);
}

}  // namespace cumulus::sampling_lookup
