#pragma once

// Guides, trees and alias columns of one distribution, on the CPU.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>

#include "cumulus/sampling.h"
#include "kernels/sampling_table/cpu/alias.h"
#include "kernels/sampling_table/cpu/long_loop.h"
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
class CutpointWriter {
 public:
  explicit CutpointWriter(const Target& target)
      : target_(target), clear_(target.guide_size), note_(target.count), spread_(target.guide_size) {}

  bool run(const Slice* slice) {
    auto* const guide = reinterpret_cast<Entry*>(target_.guide);
    const auto clear = [&](std::int64_t first, std::int64_t end) {
      std::fill(guide + first, guide + end, Entry{0});
    };
    const auto note = [&](std::int64_t first, std::int64_t end) {
      const std::int64_t size = target_.guide_size;
      for (std::int64_t i = first; i < end; ++i) {
        const std::int64_t begin = first_entry_from(target_.lower[i], size);
        if (begin < size) guide[begin] = static_cast<Entry>(i);
      }
    };
    const auto spread = [&](std::int64_t first, std::int64_t end) {
      Entry cell = cell_;
      for (std::int64_t g = first; g < end; ++g) {
        cell = std::max(cell, guide[g]);
        guide[g] = cell;
      }
      cell_ = cell;
    };
    return clear_.run(slice, clear) && note_.run(slice, note) && spread_.run(slice, spread);
  }

 private:
  Target target_;
  LongLoop clear_, note_, spread_;
  Entry cell_ = 0;
};

/// The guide of kBalancedForest: each cell notes itself where it begins, as for cutpoints, and a guide cell's
/// last is the first of the one behind it.
template <class Number>
class FirstAndLastWriter {
 public:
  explicit FirstAndLastWriter(const Target& target)
      : target_(target), clear_(2 * target.guide_size), note_(target.count), spread_(target.guide_size) {}

  bool run(const Slice* slice) {
    auto* const guide = reinterpret_cast<Number*>(target_.guide);
    const std::int64_t size = target_.guide_size;
    const auto clear = [&](std::int64_t first, std::int64_t end) {
      std::fill(guide + first, guide + end, Number{0});
    };
    const auto note = [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t i = first; i < end; ++i) {
        const std::int64_t begin = first_entry_from(target_.lower[i], size);
        if (begin < size) guide[2 * begin] = static_cast<Number>(i);
      }
    };
    const auto spread = [&](std::int64_t begin, std::int64_t end) {
      Number first = first_;
      for (std::int64_t g = begin; g < end; ++g) {
        first = std::max(first, guide[2 * g]);
        guide[2 * g] = first;
        if (g > 0) guide[2 * g - 1] = first;
      }
      first_ = first;
    };
    if (!clear_.run(slice, clear) || !note_.run(slice, note) || !spread_.run(slice, spread)) return false;
    guide[2 * size - 1] = static_cast<Number>(target_.count - 1);
    return true;
  }

 private:
  Target target_;
  LongLoop clear_, note_, spread_;
  Number first_ = 0;
};

/// Guide and nodes of a radix forest in one pass over the cells, which meet the trees' nodes from left to
/// right: a node stays open, on a stack, until one comes whose keys differ in a higher bit. `set_node(j,
/// left, right)` sees each node once; `leaf_bit` marks children that are cells. Guide cells of few cells have
/// no nodes.
template <class SetNode>
class ForestTrees {
 public:
  ForestTrees(const Target& target, const SetNode& set_node)
      : target_(target),
        guide_(reinterpret_cast<std::uint32_t*>(target.guide)),
        set_node_(set_node),
        leaf_bit_(sampling::detail::leaf_bit(target.count)) {}

  bool run(const Slice* slice) {
    if (next_cell_ == 0) begin();
    while (has_cells()) {
      const std::uint32_t end = next_cell_ + std::min(kCellsAtOnce, target_.count - next_cell_);
      std::uint32_t i = next_cell_;
      for (; i < end && target_.lower[i] != sampling::kEmptyTail; ++i) {
        const std::uint32_t first = i;  // of those that begin together only the last has mass
        while (target_.lower[i] == lower_after(i)) ++i;
        add(first, i);
      }
      next_cell_ = i;
      if (has_cells() && slice != nullptr && slice->over()) return false;
    }
    finish_up_to(target_.guide_size, target_.count - 1);
    return true;
  }

