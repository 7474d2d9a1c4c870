#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "tests/cases/kd_tree_case.h"
#include "tests/cases/left_balanced_case.h"
#include "tests/cases/neighbor_case.h"
#include "tests/support/test_server.h"

namespace cumulus::testing {

class KdTreeService : public ::testing::Test {
 protected:
  grpc::Status build(const v1::BuildKdTreeRequest& request) {
    grpc::ClientContext context;
    return server_.operations->BuildKdTree(&context, request, &result_);
  }
  grpc::Status find(const v1::FindNeighborsRequest& request) {
    grpc::ClientContext context;
    return server_.operations->FindNeighbors(&context, request, &result_);
  }
  template <class T>
  static v1::BuildKdTreeRequest points_of(const std::vector<T>& cloud,
                                          const std::vector<std::int64_t>& shape) {
    v1::BuildKdTreeRequest request;
    set_inline(*request.mutable_points(), sizeof(T) == 4 ? v1::FLOAT32 : v1::FLOAT64, shape, cloud);
    return request;
  }
  /// Inline arrays of the result that came last, as a tree.
  v1::KdTree built_tree() {
    v1::KdTree tree;
    *tree.mutable_points()->mutable_inline_array() = find_array(result_, "points")->inline_array();
    *tree.mutable_idx_array()->mutable_inline_array() = find_array(result_, "idx_array")->inline_array();
    *tree.mutable_node_data()->mutable_inline_array() = find_array(result_, "node_data")->inline_array();
    *tree.mutable_node_bounds()->mutable_inline_array() = find_array(result_, "node_bounds")->inline_array();
    return tree;
  }
  template <class T>
  HostKdTree<T> built_arrays(const KdTreeShape& shape) {
    HostKdTree<T> tree(shape);
    tree.points = values_of<T>(find_array(result_, "points")->inline_array());
    tree.idx_array = values_of<std::int64_t>(find_array(result_, "idx_array")->inline_array());
    tree.node_data = values_of<KdTreeNode>(find_array(result_, "node_data")->inline_array());
    tree.node_bounds = values_of<T>(find_array(result_, "node_bounds")->inline_array());
    return tree;
  }
  /// Asks a small tree of floats in three dimensions.
  v1::FindNeighborsRequest question() {
    EXPECT_TRUE(build(points_of(cloud_, {500, 3})).ok());
    v1::FindNeighborsRequest request;
    *request.mutable_tree() = built_tree();
    set_inline(*request.mutable_queries(), v1::FLOAT32, {10, 3}, queries_);
    request.set_nearest(4);
    return request;
  }

  /// One query's list, in any order.
  static void expect_list(std::vector<Neighbor<float>> right, bool squared,
                          const std::vector<std::int64_t>& offsets, const std::vector<std::int64_t>& indices,
                          const std::vector<float>& distances, std::size_t query) {
    const auto begin = static_cast<std::size_t>(offsets[query]);
    const auto end = static_cast<std::size_t>(offsets[query + 1]);
    ASSERT_EQ(end - begin, right.size()) << "query " << query;
    std::vector<std::pair<std::int64_t, float>> listed;
    for (std::size_t i = begin; i < end; ++i) listed.emplace_back(indices[i], distances[i]);
    std::vector<std::pair<std::int64_t, float>> wanted;
    for (const Neighbor<float>& neighbor : right) {
      wanted.emplace_back(neighbor.index,
                          squared ? neighbor.squared_distance : std::sqrt(neighbor.squared_distance));
    }
    std::sort(listed.begin(), listed.end());
    std::sort(wanted.begin(), wanted.end());
    EXPECT_TRUE(listed == wanted) << "query " << query;
  }
  /// Asks about the small tree, and looks at every point of its cloud.
  void expect_lists(const v1::FindNeighborsRequest& request, const std::vector<float>& radii) {
    const grpc::Status status = find(request);
    ASSERT_TRUE(status.ok()) << status.error_message();
    const auto offsets = values_of<std::int64_t>(find_array(result_, "offsets")->inline_array());
    const auto indices = values_of<std::int64_t>(find_array(result_, "indices")->inline_array());
    const auto distances = values_of<float>(find_array(result_, "distances")->inline_array());
    ASSERT_EQ(offsets.size(), 11u);
    EXPECT_EQ(offsets[0], 0);
    ASSERT_EQ(static_cast<std::size_t>(offsets[10]), indices.size());
    EXPECT_GT(offsets[10], 0);
    NeighborSearch search;
    for (int axis = 0; axis < request.period_size(); ++axis)
      search.period[static_cast<std::size_t>(axis)] = request.period(axis);
    for (std::size_t i = 0; i < 10; ++i) {
      expect_list(neighbors_by_brute_force(cloud_, 3, queries_.data() + 3 * i, radii[i], search),
                  request.squared(), offsets, indices, distances, i);
    }
  }

  const std::vector<float> cloud_ = make_cloud<float>(500, 3, CloudPattern::kUniform);
  const std::vector<float> queries_ = make_cloud<float>(10, 3, CloudPattern::kUniform, 2);
  TestServer server_;
  v1::OperationResult result_;
};

}  // namespace cumulus::testing
