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

#include "bench/bench.h"
#include "bench/point_cloud.h"
#include "kernels/core/parallel.h"
#include "kernels/kd_tree/kd_tree.h"
#include "kernels/kd_tree/kd_tree_query.h"
#include "kernels/kd_tree/kd_tree_query_scratch.h"
#include "kernels/kd_tree/kd_tree_scratch.h"
#include "tests/cases/kd_tree_case.h"
#include "tests/cases/kd_tree_check.h"
#include "tests/cases/neighbor_case.h"

namespace cumulus::bench {
namespace {

using testing::CloudPattern;
using testing::HostKdTree;
using testing::make_cloud;

/// What a run reports, where a GPU writes it without the host waiting.
template <class Report, class Executor>
class ReportMemory {
 public:
  ReportMemory()
      : memory_(std::is_same_v<Executor, CudaExecutor> ? allocate_pinned(sizeof(Report))
                                                       : allocate_host(sizeof(Report))) {}
  Report* get() const { return reinterpret_cast<Report*>(memory_.data()); }

 private:
  HostMemory memory_;
};

/// A tree in the executor's memory, and the cloud that it is of.
template <class T, class Executor>
struct Forest {
  KdTreeShape shape;
  KdTreeOptions options;
  std::vector<T> cloud;
  Array<T, Executor> input;
  Array<T, Executor> points;
  Array<std::int64_t, Executor> idx_array;
  Array<KdTreeNode, Executor> node_data;
  Array<T, Executor> node_bounds;
  ReportMemory<KdTreeReport, Executor> report;

  Forest(Executor& executor, const KdTreeShape& of, const KdTreeOptions& how, std::vector<T> points_of)
      : shape(of),
        options(how),
        cloud(std::move(points_of)),
        input(executor, cloud),
        points(executor, cloud.size()),
        idx_array(executor, static_cast<std::size_t>(of.all_points())),
        node_data(executor, static_cast<std::size_t>(of.all_nodes())),
        node_bounds(executor, static_cast<std::size_t>(of.bounds())) {}

  void build(Executor& executor) {
    build_kd_tree(executor, Span<const T, Executor::kSpace>(input.span()), shape, options,
                  {points.span(), idx_array.span(), node_data.span(), node_bounds.span()}, report.get());
  }
  std::size_t scratch_bytes() const {
    return build_kd_tree_scratch_bytes<T, Executor::kSpace>(shape, options);
  }
  KdTreeView<T, Executor::kSpace> view() const {
    return {points.span(), idx_array.span(), node_data.span(), node_bounds.span()};
  }
  HostKdTree<T> to_host() const {
    HostKdTree<T> tree(shape);
    tree.points = points.to_host();
    tree.idx_array = idx_array.to_host();
    tree.node_data = node_data.to_host();
    tree.node_bounds = node_bounds.to_host();
    return tree;
  }
};

template <class T>
std::string variant(const KdTreeShape& shape, const KdTreeOptions& options, CloudPattern pattern) {
  return std::string(sizeof(T) == 4 ? "f32" : "f64") + "-" + std::to_string(shape.dimensions) + "d/" +
         name_of(pattern) + (options.split == KdTreeSplit::kRoundRobin ? "-round-robin" : "") + "/leaf-" +
         std::to_string(options.leaf_size);
}

/// On an executor that need not be the runner's.
template <class T, class Executor>
void measure_build(Runner<Executor>& runner, Executor& executor, const std::string& name,
                   const KdTreeShape& shape, const KdTreeOptions& options, std::vector<T> cloud) {
  Forest<T, Executor> forest(executor, shape, options, std::move(cloud));
  executor.reserve_scratch(forest.scratch_bytes());
  runner.measure({
      .name = name,
      .bytes = testing::kd_tree_bytes<T>(shape),
      .items = static_cast<double>(shape.all_points()),
      .unit = "points",
      .scratch_bytes = forest.scratch_bytes(),
      .run =
          [&] {
            executor.reuse_scratch();
            forest.build(executor);
          },
      .verify =
          [&] {
            const HostKdTree<T> tree = forest.to_host();
            if (shape.trees == 1) return testing::KdTreeCheck<T>(forest.cloud, options, tree).run();
            return verify_kd_tree(testing::KdTreeOracle<T>(forest.cloud, shape, options).tree(), tree);
          },
      .verified_by = shape.trees == 1 ? "every point, box and split" : "serial oracle, every element",
  });
}

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
void bench_build_of(Runner<Executor>& runner, const std::string& path, std::int64_t leaf_size) {
  const std::vector<float> points = read_point_cloud(path);
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

/// Points in the order of their Morton codes, 10 bits an axis.
std::vector<float> in_morton_order(const std::vector<float>& points) {
  std::vector<std::pair<std::uint32_t, std::size_t>> order(points.size() / 3);
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::uint32_t code = 0;
    for (int bit = 9; bit >= 0; --bit) {
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const float x = std::clamp(points[3 * i + axis], 0.0f, 1.0f) * 1023.0f;
        code = code << 1 | (static_cast<std::uint32_t>(x) >> bit & 1u);
      }
    }
    order[i] = {code, i};
  }
  std::sort(order.begin(), order.end());
  std::vector<float> sorted(points.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::memcpy(&sorted[3 * i], &points[3 * order[i].second], 3 * sizeof(float));
  }
  return sorted;
}

/// A tree and what is asked of it.
template <class T>
struct Question {
  std::int64_t points;
  int dimensions;
  std::int64_t queries;
  CloudPattern pattern = CloudPattern::kUniform;
  bool sorted = false;  // queries in Morton order
  double period = 0;    // of every axis
  double radius = std::numeric_limits<double>::infinity();

