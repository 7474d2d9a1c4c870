#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cumulus/sampling.h"

// Methods that sampling tables had, and that no table has any more: their searches are kept for the
// comparison and for the paper's table, over the bounds of a table of another method.

namespace cumulus::bench {

enum class Search {
  kOfTable,         ///< The table's own.
  kRadixForest4,    ///< A radix forest whose nodes have four children; over a table of kRadixForest.
  kQuaternaryTree,  ///< One implicit tree of four children a node; over a table of kBinarySearch.
  kLinearSearch,    ///< One cell after another; over a table of kBinarySearch.
  kCutpointLinear,  ///< The same between two guide entries; over a table of kCutpointBinary.
};

/// A node of kRadixForest4: a binary node and its children that are nodes.
struct Node4 {
  std::uint32_t bound[3];  ///< Lower bounds between the four children.
  std::uint32_t child[4];  ///< With the upper bit a cell's number, without a node's.
  std::uint32_t padding;   ///< 0.
};
inline constexpr std::uint32_t kLeaf4 = 0x80000000u;

/// Levels of kQuaternaryTree below its root, the cells themselves being the last.
CUMULUS_HOST_DEVICE constexpr std::uint32_t quaternary_levels(std::uint32_t cells) {
  std::uint32_t levels = 1;
  while (std::uint64_t{1} << 2 * levels < cells) ++levels;
  return levels;
}
/// Where level t (1 to levels - 1) begins; it has 4^t bounds.
CUMULUS_HOST_DEVICE constexpr std::uint32_t quaternary_offset(std::uint32_t level) {
  return ((std::uint32_t{1} << 2 * level) - 4) / 3;
}

/// Words of each row's nodes.
std::uint32_t retired_node_words(Search search, std::uint32_t columns);

/// The nodes of all rows of a table of one layer, in host memory, that a search reads beside its bounds.
std::vector<std::uint32_t> retired_nodes(Search search, const sampling::TableView& table);

}  // namespace cumulus::bench
