#pragma once

// The searches of bench/baselines/sampling_table_retired.h on a GPU, with the loads that all methods have: of
// distributions whose lower bounds are whole pieces of 16 bytes.

#include "bench/baselines/sampling_table_retired.h"

namespace cumulus::bench {

using sampling::detail::Cell;
using sampling::detail::CellRange;
using sampling::detail::Distribution;

#if defined(__CUDA_ARCH__)  // as what they call
__device__ inline std::uint32_t descend4(const Distribution& cells, std::uint32_t root, std::uint32_t x) {
  std::uint32_t index = root;
  for (int visited = 0; visited < sampling::detail::kMaxNodes; ++visited) {
    const auto node = sampling::detail::element<Node4>(cells.nodes, index);
    const bool upper = x >= node.bound[1];
    const bool odd = x >= node.bound[upper ? 2 : 0];
    const std::uint32_t low = odd ? node.child[1] : node.child[0];
    const std::uint32_t high = odd ? node.child[3] : node.child[2];
    const std::uint32_t child = upper ? high : low;
    index = sampling::detail::smaller(child & ~kLeaf4, cells.count - 1);
    if ((child & kLeaf4) != 0) return index;
  }
  return sampling::detail::find_cell(cells.lower, 0, cells.count - 1, x);
}

/// As cell_in_forest, but for the tree.
__device__ inline Cell cell_in_forest_of_four(const Distribution& cells, std::uint32_t x) {
  using namespace sampling::detail;
  auto entry = element<std::uint32_t>(cells.guide, guide_cell(cells.guide_size, x));
  const std::uint32_t key = search_key(x);
  if (entry >> kRootNumberBits != 0) {
    const std::uint32_t named = smaller(entry & kRootNumber, cells.count - 1);
    const std::uint32_t before = named > 0 ? named - 1 : 0;
    entry = cells.lower[before] <= key && key < bound_at(cells, named + 2)
                ? entry_of_cells(before, 2)
                : entry_of_cells(descend4(cells, named, x), 0);
  }
  const std::uint32_t first = smaller(entry & kFirst, cells.count - 1);
  return cell_by_quads(cells, first, first + (entry >> kFirstBits) + 1, key);
}

__device__ inline Cell cell_in_quaternary_tree(const Distribution& cells, std::uint32_t x) {
  const std::uint32_t key = sampling::detail::search_key(x);
  const std::uint32_t levels = quaternary_levels(cells.count);
  std::uint32_t first = 0;
  for (std::uint32_t level = 1; level < levels; ++level) {
    const uint4 quad = *reinterpret_cast<const uint4*>(reinterpret_cast<const std::uint32_t*>(cells.nodes) +
                                                       quaternary_offset(level) + first);
    first = 4 * (first + (quad.y <= key ? 1 : 0) + (quad.z <= key ? 1 : 0) + (quad.w <= key ? 1 : 0));
  }
  first = sampling::detail::smaller(first, cells.count - 1);
  return sampling::detail::cell_by_quads(cells, first, first + 4, key);
}

/// Four cells after another.
__device__ inline Cell cell_by_walking(const Distribution& cells, const CellRange& range, std::uint32_t x) {
  const std::uint32_t key = sampling::detail::search_key(x);
  const auto* const quads = reinterpret_cast<const uint4*>(cells.lower);
  const std::uint32_t last = sampling::detail::smaller(range.last + 1, cells.count - 1) / 4;
  sampling::detail::BoundQuad quad{range.first / 4, 0, quads[range.first / 4]};
  while (key >= quad.bounds.w && quad.at < last) quad = {quad.at + 1, quad.bounds.w, quads[quad.at + 1]};
  return sampling::detail::cell_in_quad(quad, key);
}

template <Search kSearch>
__device__ Cell cell_of_point(const Distribution& cells, std::uint32_t x) {
  if constexpr (kSearch == Search::kRadixForest4) {
    return cell_in_forest_of_four(cells, x);
  } else if constexpr (kSearch == Search::kQuaternaryTree) {
    return cell_in_quaternary_tree(cells, x);
  } else if constexpr (kSearch == Search::kLinearSearch) {
    return cell_by_walking(cells, {0, cells.count - 1}, x);
  } else {
    static_assert(kSearch == Search::kCutpointLinear, "the others are the library's");
    return cell_by_walking(cells, sampling::detail::cutpoint_range(cells, x), x);
  }
}
#else
template <Search kSearch>
__device__ Cell cell_of_point(const Distribution& cells, std::uint32_t x);
#endif

/// The rows of a table, with nodes of another search.
inline sampling::detail::Rows rows_with(const sampling::TableView& table, Search search,
                                        const std::byte* nodes) {
  sampling::detail::Rows rows = sampling::detail::rows_of(table, table.header.method);
  const std::uint32_t words = retired_node_words(search, table.header.width);
  if (words == 0) return rows;
  rows.first.nodes = reinterpret_cast<const unsigned char*>(nodes);
  rows.node_step = words * static_cast<std::uint32_t>(sizeof(std::uint32_t));
  return rows;
}

}  // namespace cumulus::bench
