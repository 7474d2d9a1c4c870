#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "kernels/kd_tree/method.h"
#include "kernels/kd_tree/sampled/samples.h"
#include "tests/cases/kd_tree_case.h"
#include "tests/cases/kd_tree_check.h"
#include "tests/support/gpus.h"
#include "tests/support/kd_tree_builds.h"

// Trees for one frame: whatever the points, every point is there once, planes separate and boxes are tight.

namespace cumulus {
namespace {

using testing::build;
using testing::BuiltKdTree;
using testing::CloudPattern;
using testing::kCloudPatterns;
using testing::KdTreeCheck;
using testing::make_cloud;
using testing::verify_kd_tree;

KdTreeOptions sampled(std::int64_t leaf_size) {
  return {leaf_size, KdTreeSplit::kWidestSpread, KdTreeMedians::kSampled};
}

template <class Backend>
class KdTreeSampled : public testing::OnEveryBackend<Backend> {
 protected:
  /// Whether the backend takes samples of such a cloud.
  template <class T>
  bool takes_samples(const KdTreeShape& shape, const KdTreeOptions& options) {
    const kd_tree::BuildPlan plan =
        kd_tree::choose_build(sizeof(T), shape, options, this->executor().numbers());
    return Backend::kSpace == Space::kDevice && std::holds_alternative<kd_tree::BuildFromSamples>(plan);
  }
  template <class T>
  void expect_exact(const std::vector<T>& cloud, const KdTreeShape& shape, const KdTreeOptions& options,
                    const BuiltKdTree<T>& built) {
    const BuiltKdTree<T> exact =
        build(this->backend(), cloud, shape, {options.leaf_size, options.split, KdTreeMedians::kExact});
    EXPECT_EQ(verify_kd_tree(exact.tree, built.tree), "");
  }
  /// A tree, and the same one each time; the exact one where there are no samples.
  template <class T>
  void expect_tree(const std::vector<T>& cloud, const KdTreeShape& shape, const KdTreeOptions& options) {
    const BuiltKdTree<T> built = build(this->backend(), cloud, shape, options);
    EXPECT_EQ(built.report.point, -1);
    EXPECT_EQ(built.report.crowded, 0);
    EXPECT_EQ(KdTreeCheck<T>(cloud, options, built.tree).run(), "");
    if (!takes_samples<T>(shape, options)) return expect_exact(cloud, shape, options, built);
    EXPECT_EQ(verify_kd_tree(built.tree, build(this->backend(), cloud, shape, options).tree), "");
  }
  void expect_tree(std::int64_t points, int dimensions, std::int64_t leaf_size, CloudPattern pattern) {
    SCOPED_TRACE(std::string(name_of(pattern)) + ", " + std::to_string(points) + " points, " +
                 std::to_string(dimensions) + " dimensions, leaves of " + std::to_string(leaf_size));
    expect_tree(make_cloud<float>(points, dimensions, pattern),
                kd_tree_shape(1, points, dimensions, leaf_size), sampled(leaf_size));
  }
};
TYPED_TEST_SUITE(KdTreeSampled, testing::Backends, testing::BackendNames);

TYPED_TEST(KdTreeSampled, BuildsATreeOfEveryCloud) {
  for (const CloudPattern pattern : kCloudPatterns) {
    this->expect_tree(131072, 3, 20, pattern);
    this->expect_tree(150001, 2, 20, pattern);
    if (this->HasFailure()) return;
  }
}

TYPED_TEST(KdTreeSampled, BuildsLeavesOfManySizes) {
  for (const std::int64_t leaf_size : {1, 3, 5, 10, 39, 40, 49, 60, 100, 1000}) {
    this->expect_tree(140009, 3, leaf_size, CloudPattern::kUniform);
    this->expect_tree(200003, 3, leaf_size, CloudPattern::kClustered);
    if (this->HasFailure()) return;
  }
}

TYPED_TEST(KdTreeSampled, BuildsATreeOfMillionsSlow) {
  for (const CloudPattern pattern : kCloudPatterns) {
    this->expect_tree(1'000'003, 3, 20, pattern);
    if (this->HasFailure()) return;
  }
  this->expect_tree(5'200'001, 3, 20, CloudPattern::kClustered);
  this->expect_tree(10'500'001, 3, 20, CloudPattern::kUniform);
}

TYPED_TEST(KdTreeSampled, TakesPointsThatAreNotAligned) {
  const KdTreeShape shape = kd_tree_shape(1, 140001, 3, 20);
  const std::vector<float> cloud = make_cloud<float>(shape.points + 1, 3, CloudPattern::kUniform);
  testing::BackendArray<TypeParam, float> input(this->backend(), cloud);
  testing::BackendArray<TypeParam, float> points(this->backend(),
                                                 static_cast<std::size_t>(shape.coordinates()));
  testing::BackendArray<TypeParam, std::int64_t> idx_array(this->backend(),
                                                           static_cast<std::size_t>(shape.points));
  testing::BackendArray<TypeParam, KdTreeNode> node_data(this->backend(),
                                                         static_cast<std::size_t>(shape.nodes()));
  testing::BackendArray<TypeParam, float> node_bounds(this->backend(),
                                                      static_cast<std::size_t>(shape.bounds()));
  const Span<const float, TypeParam::kSpace> from(input.span().data() + 3,
                                                  static_cast<std::size_t>(shape.coordinates()));
  this->executor().reserve_scratch(
      build_kd_tree_scratch_bytes<float, TypeParam::kSpace>(shape, sampled(20), this->executor().numbers()));
  KdTreeReport report;
  build_kd_tree(this->executor(), from, shape, sampled(20),
                {points.span(), idx_array.span(), node_data.span(), node_bounds.span()}, &report);
  testing::HostKdTree<float> tree(shape);
  tree.points = points.to_host();
  tree.idx_array = idx_array.to_host();
  tree.node_data = node_data.to_host();
  tree.node_bounds = node_bounds.to_host();
  const std::vector<float> rest(cloud.begin() + 3, cloud.end());
  EXPECT_EQ(KdTreeCheck<float>(rest, sampled(20), tree).run(), "");
}

/// Samples that are unlike the points: these all lie in one place, which is one part's.
TYPED_TEST(KdTreeSampled, BuildsTheExactTreeWhereABucketHasNoRoom) {
  const KdTreeShape shape = kd_tree_shape(1, 140000, 3, 20);
  const kd_tree::BuildPlan plan = kd_tree::choose_build(4, shape, sampled(20), testing::kH200);
  const auto& from = std::get<kd_tree::BuildFromSamples>(plan);
  const std::vector<float> places = make_cloud<float>(shape.points, 3, CloudPattern::kUniform);
  std::vector<float> cloud(places.size());
  for (std::size_t i = 0; i < cloud.size(); ++i) cloud[i] = 0.5f + std::ldexp(places[i], -12);
  const auto spread = [&](std::int64_t point) {
    std::copy_n(places.begin() + 3 * point, 3, cloud.begin() + 3 * point);
  };
  const kd_tree::SampleSet first(shape.points, from.first_samples);
  for (std::int64_t i = 0; i < first.count; ++i) spread(first.index(i));
  // Then those of the second step, too: at first these lie with the points.
  for (const bool both : {false, true}) {
    for (std::uint32_t point = 0; both && point < shape.points; ++point) {
      if (kd_tree::is_sample(point, from.sample_shift)) spread(point);
    }
    const BuiltKdTree<float> built = build(this->backend(), cloud, shape, sampled(20));
    EXPECT_EQ(built.report.crowded, this->template takes_samples<float>(shape, sampled(20)) ? 1 : 0);
    EXPECT_EQ(built.report.point, -1);
    this->expect_exact(cloud, shape, sampled(20), built);
  }
}

/// Parts have room, as their samples said, but not one of their buckets.
TYPED_TEST(KdTreeSampled, BuildsTheExactTreeWhereOneBucketAloneHasNoRoom) {
  const KdTreeShape shape = kd_tree_shape(1, 140000, 3, 20);
  const kd_tree::BuildPlan plan = kd_tree::choose_build(4, shape, sampled(20), testing::kH200);
  const auto& from = std::get<kd_tree::BuildFromSamples>(plan);
  std::vector<float> cloud = make_cloud<float>(shape.points, 3, CloudPattern::kUniform);
  // Of the 2 % of points at the lowest x, those that are no samples all lie in one place.
  const kd_tree::SampleSet first(shape.points, from.first_samples);
  std::vector<bool> is_sample(static_cast<std::size_t>(shape.points));
  for (std::int64_t i = 0; i < first.count; ++i) is_sample[static_cast<std::size_t>(first.index(i))] = true;
  for (std::uint32_t point = 0; point < shape.points; ++point) {
    if (is_sample[point] || kd_tree::is_sample(point, from.sample_shift)) continue;
    float* const at = &cloud[3 * point];
    if (at[0] < 0.02f) std::fill_n(at, 3, 0.01f);
  }
  const BuiltKdTree<float> built = build(this->backend(), cloud, shape, sampled(20));
  EXPECT_EQ(built.report.crowded, this->template takes_samples<float>(shape, sampled(20)) ? 1 : 0);
  this->expect_exact(cloud, shape, sampled(20), built);
}

TYPED_TEST(KdTreeSampled, SaysWhereTheFirstNanIs) {
  const KdTreeShape shape = kd_tree_shape(1, 140000, 3, 20);
  std::vector<float> cloud = make_cloud<float>(shape.points, 3, CloudPattern::kUniform);
  for (const std::size_t element : {3u * 139999u + 2, 3u * 70000u + 1, 3u * 69999u}) {
    cloud[element] = std::nanf("");
    const KdTreeReport report = build(this->backend(), cloud, shape, sampled(20)).report;
    EXPECT_EQ(report.tree, 0);
    EXPECT_EQ(report.point, static_cast<std::int64_t>(element / 3));
    EXPECT_EQ(report.dimension, static_cast<std::int64_t>(element % 3));
  }
  std::fill(cloud.begin(), cloud.end(), std::nanf(""));
  EXPECT_EQ(build(this->backend(), cloud, shape, sampled(20)).report.point, 0);
}

TYPED_TEST(KdTreeSampled, BuildsTheExactTreeOfOtherPoints) {
  const std::vector<double> wide = make_cloud<double>(140000, 3, CloudPattern::kUniform);
  this->expect_tree(wide, kd_tree_shape(1, 140000, 3, 20), sampled(20));
  this->expect_tree(140000, 4, 20, CloudPattern::kUniform);
  this->expect_tree(1000, 3, 20, CloudPattern::kUniform);
  const KdTreeShape forest = kd_tree_shape(2, 140000, 3, 20);
  const std::vector<float> cloud = make_cloud<float>(forest.all_points(), 3, CloudPattern::kUniform);
  this->expect_exact(cloud, forest, sampled(20), build(this->backend(), cloud, forest, sampled(20)));
}

TEST(KdTreeVerifier, RefusesASampledTreeThatNoPlaneSplits) {
  const KdTreeShape shape = kd_tree_shape(1, 3, 2, 1);
  const std::vector<float> cloud = {0, 0, 1, 1, 2, 2};
  testing::HostKdTree<float> tree = testing::KdTreeOracle<float>(cloud, shape, {1}).tree();
  EXPECT_EQ(KdTreeCheck<float>(cloud, sampled(1), tree).run(), "");
  // The left leaf has the point between those of the right one.
  tree.idx_array = {1, 0, 2};
  tree.points = {1, 1, 0, 0, 2, 2};
  tree.node_bounds = {0, 0, 1, 1, 0, 0, 2, 2, 1, 1, 2, 2};
  EXPECT_EQ(KdTreeCheck<float>(cloud, sampled(1), tree).run(), "node 0 is split by no plane");
}

}  // namespace
}  // namespace cumulus
