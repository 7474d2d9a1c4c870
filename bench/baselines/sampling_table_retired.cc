#include "bench/baselines/sampling_table_retired.h"

#include <cstring>

namespace cumulus::bench {
namespace {

using sampling::detail::Distribution;
using sampling::detail::NodePair;

NodePair pair_of(const Distribution& row, std::uint32_t node) {
  return row.count <= sampling::kNarrowCells ? sampling::detail::load_pair<true>(row, node)
                                             : sampling::detail::load_pair<false>(row, node);
}

/// Node j of the binary forest, with its children's children for children.
Node4 node_of_four(const Distribution& row, std::uint32_t j) {
  const std::uint32_t leaf_bit = sampling::detail::leaf_bit(row.count);
  const auto marked = [leaf_bit](std::uint32_t child) {
    return (child & leaf_bit) != 0 ? (child & ~leaf_bit) | kLeaf4 : child;
  };
  const NodePair own = pair_of(row, j);
  Node4 node{};
  if (own.left == 0 && own.right == 0) return node;
  const std::uint32_t sides[2] = {own.left, own.right};
  node.bound[1] = row.lower[j];
  for (std::uint32_t side = 0; side < 2; ++side) {
    const bool leaf = (sides[side] & leaf_bit) != 0;
    const NodePair below = leaf ? NodePair{sides[side], sides[side]} : pair_of(row, sides[side]);
    node.child[2 * side] = marked(below.left);
    node.child[2 * side + 1] = marked(below.right);
    node.bound[2 * side] = leaf ? node.bound[1] : row.lower[sides[side]];
  }
  return node;
}

void write_quaternary_tree(const Distribution& row, std::uint32_t* nodes) {
  const std::uint32_t levels = quaternary_levels(row.count);
  for (std::uint32_t level = 1; level < levels; ++level) {
    for (std::uint32_t e = 0; e < std::uint32_t{1} << 2 * level; ++e) {
      const std::uint64_t cell = std::uint64_t{e} << 2 * (levels - level);
      nodes[quaternary_offset(level) + e] = cell < row.count ? row.lower[cell] : sampling::kEmptyTail;
    }
  }
}

}  // namespace

std::uint32_t retired_node_words(Search search, std::uint32_t columns) {
  switch (search) {
    case Search::kRadixForest4:
      return columns * static_cast<std::uint32_t>(sizeof(Node4) / sizeof(std::uint32_t));
    case Search::kQuaternaryTree:
      return quaternary_offset(quaternary_levels(columns));
    default:
      return 0;
  }
}

std::vector<std::uint32_t> retired_nodes(Search search, const sampling::TableView& table) {
  const std::size_t words = retired_node_words(search, table.header.width);
  std::vector<std::uint32_t> nodes(words * table.header.height);
  if (words == 0) return nodes;
  for (std::uint32_t y = 0; y < table.header.height; ++y) {
    const Distribution row = sampling::detail::row(table, y);
    std::uint32_t* const of_row = nodes.data() + words * y;
    if (search == Search::kQuaternaryTree) {
      write_quaternary_tree(row, of_row);
      continue;
    }
    for (std::uint32_t j = 0; j < row.count; ++j) {
      const Node4 node = node_of_four(row, j);
      std::memcpy(of_row + j * (sizeof(Node4) / sizeof(std::uint32_t)), &node, sizeof(node));
    }
  }
  return nodes;
}

}  // namespace cumulus::bench