  std::string name(const std::string& wanted) const {
    const KdTreeOptions options{10};
    return variant<T>(kd_tree_shape(1, points, dimensions, options.leaf_size), options, pattern) +
           (period > 0 ? "/periodic" : "") + (sorted ? "/morton" : "/random") + "/" + wanted + "/" +
           std::to_string(points);
  }
  NeighborSearch search() const {
    NeighborSearch search;
    search.queries = queries;
    search.radius = radius;
    for (int axis = 0; axis < dimensions; ++axis) search.period[static_cast<std::size_t>(axis)] = period;
    return search;
  }
};

/// The tree of a question, built, and its queries.
template <class T, class Executor>
struct AskedTree {
  Forest<T, Executor> forest;
  std::vector<T> queries;
  Array<T, Executor> asked;
  NeighborSearch search;
  ReportMemory<NeighborReport, Executor> report;

  AskedTree(Executor& executor, const Question<T>& question)
      : forest(executor, kd_tree_shape(1, question.points, question.dimensions, 10), {10},
               make_cloud<T>(question.points, question.dimensions, question.pattern)),
        queries(make_queries(question)),
        asked(executor, queries),
        search(question.search()) {
    executor.reserve_scratch(forest.scratch_bytes());
    forest.build(executor);
  }

  std::vector<testing::Neighbor<T>> neighbors(std::int64_t query, T reach) const {
    const auto width = static_cast<std::size_t>(forest.shape.dimensions);
    return testing::neighbors_by_brute_force(forest.cloud, forest.shape.dimensions,
                                             &queries[static_cast<std::size_t>(query) * width], reach,
                                             search);
  }

