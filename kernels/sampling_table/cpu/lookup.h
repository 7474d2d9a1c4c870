#pragma once

// Guides, trees and alias columns of one distribution, on the CPU.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cumulus/sampling.h"
#include "kernels/sampling_table/cpu/alias.h"
#include "kernels/sampling_table/format/target.h"
#include "kernels/sampling_table/search/trees.h"

namespace cumulus::sampling_table {

using sampling::Method;

/// The first guide cell whose smallest x is not before a cell with this stored lower bound; of kEmptyTail
/// the number of guide cells.
inline std::int64_t first_entry_from(std::uint32_t lower, std::int64_t guide_size) {
  return ((std::int64_t{lower} - 1) * guide_size >> 32) + 1;  // the shift makes -1 of less than 0
}

/// The guide of cutpoints: each cell notes itself where it begins, the last of those that begin together
/// stays; what lies between belongs to the one before. No branch depends on the weights.
template <class Entry>
void write_cutpoints(const Target& target) {
  auto* const guide = reinterpret_cast<Entry*>(target.guide);
  const std::uint32_t* const lower = target.lower;
  const std::uint32_t count = target.count;
  const std::int64_t size = target.guide_size;
  std::fill_n(guide, size, Entry{0});
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::int64_t begin = first_entry_from(lower[i], size);
    if (begin < size) guide[begin] = static_cast<Entry>(i);
  }
  Entry cell = 0;
  for (std::int64_t g = 0; g < size; ++g) {
    cell = std::max(cell, guide[g]);
    guide[g] = cell;
  }
}

/// The guide of kBalancedForest: each cell notes itself where it begins, as for cutpoints, and a guide cell's
/// last is the first of the one behind it.
template <class Number>
void write_first_and_last_cells(const Target& target) {
  auto* const guide = reinterpret_cast<Number*>(target.guide);
  const std::int64_t size = target.guide_size;
  std::fill_n(guide, 2 * size, Number{0});
  for (std::uint32_t i = 0; i < target.count; ++i) {
    const std::int64_t begin = first_entry_from(target.lower[i], size);
    if (begin < size) guide[2 * begin] = static_cast<Number>(i);
  }
  Number first = 0;
  for (std::int64_t g = 0; g < size; ++g) {
    first = std::max(first, guide[2 * g]);
    guide[2 * g] = first;
    if (g > 0) guide[2 * g - 1] = first;
  }
  guide[2 * size - 1] = static_cast<Number>(target.count - 1);
}

/// Guide and nodes of a radix forest in one pass over the cells, which meet the trees' nodes from left to
/// right: a node stays open, on a stack, until one comes whose keys differ in a higher bit. `set_node(j,
/// left, right)` sees each node once; `leaf_bit` marks children that are cells. Guide cells of few cells have
/// no nodes.
template <class SetNode>
class ForestWriter {
 public:
  ForestWriter(const Target& target, std::uint32_t leaf_bit, const SetNode& set_node)
      : target_(target),
        guide_(reinterpret_cast<std::uint32_t*>(target.guide)),
        set_node_(set_node),
        leaf_bit_(leaf_bit) {}

  void write() {
    std::uint32_t i = 0;
    while (target_.lower[i] == lower_after(i)) ++i;  // to the first cell with mass
    begin_with(i, 0);
    for (++i; i < target_.count && target_.lower[i] != sampling::kEmptyTail; ++i) {
      const std::uint32_t first = i;  // of those that begin together only the last has mass
      while (target_.lower[i] == lower_after(i)) ++i;
      add(first, i);
    }
    finish_up_to(target_.guide_size, target_.count - 1);
  }

 private:
  struct Open {
    std::uint64_t difference;
    std::uint32_t node;
    std::uint32_t left;
  };
  /// Differences grow from the top of the stack down, in their highest bits, of 32.
  static constexpr std::uint32_t kMaxOpen = 33;

  std::uint32_t lower_after(std::uint32_t i) const {
    return i + 1 < target_.count ? target_.lower[i + 1] : sampling::kEmptyTail;
  }

