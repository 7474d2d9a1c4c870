#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/kd_tree/left_balanced.h"
#include "kernels/kd_tree/left_balanced/places.h"
#include "kernels/kd_tree/scratch.h"
#include "tests/cases/kd_tree_case.h"
#include "tests/cases/left_balanced_case.h"
#include "tests/support/executors.h"
#include "tests/support/impatient_turns.h"

namespace cumulus {
namespace {

using testing::BackendArray;
using testing::CloudPattern;
using testing::kCloudPatterns;
using testing::LeftBalancedOracle;
using testing::LeftBalancedSearch;
using testing::make_cloud;

template <class T>
struct Arranged {
  std::vector<T> points;
  std::vector<std::int64_t> idx_array;
  KdTreeReport report;
};

template <class Backend, class T>
Arranged<T> arrange(Backend& backend, const std::vector<T>& cloud, const KdTreeShape& shape) {
  BackendArray<Backend, T> input(backend, cloud);
  BackendArray<Backend, T> points(backend, cloud.size());
  BackendArray<Backend, std::int64_t> idx_array(backend, static_cast<std::size_t>(shape.all_points()));
  const std::size_t scratch_bytes = arrange_left_balanced_scratch_bytes<T, Backend::kSpace>(shape);
  backend.executor().reserve_scratch(scratch_bytes);
  Arranged<T> arranged;
  arrange_left_balanced(backend.executor(), input.const_span(), shape, {points.span(), idx_array.span()},
                        &arranged.report);
  backend.executor().synchronize();
  if (arranged.report.point < 0) {
    EXPECT_EQ(backend.executor().scratch_arena().used_bytes(), scratch_bytes);
  }
  arranged.points = points.to_host();
  arranged.idx_array = idx_array.to_host();
  return arranged;
}

template <class Backend>
class LeftBalanced : public testing::OnEveryBackend<Backend> {
 protected:
  template <class T>
  void expect_oracle(const KdTreeShape& shape, CloudPattern pattern) {
    SCOPED_TRACE(std::string(name_of(pattern)) + ", " + std::to_string(shape.trees) + " trees of " +
                 std::to_string(shape.points) + " points in " + std::to_string(shape.dimensions) +
                 " dimensions, " + std::to_string(8 * sizeof(T)) + " bits");
    const auto cloud = make_cloud<T>(shape.all_points(), shape.dimensions, pattern);
    const Arranged<T> arranged = arrange(this->backend(), cloud, shape);
    EXPECT_EQ(arranged.report.point, -1);
    for (std::int64_t tree = 0; tree < shape.trees; ++tree) {
      const T* of_tree = cloud.data() + tree * shape.points * shape.dimensions;
      const auto right = LeftBalancedOracle<T>(of_tree, shape.points, shape.dimensions).nodes();
      for (std::int64_t node = 0; node < shape.points; ++node) {
        const std::int64_t index = right[static_cast<std::size_t>(node)];
        const std::int64_t row = tree * shape.points + node;
        ASSERT_EQ(arranged.idx_array[static_cast<std::size_t>(row)], index) << "node " << node;
        for (std::int64_t axis = 0; axis < shape.dimensions; ++axis) {
          ASSERT_EQ(arranged.points[static_cast<std::size_t>(row * shape.dimensions + axis)],
                    of_tree[index * shape.dimensions + axis]);
        }
      }
    }
  }
};
TYPED_TEST_SUITE(LeftBalanced, testing::Backends, testing::BackendNames);

TYPED_TEST(LeftBalanced, MatchesTheOracle) {
  for (const CloudPattern pattern : kCloudPatterns) {
    for (const std::int64_t points : {0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 500, 1023, 1024, 3001}) {
      this->template expect_oracle<float>({1, points, 3, 1}, pattern);
      this->template expect_oracle<double>({1, points, 2, 1}, pattern);
      if (this->HasFailure()) return;
    }
    for (int dimensions = 2; dimensions <= 16; ++dimensions)
      this->template expect_oracle<float>({1, 300, dimensions, 1}, pattern);
    this->template expect_oracle<float>({50, 77, 3, 1}, pattern);
    this->template expect_oracle<double>({3, 1000, 3, 1}, pattern);
    this->template expect_oracle<float>({1, 30011, 3, 1}, pattern);
    if (this->HasFailure()) return;
  }
}

TYPED_TEST(LeftBalanced, AnswersAsBruteForceDoes) {
  for (const CloudPattern pattern :
       {CloudPattern::kUniform, CloudPattern::kClustered, CloudPattern::kDuplicates}) {
    const auto cloud = make_cloud<float>(5000, 3, pattern);
    const Arranged<float> arranged = arrange(this->backend(), cloud, {1, 5000, 3, 1});
    LeftBalancedSearch<float> search(arranged.points, arranged.idx_array, 3);
    const auto queries = make_cloud<float>(100, 3, pattern, 2);
    for (std::size_t i = 0; i < 100; ++i) {
      const float* query = queries.data() + 3 * i;
      auto right =
          testing::neighbors_by_brute_force(cloud, 3, query, std::numeric_limits<float>::infinity(), {});
      const auto found = search.nearest(query, 8);
      ASSERT_EQ(found.size(), 8u);
      for (std::size_t j = 0; j < 8; ++j) {
        ASSERT_EQ(found[j].index, right[j].index) << name_of(pattern) << ", query " << i;
        ASSERT_EQ(found[j].squared_distance, right[j].squared_distance);
      }
    }
    if (pattern == CloudPattern::kUniform) {
      EXPECT_LT(search.visited(), 100u * 500);  // it is a tree: a query passes most by
    }
  }
}

TYPED_TEST(LeftBalanced, SaysWhereTheFirstNanIs) {
  auto cloud = make_cloud<double>(3 * 7001, 2, CloudPattern::kUniform);
  cloud[2 * (7001 + 50) + 1] = std::nan("");
  cloud[2 * (2 * 7001 + 3)] = std::nan("");
  const KdTreeReport report = arrange(this->backend(), cloud, {3, 7001, 2, 1}).report;
  EXPECT_EQ(report.tree, 1);
  EXPECT_EQ(report.point, 50);
  EXPECT_EQ(report.dimension, 1);
}

TEST(LeftBalancedPlaces, AreThoseOfTheInorder) {
  for (std::int64_t count = 1; count <= 200; ++count) {
    const int levels = kd_tree::left_balanced_levels(count);
    std::vector<std::int64_t> place_of(static_cast<std::size_t>(count), -1);
    for (std::int64_t place = 0; place < count; ++place) {
      const kd_tree::LeftBalancedPart part = kd_tree::left_balanced_part(count, place, levels);
      ASSERT_EQ(part.begin, place);
      ASSERT_EQ(part.count, 1);
      ASSERT_TRUE(part.node >= 0 && part.node < count);
      place_of[static_cast<std::size_t>(part.node)] = place;
    }
    for (std::int64_t node = 1; node < count; ++node) {
      const std::int64_t parent = place_of[static_cast<std::size_t>((node - 1) / 2)];
      const std::int64_t place = place_of[static_cast<std::size_t>(node)];
      ASSERT_NE(place, -1) << count;
      ASSERT_EQ(place < parent, node % 2 == 1) << "node " << node << " of " << count;
    }
  }
}

TEST(LeftBalancedOnTheCpu, RefusesArraysOfTheWrongSize) {
  std::vector<float> cloud(30);
  std::vector<float> points(30);
  std::vector<std::int64_t> idx_array(9);
  CpuExecutor executor;
  KdTreeReport report;
  EXPECT_THROW(arrange_left_balanced(executor, {cloud.data(), cloud.size()}, {1, 10, 3, 1},
                                     {{points.data(), points.size()}, {idx_array.data(), 9}}, &report),
               std::invalid_argument);
}

TEST(LeftBalancedTreeOfManyPoints, IsArrangedInSlices) {
  const KdTreeShape shape = kd_tree_shape(1, 1 << 17, 3, 1);
  const std::vector<float> cloud = make_cloud<float>(shape.points, shape.dimensions, CloudPattern::kUniform);
  testing::OneThread backend;
  testing::ImpatientTurns turns;
  const SlicedCall sliced(turns);
  const Arranged<float> arranged = arrange(backend, cloud, shape);
  EXPECT_GE(turns.slices(), 10);
  EXPECT_EQ(arranged.idx_array,
            LeftBalancedOracle<float>(cloud.data(), shape.points, shape.dimensions).nodes());
}

/// Arranged in slices of a millisecond, beside the oracle's.
template <class T>
void expect_oracle_in_slices(CloudPattern pattern) {
  const KdTreeShape shape = kd_tree_shape(1, (1 << 17) + 99, 3, 1);
  const std::vector<T> cloud = make_cloud<T>(shape.points, shape.dimensions, pattern);
  testing::OneThread backend;
  testing::ImpatientTurns turns;
  const SlicedCall sliced(turns);
  EXPECT_EQ(arrange(backend, cloud, shape).idx_array,
            LeftBalancedOracle<T>(cloud.data(), shape.points, shape.dimensions).nodes())
      << name_of(pattern);
}

TEST(LeftBalancedTreeOfManyPoints, IsTheOraclesInSlices) {
  for (const CloudPattern pattern : kCloudPatterns) expect_oracle_in_slices<float>(pattern);
  expect_oracle_in_slices<double>(CloudPattern::kUniform);
}

/// In one piece, the selection at its root is a twentieth of all.
TEST(LeftBalancedTreeOfManyPoints, DividesItsLargestNodesInSlices) {
  const KdTreeShape shape = kd_tree_shape(1, 1 << 21, 3, 1);
  const std::vector<float> cloud = make_cloud<float>(shape.points, shape.dimensions, CloudPattern::kUniform);
  testing::OneThread backend;
  testing::ImpatientTurns turns;
  const SlicedCall sliced(turns);
  arrange(backend, cloud, shape);
  EXPECT_LE(turns.longest_share(), 0.02);
}

}  // namespace
}  // namespace cumulus
