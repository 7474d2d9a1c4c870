#pragma once

// Guide tables whose entries are a few cells or the roots of radix trees. cumulus/sampling.h is the header to
// include. C++17, host and CUDA device, no dependency.

#include <cstddef>
#include <cstdint>

#include "cumulus/distribution.h"
#include "cumulus/host_device.h"
#include "cumulus/table_format.h"

namespace cumulus::sampling::detail {

/// A guide entry of a radix forest: its kind in the upper two bits.
enum class RootKind : std::uint32_t {
  kCells = 0,     ///< Few cells: in kFirstBits the first, above them how many more may overlap.
  kTwoCells = 1,  ///< This cell and the one before; in tables of versions 2 and 3.
  kNode = 2,      ///< The root of a tree.
};
inline constexpr std::uint32_t kRootNumberBits = 30;
inline constexpr std::uint32_t kRootNumber = (std::uint32_t{1} << kRootNumberBits) - 1;
inline constexpr std::uint32_t kFirstBits = 27;
inline constexpr std::uint32_t kFirst = (std::uint32_t{1} << kFirstBits) - 1;

/// Whether a guide cell is kCells: `first` holds its smallest x, `first_of_next` that of the next one; behind
/// the last guide cell this is the last cell.
CUMULUS_HOST_DEVICE constexpr bool few_cells(std::uint32_t first, std::uint32_t first_of_next) {
  return first_of_next - first <= kMaxFurther;
}
CUMULUS_HOST_DEVICE constexpr std::uint32_t entry_of_cells(std::uint32_t first, std::uint32_t further) {
  return first | further << kFirstBits;
}
CUMULUS_HOST_DEVICE constexpr std::uint32_t entry_of_root(std::uint32_t node) {
  return node | static_cast<std::uint32_t>(RootKind::kNode) << kRootNumberBits;
}

/// What marks a child as a cell's number rather than a node's.
CUMULUS_HOST_DEVICE constexpr std::uint32_t leaf_bit(std::uint32_t count) {
  return count <= kNarrowCells ? 0x8000u : 0x80000000u;
}

/// Nodes that are visited at most, before all cells are bisected. So no tree, however deep, and none that a
/// stranger wrote, costs more than this and the logarithm of the number of cells.
inline constexpr int kMaxNodes = 16;

struct NodePair {
  std::uint32_t left;
  std::uint32_t right;
};

template <bool kNarrow>
CUMULUS_HOST_DEVICE inline NodePair load_pair(const Distribution& cells, std::uint32_t node) {
  if constexpr (kNarrow) {
    const auto packed = element<std::uint32_t>(cells.nodes, node);
    return {packed & 0xFFFFu, packed >> 16};
  } else {
    const auto packed = element<std::uint64_t>(cells.nodes, node);
    return {static_cast<std::uint32_t>(packed), static_cast<std::uint32_t>(packed >> 32)};
  }
}

/// Binary trees, of at most kNarrowCells cells or of more: node j goes left where x is below the lower bound
/// of cell j.
template <bool kNarrow>
CUMULUS_HOST_DEVICE inline std::uint32_t descend(const Distribution& cells, std::uint32_t root,
                                                 std::uint32_t x) {
  constexpr std::uint32_t kLeaf = leaf_bit(kNarrow ? kNarrowCells : kNarrowCells + 1);
  std::uint32_t node = root;
#if defined(__CUDA_ARCH__)
#pragma unroll 1  // 16 times this loop is more than the instruction cache holds
#endif
  for (int visited = 0; visited < kMaxNodes; ++visited) {
    const NodePair children = load_pair<kNarrow>(cells, node);
    const std::uint32_t child = x < cells.lower[node] ? children.left : children.right;
    node = smaller(child & (kLeaf - 1), cells.count - 1);
    if ((child & kLeaf) != 0) return node;
  }
  return find_cell(cells.lower, 0, cells.count - 1, x);
}

CUMULUS_HOST_DEVICE inline std::uint32_t find_in_tree(const Distribution& cells, std::uint32_t root,
                                                      std::uint32_t x) {
  return cells.count <= kNarrowCells ? descend<true>(cells, root, x) : descend<false>(cells, root, x);
}

/// The cells that an entry of kCells names; whatever that holds, cells of the distribution.
CUMULUS_HOST_DEVICE inline CellRange cells_of_entry(std::uint32_t entry, std::uint32_t count) {
  const std::uint32_t first = smaller(entry & kFirst, count - 1);
  return {first, smaller(first + (entry >> kFirstBits), count - 1)};
}

/// For an entry that is not kCells, one that is and has the cell of x. Before a tree is descended the three
/// cells about its root's bound are looked at, which most points are in: the root is in the middle.
CUMULUS_HOST_DEVICE inline std::uint32_t entry_for(const Distribution& cells, std::uint32_t entry,
                                                   std::uint32_t x) {
  const std::uint32_t named = smaller(entry & kRootNumber, cells.count - 1);
  if (static_cast<RootKind>(entry >> kRootNumberBits) == RootKind::kTwoCells) {
    return named > 0 ? entry_of_cells(named - 1, 1) : entry_of_cells(0, 0);
  }
  const std::uint32_t before = named > 0 ? named - 1 : 0;
  const std::uint32_t key = search_key(x);
  if (cells.lower[before] <= key && key < bound_at(cells, named + 2)) return entry_of_cells(before, 2);
  return entry_of_cells(find_in_tree(cells, named, x), 0);
}

CUMULUS_HOST_DEVICE inline Cell cell_in_forest(const Distribution& cells, std::uint32_t x) {
  auto entry = element<std::uint32_t>(cells.guide, guide_cell(cells.guide_size, x));
  if (entry >> kRootNumberBits != 0) entry = entry_for(cells, entry, x);
  const std::uint32_t key = search_key(x);
#if defined(__CUDA_ARCH__)
  if (cells.quads) {
    const std::uint32_t first = smaller(entry & kFirst, cells.count - 1);
    return cell_by_quads(cells, first, first + (entry >> kFirstBits) + 1, key);
  }
#endif
  const CellRange range = cells_of_entry(entry, cells.count);
  std::uint32_t index = range.first;
  std::uint32_t lower = cells.lower[index];
  std::uint32_t next = bound_at(cells, index + 1);
  while (index < range.last && next <= key) {
    lower = next;
    next = bound_at(cells, ++index + 1);
  }
  return found_between(index, lower, next);
}

}  // namespace cumulus::sampling::detail
