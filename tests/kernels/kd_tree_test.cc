#include "kernels/kd_tree/kd_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/kd_tree/scratch.h"
#include "tests/cases/kd_tree_case.h"
#include "tests/cases/kd_tree_check.h"
#include "tests/support/impatient_turns.h"
#include "tests/support/kd_tree_builds.h"

namespace cumulus {
namespace {

using testing::build;
using testing::BuiltKdTree;
using testing::CloudPattern;
using testing::HostKdTree;
using testing::kCloudPatterns;
using testing::KdTreeCheck;
using testing::KdTreeOracle;
using testing::make_cloud;
using testing::verify_kd_tree;

template <class Backend>
class KdTree : public testing::OnEveryBackend<Backend> {
 protected:
  /// Builds on the backend and compares with the oracle.
  template <class T>
  void expect_oracle(const KdTreeShape& shape, const KdTreeOptions& options, CloudPattern pattern) {
    const std::vector<T> cloud = make_cloud<T>(shape.all_points(), shape.dimensions, pattern);
    const BuiltKdTree<T> built = build(this->backend(), cloud, shape, options);
    EXPECT_EQ(built.report.point, -1);
    EXPECT_EQ(verify_kd_tree(KdTreeOracle<T>(cloud, shape, options).tree(), built.tree), "")
        << name_of(pattern) << ", " << shape.trees << " trees of " << shape.points << " points in "
        << shape.dimensions << " dimensions, leaves of " << options.leaf_size << ", split "
        << static_cast<int>(options.split) << ", " << 8 * sizeof(T) << " bits";
  }

