#pragma once

#include "kernels/kd_tree/check.h"
#include "kernels/kd_tree/kd_tree_query.h"

// What the two backends' queries refuse alike, before anything runs.
namespace cumulus::kd_tree {

template <class T, Space S>
void check_queries(const KdTreeShape& shape, const KdTreeView<T, S>& tree,
                   const NeighborQueries<T, S>& queries, const NeighborSearch& search) {
  check_tree(shape, tree);
  require(search.queries >= 0, std::to_string(search.queries) + " queries a tree");
  check_size("the queries", queries.points.size(), shape.trees * search.queries * shape.dimensions);
  if (!queries.radii.empty()) check_size("the radii", queries.radii.size(), shape.trees * search.queries);
  require(search.radius >= 0, "a radius of " + std::to_string(search.radius));
  for (const double period : search.period) require(period >= 0, "a period of " + std::to_string(period));
}

template <class T, Space S>
void check_nearest(const KdTreeShape& shape, const NeighborSearch& search, int neighbors,
                   Span<std::int64_t, S> indices, Span<T, S> distances) {
  require(neighbors >= 1 && neighbors <= kMaxNeighbors,
          std::to_string(neighbors) + " neighbours; 1 to 128 are right");
  check_size("indices", indices.size(), shape.trees * search.queries * neighbors);
  check_size("distances", distances.size(), shape.trees * search.queries * neighbors);
}

template <class T, Space S>
void check_lists(const KdTreeShape& shape, const NeighborSearch& search, Span<std::int64_t, S> offsets,
                 Span<std::int64_t, S> indices, Span<T, S> distances) {
  check_size("offsets", offsets.size(), shape.trees * search.queries + 1);
  require(indices.size() == distances.size(), "as many distances as indices are right");
}

}  // namespace cumulus::kd_tree
