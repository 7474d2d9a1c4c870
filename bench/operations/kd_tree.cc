#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#if __has_include(<nanoflann.hpp>)
#include <nanoflann.hpp>
#define CUMULUS_BENCH_NANOFLANN 1
#else
#define CUMULUS_BENCH_NANOFLANN 0
#endif

#include "bench/harness/bench.h"
#include "bench/operations/kd_tree_forest.h"
#include "bench/operations/kd_tree_queries.h"
#include "bench/operations/kd_tree_sums.h"
#include "bench/operations/point_cloud.h"
#if CUMULUS_WITH_CUDA
#include "bench/operations/kd_tree_by_thread.h"
#include "bench/operations/kd_tree_sampled.h"
#include "bench/operations/kd_tree_walks.h"
#endif
#include "kernels/core/parallel.h"
#include "kernels/kd_tree/kd_tree.h"
#include "kernels/kd_tree/kd_tree_query.h"
#include "kernels/kd_tree/scratch.h"
#include "tests/cases/kd_tree_case.h"
#include "tests/cases/kd_tree_check.h"
#include "tests/cases/neighbor_case.h"

namespace cumulus::bench {
namespace {

using testing::CloudPattern;
using testing::make_cloud;

template <class T, class Executor>
void bench_build(Runner<Executor>& runner, const KdTreeShape& shape, const KdTreeOptions& options,
                 CloudPattern pattern) {
  const std::string name = "kd_tree_build/" + variant<T>(shape, options, pattern) + "/" +
                           (shape.trees == 1 ? "" : std::to_string(shape.trees) + "x") +
                           std::to_string(shape.points);
  if (!runner.wants(name)) return;
  measure_build<T>(runner, runner.executor(), name, shape, options,
                   make_cloud<T>(shape.all_points(), shape.dimensions, pattern));
}

/// A file's points, named after it.
template <class T, class Executor>
void bench_build_of(Runner<Executor>& runner, const std::string& path, const std::vector<float>& points,
                    std::int64_t leaf_size) {
  const KdTreeShape shape = kd_tree_shape(1, static_cast<std::int64_t>(points.size() / 3), 3, leaf_size);
  const std::string name = std::string("kd_tree_build/") + (sizeof(T) == 4 ? "f32" : "f64") + "-3d/" +
                           std::filesystem::path(path).stem().string() + "/leaf-" +
                           std::to_string(leaf_size) + "/" + std::to_string(shape.points);
  if (!runner.wants(name)) return;
  measure_build<T>(runner, runner.executor(), name, shape, {leaf_size}, {points.begin(), points.end()});
}

/// With 1, 2, 4, ... threads, and with as many as there are.
template <class T>
void bench_threads(Runner<CpuExecutor>& runner, std::int64_t points, const KdTreeOptions& options,
                   CloudPattern pattern) {
  const KdTreeShape shape = kd_tree_shape(1, points, 3, options.leaf_size);
  const int most = runner.executor().threads();
  for (int threads = 1; threads <= most; threads = threads < most ? std::min(2 * threads, most) : most + 1) {
    const std::string name = "kd_tree_build/" + variant<T>(shape, options, pattern) + "/threads-" +
                             std::to_string(threads) + "/" + std::to_string(points);
    if (!runner.wants(name)) continue;
    CpuExecutor executor(threads);
    measure_build<T>(runner, executor, name, shape, options, make_cloud<T>(points, 3, pattern));
  }
}

#if CUMULUS_BENCH_NANOFLANN
struct NanoflannCloud {
  const std::vector<float>& points;

