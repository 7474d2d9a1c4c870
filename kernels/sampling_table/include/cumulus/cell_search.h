#pragma once

// How a sampling table finds the cell of a point, by each of its methods. cumulus/sampling.h is the
// header to include. C++17, host and CUDA device, no dependency.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cumulus/fast_arithmetic.h"
#include "cumulus/host_device.h"
#include "cumulus/table_format.h"

namespace cumulus::sampling::detail {

struct Cell {
  std::uint32_t index = 0;
  std::uint32_t lower = 0;
  std::uint64_t mass = 0;  ///< In units of 2^-32.
};

/// A cell, and where within it the point lies: what is before it and what is behind, both in (0, 1).
struct Located {
  Cell cell;
  float fraction = 0;
  float rest = 0;  ///< 1 - fraction, exact also where it is small.
};

/// One distribution of a table: a row, or a marginal. `guide` and `nodes` are null where the method has none.
struct Distribution {
  const std::uint32_t* lower = nullptr;
  std::uint32_t count = 0;
  std::uint32_t guide_size = 0;
  const unsigned char* guide = nullptr;
  const unsigned char* nodes = nullptr;
};

inline constexpr float kBelowOne = 0.99999994F;  // the largest float below 1

CUMULUS_HOST_DEVICE inline std::uint32_t smaller(std::uint32_t a, std::uint32_t b) { return a < b ? a : b; }

template <class T>
CUMULUS_HOST_DEVICE T element(const unsigned char* section, std::size_t i) {
  return reinterpret_cast<const T*>(section)[i];
}

// --- cells -----------------------------------------------------------------------------------------------

/// No cell with mass begins at kEmptyTail: the last x belongs to the cell of the last but one.
CUMULUS_HOST_DEVICE inline std::uint32_t search_key(std::uint32_t x) {
  return x == kEmptyTail ? kEmptyTail - 1 : x;
}

/// The last cell of [first, last] whose lower bound is at most x, or first.
CUMULUS_HOST_DEVICE inline std::uint32_t find_cell(const std::uint32_t* lower, std::uint32_t first,
                                                   std::uint32_t last, std::uint32_t x) {
  const std::uint32_t key = search_key(x);
  while (first < last) {
    const std::uint32_t middle = first + (last - first + 1) / 2;
    if (lower[middle] <= key) {
      first = middle;
    } else {
      last = middle - 1;
    }
  }
  return first;
}

/// The same, one cell after another.
CUMULUS_HOST_DEVICE inline std::uint32_t walk_to_cell(const std::uint32_t* lower, std::uint32_t first,
                                                      std::uint32_t last, std::uint32_t x) {
  const std::uint32_t key = search_key(x);
  while (first < last && lower[first + 1] <= key) ++first;
  return first;
}

/// The cell with this stored lower bound, whose right neighbour's is `next` (kEmptyTail: there is none).
CUMULUS_HOST_DEVICE inline Cell cell_between(std::uint32_t index, std::uint32_t lower, std::uint32_t next) {
  const std::uint64_t end = next == kEmptyTail ? kWholeMass : next;
  return {index, lower, lower != kEmptyTail && end > lower ? end - lower : 0};
}

/// The same of a cell that has mass, since a search has found it.
CUMULUS_HOST_DEVICE inline Cell found_between(std::uint32_t index, std::uint32_t lower, std::uint32_t next) {
  const std::uint32_t mass = (next == kEmptyTail ? 0 : next) - lower;
  return {index, lower, mass == 0 ? kWholeMass : mass};
}

CUMULUS_HOST_DEVICE inline Cell cell_at(const std::uint32_t* lower, std::uint32_t count,
                                        std::uint32_t index) {
  return cell_between(index, lower[index], index + 1 < count ? lower[index + 1] : kEmptyTail);
}

/// (offset + half a unit) times `inverse`, the reciprocal of an extent; both in units of 2^-32.
CUMULUS_HOST_DEVICE inline float share_of(std::uint32_t offset, float half_unit, float inverse) {
  const float fraction = (static_cast<float>(offset) + half_unit) * inverse;
  return fraction < kBelowOne ? fraction : kBelowOne;
}

// --- guide tables ----------------------------------------------------------------------------------------

CUMULUS_HOST_DEVICE inline std::uint32_t guide_cell(std::uint32_t guide_size, std::uint32_t x) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(x) * guide_size >> 32);
}

