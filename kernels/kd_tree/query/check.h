#pragma once

#include "kernels/kd_tree/check.h"
#include "kernels/kd_tree/kd_tree_query.h"

// What the two backends' queries refuse alike, before anything runs.
namespace cumulus::kd_tree {

template <class T, Space S>
void check_queries(const QueriedForest<T, S>& forest) {
  const NeighborSearch& search = forest.search;
  check_tree(forest.shape, forest.tree);
  require(search.queries >= 0, std::to_string(search.queries) + " queries a tree");
  check_size("the queries", forest.queries.points.size(), forest.all_queries() * forest.shape.dimensions);
  if (!forest.queries.radii.empty())
    check_size("the radii", forest.queries.radii.size(), forest.all_queries());
  require(search.radius >= 0, "a radius of " + std::to_string(search.radius));
  for (const double period : search.period) require(period >= 0, "a period of " + std::to_string(period));
}

template <class T, Space S>
void check_job(const NearestJob<T, S>& job) {
  check_queries(job.forest);
  require(job.neighbors >= 1 && job.neighbors <= kMaxNeighbors,
          std::to_string(job.neighbors) + " neighbours; 1 to 128 are right");
  check_size("indices", job.indices.size(), job.forest.all_queries() * job.neighbors);
  check_size("distances", job.distances.size(), job.forest.all_queries() * job.neighbors);
}

template <class T, Space S>
void check_job(const CountJob<T, S>& job) {
  check_queries(job.forest);
  check_size("counts", job.counts.size(), job.forest.all_queries());
}

template <class T, Space S>
void check_job(const ListJob<T, S>& job) {
  check_queries(job.forest);
  check_size("offsets", job.offsets.size(), job.forest.all_queries() + 1);
  require(job.indices.size() == job.distances.size(), "as many distances as indices are right");
}

}  // namespace cumulus::kd_tree
