#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/core/cuda_executor.h"
#include "tests/cases/kd_tree_check.h"
#include "tests/service/kd_tree_fixture.h"

namespace cumulus {
namespace {

using testing::CloudPattern;
using testing::expect_bad_field;
using testing::find_array;
using testing::HostKdTree;
using testing::KdTreeOracle;
using testing::KdTreeService;
using testing::make_cloud;
using testing::set_inline;
using testing::values_of;

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
  const KdTreeShape shape = kd_tree_shape(6, 100, 3, KdTreeOptions{}.leaf_size);
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

/// Enough points for samples, where a GPU takes them.
class KdTreeForOneFrame : public KdTreeService {
 protected:
  void expect_tree(server::Configuration configuration) {
    constexpr std::int64_t kPoints = 1 << 17;
    configuration.limits.max_inline_bytes = 3 << 20;
    const testing::TestServer server(configuration);
    const auto cloud = make_cloud<float>(kPoints, 2, CloudPattern::kClustered);
    auto request = points_of(cloud, {kPoints, 2});
    request.set_medians(v1::MEDIANS_SAMPLED);
    grpc::ClientContext context;
    const grpc::Status status = server.operations->BuildKdTree(&context, request, &result_);
    ASSERT_TRUE(status.ok()) << status.error_message();
    const KdTreeOptions options{.medians = KdTreeMedians::kSampled};
    const KdTreeShape shape = kd_tree_shape(1, kPoints, 2, options.leaf_size);
    EXPECT_EQ(testing::KdTreeCheck<float>(cloud, options, built_arrays<float>(shape)).run(), "");
  }
};

TEST_F(KdTreeForOneFrame, IsATreeOnTheCpu) { expect_tree(testing::TestServer::configuration()); }

TEST_F(KdTreeForOneFrame, IsATreeOnTheGpuCuda) {
  if (cuda_device_count() == 0) GTEST_SKIP() << "no GPU here: " << cuda_unavailable_reason();
  expect_tree(testing::TestServer::gpu_configuration());
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
  expect_bad_field(build(request), "leaf_size", "-1; 1 to 2^31 - 1, or 0 for 20");
  request.set_leaf_size(0);
  request.set_split(static_cast<v1::KdTreeSplit>(9));
  expect_bad_field(build(request), "split", "9; WIDEST_SPREAD");
  request.set_split(v1::WIDEST_SPREAD);
  request.set_layout(static_cast<v1::KdTreeLayout>(7));
  expect_bad_field(build(request), "layout", "7; NODES_AND_LEAVES or LEFT_BALANCED");
  request.clear_layout();
  request.set_medians(static_cast<v1::KdTreeMedians>(5));
  expect_bad_field(build(request), "medians", "5; MEDIANS_EXACT or MEDIANS_SAMPLED");
  request.set_medians(v1::MEDIANS_SAMPLED);
  request.set_split(v1::MIDPOINT);
  expect_bad_field(build(request), "medians", "MEDIANS_SAMPLED; with MIDPOINT MEDIANS_EXACT");
  request.set_split(v1::ROUND_ROBIN);
  expect_bad_field(build(request), "medians", "MEDIANS_SAMPLED; with ROUND_ROBIN MEDIANS_EXACT");
  request.clear_split();
  request.set_layout(v1::LEFT_BALANCED);
  expect_bad_field(build(request), "medians", "MEDIANS_SAMPLED; of LEFT_BALANCED MEDIANS_EXACT");
  request.clear_medians();
  request.set_split(v1::WIDEST_SPREAD);
  expect_bad_field(build(request), "split", "WIDEST_SPREAD; of LEFT_BALANCED ROUND_ROBIN");
  request.set_split(v1::ROUND_ROBIN);
  request.set_leaf_size(10);
  expect_bad_field(build(request), "leaf_size", "10; LEFT_BALANCED has no leaves");
  request.set_leaf_size(0);
  set_inline(*request.mutable_payload(), v1::FLOAT32, {499, 3}, std::vector<float>(499 * 3));
  expect_bad_field(build(request), "payload", "FLOAT32 [499, 3]");
}

}  // namespace
}  // namespace cumulus