/// A cell's number as the i-th of a guide holds it; whatever that holds, a cell of the distribution.
CUMULUS_HOST_DEVICE inline std::uint32_t cell_number(const Distribution& cells, std::size_t i) {
  const std::uint32_t number = cells.count <= kNarrowCells ? element<std::uint16_t>(cells.guide, i)
                                                           : element<std::uint32_t>(cells.guide, i);
  return smaller(number, cells.count - 1);
}

struct CellRange {
  std::uint32_t first;
  std::uint32_t last;
};

/// kCutpointBinary, kCutpointLinear: the cells between two guide entries.
CUMULUS_HOST_DEVICE inline CellRange cutpoint_range(const Distribution& cells, std::uint32_t x) {
  const std::uint32_t g = guide_cell(cells.guide_size, x);
  const std::uint32_t first = cell_number(cells, g);
  return {first, g + 1 < cells.guide_size ? cell_number(cells, g + 1) : cells.count - 1};
}

/// kBalancedForest: the cells that overlap the guide cell, exactly.
CUMULUS_HOST_DEVICE inline CellRange overlapping_range(const Distribution& cells, std::uint32_t x) {
  const std::size_t g = guide_cell(cells.guide_size, x);
  return {cell_number(cells, 2 * g), cell_number(cells, 2 * g + 1)};
}

// --- radix trees -----------------------------------------------------------------------------------------

/// A guide entry of the radix forests: its kind in the upper two bits.
enum class RootKind : std::uint32_t {
  kCells = 0,     ///< Few cells: in kFirstBits the first, above them how many more may overlap.
  kTwoCells = 1,  ///< This cell and the one before; in tables of versions 2 and 3.
  kNode = 2,      ///< The root of a tree.
};
inline constexpr std::uint32_t kRootNumberBits = 30;
inline constexpr std::uint32_t kRootNumber = (std::uint32_t{1} << kRootNumberBits) - 1;
inline constexpr std::uint32_t kFirstBits = 27;
inline constexpr std::uint32_t kFirst = (std::uint32_t{1} << kFirstBits) - 1;
/// Cells behind the first that are looked at one by one; where there are more, a tree has them.
inline constexpr std::uint32_t kMostFurther = 7;

/// Whether a guide cell is kCells: `first` holds its smallest x, `first_of_next` that of the next one; behind
/// the last guide cell this is the last cell.
CUMULUS_HOST_DEVICE constexpr bool few_cells(std::uint32_t first, std::uint32_t first_of_next) {
  return first_of_next - first <= kMostFurther;
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
inline constexpr int kMostNodes = 16;

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
  for (int visited = 0; visited < kMostNodes; ++visited) {
    const NodePair children = load_pair<kNarrow>(cells, node);
    const std::uint32_t child = x < cells.lower[node] ? children.left : children.right;
    node = smaller(child & (kLeaf - 1), cells.count - 1);
    if ((child & kLeaf) != 0) return node;
  }
  return find_cell(cells.lower, 0, cells.count - 1, x);
}

/// A node of kRadixForest4: a binary node and its children that are nodes.
struct Node4 {
  std::uint32_t bound[3];  ///< Lower bounds between the four children.
  std::uint32_t child[4];  ///< With the upper bit a cell's number, without a node's.
  std::uint32_t padding;   ///< 0.
};
static_assert(sizeof(Node4) == 32, "part of the format");
inline constexpr std::uint32_t kLeaf4 = 0x80000000u;

