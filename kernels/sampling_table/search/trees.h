#pragma once

// What stands in a table beside its lower bounds: guide entries, trees, alias columns. Each entry and
// each node is a function of the lower bounds alone, so that all of them can be found at once, in any
// order, on either backend.

#include <cstdint>

#include "cumulus/sampling.h"

namespace cumulus::sampling_table {

using sampling::kEmptyTail;
using sampling::kWholeMass;
using sampling::Method;

/// Reads lower bounds from memory.
struct LowerIn {
  const std::uint32_t* lower;
  CUMULUS_HOST_DEVICE std::uint32_t operator()(std::uint32_t i) const { return lower[i]; }
};

/// The position of the highest bit that is set; `bits` is not 0.
CUMULUS_HOST_DEVICE inline std::uint32_t highest_bit(std::uint64_t bits) {
#if defined(__CUDA_ARCH__)
  return 63 - static_cast<std::uint32_t>(__clzll(static_cast<long long>(bits)));
#else
  return 63 - static_cast<std::uint32_t>(__builtin_clzll(bits));
#endif
}

/// How many guide entries begin below mass `bound`: the entries g whose smallest x,
/// ceil(g * 2^32 / guide_size), is less than it.
CUMULUS_HOST_DEVICE inline std::uint32_t guide_entries_below(std::uint64_t bound, std::uint32_t guide_size) {
  return bound == 0 ? 0 : static_cast<std::uint32_t>((bound - 1) * guide_size >> 32) + 1;
}

/// The guide cells whose smallest x lies in a cell with these bounds: begin to end - 1.
struct GuideRange {
  std::uint32_t begin;
  std::uint32_t end;
};
CUMULUS_HOST_DEVICE inline GuideRange guide_range(const sampling::detail::Cell& cell,
                                                  std::uint32_t guide_size) {
  if (cell.mass == 0) return {0, 0};
  return {guide_entries_below(cell.lower, guide_size),
          guide_entries_below(cell.lower + cell.mass, guide_size)};
}

/// The radix trees of a distribution (N. Binder and A. Keller, "Massively Parallel Construction of Radix Tree
/// Forests for the Efficient Sampling of Discrete or Piecewise Constant Probability Distributions", 2020). A
/// key is a lower bound in units of 2^-32 of a guide cell: its upper half is the guide cell, exactly, its
/// lower half the place within it. So trees end where guide cells end, and each halves its own guide cell.
/// The leaves are the cells with mass that overlap the guide cell; that which overlaps its left edge has the
/// edge for key, and needs no root of its own.
///
/// Where the paper merges nodes upwards with atomic exchanges, each node is found here from its own key, as
/// in T. Karras, "Maximizing Parallelism in the Construction of BVHs, Octrees, and k-d Trees", 2012: the node
/// between cells j - 1 and j covers the keys that agree with key j above the highest bit in which the two
/// differ. The trees are the same. Node j is that at the first cell with its lower bound, so that cell j - 1
/// always has mass.
template <class LowerAt>
class RadixForest {
 public:
  /// `lower_at(i)` is the stored lower bound of cell i, for i below `count`.
  CUMULUS_HOST_DEVICE RadixForest(const LowerAt& lower_at, std::uint32_t count, std::uint32_t guide_size)
      : lower_at_(lower_at), count_(count), guide_size_(guide_size) {}

  /// Whether there is a node between cells j - 1 and j: both overlap one guide cell, which has many.
  CUMULUS_HOST_DEVICE bool has_node(std::uint32_t j) const {
    if (j == 0) return false;
    const std::uint32_t lower = lower_at_(j);
    if (lower == kEmptyTail || lower_at_(j - 1) == lower) return false;
    const std::uint64_t before = static_cast<std::uint64_t>(lower - 1) * guide_size_;
    const std::uint64_t g = key(j) >> 32;
    if (before >> 32 != g) return false;
    std::uint32_t first = j - 1;
    while (key(first) >= behind_edge(g)) {
      --first;
      if (!sampling::detail::few_cells(first, j)) return true;
    }
    return has_tree(first, static_cast<std::uint32_t>(g));
  }

  /// Whether guide cell g, whose smallest x lies in cell `first`, has more than few cells.
  CUMULUS_HOST_DEVICE bool has_tree(std::uint32_t first, std::uint32_t g) const {
    const std::uint32_t many = first + sampling::detail::kMaxFurther + 1;
    return many < count_ && key(many) < behind_edge(std::uint64_t{g} + 1);
  }

  /// The children of node j, leaves marked by `leaf_bit`.
  CUMULUS_HOST_DEVICE sampling::detail::NodePair node(std::uint32_t j, std::uint32_t leaf_bit) const {
    bool root = false;
    return node(j, leaf_bit, root);
  }

  /// And whether the node is its tree's root.
  CUMULUS_HOST_DEVICE sampling::detail::NodePair node(std::uint32_t j, std::uint32_t leaf_bit,
                                                      bool& root) const {
    const std::uint64_t own = key(j);
    const std::uint64_t edge = own >> 32 << 32;
    const std::uint64_t previous = larger(key(j - 1), edge);
    const std::uint32_t bit = highest_bit(previous ^ own);
    const std::uint64_t begin = own >> bit >> 1 << bit << 1;
    const std::uint64_t end = begin + (std::uint64_t{2} << bit);
    const std::uint32_t last = first_from(j, end) - 1;
    root = begin == edge && (last + 1 == count_ || key(last + 1) - edge >= kWholeMass);
    return {left_child(j - 1, previous, begin, edge, leaf_bit),
            key(last) == own ? last | leaf_bit : split(j, own, last)};
  }