  std::size_t kdtree_get_point_count() const { return points.size() / 3; }
  float kdtree_get_pt(std::size_t point, std::size_t axis) const { return points[3 * point + axis]; }
  template <class Box>
  bool kdtree_get_bbox(Box& /*box*/) const {
    return false;
  }
};

using NanoflannIndex =
    nanoflann::KDTreeSingleIndexAdaptor<nanoflann::L2_Simple_Adaptor<float, NanoflannCloud>, NanoflannCloud,
                                        3, std::uint32_t>;

/// The same points and leaves, for a ratio within one run: nanoflann builds with one thread.
void bench_nanoflann(Runner<CpuExecutor>& runner, const std::string& name, const std::vector<float>& cloud) {
  const auto points = static_cast<std::int64_t>(cloud.size() / 3);
  const NanoflannCloud adaptor{cloud};
  runner.measure({
      .name = name,
      .bytes = testing::kd_tree_bytes<float>(kd_tree_shape(1, points, 3, 10)),
      .items = static_cast<double>(points),
      .unit = "points",
      .scratch_bytes = 0,
      .run = [&] { NanoflannIndex index(3, adaptor, nanoflann::KDTreeSingleIndexAdaptorParams(10)); },
      .verify = [] { return std::string(); },
      .verified_by = "nothing: another library, for comparison",
  });
}

std::string nanoflann_name(const std::string& of, std::int64_t points) {
  return "kd_tree_build/nanoflann/" + of + "/leaf-10/" + std::to_string(points);
}

void bench_nanoflann(Runner<CpuExecutor>& runner, std::int64_t points, CloudPattern pattern) {
  const std::string name = nanoflann_name(name_of(pattern), points);
  if (runner.wants(name)) bench_nanoflann(runner, name, make_cloud<float>(points, 3, pattern));
}

void bench_nanoflann_of(Runner<CpuExecutor>& runner, const std::string& path) {
  const std::vector<float> cloud = read_point_cloud(path);
  const std::string name = nanoflann_name(std::filesystem::path(path).stem().string(),
                                          static_cast<std::int64_t>(cloud.size() / 3));
  if (runner.wants(name)) bench_nanoflann(runner, name, cloud);
}

/// The same points, queries and threads.
void bench_nanoflann_nearest(Runner<CpuExecutor>& runner, std::int64_t points, std::int64_t count,
                             std::size_t nearest, bool sorted) {
  const std::string name = std::string("find_nearest/nanoflann/uniform/leaf-10/") +
                           (sorted ? "morton" : "random") + "/k-" + std::to_string(nearest) + "/" +
                           std::to_string(points);
  if (!runner.wants(name)) return;
  const auto cloud = make_cloud<float>(points, 3, CloudPattern::kUniform);
  const NanoflannCloud adaptor{cloud};
  NanoflannIndex index(3, adaptor, nanoflann::KDTreeSingleIndexAdaptorParams(10));
  std::vector<float> queries = make_cloud<float>(count, 3, CloudPattern::kUniform, 2);
  if (sorted) queries = in_morton_order(queries);
  std::vector<std::uint32_t> indices(static_cast<std::size_t>(count) * nearest);
  std::vector<float> distances(indices.size());
  runner.measure({
      .name = name,
      .bytes = queries.size() * sizeof(float) + indices.size() * (sizeof(std::uint32_t) + sizeof(float)),
      .items = static_cast<double>(count),
      .unit = "queries",
      .scratch_bytes = 0,
      .run =
          [&] {
            parallel_ranges(runner.executor(), count, 64, [&](std::int64_t first, std::int64_t end) {
              for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(end); ++i)
                index.knnSearch(&queries[3 * i], nearest, &indices[i * nearest], &distances[i * nearest]);
            });
          },
      .verify = [] { return std::string(); },
      .verified_by = "nothing: another library, for comparison",
  });
}
#endif

template <class Executor>
void bench_builds(Runner<Executor>& runner, const std::vector<std::int64_t>& sizes) {
  for (const std::int64_t size : sizes) {
    for (const CloudPattern pattern : {CloudPattern::kUniform, CloudPattern::kClustered}) {
      bench_build<float>(runner, kd_tree_shape(1, size, 3, 40), {40}, pattern);
      bench_build<float>(runner, kd_tree_shape(1, size, 3, 10), {10}, pattern);
      bench_build<float>(runner, kd_tree_shape(1, size, 3, 40), {40, KdTreeSplit::kRoundRobin}, pattern);
      if (size > 10'000'000) continue;
      bench_build<double>(runner, kd_tree_shape(1, size, 3, 40), {40}, pattern);
      bench_build<double>(runner, kd_tree_shape(1, size, 3, 40), {40, KdTreeSplit::kRoundRobin}, pattern);
    }
  }
  const std::int64_t trees = runner.quick() ? 20 : 4000;
  bench_build<float>(runner, kd_tree_shape(trees, 1000, 3, 40), {40}, CloudPattern::kUniform);
  for (const std::string& path : runner.clouds()) {
    const std::vector<float> points = read_point_cloud(path);
    bench_build_of<float>(runner, path, points, 10);
    bench_build_of<float>(runner, path, points, 40);
    bench_build_of<double>(runner, path, points, 40);
  }
}

/// Builds with each number of threads, and other libraries'.
void bench_cores(Runner<CpuExecutor>& runner, const std::vector<std::int64_t>& sizes) {
  for (const std::int64_t size : sizes) {
    for (const CloudPattern pattern : {CloudPattern::kUniform, CloudPattern::kClustered}) {
      bench_threads<float>(runner, size, {10}, pattern);
      bench_threads<double>(runner, size, {40}, pattern);
      bench_threads<double>(runner, size, {40, KdTreeSplit::kRoundRobin}, pattern);
#if CUMULUS_BENCH_NANOFLANN
      bench_nanoflann(runner, size, pattern);
#endif
    }
  }
#if CUMULUS_BENCH_NANOFLANN
  for (const std::string& cloud : runner.clouds()) bench_nanoflann_of(runner, cloud);
#endif
}

const std::vector<int> kAskedNeighbors = {1, 8, 30, 50};

/// Of one cloud and its queries, in Morton order or in any.
template <class Executor>
void bench_queries_of(Runner<Executor>& runner, const Question<float>& question) {
  AskedLater<float, Executor> asked(runner.executor(), question);
  for (const int nearest : kAskedNeighbors) bench_nearest(runner, asked, nearest);
#if CUMULUS_WITH_CUDA
  if constexpr (std::is_same_v<Executor, CudaExecutor>) {
    WalkedLater nodes([&] { return LeftBalancedTree(runner.executor(), asked.tree.get().forest.cloud); });
    for (const int nearest : kAskedNeighbors) bench_walks(runner, asked, nodes, nearest);
  }
#endif
}

template <class Executor>
void bench_queries(Runner<Executor>& runner, std::int64_t points, std::int64_t queries) {
  for (const CloudPattern pattern : {CloudPattern::kUniform, CloudPattern::kClustered}) {
    for (const bool sorted : {true, false}) bench_queries_of(runner, {points, 3, queries, pattern, sorted});
  }
#if CUMULUS_BENCH_NANOFLANN
  if constexpr (std::is_same_v<Executor, CpuExecutor>) {
    for (const int nearest : kAskedNeighbors) {
      for (const bool sorted : {true, false})
        bench_nanoflann_nearest(runner, points, queries, static_cast<std::size_t>(nearest), sorted);
    }
  }
#endif
}

/// What the size of leaves is worth to queries, beside the default; builds of both are measured above.
template <class Executor>
void bench_leaf_sizes(Runner<Executor>& runner, std::int64_t points, std::int64_t queries) {
  for (const std::int64_t leaf_size : {5, 10, 40}) {
    for (const bool sorted : {true, false}) {
      AskedLater<float, Executor> asked(
          runner.executor(),
          {.points = points, .dimensions = 3, .queries = queries, .sorted = sorted, .leaf_size = leaf_size});
      for (const int nearest : {1, 8, 50}) bench_nearest(runner, asked, nearest);
    }
  }
}

/// Sorted, and on a GPU by a thread for each query, too.
template <class T, class Executor>
void bench_nearest_both_ways(Runner<Executor>& runner, const Question<T>& question,
                             const std::vector<int>& neighbors) {
  AskedLater<T, Executor> asked(runner.executor(), question);
  for (const int nearest : neighbors) {
    bench_nearest(runner, asked, nearest);
#if CUMULUS_WITH_CUDA
    if constexpr (std::is_same_v<Executor, CudaExecutor>) bench_nearest_by_thread(runner, asked, nearest);
#endif
  }
}

/// Neighbours in FLOAT64; and of the usual number of points in a periodic box, and in other dimensions.
template <class T, class Executor>
void bench_other_nearest(Runner<Executor>& runner, std::int64_t points, std::int64_t queries) {
  Question<T> question{.points = points, .dimensions = 3, .queries = queries};
  if (sizeof(T) == 8) bench_nearest_both_ways(runner, question, kAskedNeighbors);
  if (points > 1'000'000) return;
  question.period = 1;
  bench_nearest_both_ways(runner, question, {8});
  question.period = 0;
  for (const int dimensions : {2, 4, 6, 8}) {
    question.dimensions = dimensions;
    question.queries = dimensions > 3 ? queries / 10 : queries;
    bench_nearest_both_ways(runner, question, {8});
  }
}

/// Of all points within a radius, and sums.
template <class Executor>
void bench_other_queries(Runner<Executor>& runner, std::int64_t points, std::int64_t queries) {
  // About 8 neighbours each, and room for twice as many.
  const double radius = std::cbrt(8 * 3 / (4 * 3.14159265) / static_cast<double>(points));
  const Question<float> within{.points = points, .dimensions = 3, .queries = queries, .radius = radius};
  bench_count(runner, within);
  bench_list(runner, within, static_cast<std::size_t>(16 * queries));
  for (const bool sorted : {true, false}) {
    Question<float> photons{.points = points, .dimensions = 3, .queries = queries, .sorted = sorted};
    for (const int nearest : {8, 50}) bench_sum_nearest(runner, photons, nearest);
    photons.radius = radius;
    bench_sum_within(runner, photons);
  }
}

template <class Executor>
void bench_all(Runner<Executor>& runner) {
  constexpr bool kGpu = std::is_same_v<Executor, CudaExecutor>;
  std::vector<std::int64_t> sizes = {100'000, 1'000'000, 10'000'000};
  if (kGpu) sizes.push_back(100'000'000);
  if (runner.quick()) sizes = {20'000};
  bench_builds(runner, sizes);
#if CUMULUS_WITH_CUDA
  if constexpr (kGpu) {
    for (const std::int64_t size : sizes) bench_frame_builds(runner, size);
  }
#endif
  if constexpr (!kGpu) {
    if (!runner.quick()) sizes.insert(sizes.begin(), 10'000);
    bench_cores(runner, sizes);
  }
  const std::int64_t queries = runner.quick() ? 1000 : kGpu ? 2'000'000 : 100'000;
  for (const std::int64_t size : sizes) {
    const bool usual = runner.quick() || size == 1'000'000;
    if (usual || (kGpu && size == 10'000'000)) {
      bench_queries(runner, size, queries);
#if CUMULUS_WITH_CUDA
      if constexpr (kGpu) bench_sampled_queries(runner, size, queries);
#endif
      bench_leaf_sizes(runner, size, queries);
      bench_other_nearest<float>(runner, size, queries);
      bench_other_nearest<double>(runner, size, queries);
    }
    if (usual) bench_other_queries(runner, size, queries);
  }
}

}  // namespace

void bench_kd_tree(Runner<CpuExecutor>& runner);
void bench_kd_tree(Runner<CudaExecutor>& runner);

void bench_kd_tree(Runner<CpuExecutor>& runner) { bench_all(runner); }
void bench_kd_tree(Runner<CudaExecutor>& runner) { bench_all(runner); }

}  // namespace cumulus::bench
