#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness/bench.h"
#include "kernels/kd_tree/kd_tree.h"
#include "kernels/kd_tree/kd_tree_query.h"
#include "kernels/kd_tree/scratch.h"
#include "tests/cases/kd_tree_case.h"
#include "tests/cases/kd_tree_check.h"

// Trees that the benchmark of KD-trees builds.

namespace cumulus::bench {

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
  std::size_t scratch_bytes(const Executor& executor) const {
    return build_kd_tree_scratch_bytes<T, Executor::kSpace>(shape, options, executor.numbers());
  }
  KdTreeView<T, Executor::kSpace> view() const {
    return {points.span(), idx_array.span(), node_data.span(), node_bounds.span()};
  }
  testing::HostKdTree<T> to_host() const {
    testing::HostKdTree<T> tree(shape);
    tree.points = points.to_host();
    tree.idx_array = idx_array.to_host();
    tree.node_data = node_data.to_host();
    tree.node_bounds = node_bounds.to_host();
    return tree;
  }
};

template <class T>
std::string variant(const KdTreeShape& shape, const KdTreeOptions& options, testing::CloudPattern pattern) {
  return std::string(sizeof(T) == 4 ? "f32" : "f64") + "-" + std::to_string(shape.dimensions) + "d/" +
         testing::name_of(pattern) + (options.split == KdTreeSplit::kRoundRobin ? "-round-robin" : "") +
         (options.medians == KdTreeMedians::kSampled ? "-sampled" : "") + "/leaf-" +
         std::to_string(options.leaf_size);
}

/// On an executor that need not be the runner's.
template <class T, class Executor>
void measure_build(Runner<Executor>& runner, Executor& executor, const std::string& name,
                   const KdTreeShape& shape, const KdTreeOptions& options, std::vector<T> cloud) {
  Forest<T, Executor> forest(executor, shape, options, std::move(cloud));
  executor.reserve_scratch(forest.scratch_bytes(executor));
  runner.measure({
      .name = name,
      .bytes = testing::kd_tree_bytes<T>(shape),
      .items = static_cast<double>(shape.all_points()),
      .unit = "points",
      .scratch_bytes = forest.scratch_bytes(executor),
      .run =
          [&] {
            executor.reuse_scratch();
            forest.build(executor);
          },
      .verify =
          [&] {
            const testing::HostKdTree<T> tree = forest.to_host();
            if (shape.trees == 1) return testing::KdTreeCheck<T>(forest.cloud, options, tree).run();
            return verify_kd_tree(testing::KdTreeOracle<T>(forest.cloud, shape, options).tree(), tree);
          },
      .verified_by = shape.trees == 1 ? "every point, box and split" : "serial oracle, every element",
  });
}

}  // namespace cumulus::bench
