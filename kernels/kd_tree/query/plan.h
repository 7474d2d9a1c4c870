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

/// The extents along one axis of a node's two children.
struct alignas(16) ChildExtents {
  float left_lower;
  float left_upper;
  float right_lower;
  float right_upper;
};

/// One for each axis of each inner node.
constexpr std::size_t child_extents(const KdTreeShape& shape) {
  return static_cast<std::size_t>(shape.trees * (shape.nodes() / 2) * shape.dimensions);
}

/// Below this, neighbouring queries are too far apart for their threads to go the same way.
inline constexpr std::int64_t kLeastSortedQueries = 1024;
/// More nodes than this for each query cost more to prepare than that gains.
inline constexpr std::int64_t kMostNodesPerQuery = 64;

/// Whether a GPU sorts the queries.
constexpr bool sorts_queries(std::size_t number_bytes, const KdTreeShape& shape,
                             const NeighborSearch& search) {
  if (number_bytes != 4 || shape.dimensions > 4) return false;
  for (const double period : search.period) {
    if (period > 0) return false;
  }
  return search.queries >= kLeastSortedQueries && search.queries < (std::int64_t{1} << 31) &&
         shape.nodes() <= kMostNodesPerQuery * search.queries;
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
