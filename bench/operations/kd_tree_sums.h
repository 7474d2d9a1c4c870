#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "bench/operations/kd_tree_queries.h"
#include "kernels/kd_tree/kd_tree_sums.h"

// Sums over the neighbours that a search finds, as a photon map has them: three channels a point.

namespace cumulus::bench {

inline constexpr std::int64_t kPayloadChannels = 3;

/// The tree of a question, and what goes with its points.
template <class Executor>
struct SummedTree {
  AskedTree<float, Executor> tree;
  std::vector<float> rows;
  Array<float, Executor> payload;
  Array<float, Executor> sums;

  SummedTree(Executor& executor, const Question<float>& question)
      : tree(executor, question),
        rows(testing::make_cloud<float>(question.points, kPayloadChannels, testing::CloudPattern::kUniform,
                                        3)),
        payload(executor, rows),
        sums(executor, static_cast<std::size_t>(question.queries * kPayloadChannels)) {}

  PayloadSums<float, Executor::kSpace> payload_sums() const {
    return {payload.span(), sums.span(), kPayloadChannels};
  }
  /// What a call reads and writes beside one number a query.
  std::size_t bytes() const {
    return (tree.queries.size() + sums.size()) * sizeof(float) + rows.size() * sizeof(float);
  }

  /// Empty where the sums of some queries are those over `neighbors(query)`, whatever the order of adding.
  template <class Neighbors>
  std::string verify(const Neighbors& neighbors) const {
    const std::vector<float> found = sums.to_host();
    const std::int64_t step = std::max<std::int64_t>(1, tree.search.queries / kVerifiedQueries);
    for (std::int64_t query = 0; query < tree.search.queries; query += step) {
      const std::vector<testing::Neighbor<float>> right = neighbors(query);
      for (std::int64_t channel = 0; channel < kPayloadChannels; ++channel) {
        double sum = 0;
        for (const auto& neighbor : right)
          sum += double{rows[static_cast<std::size_t>(neighbor.index * kPayloadChannels + channel)]};
        const double got = double{found[static_cast<std::size_t>(query * kPayloadChannels + channel)]};
        if (std::abs(got - sum) <= 0x1p-23 * sum) continue;
        return "query " + std::to_string(query) + ", channel " + std::to_string(channel) + ": " +
               std::to_string(got) + ", not " + std::to_string(sum);
      }
    }
    return "";
  }
};

template <class Executor>
void bench_sum_nearest(Runner<Executor>& runner, const Question<float>& question, int nearest) {
  const std::string name = "sum_nearest/" + question.name("k-" + std::to_string(nearest));
  if (!runner.wants(name)) return;
  Executor& executor = runner.executor();
  const SummedTree<Executor> summed(executor, question);
  const AskedTree<float, Executor>& tree = summed.tree;
  const Array<float, Executor> distances(executor, static_cast<std::size_t>(question.queries));
  runner.measure({
      .name = name,
      .bytes = summed.bytes() + distances.size() * sizeof(float),
      .items = static_cast<double>(question.queries),
      .unit = "queries",
      .scratch_bytes =
          sum_nearest_scratch_bytes<float, Executor::kSpace>(tree.forest.shape, tree.search, nearest),
      .run =
          [&] {
            sum_nearest(executor,
                        NearestSumJob<float, Executor::kSpace>{tree.queried(), nearest, summed.payload_sums(),
                                                               distances.span()},
                        tree.report.get());
          },
      .verify =
          [&] {
            const std::vector<float> far = distances.to_host();
            return summed.verify([&](std::int64_t query) {
              const float reach = std::nextafter(far[static_cast<std::size_t>(query)],
                                                 std::numeric_limits<float>::infinity());
              auto neighbors = tree.neighbors(query, reach);
              neighbors.resize(std::min(neighbors.size(), static_cast<std::size_t>(nearest)));
              return neighbors;
            });
          },
      .verified_by = "brute force, 16 queries",
  });
}

template <class Executor>
void bench_sum_within(Runner<Executor>& runner, const Question<float>& question) {
  const std::string name = "sum_within/" + question.name("radius");
  if (!runner.wants(name)) return;
  Executor& executor = runner.executor();
  const SummedTree<Executor> summed(executor, question);
  const AskedTree<float, Executor>& tree = summed.tree;
  const Array<std::int64_t, Executor> counts(executor, static_cast<std::size_t>(question.queries));
  runner.measure({
      .name = name,
      .bytes = summed.bytes() + counts.size() * sizeof(std::int64_t),
      .items = static_cast<double>(question.queries),
      .unit = "queries",
      .scratch_bytes = count_within_scratch_bytes<Executor::kSpace>(tree.forest.shape, tree.search),
      .run =
          [&] {
            sum_within(
                executor,
                WithinSumJob<float, Executor::kSpace>{tree.queried(), summed.payload_sums(), counts.span()},
                tree.report.get());
          },
      .verify =
          [&] {
            return summed.verify([&](std::int64_t query) {
              return tree.neighbors(query, static_cast<float>(tree.search.radius));
            });
          },
      .verified_by = "brute force, 16 queries",
  });
}

}  // namespace cumulus::bench
