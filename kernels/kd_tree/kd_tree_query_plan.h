#pragma once

#include <cstdint>

#include "kernels/kd_tree/kd_tree_query.h"

// How queries are put on a backend. Follows from shapes and parameters alone.
namespace cumulus::kd_tree {

/// A query of a CPU's search and its place on a curve through the tree.
struct OrderedQuery {
  std::uint64_t code;
  std::int64_t number;

  bool operator<(const OrderedQuery& other) const { return code < other.code; }
};

/// Whether a CPU answers neighbouring queries one after another: where a tree is larger than a core's caches.
constexpr bool orders_queries(const KdTreeShape& shape, const NeighborSearch& search) {
  return shape.points >= (1 << 16) && search.queries >= (1 << 12);
}

/// The longest list that a thread keeps in registers.
inline constexpr int kMostGroupedNeighbors = 64;
/// Below this, neighbouring queries are too far apart for their threads to go the same way.
inline constexpr std::int64_t kLeastGroupedQueries = 1024;

/// Whether a warp goes through the tree for 32 neighbouring queries at once, which are sorted before.
constexpr bool groups_queries(std::size_t number_bytes, const KdTreeShape& shape,
                              const NeighborSearch& search, int neighbors) {
  if (number_bytes != 4 || shape.dimensions > 4 || neighbors > kMostGroupedNeighbors) return false;
  for (const double period : search.period) {
    if (period > 0) return false;
  }
  return search.queries >= kLeastGroupedQueries && search.queries < (std::int64_t{1} << 31);
}

/// Queries are sorted by the node of this level that they come down to: not many more nodes than queries.
constexpr int sorting_level(const KdTreeShape& shape, const NeighborSearch& search) {
  int level = 0;
  while (level + 1 < shape.levels && (std::int64_t{2} << level) <= search.queries) ++level;
  return level;
}

/// Offsets of lists are summed up in tiles.
inline constexpr int kAccumulationThreads = 256;
inline constexpr int kAccumulationItems = 8;  // a thread
constexpr std::int64_t accumulation_tiles(std::int64_t counts) {
  constexpr std::int64_t kTile = kAccumulationThreads * kAccumulationItems;
  return (counts + kTile - 1) / kTile;
}

}  // namespace cumulus::kd_tree
