#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "bench/baselines/kd_tree_walk.h"
#include "bench/operations/kd_tree_queries.h"
#include "kernels/kd_tree/left_balanced.h"
#include "kernels/kd_tree/scratch.h"

// The published walks of a left-balanced tree, on the same points and queries as find_nearest.

namespace cumulus::bench {

/// A cloud's left-balanced tree on the GPU.
struct LeftBalancedTree {
  Array<float, CudaExecutor> nodes;
  Array<std::int64_t, CudaExecutor> idx_array;

  LeftBalancedTree(CudaExecutor& executor, const std::vector<float>& cloud)
      : nodes(executor, cloud.size()), idx_array(executor, cloud.size() / 3) {
    const Array<float, CudaExecutor> input(executor, cloud);
    const KdTreeShape shape = kd_tree_shape(1, static_cast<std::int64_t>(cloud.size() / 3), 3, 1);
    const ReportMemory<KdTreeReport, CudaExecutor> report;
    executor.reserve_scratch(arrange_left_balanced_scratch_bytes<float, Space::kDevice>(shape));
    arrange_left_balanced(executor, DeviceSpan<const float>(input.span()), shape,
                          {nodes.span(), idx_array.span()}, report.get());
    executor.synchronize();
  }
};

using WalkedLater = Lazy<LeftBalancedTree>;

/// A block of 32, 128 and 512 threads each: what is fastest depends on the card and on the points. `nodes`
/// are of the same cloud.
inline void bench_walks(Runner<CudaExecutor>& runner, AskedLater<float, CudaExecutor>& asked,
                        WalkedLater& nodes, int nearest) {
  const Question<float>& question = asked.question;
  for (const int threads : {32, 128, 512}) {
    const std::string name = "find_nearest/walk-of-" + std::to_string(threads) + "/" +
                             question.name("k-" + std::to_string(nearest));
    if (!runner.wants(name)) continue;
    CudaExecutor& executor = runner.executor();
    const AskedTree<float, CudaExecutor>& tree = asked.tree.get();
    const LeftBalancedTree& walked = nodes.get();
    const auto results = static_cast<std::size_t>(question.queries * nearest);
    const Array<std::int64_t, CudaExecutor> indices(executor, results);
    const Array<float, CudaExecutor> distances(executor, results);
    const TreeWalkJob job{walked.nodes.span().data(),
                          walked.idx_array.span().data(),
                          question.points,
                          tree.asked.span().data(),
                          question.queries,
                          nearest,
                          indices.span().data(),
                          distances.span().data()};
    runner.measure({
        .name = name,
        .bytes = tree.queries.size() * sizeof(float) + results * (sizeof(std::int64_t) + sizeof(float)),
        .items = static_cast<double>(question.queries),
        .unit = "queries",
        .scratch_bytes = 0,
        .run = [&] { walk_tree(executor, TreeWalk::kStackFree, threads, job); },
        .verify =
            [&] {
              const auto verified = verified_queries(question.queries);
              const auto far = rows_of(distances, verified, nearest);
              return first_difference(verified, [&](std::size_t i) {
                // Distances are contracted here: the last one may be off by a unit.
                const auto within = tree.neighbors(verified[i], far[i].back() * (1 + 1e-6f)).size();
                if (within == static_cast<std::size_t>(nearest)) return std::string();
                return "query " + std::to_string(verified[i]) + " has " + std::to_string(within) +
                       " within the last";
              });
            },
        .verified_by = "brute force, counts of 16 queries",
    });
  }
}

}  // namespace cumulus::bench