  /// The cells from `first` on begin together; `cell`, the last of them, has mass.
  void add(std::uint32_t first, std::uint32_t cell) {
    const std::uint64_t key = std::uint64_t{target_.lower[cell]} * target_.guide_size;
    const bool at_edge = static_cast<std::uint32_t>(key) < target_.guide_size;  // no x of the cell before it
    finish_up_to(static_cast<std::uint32_t>(key >> 32), at_edge ? cell : last_cell_);
    if (at_edge) return begin_with(cell, key);
    if (has_tree_) push(first, key);
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
    has_tree_ = forest_.has_tree(cell, next_entry_);
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
    set_node_(top.node, top.left, right);
    return top.node;
  }

  /// Writes the entries of the guide cells up to g, the first of which has the open tree. `first_of_g` holds
  /// the smallest x of g.
  void finish_up_to(std::uint32_t g, std::uint32_t first_of_g) {
    if (next_entry_ == g) return;
    std::uint32_t root = last_cell_ | leaf_bit_;
    while (open_ > 0) root = close(root);
    const bool one_only = next_entry_ + 1 < g;
    guide_[next_entry_++] = entry(root, one_only ? last_cell_ : first_of_g);
    leaves_ = 1;
    first_cell_ = last_cell_;
    while (next_entry_ + 1 < g) guide_[next_entry_++] = entry(root, last_cell_);
    if (one_only) guide_[next_entry_++] = entry(root, first_of_g);
    begin_with(last_cell_, std::uint64_t{g} << 32);  // it reaches in from the left
  }

  /// Of a guide cell before one whose smallest x `first_of_next` holds.
  std::uint32_t entry(std::uint32_t root, std::uint32_t first_of_next) const {
    using namespace sampling::detail;
    if (few_cells(first_cell_, first_of_next))
      return entry_of_cells(first_cell_, first_of_next - first_cell_);
    return leaves_ == 1 ? entry_of_cells(first_cell_, 0) : entry_of_root(root);
  }

  const Target& target_;
  RadixForest<LowerIn> forest_{LowerIn{target_.lower}, target_.count, target_.guide_size};
  std::uint32_t* guide_;
  SetNode set_node_;
  std::uint32_t leaf_bit_;
  std::uint32_t next_entry_ = 0;  // that of the guide cell at hand
  std::uint32_t first_cell_ = 0;  // of its leaves
  std::uint32_t last_cell_ = 0;
  std::uint64_t last_key_ = 0;
  std::uint32_t leaves_ = 1;
  bool has_tree_ = false;
  Open stack_[kMaxOpen] = {};
  std::uint32_t open_ = 0;
};

/// kRadixForest, a node in a Word.
template <class Word>
void write_forest(const Target& target) {
  auto* const nodes = reinterpret_cast<Word*>(target.nodes);
  std::fill_n(nodes, target.count, Word{0});
  const auto set_node = [nodes](std::uint32_t j, std::uint32_t left, std::uint32_t right) {
    nodes[j] = static_cast<Word>(left | std::uint64_t{right} << 4 * sizeof(Word));
  };
  ForestWriter(target, sampling::detail::leaf_bit(target.count), set_node).write();
}

/// All that the method keeps beside the lower bounds; zeros where there is no mass.
inline void write_lookup(const Target& target) {
  if (target.lower[0] == sampling::kEmptyTail) {
    std::fill_n(target.guide, target.guide_bytes(), std::byte{0});
    std::fill_n(target.nodes, target.node_bytes(), std::byte{0});
    return;
  }
  const bool narrow = target.count <= sampling::kNarrowCells;
  switch (target.method) {
    case Method::kRadixForest:
      return narrow ? write_forest<std::uint32_t>(target) : write_forest<std::uint64_t>(target);
    case Method::kBalancedForest:
      return narrow ? write_first_and_last_cells<std::uint16_t>(target)
                    : write_first_and_last_cells<std::uint32_t>(target);
    case Method::kCutpointBinary:
      return narrow ? write_cutpoints<std::uint16_t>(target) : write_cutpoints<std::uint32_t>(target);
    case Method::kAlias:
      return write_alias(target);
    case Method::kBinarySearch:
      return;
  }
}

}  // namespace cumulus::sampling_table
