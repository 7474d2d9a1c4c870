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

namespace cumulus {
namespace {

using testing::CloudPattern;
using testing::expect_bad_field;
using testing::find_array;
using testing::HostKdTree;
using testing::KdTreeOracle;
using testing::make_cloud;
using testing::set_inline;
using testing::TestServer;
using testing::values_of;

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
  static void expect_list(std::vector<testing::Neighbor<float>> right, bool squared,
                          const std::vector<std::int64_t>& offsets, const std::vector<std::int64_t>& indices,
                          const std::vector<float>& distances, std::size_t query) {
    const auto begin = static_cast<std::size_t>(offsets[query]);
    const auto end = static_cast<std::size_t>(offsets[query + 1]);
    ASSERT_EQ(end - begin, right.size()) << "query " << query;
    std::vector<std::pair<std::int64_t, float>> listed;
    for (std::size_t i = begin; i < end; ++i) listed.emplace_back(indices[i], distances[i]);
    std::vector<std::pair<std::int64_t, float>> wanted;
    for (const testing::Neighbor<float>& neighbor : right) {
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
      expect_list(testing::neighbors_by_brute_force(cloud_, 3, queries_.data() + 3 * i, radii[i], search),
                  request.squared(), offsets, indices, distances, i);
    }
  }

  const std::vector<float> cloud_ = make_cloud<float>(500, 3, CloudPattern::kUniform);
  const std::vector<float> queries_ = make_cloud<float>(10, 3, CloudPattern::kUniform, 2);
  TestServer server_;
  v1::OperationResult result_;
};

TEST_F(KdTreeService, BuildsTheOraclesTree) {
  for (const auto split : {v1::KD_TREE_SPLIT_UNSPECIFIED, v1::ROUND_ROBIN, v1::MIDPOINT}) {
    const auto cloud = make_cloud<double>(1000, 2, CloudPattern::kClustered);
    auto request = points_of(cloud, {1000, 2});
    request.set_leaf_size(7);
    request.set_split(split);
    const grpc::Status status = build(request);
    ASSERT_TRUE(status.ok()) << status.error_message();
    const KdTreeShape shape = kd_tree_shape(1, 1000, 2, 7);
    const KdTreeSplit asked = split == v1::ROUND_ROBIN ? KdTreeSplit::kRoundRobin
                              : split == v1::MIDPOINT  ? KdTreeSplit::kMidpoint
                                                       : KdTreeSplit::kWidestSpread;
    EXPECT_EQ(
        verify_kd_tree(KdTreeOracle<double>(cloud, shape, {7, asked}).tree(), built_arrays<double>(shape)),
        "");
  }
}

TEST_F(KdTreeService, BuildsManyTreesAndBringsTheirPayloadsIntoOrder) {
  const auto cloud = make_cloud<float>(600, 3, CloudPattern::kUniform);
  auto request = points_of(cloud, {6, 100, 3});
  std::vector<std::uint16_t> payload(1200);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::uint16_t>(i);
  set_inline(*request.mutable_payload(), v1::UINT16, {6, 100, 2}, payload);
  ASSERT_TRUE(build(request).ok());
  const KdTreeShape shape = kd_tree_shape(6, 100, 3, 40);
  const HostKdTree<float> tree = built_arrays<float>(shape);
  EXPECT_EQ(verify_kd_tree(KdTreeOracle<float>(cloud, shape, {}).tree(), tree), "");
  const auto& permuted = find_array(result_, "payload")->inline_array();
  EXPECT_EQ(permuted.spec().element_type(), v1::UINT16);
  EXPECT_EQ(permuted.spec().shape_size(), 3);
  const auto rows = values_of<std::uint16_t>(permuted);
  for (std::size_t i = 0; i < 600; ++i) {
    ASSERT_EQ(rows[2 * i + 1], 2 * (i / 100 * 100 + static_cast<std::size_t>(tree.idx_array[i])) + 1);
  }
}

TEST_F(KdTreeService, ArrangesLeftBalancedTrees) {
  auto request = points_of(cloud_, {5, 100, 3});
  request.set_layout(v1::LEFT_BALANCED);
  std::vector<std::int32_t> payload(500);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::int32_t>(i);
  set_inline(*request.mutable_payload(), v1::INT32, {5, 100}, payload);
  const grpc::Status status = build(request);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(result_.arrays_size(), 3);
  const auto points = values_of<float>(find_array(result_, "points")->inline_array());
  const auto order = values_of<std::int64_t>(find_array(result_, "idx_array")->inline_array());
  const auto rows = values_of<std::int32_t>(find_array(result_, "payload")->inline_array());
  for (std::size_t tree = 0; tree < 5; ++tree) {
    const testing::LeftBalancedOracle<float> oracle(cloud_.data() + tree * 300, 100, 3);
    for (std::size_t node = 0; node < 100; ++node) {
      const auto index = static_cast<std::size_t>(oracle.nodes()[node]);
      ASSERT_EQ(order[tree * 100 + node], oracle.nodes()[node]);
      ASSERT_EQ(rows[tree * 100 + node], static_cast<std::int32_t>(tree * 100 + index));
      for (std::size_t axis = 0; axis < 3; ++axis)
        ASSERT_EQ(points[(tree * 100 + node) * 3 + axis], cloud_[(tree * 100 + index) * 3 + axis]);
    }
  }
}

TEST_F(KdTreeService, TakesNoPointsAtAll) {
  ASSERT_TRUE(build(points_of(std::vector<float>(), {0, 3})).ok());
  v1::FindNeighborsRequest request;
  *request.mutable_tree() = built_tree();
  set_inline(*request.mutable_queries(), v1::FLOAT32, {1, 3}, std::vector<float>(3));
  request.set_nearest(2);
  ASSERT_TRUE(find(request).ok());
  EXPECT_EQ(values_of<std::int64_t>(find_array(result_, "indices")->inline_array()),
            (std::vector<std::int64_t>{-1, -1}));
}

TEST_F(KdTreeService, SaysWhereTheFirstNanIs) {
  auto cloud = cloud_;
  cloud[3 * 77 + 2] = std::nanf("");
  const grpc::Status status = build(points_of(cloud, {500, 3}));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_NE(status.error_message().find("points: point 77, dimension 2 is NaN"), std::string::npos)
      << status.error_message();
  const grpc::Status batched = build(points_of(cloud, {10, 50, 3}));
  EXPECT_NE(batched.error_message().find("tree 1, point 27, dimension 2"), std::string::npos)
      << batched.error_message();
}

TEST_F(KdTreeService, RefusesWhatIsNoCloud) {
  expect_bad_field(build(points_of(cloud_, {1500})), "points", "[points, dimensions]");
  expect_bad_field(build(points_of(cloud_, {1, 5, 100, 3})), "points", "[points, dimensions]");
  expect_bad_field(build(points_of(cloud_, {1500, 1})), "points", "1 dimensions; 2 to 16");
  expect_bad_field(build(points_of(std::vector<float>(17), {1, 17})), "points", "17 dimensions");
  v1::BuildKdTreeRequest integers;
  set_inline(*integers.mutable_points(), v1::INT32, {1, 3}, std::vector<std::int32_t>(3));
  expect_bad_field(build(integers), "points", "FLOAT32 or FLOAT64");
  expect_bad_field(build(points_of(std::vector<float>(), {(1 << 24) + 1, 0, 3})), "points", "at most 2^24");
}

TEST_F(KdTreeService, RefusesOptionsOutOfRange) {
  auto request = points_of(cloud_, {500, 3});
  request.set_leaf_size(-1);
  expect_bad_field(build(request), "leaf_size", "-1; 1 to 2^31 - 1, or 0 for 40");
  request.set_leaf_size(0);
  request.set_split(static_cast<v1::KdTreeSplit>(9));
  expect_bad_field(build(request), "split", "9; WIDEST_SPREAD");
  request.set_split(v1::WIDEST_SPREAD);
  request.set_layout(static_cast<v1::KdTreeLayout>(7));
  expect_bad_field(build(request), "layout", "7; NODES_AND_LEAVES or LEFT_BALANCED");
  request.set_layout(v1::LEFT_BALANCED);
  expect_bad_field(build(request), "split", "WIDEST_SPREAD; of LEFT_BALANCED ROUND_ROBIN");
  request.set_split(v1::ROUND_ROBIN);
  request.set_leaf_size(10);
  expect_bad_field(build(request), "leaf_size", "10; LEFT_BALANCED has no leaves");
  request.set_leaf_size(0);
  set_inline(*request.mutable_payload(), v1::FLOAT32, {499, 3}, std::vector<float>(499 * 3));
  expect_bad_field(build(request), "payload", "FLOAT32 [499, 3]");
}

TEST_F(KdTreeService, FindsTheNearestAndCountsThoseWithin) {
  v1::FindNeighborsRequest request = question();
  request.set_squared(true);
  ASSERT_TRUE(find(request).ok());
  const auto indices = values_of<std::int64_t>(find_array(result_, "indices")->inline_array());
  const auto distances = values_of<float>(find_array(result_, "distances")->inline_array());
  NeighborSearch search;
  search.squared = true;
  const float infinity = std::numeric_limits<float>::infinity();
  request.set_radius(0.25);
  request.mutable_counts();
  ASSERT_TRUE(find(request).ok());
  const auto counts = values_of<std::int64_t>(find_array(result_, "counts")->inline_array());
  for (std::size_t i = 0; i < 10; ++i) {
    const float* query = queries_.data() + 3 * i;
    EXPECT_EQ(verify_nearest(testing::neighbors_by_brute_force(cloud_, 3, query, infinity, search), search, 4,
                             indices.data() + 4 * i, distances.data() + 4 * i),
              "");
    EXPECT_EQ(counts[i], static_cast<std::int64_t>(
                             testing::neighbors_by_brute_force(cloud_, 3, query, 0.25f, search).size()));
  }
}

TEST_F(KdTreeService, ListsThoseWithin) {
  for (const bool squared : {false, true}) {
    v1::FindNeighborsRequest request = question();
    request.set_squared(squared);
    request.set_radius(0.25);
    request.mutable_lists()->set_max_neighbors(std::numeric_limits<std::int64_t>::max());
    expect_lists(request, std::vector<float>(10, 0.25f));
  }
}

TEST_F(KdTreeService, ListsWithARadiusForEachQuery) {
  v1::FindNeighborsRequest request = question();
  std::vector<float> radii(10);
  for (std::size_t i = 0; i < 10; ++i) radii[i] = 0.05f * static_cast<float>(i);
  set_inline(*request.mutable_radii(), v1::FLOAT32, {10}, radii);
  request.mutable_lists()->set_max_neighbors(5000);
  expect_lists(request, radii);
}

TEST_F(KdTreeService, ListsAroundPeriodicBoxes) {
  v1::FindNeighborsRequest request = question();
  request.set_radius(0.25);
  for (int axis = 0; axis < 3; ++axis) request.add_period(axis == 1 ? 0 : 1);
  request.mutable_lists()->set_max_neighbors(5000);
  expect_lists(request, std::vector<float>(10, 0.25f));
}

TEST_F(KdTreeService, FindsTheNearestAroundPeriodicBoxes) {
  v1::FindNeighborsRequest request = question();
  for (int axis = 0; axis < 3; ++axis) request.add_period(1);
  ASSERT_TRUE(find(request).ok());
  const auto indices = values_of<std::int64_t>(find_array(result_, "indices")->inline_array());
  const auto distances = values_of<float>(find_array(result_, "distances")->inline_array());
  NeighborSearch search;
  search.period = {1, 1, 1};
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(
        verify_nearest(testing::neighbors_by_brute_force(cloud_, 3, queries_.data() + 3 * i,
                                                         std::numeric_limits<float>::infinity(), search),
                       search, 4, indices.data() + 4 * i, distances.data() + 4 * i),
        "");
  }
}

