#pragma once

#include <vector>

#include "kernels/kd_tree/kd_tree.h"
#include "kernels/kd_tree/scratch.h"
#include "tests/cases/kd_tree_case.h"
#include "tests/support/executors.h"

namespace cumulus::testing {

template <class T>
struct BuiltKdTree {
  HostKdTree<T> tree;
  KdTreeReport report;
};

/// Builds in fresh, poisoned memory; checks that exactly the stated scratch was taken.
template <class Backend, class T>
BuiltKdTree<T> build(Backend& backend, const std::vector<T>& cloud, const KdTreeShape& shape,
                     const KdTreeOptions& options) {
  BuiltKdTree<T> built{HostKdTree<T>(shape), {}};
  BackendArray<Backend, T> input(backend, cloud);
  BackendArray<Backend, T> points(backend, built.tree.points.size());
  BackendArray<Backend, std::int64_t> idx_array(backend, built.tree.idx_array.size());
  BackendArray<Backend, KdTreeNode> node_data(backend, built.tree.node_data.size());
  BackendArray<Backend, T> node_bounds(backend, built.tree.node_bounds.size());
  const std::size_t scratch_bytes =
      build_kd_tree_scratch_bytes<T, Backend::kSpace>(shape, options, backend.executor().numbers());
  backend.executor().reserve_scratch(scratch_bytes);
  build_kd_tree(backend.executor(), input.const_span(), shape, options,
                {points.span(), idx_array.span(), node_data.span(), node_bounds.span()}, &built.report);
  backend.executor().synchronize();
  if (built.report.point < 0) {
    EXPECT_EQ(backend.executor().scratch_arena().used_bytes(), scratch_bytes);
  }
  built.tree.points = points.to_host();
  built.tree.idx_array = idx_array.to_host();
  built.tree.node_data = node_data.to_host();
  built.tree.node_bounds = node_bounds.to_host();
  return built;
}

}  // namespace cumulus::testing