  void expect_oracle(const KdTreeShape& shape, const KdTreeOptions& options) {
    for (const CloudPattern pattern : kCloudPatterns) {
      expect_oracle<float>(shape, options, pattern);
      expect_oracle<double>(shape, options, pattern);
    }
  }
};
TYPED_TEST_SUITE(KdTree, testing::Backends, testing::BackendNames);

constexpr KdTreeSplit kSplits[] = {KdTreeSplit::kWidestSpread, KdTreeSplit::kRoundRobin,
                                   KdTreeSplit::kMidpoint};

TYPED_TEST(KdTree, MatchesTheOracleOfEveryCloudAndSplit) {
  for (const std::int64_t points : {0, 1, 2, 3, 39, 40, 41, 80, 81, 82, 127, 1000, 3001}) {
    for (const KdTreeSplit split : kSplits) {
      for (const std::int64_t leaf_size : {1, 2, 7, 40}) {
        this->expect_oracle(kd_tree_shape(1, points, 3, leaf_size), {leaf_size, split});
        if (this->HasFailure()) return;
      }
    }
  }
}

TYPED_TEST(KdTree, MatchesTheOracleInEveryNumberOfDimensions) {
  for (int dimensions = 2; dimensions <= 16; ++dimensions) {
    for (const KdTreeSplit split : kSplits) {
      this->expect_oracle(kd_tree_shape(1, 1777, dimensions, 10), {10, split});
      if (this->HasFailure()) return;
    }
  }
}

TYPED_TEST(KdTree, MatchesTheOracleOnTreesThatBlocksOfThreadsShare) {
  for (const KdTreeSplit split : kSplits) {
    this->expect_oracle(kd_tree_shape(1, 100003, 3, 40), {40, split});
    this->expect_oracle(kd_tree_shape(1, 30011, 2, 1), {1, split});
    this->expect_oracle(kd_tree_shape(1, 20011, 7, 3), {3, split});
    this->expect_oracle(kd_tree_shape(1, 70001, 3, 20000), {20000, split});
    if (this->HasFailure()) return;
  }
}

TYPED_TEST(KdTree, MatchesTheOracleOfAnyLeafSize) {
  for (const std::int64_t leaf_size : {999, 1000, 5000, 1 << 30}) {
    this->expect_oracle(kd_tree_shape(1, 1000, 3, leaf_size), {leaf_size});
  }
}

TYPED_TEST(KdTree, OrdersNumbersThatDifferInTheirLastBits) {
  const KdTreeShape shape = kd_tree_shape(1, 5000, 3, 10);
  std::vector<double> cloud = make_cloud<double>(shape.points, 3, CloudPattern::kUniform);
  for (double& x : cloud) x = 1 + std::ldexp(std::floor(x * 1000), -52);
  cloud[3 * 100] = -1e300;
  cloud[3 * 200 + 1] = 1e300;
  const BuiltKdTree<double> built = build(this->backend(), cloud, shape, {10});
  EXPECT_EQ(verify_kd_tree(KdTreeOracle<double>(cloud, shape, {10}).tree(), built.tree), "");
}

TYPED_TEST(KdTree, BuildsManyTreesAtOnce) {
  for (const KdTreeSplit split : kSplits) {
    this->expect_oracle(kd_tree_shape(37, 1000, 3, 40), {40, split});
    this->expect_oracle(kd_tree_shape(300, 11, 2, 2), {2, split});
    this->expect_oracle(kd_tree_shape(5, 9001, 3, 16), {16, split});
    this->expect_oracle(kd_tree_shape(3, 0, 3, 16), {16, split});
    this->expect_oracle(kd_tree_shape(0, 10, 3, 16), {16, split});
    if (this->HasFailure()) return;
  }
}

TYPED_TEST(KdTree, MatchesTheOracleOnAMillionPointsSlow) {
  for (const CloudPattern pattern :
       {CloudPattern::kUniform, CloudPattern::kClustered, CloudPattern::kDuplicates}) {
    this->template expect_oracle<float>(kd_tree_shape(1, 1000003, 3, 40), {40}, pattern);
    this->template expect_oracle<double>(kd_tree_shape(1, 500009, 2, 40), {40}, pattern);
  }
}

TYPED_TEST(KdTree, SaysWhereTheFirstNanIs) {
  const KdTreeShape shape = kd_tree_shape(3, 70001, 3, 40);
  std::vector<float> cloud = make_cloud<float>(shape.all_points(), 3, CloudPattern::kInfinities);
  for (const std::size_t element : {629999u, 210003u + 3 * 51000u + 1, 210003u + 3 * 50000u + 2}) {
    cloud[element] = std::nanf("");
    const KdTreeReport report = build(this->backend(), cloud, shape, {40}).report;
    const auto point = static_cast<std::int64_t>(element) / 3;
    EXPECT_EQ(report.tree, point / 70001);
    EXPECT_EQ(report.point, point % 70001);
    EXPECT_EQ(report.dimension, static_cast<std::int64_t>(element) % 3);
  }
}

TYPED_TEST(KdTree, BringsPayloadsIntoItsOrder) {
  const KdTreeShape shape = kd_tree_shape(2, 5003, 3, 40);
  const auto cloud = make_cloud<double>(shape.all_points(), 3, CloudPattern::kClustered);
  const HostKdTree<double> tree = build(this->backend(), cloud, shape, {40}).tree;
  for (const std::int64_t row_bytes : {1, 4, 12, 16, 24, 37}) {
    std::vector<std::byte> rows(static_cast<std::size_t>(shape.all_points() * row_bytes));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::byte>(i * 2654435761u >> 13);
    testing::BackendArray<TypeParam, std::int64_t> order(this->backend(), tree.idx_array);
    testing::BackendArray<TypeParam, std::byte> from(this->backend(), rows);
    testing::BackendArray<TypeParam, std::byte> to(this->backend(), rows.size());
    permute_rows(this->executor(), shape, order.const_span(), from.const_span(), row_bytes, to.span());
    const std::vector<std::byte> permuted = to.to_host();
    for (std::int64_t i = 0; i < shape.all_points(); ++i) {
      const std::int64_t source = i / 5003 * 5003 + tree.idx_array[static_cast<std::size_t>(i)];
      ASSERT_TRUE(std::equal(rows.begin() + source * row_bytes, rows.begin() + (source + 1) * row_bytes,
                             permuted.begin() + i * row_bytes))
          << "row " << i << " of " << row_bytes << " bytes";
    }
  }
}

TYPED_TEST(KdTree, WritesZerosWhereAnIndexIsNone) {
  const KdTreeShape shape = kd_tree_shape(2, 3, 2, 40);
  testing::BackendArray<TypeParam, std::int64_t> order(this->backend(),
                                                       std::vector<std::int64_t>{2, 3, 0, -1, 1, 1LL << 40});
  testing::BackendArray<TypeParam, std::byte> from(this->backend(), std::vector<std::byte>(12, std::byte{7}));
  testing::BackendArray<TypeParam, std::byte> to(this->backend(), 12);
  permute_rows(this->executor(), shape, order.const_span(), from.const_span(), 2, to.span());
  const std::byte o{0};
  const std::byte x{7};
  EXPECT_THAT(to.to_host(), ::testing::ElementsAre(x, x, o, o, x, x, o, o, x, x, o, o));
}

TEST(KdTreeOnTheCpu, DoesNotDependOnTheNumberOfThreads) {
  const KdTreeShape shape = kd_tree_shape(1, 300007, 3, 40);
  const auto cloud = make_cloud<float>(shape.points, 3, CloudPattern::kDuplicates);
  std::vector<HostKdTree<float>> trees;
  for (const int threads : {1, 2, 5}) {
    CpuExecutor executor(threads);
    executor.reserve_scratch(
        build_kd_tree_scratch_bytes<float, Space::kHost>(shape, {40}, executor.numbers()));
    KdTreeReport report;
    build_kd_tree(executor, {cloud.data(), cloud.size()}, shape, {40}, trees.emplace_back(shape).arrays(),
                  &report);
  }
  EXPECT_EQ(verify_kd_tree(trees[0], trees[1]), "");
  EXPECT_EQ(verify_kd_tree(trees[0], trees[2]), "");
}

TEST(KdTreeOnTheCpu, RefusesArraysOfTheWrongSize) {
  const KdTreeShape shape = kd_tree_shape(1, 100, 3, 40);
  const auto cloud = make_cloud<float>(100, 3, CloudPattern::kUniform);
  HostKdTree<float> tree(shape);
  CpuExecutor executor;
  KdTreeReport report;
  tree.idx_array.pop_back();
  EXPECT_THROW(build_kd_tree(executor, {cloud.data(), cloud.size()}, shape, {40}, tree.arrays(), &report),
               std::invalid_argument);
  HostKdTree<float> whole(shape);
  EXPECT_THROW(
      build_kd_tree(executor, {cloud.data(), cloud.size() - 1}, shape, {40}, whole.arrays(), &report),
      std::invalid_argument);
  EXPECT_THROW(build_kd_tree(executor, {cloud.data(), cloud.size()}, shape, {7}, whole.arrays(), &report),
               std::invalid_argument);
  EXPECT_THROW(build_kd_tree(executor, {cloud.data(), cloud.size()}, shape, {0}, whole.arrays(), &report),
               std::invalid_argument);
}

TEST(KdTreeShapes, HaveTheLevelsOfScikitLearn) {
  // int(log2(max(1, (points - 1) / leaf_size)) + 1)
  EXPECT_EQ(kd_tree_levels(0, 40), 1);
  EXPECT_EQ(kd_tree_levels(1, 1), 1);
  EXPECT_EQ(kd_tree_levels(2, 1), 1);
  EXPECT_EQ(kd_tree_levels(3, 1), 2);
  EXPECT_EQ(kd_tree_levels(80, 40), 1);
  EXPECT_EQ(kd_tree_levels(81, 40), 2);
  EXPECT_EQ(kd_tree_levels(160, 40), 2);
  EXPECT_EQ(kd_tree_levels(161, 40), 3);
  EXPECT_EQ(kd_tree_levels(35947, 40), 10);
  EXPECT_EQ(kd_tree_levels(kMaxKdTreePoints, 1), kMaxKdTreeLevels);
}

TEST(KdTreeVerifier, RefusesOneWrongElementOfEachArray) {
  const KdTreeShape shape = kd_tree_shape(1, 500, 3, 40);
  const auto cloud = make_cloud<float>(500, 3, CloudPattern::kUniform);
  const HostKdTree<float> right = KdTreeOracle<float>(cloud, shape, {40}).tree();
  HostKdTree<float> tree = right;
  std::swap(tree.idx_array[10], tree.idx_array[11]);
  EXPECT_THAT(verify_kd_tree(right, tree), ::testing::HasSubstr("idx_array[10]"));
  tree = right;
  tree.points[77] = std::nextafter(tree.points[77], 2.0f);
  EXPECT_THAT(verify_kd_tree(right, tree), ::testing::HasSubstr("points[77]"));
  tree = right;
  tree.node_bounds[5] = std::nextafter(tree.node_bounds[5], 2.0f);
  EXPECT_THAT(verify_kd_tree(right, tree), ::testing::HasSubstr("node_bounds[5]"));
  tree = right;
  tree.node_data[3].radius = std::nextafter(tree.node_data[3].radius, 0.0);
  EXPECT_THAT(verify_kd_tree(right, tree), ::testing::HasSubstr("node 3"));
}

TEST(KdTreeVerifier, ChecksATreeWithoutTheOracle) {
  const KdTreeShape shape = kd_tree_shape(1, 500, 3, 40);
  const auto cloud = make_cloud<float>(500, 3, CloudPattern::kClustered);
  const HostKdTree<float> right = KdTreeOracle<float>(cloud, shape, {40}).tree();
  EXPECT_EQ(KdTreeCheck<float>(cloud, {40}, right).run(), "");
  EXPECT_THAT(KdTreeCheck<float>(cloud, {40, KdTreeSplit::kRoundRobin}, right).run(),
              ::testing::HasSubstr("split wrongly"));
  HostKdTree<float> tree = right;
  tree.idx_array[10] = tree.idx_array[11];
  EXPECT_THAT(KdTreeCheck<float>(cloud, {40}, tree).run(),
              ::testing::HasSubstr("point 10 is not the cloud's"));
  tree = right;
  tree.node_bounds[7] = std::nextafter(tree.node_bounds[7], 9.0f);
  EXPECT_THAT(KdTreeCheck<float>(cloud, {40}, tree).run(), ::testing::HasSubstr("wrong box"));
  tree = right;
  tree.node_data[2].begin += 1;
  EXPECT_THAT(KdTreeCheck<float>(cloud, {40}, tree).run(), ::testing::HasSubstr("wrong points"));
}

TEST(KdTreeOfManyPoints, IsBuiltInSlices) {
  const KdTreeShape shape = kd_tree_shape(1, 1 << 19, 3, 10);
  const std::vector<float> cloud = make_cloud<float>(shape.points, shape.dimensions, CloudPattern::kUniform);
  testing::OneThread backend;
  testing::ImpatientTurns turns;
  const SlicedCall sliced(turns);
  const BuiltKdTree<float> built = build(backend, cloud, shape, {.leaf_size = 10});
  EXPECT_GE(turns.slices(), 14);
  EXPECT_EQ(verify_kd_tree(KdTreeOracle<float>(cloud, shape, {.leaf_size = 10}).tree(), built.tree), "");
}

/// Without slices within a node, the root's is a tenth of all and more.
TEST(KdTreeOfManyPoints, SplitsItsLargestNodesInSlices) {
  const KdTreeShape shape = kd_tree_shape(1, 1 << 21, 3, 40);
  const std::vector<float> cloud = make_cloud<float>(shape.points, shape.dimensions, CloudPattern::kUniform);
  testing::OneThread backend;
  const BuiltKdTree<float> at_once = build(backend, cloud, shape, {40});
  testing::ImpatientTurns turns;
  const SlicedCall sliced(turns);
  const BuiltKdTree<float> built = build(backend, cloud, shape, {40});
  EXPECT_LE(turns.longest_share(), 0.06);
  EXPECT_EQ(verify_kd_tree(at_once.tree, built.tree), "");
}

}  // namespace
}  // namespace cumulus