 private:
  struct Open {
    std::uint64_t difference;
    std::uint32_t node;
    std::uint32_t left;
  };
  /// Differences grow from the top of the stack down, in their highest bits, of 32.
  static constexpr std::uint32_t kMaxOpen = 33;
  static constexpr std::uint32_t kCellsAtOnce = LongLoop::kAtOnce;

  void begin() {
    std::uint32_t i = 0;
    while (target_.lower[i] == lower_after(i)) ++i;  // to the first cell with mass
    begin_with(i, 0);
    next_cell_ = i + 1;
  }
  bool has_cells() const {
    return next_cell_ < target_.count && target_.lower[next_cell_] != sampling::kEmptyTail;
  }

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

  Target target_;
  RadixForest<LowerIn> forest_{LowerIn{target_.lower}, target_.count, target_.guide_size};
  std::uint32_t* guide_;
  SetNode set_node_;
  std::uint32_t leaf_bit_;
  std::uint32_t next_cell_ = 0;
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
class ForestWriter {
 public:
  explicit ForestWriter(const Target& target)
      : nodes_(reinterpret_cast<Word*>(target.nodes)),
        clear_(target.count),
        trees_(target, SetNode{nodes_}) {}

  bool run(const Slice* slice) {
    const auto clear = [&](std::int64_t first, std::int64_t end) {
      std::fill(nodes_ + first, nodes_ + end, Word{0});
    };
    return clear_.run(slice, clear) && trees_.run(slice);
  }

 private:
  struct SetNode {
    Word* nodes;
    void operator()(std::uint32_t j, std::uint32_t left, std::uint32_t right) const {
      nodes[j] = static_cast<Word>(left | std::uint64_t{right} << 4 * sizeof(Word));
    }
  };

  Word* nodes_;
  LongLoop clear_;
  ForestTrees<SetNode> trees_;
};

/// Of a distribution without mass, or a method that keeps nothing.
class ZeroWriter {
 public:
  explicit ZeroWriter(const Target& target)
      : target_(target),
        guide_(static_cast<std::int64_t>(target.guide_bytes())),
        nodes_(static_cast<std::int64_t>(target.node_bytes())) {}

  bool run(const Slice* slice) {
    const auto clear = [](std::byte* bytes) {
      return [bytes](std::int64_t first, std::int64_t end) {
        std::fill(bytes + first, bytes + end, std::byte{0});
      };
    };
    return guide_.run(slice, clear(target_.guide)) && nodes_.run(slice, clear(target_.nodes));
  }

 private:
  Target target_;
  LongLoop guide_, nodes_;
};

/// Calls use<Writer>() with the type that writes all that the method keeps beside the lower bounds.
/// Writer(target) .run(slice) goes on from where it was, to the end or until `slice`, if there is one, is
/// over, and returns whether it has come to the end.
template <class Use>
void with_lookup_writer(const Target& target, const Use& use) {
  if (target.lower[0] == sampling::kEmptyTail) return use.template operator()<ZeroWriter>();
  const bool narrow = target.count <= sampling::kNarrowCells;
  switch (target.method) {
    case Method::kRadixForest:
      return narrow ? use.template operator()<ForestWriter<std::uint32_t>>()
                    : use.template operator()<ForestWriter<std::uint64_t>>();
    case Method::kBalancedForest:
      return narrow ? use.template operator()<FirstAndLastWriter<std::uint16_t>>()
                    : use.template operator()<FirstAndLastWriter<std::uint32_t>>();
    case Method::kCutpointBinary:
      return narrow ? use.template operator()<CutpointWriter<std::uint16_t>>()
                    : use.template operator()<CutpointWriter<std::uint32_t>>();
    case Method::kAlias:
      return use.template operator()<AliasWriter>();
    case Method::kBinarySearch:
      return use.template operator()<ZeroWriter>();
  }
}

/// All that the method keeps beside the lower bounds; zeros where there is no mass.
inline void write_lookup(const Target& target) {
  with_lookup_writer(target, [&]<class Writer>() { Writer(target).run(nullptr); });
}

/// The same in several slices: goes on at each call, and returns whether it has come to the end.
inline std::function<bool(const Slice&)> long_lookup(const Target& target) {
  std::function<bool(const Slice&)> run;
  with_lookup_writer(target, [&]<class Writer>() {
    run = [writer = std::make_shared<Writer>(target)](const Slice& slice) { return writer->run(&slice); };
  });
  return run;
}

}  // namespace cumulus::sampling_table