CUMULUS_HOST_DEVICE inline std::uint32_t descend4(const Distribution& cells, std::uint32_t root,
                                                  std::uint32_t x) {
  std::uint32_t index = root;
  for (int visited = 0; visited < kMostNodes; ++visited) {
    const auto node = element<Node4>(cells.nodes, index);
    const bool upper = x >= node.bound[1];
    const bool odd = x >= node.bound[upper ? 2 : 0];
    const std::uint32_t low = odd ? node.child[1] : node.child[0];
    const std::uint32_t high = odd ? node.child[3] : node.child[2];
    const std::uint32_t child = upper ? high : low;
    index = smaller(child & ~kLeaf4, cells.count - 1);
    if ((child & kLeaf4) != 0) return index;
  }
  return find_cell(cells.lower, 0, cells.count - 1, x);
}

CUMULUS_HOST_DEVICE inline std::uint32_t find_in_tree(Method method, const Distribution& cells,
                                                      std::uint32_t root, std::uint32_t x) {
  if (method == Method::kRadixForest4) return descend4(cells, root, x);
  return cells.count <= kNarrowCells ? descend<true>(cells, root, x) : descend<false>(cells, root, x);
}

/// A cell's stored lower bound, or kEmptyTail for what is behind the last.
CUMULUS_HOST_DEVICE inline std::uint32_t bound_at(const Distribution& cells, std::uint32_t index) {
  return index < cells.count ? cells.lower[index] : kEmptyTail;
}

/// The cells that may overlap the guide cell of an entry that is no tree's root; whatever that holds, cells
/// of the distribution.
CUMULUS_HOST_DEVICE inline CellRange cells_of_entry(std::uint32_t entry, std::uint32_t count) {
  if (static_cast<RootKind>(entry >> kRootNumberBits) == RootKind::kTwoCells) {
    const std::uint32_t second = smaller(entry & kRootNumber, count - 1);
    return {second > 0 ? second - 1 : 0, second};
  }
  const std::uint32_t first = smaller(entry & kFirst, count - 1);
  return {first, smaller(first + (entry >> kFirstBits & kMostFurther), count - 1)};
}

/// Few cells are gone through one by one; most guide cells have one or two.
CUMULUS_HOST_DEVICE inline Cell cell_of_few(const Distribution& cells, const CellRange& range,
                                            std::uint32_t x) {
  const std::uint32_t key = search_key(x);
  std::uint32_t index = range.first;
  std::uint32_t lower = cells.lower[index];
  std::uint32_t next = bound_at(cells, index + 1);
  while (index < range.last && next <= key) {
    lower = next;
    next = bound_at(cells, ++index + 1);
  }
  return found_between(index, lower, next);
}

CUMULUS_HOST_DEVICE inline Cell cell_in_forest(Method method, const Distribution& cells, std::uint32_t x) {
  const auto entry = element<std::uint32_t>(cells.guide, guide_cell(cells.guide_size, x));
  CellRange range = cells_of_entry(entry, cells.count);
  if (static_cast<RootKind>(entry >> kRootNumberBits) >= RootKind::kNode) {
    range.first = find_in_tree(method, cells, smaller(entry & kRootNumber, cells.count - 1), x);
    range.last = range.first;
  }
  return cell_of_few(cells, range, x);
}

// --- the tree of four children a node --------------------------------------------------------------------

/// Where level t (1 to levels - 1) of a kQuaternaryTree begins; it has 4^t bounds.
CUMULUS_HOST_DEVICE constexpr std::uint32_t quaternary_offset(std::uint32_t level) {
  return ((std::uint32_t{1} << 2 * level) - 4) / 3;
}

CUMULUS_HOST_DEVICE inline std::uint32_t find_in_quaternary_tree(const Distribution& cells, std::uint32_t x) {
  const std::uint32_t key = search_key(x);
  const std::uint32_t levels = quaternary_levels(cells.count);
  std::uint32_t first = 0;
  for (std::uint32_t level = 1; level < levels; ++level) {
    const auto* bounds =
        reinterpret_cast<const std::uint32_t*>(cells.nodes) + quaternary_offset(level) + first;
    first += (bounds[1] <= key ? 1 : 0) + (bounds[2] <= key ? 1 : 0) + (bounds[3] <= key ? 1 : 0);
    first *= 4;
  }
  first = smaller(first, cells.count - 1);
  return walk_to_cell(cells.lower, first, smaller(first + 3, cells.count - 1), x);
}