TEST_F(KdTreeService, FindsTheNearestWithinARadiusForEachQuery) {
  v1::FindNeighborsRequest request = question();
  std::vector<float> radii(10);
  for (std::size_t i = 0; i < 10; ++i) radii[i] = 0.02f * static_cast<float>(i);
  set_inline(*request.mutable_radii(), v1::FLOAT32, {10}, radii);
  ASSERT_TRUE(find(request).ok());
  const auto indices = values_of<std::int64_t>(find_array(result_, "indices")->inline_array());
  const auto distances = values_of<float>(find_array(result_, "distances")->inline_array());
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(
        verify_nearest(testing::neighbors_by_brute_force(cloud_, 3, queries_.data() + 3 * i, radii[i], {}),
                       {}, 4, indices.data() + 4 * i, distances.data() + 4 * i),
        "");
  }
}

TEST_F(KdTreeService, SaysHowManyNeighborsThereAreNoRoomFor) {
  v1::FindNeighborsRequest request = question();
  request.mutable_lists();
  request.set_radius(0);
  ASSERT_TRUE(find(request).ok());  // lists of no neighbours take no room
  EXPECT_EQ(values_of<std::int64_t>(find_array(result_, "offsets")->inline_array()),
            std::vector<std::int64_t>(11));
  EXPECT_EQ(find_array(result_, "indices")->inline_array().spec().shape(0), 0);
  request.clear_radius();
  request.mutable_lists()->set_max_neighbors(4999);
  const grpc::Status status = find(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_NE(status.error_message().find("5000 neighbours within the radius; lists.max_neighbors makes room "
                                        "for 4999"),
            std::string::npos)
      << status.error_message();
}

TEST_F(KdTreeService, ListsOfNoQueriesAndOfNoPoints) {
  v1::FindNeighborsRequest request = question();
  request.mutable_lists()->set_max_neighbors(7);
  set_inline(*request.mutable_queries(), v1::FLOAT32, {0, 3}, std::vector<float>());
  ASSERT_TRUE(find(request).ok());
  EXPECT_EQ(values_of<std::int64_t>(find_array(result_, "offsets")->inline_array()),
            (std::vector<std::int64_t>{0}));
  ASSERT_TRUE(build(points_of(std::vector<float>(), {0, 3})).ok());
  *request.mutable_tree() = built_tree();
  set_inline(*request.mutable_queries(), v1::FLOAT32, {2, 3}, std::vector<float>(6));
  ASSERT_TRUE(find(request).ok());
  EXPECT_EQ(values_of<std::int64_t>(find_array(result_, "offsets")->inline_array()),
            (std::vector<std::int64_t>{0, 0, 0}));
}

TEST_F(KdTreeService, TakesARadiusForEachQuery) {
  v1::FindNeighborsRequest request = question();
  request.mutable_counts();
  std::vector<float> radii(10);
  for (std::size_t i = 0; i < 10; ++i) radii[i] = 0.05f * static_cast<float>(i);
  set_inline(*request.mutable_radii(), v1::FLOAT32, {10}, radii);
  ASSERT_TRUE(find(request).ok());
  const auto counts = values_of<std::int64_t>(find_array(result_, "counts")->inline_array());
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(
        counts[i],
        static_cast<std::int64_t>(
            testing::neighbors_by_brute_force(cloud_, 3, queries_.data() + 3 * i, radii[i], {}).size()));
  }
  radii[6] = -1;
  set_inline(*request.mutable_radii(), v1::FLOAT32, {10}, radii);
  const grpc::Status status = find(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_NE(status.error_message().find("query 6"), std::string::npos) << status.error_message();
}

TEST_F(KdTreeService, SaysWhichQueryHasNoAnswer) {
  v1::FindNeighborsRequest request = question();
  auto queries = queries_;
  queries[3 * 4 + 1] = std::nanf("");
  set_inline(*request.mutable_queries(), v1::FLOAT32, {10, 3}, queries);
  grpc::Status status = find(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_NE(status.error_message().find("query 4, dimension 1 is NaN"), std::string::npos)
      << status.error_message();
  queries[3 * 4 + 1] = 1.5f;
  set_inline(*request.mutable_queries(), v1::FLOAT32, {10, 3}, queries);
  for (int axis = 0; axis < 3; ++axis) request.add_period(1);
  status = find(request);
  EXPECT_NE(status.error_message().find("query 4, dimension 1 lies outside"), std::string::npos)
      << status.error_message();
  request.set_period(1, 0.25);
  status = find(request);
  EXPECT_NE(status.error_message().find("tree 0 has points outside of [0, period[1]]"), std::string::npos)
      << status.error_message();
}

TEST_F(KdTreeService, RefusesArraysThatAreNoTree) {
  const v1::FindNeighborsRequest good = question();
  v1::FindNeighborsRequest request = good;
  request.mutable_tree()->clear_points();
  EXPECT_EQ(find(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request = good;
  set_inline(*request.mutable_tree()->mutable_points(), v1::FLOAT64, {500, 3}, std::vector<double>(1500));
  expect_bad_field(find(request), "tree.node_bounds", "FLOAT64");
  request = good;
  set_inline(*request.mutable_tree()->mutable_idx_array(), v1::INT64, {499}, std::vector<std::int64_t>(499));
  expect_bad_field(find(request), "tree.idx_array", "INT64 [500]");
  request = good;
  set_inline(*request.mutable_tree()->mutable_node_data(), v1::UINT8, {14, 32},
             std::vector<std::uint8_t>(14 * 32));
  expect_bad_field(find(request), "tree.node_data", "1, 3, 7, 15");
  request = good;
  set_inline(*request.mutable_queries(), v1::FLOAT32, {10, 2}, std::vector<float>(20));
  expect_bad_field(find(request), "queries", "FLOAT32 [queries, 3]");
  request = good;
  set_inline(*request.mutable_radii(), v1::FLOAT32, {9}, std::vector<float>(9));
  expect_bad_field(find(request), "radii", "FLOAT32 [10]");
}

TEST_F(KdTreeService, RefusesQuestionsOutOfRange) {
  const v1::FindNeighborsRequest good = question();
  v1::FindNeighborsRequest request = good;
  for (const int nearest : {0, -1, 129}) {
    request.set_nearest(nearest);
    expect_bad_field(find(request), "nearest", "1 to 128");
  }
  request.clear_wanted();
  expect_bad_field(find(request), "wanted", "`nearest`, `counts` or `lists`");
  request.mutable_lists()->set_max_neighbors(-1);
  expect_bad_field(find(request), "lists.max_neighbors", "is -1; 0, or the most neighbours");
  request = good;
  request.set_radius(-0.5);
  expect_bad_field(find(request), "radius", "0 or more");
  request.set_radius(std::nan(""));
  expect_bad_field(find(request), "radius", "0 or more");
  request.set_radius(1);
  set_inline(*request.mutable_radii(), v1::FLOAT32, {10}, std::vector<float>(10));
  expect_bad_field(find(request), "radius", "`radii` too");
  request = good;
  request.add_period(1);
  expect_bad_field(find(request), "period", "has 1 elements");
  request.add_period(-1);
  request.add_period(0);
  expect_bad_field(find(request), "period[1]", "finite length");
}

TEST_F(KdTreeService, ChainsOnHandles) {
  const std::string session = server_.create_session();
  auto request = points_of(cloud_, {500, 3});
  request.mutable_options()->set_session(session);
  ASSERT_TRUE(build(request).ok());
  v1::FindNeighborsRequest asked;
  asked.mutable_options()->set_session(session);
  asked.mutable_options()->mutable_output()->mutable_inline_array();
  asked.mutable_tree()->mutable_points()->set_buffer(find_array(result_, "points")->buffer().name());
  asked.mutable_tree()->mutable_idx_array()->set_buffer(find_array(result_, "idx_array")->buffer().name());
  asked.mutable_tree()->mutable_node_data()->set_buffer(find_array(result_, "node_data")->buffer().name());
  asked.mutable_tree()->mutable_node_bounds()->set_buffer(
      find_array(result_, "node_bounds")->buffer().name());
  set_inline(*asked.mutable_queries(), v1::FLOAT32, {500, 3}, cloud_);
  asked.set_nearest(1);
  const grpc::Status status = find(asked);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const auto indices = values_of<std::int64_t>(find_array(result_, "indices")->inline_array());
  for (std::size_t i = 0; i < indices.size(); ++i) EXPECT_EQ(indices[i], static_cast<std::int64_t>(i));
}

}  // namespace
}  // namespace cumulus