 private:
  static std::vector<T> make_queries(const Question<T>& question) {
    std::vector<T> made = make_cloud<T>(question.queries, question.dimensions, question.pattern, 2);
    if constexpr (std::is_same_v<T, float>) {
      if (question.sorted) return in_morton_order(made);
    }
    return made;
  }
};

constexpr int kVerifiedQueries = 16;

template <class T, class Executor>
void bench_nearest(Runner<Executor>& runner, const Question<T>& question, int nearest) {
  const std::string name = "find_nearest/" + question.name("k-" + std::to_string(nearest));
  if (!runner.wants(name)) return;
  Executor& executor = runner.executor();
  const AskedTree<T, Executor> tree(executor, question);
  const auto results = static_cast<std::size_t>(question.queries * nearest);
  const Array<std::int64_t, Executor> indices(executor, results);
  const Array<T, Executor> distances(executor, results);
  const NeighborSearch& search = tree.search;
  runner.measure({
      .name = name,
      .bytes = tree.queries.size() * sizeof(T) + results * (sizeof(std::int64_t) + sizeof(T)),
      .items = static_cast<double>(question.queries),
      .unit = "queries",
      .scratch_bytes = find_nearest_scratch_bytes<T, Executor::kSpace>(tree.forest.shape, search),
      .run =
          [&] {
            find_nearest(executor, tree.forest.shape, tree.forest.view(), {tree.asked.span(), {}}, search,
                         nearest, indices.span(), distances.span(), tree.report.get());
          },
      .verify =
          [&] {
            const auto found = indices.to_host();
            const auto far = distances.to_host();
            const std::int64_t step = std::max<std::int64_t>(1, question.queries / kVerifiedQueries);
            for (std::int64_t i = 0; i < question.queries; i += step) {
              // There must be as many within the last one's distance, which may have been rounded down.
              const T reach = std::nextafter(far[static_cast<std::size_t>((i + 1) * nearest - 1)],
                                             std::numeric_limits<T>::infinity());
              std::string wrong = testing::verify_nearest(tree.neighbors(i, reach), search, nearest,
                                                          &found[static_cast<std::size_t>(i * nearest)],
                                                          &far[static_cast<std::size_t>(i * nearest)]);
              if (!wrong.empty()) return wrong;
            }
            return std::string();
          },
      .verified_by = "brute force, 16 queries",
  });
}

/// Empty where `found(query)` is how many points there are within the radius, of some queries.
template <class T, class Executor, class Found>
std::string verify_counts(const AskedTree<T, Executor>& tree, const Found& found) {
  const std::int64_t step = std::max<std::int64_t>(1, tree.search.queries / kVerifiedQueries);
  for (std::int64_t i = 0; i < tree.search.queries; i += step) {
    const auto right =
        static_cast<std::int64_t>(tree.neighbors(i, static_cast<T>(tree.search.radius)).size());
    if (found(static_cast<std::size_t>(i)) == right) continue;
    return "query " + std::to_string(i) + " has " + std::to_string(right) +
           " points within the radius, not " + std::to_string(found(static_cast<std::size_t>(i)));
  }
  return "";
}

template <class Executor>
void bench_count(Runner<Executor>& runner, const Question<float>& question) {
  const std::string name = "count_within/" + question.name("radius");
  if (!runner.wants(name)) return;
  Executor& executor = runner.executor();
  const AskedTree<float, Executor> tree(executor, question);
  const Array<std::int64_t, Executor> counts(executor, static_cast<std::size_t>(question.queries));
  runner.measure({
      .name = name,
      .bytes = tree.queries.size() * sizeof(float) + counts.size() * sizeof(std::int64_t),
      .items = static_cast<double>(question.queries),
      .unit = "queries",
      .scratch_bytes = count_within_scratch_bytes<Executor::kSpace>(tree.forest.shape, tree.search),
      .run =
          [&] {
            count_within(executor, tree.forest.shape, tree.forest.view(), {tree.asked.span(), {}},
                         tree.search, counts.span(), tree.report.get());
          },
      .verify =
          [&] {
            const auto found = counts.to_host();
            return verify_counts(tree, [&](std::size_t i) { return found[i]; });
          },
      .verified_by = "brute force, 16 queries",
  });
}

template <class Executor>
void bench_list(Runner<Executor>& runner, const Question<float>& question, std::size_t room) {
  const std::string name = "list_within/" + question.name("radius");
  if (!runner.wants(name)) return;
  Executor& executor = runner.executor();
  const AskedTree<float, Executor> tree(executor, question);
  const Array<std::int64_t, Executor> offsets(executor, static_cast<std::size_t>(question.queries) + 1);
  const Array<std::int64_t, Executor> indices(executor, room);
  const Array<float, Executor> distances(executor, room);
  const ReportMemory<NeighborListReport, Executor> report;
  runner.measure({
      .name = name,
      .bytes = tree.queries.size() * sizeof(float) + offsets.size() * sizeof(std::int64_t) +
               room * (sizeof(std::int64_t) + sizeof(float)),
      .items = static_cast<double>(question.queries),
      .unit = "queries",
      .scratch_bytes = list_within_scratch_bytes<Executor::kSpace>(tree.forest.shape, tree.search),
      .run =
          [&] {
            list_within(executor, tree.forest.shape, tree.forest.view(), {tree.asked.span(), {}}, tree.search,
                        offsets.span(), indices.span(), distances.span(), report.get());
          },
      .verify =
          [&] {
            const auto found = offsets.to_host();
            if (found.back() > static_cast<std::int64_t>(room))
              return "no room for " + std::to_string(found.back());
            return verify_counts(tree, [&](std::size_t i) { return found[i + 1] - found[i]; });
          },
      .verified_by = "brute force, counts of 16 queries",
  });
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
  for (const std::string& cloud : runner.clouds()) {
    bench_build_of<float>(runner, cloud, 10);
    bench_build_of<float>(runner, cloud, 40);
    bench_build_of<double>(runner, cloud, 40);
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

template <class Executor>
void bench_queries(Runner<Executor>& runner, std::int64_t points, std::int64_t queries) {
  for (const int nearest : {8, 50}) {
    for (const bool sorted : {true, false}) {
      bench_nearest<float>(runner, {points, 3, queries, CloudPattern::kUniform, sorted}, nearest);
    }
    bench_nearest<float>(runner, {points, 3, queries, CloudPattern::kClustered, true}, nearest);
#if CUMULUS_BENCH_NANOFLANN
    if constexpr (std::is_same_v<Executor, CpuExecutor>) {
      for (const bool sorted : {true, false})
        bench_nanoflann_nearest(runner, points, queries, static_cast<std::size_t>(nearest), sorted);
    }
#endif
  }
}

/// Of points that the usual search is not made for, and of all points within a radius.
template <class Executor>
void bench_other_queries(Runner<Executor>& runner, std::int64_t points, std::int64_t queries) {
  bench_nearest<double>(runner, {.points = points, .dimensions = 3, .queries = queries}, 8);
  bench_nearest<float>(runner, {.points = points, .dimensions = 3, .queries = queries, .period = 1}, 8);
  for (const int dimensions : {2, 6, 8}) {
    const std::int64_t fewer = dimensions > 3 ? queries / 10 : queries;
    bench_nearest<float>(runner, {.points = points, .dimensions = dimensions, .queries = fewer}, 8);
  }
  // About 8 neighbours each, and room for twice as many.
  const double radius = std::cbrt(8 * 3 / (4 * 3.14159265) / static_cast<double>(points));
  const Question<float> within{.points = points, .dimensions = 3, .queries = queries, .radius = radius};
  bench_count(runner, within);
  bench_list(runner, within, static_cast<std::size_t>(16 * queries));
}

template <class Executor>
void bench_all(Runner<Executor>& runner) {
  constexpr bool kGpu = std::is_same_v<Executor, CudaExecutor>;
  std::vector<std::int64_t> sizes = {100'000, 1'000'000, 10'000'000};
  if (kGpu) sizes.push_back(100'000'000);
  if (runner.quick()) sizes = {20'000};
  bench_builds(runner, sizes);
  if constexpr (!kGpu) {
    if (!runner.quick()) sizes.insert(sizes.begin(), 10'000);
    bench_cores(runner, sizes);
  }
  const std::int64_t queries = runner.quick() ? 1000 : kGpu ? 2'000'000 : 100'000;
  for (const std::int64_t size : sizes) {
    const bool usual = runner.quick() || size == 1'000'000;
    if (usual || (kGpu && size == 10'000'000)) bench_queries(runner, size, queries);
    if (usual) bench_other_queries(runner, size, queries);
  }
}

}  // namespace

void bench_kd_tree(Runner<CpuExecutor>& runner);
void bench_kd_tree(Runner<CudaExecutor>& runner);

void bench_kd_tree(Runner<CpuExecutor>& runner) { bench_all(runner); }
void bench_kd_tree(Runner<CudaExecutor>& runner) { bench_all(runner); }

}  // namespace cumulus::bench