// --- the alias table -------------------------------------------------------------------------------------

/// Column k of n holds the x with floor(x n / 2^32) = k: those below `split` are cell k's, the others
/// `alias`'s.
struct AliasEntry {
  std::uint32_t split;
  std::uint32_t alias;
};

CUMULUS_HOST_DEVICE inline Located locate_by_alias(const Distribution& cells, std::uint32_t x) {
  // In units of 2^-32 / n a column is 2^32 long, wherever it begins.
  const std::uint32_t column = guide_cell(cells.count, x);
  const std::uint32_t place = x * cells.count;
  const auto entry = element<AliasEntry>(cells.nodes, column);
  const std::uint32_t split = entry.split * cells.count;
  const float half_unit = 0.5F * static_cast<float>(cells.count);
  const bool own = x < entry.split;
  const std::uint32_t index = own ? column : smaller(entry.alias, cells.count - 1);
  const float inverse = reciprocal(float_of_mass(own ? split : kWholeMass - split));
  // The middle of a column's last x may lie behind its end.
  const float behind = float_of_mass((own ? split : kWholeMass) - place) - half_unit;
  return {cell_at(cells.lower, cells.count, index), share_of(own ? place : place - split, half_unit, inverse),
          share_of(0, behind > 0.0F ? behind : 0.5F, inverse)};
}

// --- all of them -----------------------------------------------------------------------------------------

/// The number of x's cell, by a method that is neither a radix forest nor kAlias.
CUMULUS_HOST_DEVICE inline std::uint32_t find(Method method, const Distribution& cells, std::uint32_t x) {
  switch (method) {
    case Method::kQuaternaryTree:
      return find_in_quaternary_tree(cells, x);
    case Method::kLinearSearch:
      return walk_to_cell(cells.lower, 0, cells.count - 1, x);
    case Method::kCutpointLinear: {
      const CellRange range = cutpoint_range(cells, x);
      return walk_to_cell(cells.lower, range.first, range.last, x);
    }
    case Method::kCutpointBinary: {
      const CellRange range = cutpoint_range(cells, x);
      return find_cell(cells.lower, range.first, range.last, x);
    }
    case Method::kBalancedForest: {
      const CellRange range = overlapping_range(cells, x);
      return find_cell(cells.lower, range.first, range.last, x);
    }
    default:
      return find_cell(cells.lower, 0, cells.count - 1, x);
  }
}

/// The cell of x by a method other than kAlias.
CUMULUS_HOST_DEVICE inline Cell cell_of_point(Method method, const Distribution& cells, std::uint32_t x) {
  if (is_radix_forest(method)) {
    return cell_in_forest(method, cells, x);
  }
  const std::uint32_t index = find(method, cells, x);
  return found_between(index, cells.lower[index], bound_at(cells, index + 1));
}

CUMULUS_HOST_DEVICE inline Located locate(Method method, const Distribution& cells, std::uint32_t x) {
  if (cells.count == 1) {
    constexpr float kUnit = 1.0F / 4294967296.0F;
    return {{0, 0, kWholeMass}, share_of(x, 0.5F, kUnit), share_of(~x, 0.5F, kUnit)};
  }
  if (method == Method::kAlias) return locate_by_alias(cells, x);
  const Cell cell = cell_of_point(method, cells, x);
  const std::uint32_t before = x - cell.lower;
  const std::uint32_t behind = static_cast<std::uint32_t>(cell.mass) - 1 - before;
  const float inverse = reciprocal(float_of_mass(cell.mass));
  return {cell, share_of(before, 0.5F, inverse), share_of(behind, 0.5F, inverse)};
}

}  // namespace cumulus::sampling::detail
