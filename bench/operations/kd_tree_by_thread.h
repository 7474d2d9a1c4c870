#pragma once

#include <string>

#include "bench/operations/kd_tree_queries.h"
#include "kernels/kd_tree/query/search.h"
#include "kernels/kd_tree/tuning.h"

// Searches by a thread for each query, where find_nearest would sort queries: what sorting is worth.

namespace cumulus::bench {

template <class T>
void bench_nearest_by_thread(Runner<CudaExecutor>& runner, AskedLater<T, CudaExecutor>& asked, int nearest) {
  using kd_tree::kSmallListCapacity;
  if (nearest > kSmallListCapacity) return;
  measure_nearest(runner, asked, nearest,
                  "find_nearest/by-thread/" + asked.question.name("k-" + std::to_string(nearest)),
                  [&](const auto& job, NeighborReport* report) {
                    kd_tree::find_nearest_per_thread(runner.executor(), {kSmallListCapacity, 0}, job, report);
                  });
}

}  // namespace cumulus::bench