  /// The cell that holds the smallest x behind guide cell g, whose own lies in cell i; behind the last guide
  /// cell the last cell.
  CUMULUS_HOST_DEVICE std::uint32_t first_of_next(std::uint32_t i, std::uint32_t g) const {
    return first_from(i, behind_edge(std::uint64_t{g} + 1)) - 1;
  }

  /// The entry of guide cell g, whose smallest x lies in cell i.
  CUMULUS_HOST_DEVICE std::uint32_t root(std::uint32_t i, std::uint32_t g) const {
    using namespace sampling::detail;
    if (!has_tree(i, g)) return entry_of_cells(i, first_of_next(i, g) - i);
    const std::uint64_t edge = static_cast<std::uint64_t>(g) << 32;
    const std::uint32_t last = first_from(i, edge + kWholeMass) - 1;
    if (last == i) return entry_of_cells(i, 0);
    return entry_of_root(split(i, larger(key(i), edge), last));
  }

 private:
  CUMULUS_HOST_DEVICE static std::uint64_t larger(std::uint64_t a, std::uint64_t b) { return a > b ? a : b; }
  /// The last cell with a key below this is that which holds guide cell g's smallest x.
  CUMULUS_HOST_DEVICE std::uint64_t behind_edge(std::uint64_t g) const { return (g << 32) + guide_size_; }

  CUMULUS_HOST_DEVICE std::uint64_t key(std::uint32_t i) const {
    const std::uint32_t lower = lower_at_(i);
    return (lower == kEmptyTail ? kWholeMass : lower) * guide_size_;
  }

  /// The leaves are cell `last_cell`, whose key is `last`, and those before it with keys from `begin` on.
  CUMULUS_HOST_DEVICE std::uint32_t left_child(std::uint32_t last_cell, std::uint64_t last,
                                               std::uint64_t begin, std::uint64_t edge,
                                               std::uint32_t leaf_bit) const {
    if (last == edge) return last_cell | leaf_bit;  // it overlaps the edge
    std::uint32_t first_cell = first_down_to(last_cell, begin);
    std::uint64_t first = key(first_cell);
    if (begin == edge && first - edge >= guide_size_) {
      --first_cell;  // no cell begins at the edge: that before the first key overlaps it
      first = edge;
    }
    return first == last ? last_cell | leaf_bit : split(first_cell, first, last_cell);
  }

  /// The topmost node between cell `first`, whose key is `first_key`, and cell `last`: where the highest bit
  /// in which their keys differ begins to be set.
  CUMULUS_HOST_DEVICE std::uint32_t split(std::uint32_t first, std::uint64_t first_key,
                                          std::uint32_t last) const {
    const std::uint64_t last_key = key(last);
    const std::uint32_t bit = highest_bit(first_key ^ last_key);
    return bisect(first, last, last_key >> bit << bit);
  }

  /// The first cell in (low, high] with a key of at least `bound`; that of low is below it, that of high is
  /// not.
  CUMULUS_HOST_DEVICE std::uint32_t bisect(std::uint32_t low, std::uint32_t high, std::uint64_t bound) const {
    while (high - low > 1) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (key(middle) >= bound) {
        high = middle;
      } else {
        low = middle;
      }
    }
    return high;
  }

  /// The first cell after i with a key of at least `bound`, or `count`; that of i is below it. In growing
  /// steps: most trees are small.
  CUMULUS_HOST_DEVICE std::uint32_t first_from(std::uint32_t i, std::uint64_t bound) const {
    std::uint32_t low = i;
    for (std::uint32_t step = 1;; step *= 2) {
      if (step >= count_ - low) {
        if (key(count_ - 1) < bound) return count_;
        return bisect(low, count_ - 1, bound);
      }
      if (key(low + step) >= bound) return bisect(low, low + step, bound);
      low += step;
    }
  }

  /// The first cell up to i with a key of at least `bound`, which that of i is.
  CUMULUS_HOST_DEVICE std::uint32_t first_down_to(std::uint32_t i, std::uint64_t bound) const {
    std::uint32_t high = i;
    for (std::uint32_t step = 1;; step *= 2) {
      if (step > high) return key(0) >= bound ? 0 : bisect(0, high, bound);
      if (key(high - step) < bound) return bisect(high - step, high, bound);
      high -= step;
    }
  }

  LowerAt lower_at_;
  std::uint32_t count_;
  std::uint32_t guide_size_;
};

/// The entry of guide cell g, whose smallest x lies in cell i.
template <class LowerAt>
CUMULUS_HOST_DEVICE std::uint64_t guide_entry(Method method, const RadixForest<LowerAt>& forest,
                                              std::uint32_t i, std::uint32_t g, std::uint32_t count) {
  if (method == Method::kRadixForest) return forest.root(i, g);
  if (method != Method::kBalancedForest) return i;
  return i | std::uint64_t{forest.first_of_next(i, g)} << (count <= sampling::kNarrowCells ? 16 : 32);
}

/// The guide entries that a cell writes: `inner` to all of `range` but its last, which gets `last`.
struct GuideFill {
  GuideRange range;
  std::uint64_t inner;
  std::uint64_t last;
};

template <class LowerAt>
CUMULUS_HOST_DEVICE GuideFill guide_fill(Method method, const RadixForest<LowerAt>& forest,
                                         const sampling::detail::Cell& cell, std::uint32_t count,
                                         std::uint32_t guide_size) {
  const GuideRange range = guide_range(cell, guide_size);
  if (range.begin == range.end) return {range, 0, 0};
  return {range, guide_entry(method, forest, cell.index, range.begin, count),
          guide_entry(method, forest, cell.index, range.end - 1, count)};
}

}  // namespace cumulus::sampling_table
