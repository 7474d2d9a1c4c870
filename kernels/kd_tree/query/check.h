#pragma once

#include "kernels/kd_tree/check.h"
#include "kernels/kd_tree/kd_tree_sums.h"

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

inline void check_neighbors(int neighbors) {
  require(neighbors >= 1 && neighbors <= kMaxNeighbors,
          std::to_string(neighbors) + " neighbours; 1 to 128 are right");
}

template <class T, Space S>
void check_job(const NearestJob<T, S>& job) {
  check_queries(job.forest);
  check_neighbors(job.neighbors);
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

template <class T, Space S>
void check_payload(const QueriedForest<T, S>& forest, const PayloadSums<T, S>& payload) {
  check_queries(forest);
  require(payload.channels >= 1, std::to_string(payload.channels) + " channels; 1 or more are right");
  check_size("the payload", payload.rows.size(), forest.shape.all_points() * payload.channels);
  check_size("sums", payload.sums.size(), forest.all_queries() * payload.channels);
}

template <class T, Space S>
void check_job(const NearestSumJob<T, S>& job) {
  check_payload(job.forest, job.payload);
  check_neighbors(job.neighbors);
  check_size("distances", job.distances.size(), job.forest.all_queries());
}

template <class T, Space S>
void check_job(const WithinSumJob<T, S>& job) {
  check_payload(job.forest, job.payload);
  check_size("counts", job.counts.size(), job.forest.all_queries());
}

}  // namespace cumulus::kd_tree
