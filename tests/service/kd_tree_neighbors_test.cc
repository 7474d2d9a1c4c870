#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/service/kd_tree_fixture.h"

namespace cumulus {
namespace {

using testing::expect_bad_field;
using testing::find_array;
using testing::KdTreeService;
using testing::set_inline;
using testing::values_of;

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

TEST_F(KdTreeService, RefusesAForgedTreeWithThePositionOfItsFirstWrongLeaf) {
  v1::FindNeighborsRequest request = question();
  std::string& bytes = *request.mutable_tree()->mutable_node_data()->mutable_inline_array()->mutable_data();
  std::vector<KdTreeNode> nodes(bytes.size() / sizeof(KdTreeNode));
  std::memcpy(nodes.data(), bytes.data(), bytes.size());
  // Every leaf has all points, so that a query would look at each of them many times.
  for (KdTreeNode& node : nodes) node = {0, 500, node.is_leaf, node.radius};
  std::memcpy(bytes.data(), nodes.data(), bytes.size());
  const grpc::Status status = find(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  const auto info = testing::detail_of<google::rpc::ErrorInfo>(status);
  EXPECT_EQ(info.reason(), "WRONG_TREE");
  EXPECT_EQ(info.metadata().at("node"), std::to_string(nodes.size() / 2 + 1)) << status.error_message();
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
