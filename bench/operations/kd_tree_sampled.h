#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "bench/baselines/kd_tree_sort.h"
#include "bench/operations/kd_tree_queries.h"

// Builds for one frame beside one sort of as many keys, and searches in both kinds of trees.

namespace cumulus::bench {

inline void bench_sort(Runner<CudaExecutor>& runner, std::int64_t count) {
  const std::string name = "kd_tree_build/radix-sort-of-pairs/" + std::to_string(count);
  if (!runner.wants(name)) return;
  CudaExecutor& executor = runner.executor();
  std::vector<std::uint32_t> numbers(static_cast<std::size_t>(count));
  std::mt19937 random(1);
  std::generate(numbers.begin(), numbers.end(), random);
  const Array<std::uint32_t, CudaExecutor> keys(executor, numbers);
  std::iota(numbers.begin(), numbers.end(), 0u);
  const Array<std::uint32_t, CudaExecutor> indices(executor, numbers);
  const Array<std::uint32_t, CudaExecutor> sorted_keys(executor, numbers.size());
  const Array<std::uint32_t, CudaExecutor> sorted_indices(executor, numbers.size());
  const Array<std::byte, CudaExecutor> scratch(executor, sort_pairs_bytes(count));
  const SortPairsJob job{keys.data(), sorted_keys.data(), indices.data(), sorted_indices.data(), count};
  runner.measure({
      .name = name,
      .bytes = 16 * numbers.size(),
      .items = static_cast<double>(count),
      .unit = "points",
      .scratch_bytes = scratch.size(),
      .run = [&] { sort_pairs(executor, job, scratch.span()); },
      .verify =
          [&] {
            const std::vector<std::uint32_t> sorted = sorted_keys.to_host();
            return std::is_sorted(sorted.begin(), sorted.end()) ? std::string() : "the keys are not sorted";
          },
      .verified_by = "the keys' order",
  });
}

/// The default leaves, with medians of both kinds.
inline void bench_frame_builds(Runner<CudaExecutor>& runner, std::int64_t points) {
  bench_sort(runner, points);
  for (const testing::CloudPattern pattern :
       {testing::CloudPattern::kUniform, testing::CloudPattern::kClustered}) {
    for (const KdTreeMedians medians : {KdTreeMedians::kExact, KdTreeMedians::kSampled}) {
      KdTreeOptions options;
      options.medians = medians;
      const KdTreeShape shape = kd_tree_shape(1, points, 3, options.leaf_size);
      const std::string name =
          "kd_tree_build/" + variant<float>(shape, options, pattern) + "/" + std::to_string(points);
      if (!runner.wants(name)) continue;
      measure_build<float>(runner, runner.executor(), name, shape, options,
                           testing::make_cloud<float>(points, 3, pattern));
    }
  }
}

/// Beside those in exact trees, which bench_queries measures.
inline void bench_sampled_queries(Runner<CudaExecutor>& runner, std::int64_t points, std::int64_t queries) {
  for (const testing::CloudPattern pattern :
       {testing::CloudPattern::kUniform, testing::CloudPattern::kClustered}) {
    for (const bool sorted : {true, false}) {
      Question<float> question{
          .points = points, .dimensions = 3, .queries = queries, .pattern = pattern, .sorted = sorted};
      question.medians = KdTreeMedians::kSampled;
      AskedLater<float, CudaExecutor> asked(runner.executor(), question);
      for (const int nearest : {1, 8, 50}) bench_nearest(runner, asked, nearest);
    }
  }
}

}  // namespace cumulus::bench
