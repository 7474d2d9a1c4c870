#include "kernels/kd_tree/kd_tree_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/kd_tree/scratch.h"
#include "tests/cases/neighbor_case.h"
#include "tests/support/asked_kd_tree.h"

namespace cumulus {
namespace {

using testing::Asked;
using testing::BackendArray;
using testing::CloudPattern;
using testing::HostKdTree;
using testing::kCloudPatterns;
using testing::make_cloud;
using testing::Neighbor;
using testing::neighbors_by_brute_force;
using testing::part_of;

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

template <class Backend>
class KdTreeQuery : public testing::OnEveryBackend<Backend> {
 protected:
  /// `radii` gives each query its own; empty: search.radius.
  template <class T>
  void expect_oracle(const KdTreeShape& shape, const KdTreeOptions& options, const std::vector<T>& cloud,
                     const std::vector<T>& queries, NeighborSearch search, int neighbors,
                     const std::vector<T>& radii = {}) {
    search.queries = static_cast<std::int64_t>(queries.size()) / shape.dimensions / shape.trees;
    Asked<Backend, T> asked(this->backend(), cloud, shape, options, queries, radii);
    const auto nearest = asked.nearest(search, neighbors);
    const auto lists = asked.within(search);
    ASSERT_EQ(nearest.report.fault, NeighborReport::Fault::kNone);
    ASSERT_EQ(lists.report.queries.fault, NeighborReport::Fault::kNone);
    for (std::int64_t number = 0; number < shape.trees * search.queries; ++number) {
      const auto i = static_cast<std::size_t>(number);
      const T radius = radii.empty() ? static_cast<T>(search.radius) : radii[i];
      const auto right =
          neighbors_by_brute_force(part_of(cloud, number / search.queries, shape.trees), shape.dimensions,
                                   queries.data() + number * shape.dimensions, radius, search);
      ASSERT_EQ(verify_nearest(right, search, neighbors, nearest.indices.data() + number * neighbors,
                               nearest.distances.data() + number * neighbors),
                "")
          << "query " << number;
      ASSERT_EQ(lists.offsets[i + 1] - lists.offsets[i], static_cast<std::int64_t>(right.size()));
      std::vector<Neighbor<T>> listed;
      for (std::int64_t j = lists.offsets[i]; j < lists.offsets[i + 1]; ++j) {
        listed.push_back(
            {lists.distances[static_cast<std::size_t>(j)], lists.indices[static_cast<std::size_t>(j)]});
      }
      std::sort(listed.begin(), listed.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
      auto by_index = right;
      std::sort(by_index.begin(), by_index.end(),
                [](const auto& a, const auto& b) { return a.index < b.index; });
      for (std::size_t j = 0; j < listed.size(); ++j) {
        ASSERT_EQ(listed[j].index, by_index[j].index) << "query " << number;
        ASSERT_EQ(listed[j].squared_distance, testing::shown_distance(by_index[j].squared_distance, search));
      }
    }
  }

  template <class T>
  void expect_oracle_of_patterns(const KdTreeShape& shape, const KdTreeOptions& options,
                                 NeighborSearch search, int neighbors) {
    for (const CloudPattern pattern : kCloudPatterns) {
      SCOPED_TRACE(name_of(pattern));
      const auto cloud = make_cloud<T>(shape.all_points(), shape.dimensions, pattern);
      const auto queries = make_cloud<T>(shape.trees * 40, shape.dimensions, pattern, 2);
      expect_oracle(shape, options, cloud, queries, search, neighbors);
      if (this->HasFailure()) return;
    }
  }
};
TYPED_TEST_SUITE(KdTreeQuery, testing::Backends, testing::BackendNames);

TYPED_TEST(KdTreeQuery, FindsWhatBruteForceFinds) {
  for (const int neighbors : {1, 2, 8, 33, 128}) {
    for (const double radius : {kInfinity<double>, 0.3, 0.0}) {
      NeighborSearch search;
      search.radius = radius;
      search.squared = neighbors % 2 == 0;
      this->template expect_oracle_of_patterns<float>(kd_tree_shape(1, 3001, 3, 10), {10}, search, neighbors);
      this->template expect_oracle_of_patterns<double>(kd_tree_shape(1, 701, 3, 40), {40}, search, neighbors);
      if (this->HasFailure()) return;
    }
  }
}

TYPED_TEST(KdTreeQuery, FindsForManyQueriesAtOnce) {
  for (const CloudPattern pattern : {CloudPattern::kClustered, CloudPattern::kDuplicates,
                                     CloudPattern::kAllEqual, CloudPattern::kInfinities}) {
    for (const int dimensions : {2, 3, 4}) {
      const auto cloud = make_cloud<float>(3 * 300, dimensions, pattern);
      const auto queries = make_cloud<float>(3 * 1100, dimensions, pattern, 2);
      const std::vector<int> wanted = dimensions == 3 ? std::vector{1, 8, 11, 33, 128} : std::vector{7, 50};
      for (const int neighbors : wanted) {
        SCOPED_TRACE(std::string(name_of(pattern)) + ", " + std::to_string(neighbors) + " neighbours");
        NeighborSearch search;
        search.radius = neighbors == 11 ? 0.3 : kInfinity<double>;
        this->expect_oracle(kd_tree_shape(3, 300, dimensions, 5), {5}, cloud, queries, search, neighbors);
        if (this->HasFailure()) return;
      }
    }
  }
  const auto cloud = make_cloud<float>(5, 3, CloudPattern::kUniform);
  this->expect_oracle(kd_tree_shape(1, 5, 3, 1), {1}, cloud,
                      make_cloud<float>(1500, 3, CloudPattern::kClustered), {}, 8);
}

TYPED_TEST(KdTreeQuery, FindsInEveryNumberOfDimensionsAndEveryTree) {
  NeighborSearch search;
  search.radius = 0.75;
  for (int dimensions = 2; dimensions <= 16; ++dimensions) {
    const KdTreeSplit split = static_cast<KdTreeSplit>(dimensions % 3);
    this->template expect_oracle_of_patterns<float>(kd_tree_shape(1, 600, dimensions, 7), {7, split}, search,
                                                    5);
    this->template expect_oracle_of_patterns<double>(kd_tree_shape(1, 300, dimensions, 7), {7, split}, search,
                                                     5);
    if (this->HasFailure()) return;
  }
}

TYPED_TEST(KdTreeQuery, MarksWhatIsMissing) {
  for (const std::int64_t points : {0, 1, 2, 5}) {
    this->template expect_oracle_of_patterns<float>(kd_tree_shape(1, points, 3, 1), {1}, {}, 7);
  }
}

TYPED_TEST(KdTreeQuery, AsksEachTreeOfAForest) {
  NeighborSearch search;
  search.radius = 0.4;
  this->template expect_oracle_of_patterns<float>(kd_tree_shape(9, 200, 3, 10), {10}, search, 6);
  this->template expect_oracle_of_patterns<double>(kd_tree_shape(4, 77, 2, 40), {40}, search, 6);
}

TYPED_TEST(KdTreeQuery, TakesTheShorterWayRoundPeriodicAxes) {
  for (const CloudPattern pattern : {CloudPattern::kUniform, CloudPattern::kAllEqual}) {
    const auto cloud = make_cloud<float>(2000, 3, pattern);
    auto queries = make_cloud<float>(60, 3, CloudPattern::kUniform, 3);
    std::fill_n(queries.begin(), 3, 0.0f);
    std::fill_n(queries.begin() + 3, 3, 1.0f);
    NeighborSearch search;
    search.radius = 0.2;
    search.period = {1, 0, 1};
    this->expect_oracle(kd_tree_shape(1, 2000, 3, 10), {10}, cloud, queries, search, 9);
    search.period = {1, 1.5, 2};
    search.radius = kInfinity<double>;
    this->expect_oracle(kd_tree_shape(1, 2000, 3, 10), {10}, cloud, queries, search, 9);
  }
}

TYPED_TEST(KdTreeQuery, TakesARadiusPerQuery) {
  const auto cloud = make_cloud<double>(2000, 2, CloudPattern::kClustered);
  const auto queries = make_cloud<double>(50, 2, CloudPattern::kClustered, 5);
  auto radii = make_cloud<double>(25, 2, CloudPattern::kUniform, 6);
  radii[7] = 0;
  radii[8] = kInfinity<double>;
  this->expect_oracle(kd_tree_shape(1, 2000, 2, 10), {10}, cloud, queries, {}, 20, radii);
}

TYPED_TEST(KdTreeQuery, SaysWhichQueryIsAtFault) {
  using Fault = NeighborReport::Fault;
  const KdTreeShape shape = kd_tree_shape(1, 5000, 3, 40);
  const auto cloud = make_cloud<float>(5000, 3, CloudPattern::kUniform);
  const auto good = make_cloud<float>(20000, 3, CloudPattern::kUniform, 2);
  const auto fault_of = [&](const std::vector<float>& queries, const std::vector<float>& radii,
                            NeighborSearch search) {
    search.queries = 20000;
    Asked<TypeParam, float> asked(this->backend(), cloud, shape, {40}, queries, radii);
    const NeighborReport report = asked.nearest(search, 3).report;
    for (const NeighborReport& other :
         {asked.counts(search).report, asked.lists(search, 10).report.queries}) {
      EXPECT_EQ(report.fault, other.fault);
      EXPECT_EQ(report.query, other.query);
      EXPECT_EQ(report.axis, other.axis);
    }
    return report;
  };
  NeighborSearch search;
  search.radius = 0.01;
  auto queries = good;
  queries[3 * 19000 + 1] = std::nanf("");
  queries[3 * 12345 + 2] = std::nanf("");
  NeighborReport report = fault_of(queries, {}, search);
  EXPECT_EQ(report.fault, Fault::kNanCoordinate);
  EXPECT_EQ(report.query, 12345);
  EXPECT_EQ(report.axis, 2);

  std::vector<float> radii(20000, 0.01f);
  radii[777] = -1;
  radii[778] = std::nanf("");
  report = fault_of(good, radii, search);
  EXPECT_EQ(report.fault, Fault::kRadius);
  EXPECT_EQ(report.query, 777);

  search.period = {0, 2, 2};
  queries = good;
  queries[0] = -5;  // on an axis that does not close
  queries[3 * 4000 + 1] = 2.5f;
  report = fault_of(queries, {}, search);
  EXPECT_EQ(report.fault, Fault::kQueryOutside);
  EXPECT_EQ(report.query, 4000);
  EXPECT_EQ(report.axis, 1);

  search.period = {0, 0.5, 0};
  report = fault_of(good, {}, search);
  EXPECT_EQ(report.fault, Fault::kTreeOutside);
  EXPECT_EQ(report.query, 0);
  EXPECT_EQ(report.axis, 1);
}

TYPED_TEST(KdTreeQuery, ListsForManyQueriesAtOnce) {
  const auto cloud = make_cloud<float>(50, 2, CloudPattern::kUniform);
  const std::int64_t count = 600'001;
  Asked<TypeParam, float> asked(this->backend(), cloud, kd_tree_shape(1, 50, 2, 5), {5},
                                make_cloud<float>(count, 2, CloudPattern::kUniform, 2));
  NeighborSearch search;
  search.queries = count;
  search.radius = 0.05;
  const auto lists = asked.within(search);
  EXPECT_GT(lists.report.listed, 0);
  for (const std::int64_t index : lists.indices) ASSERT_TRUE(index >= 0 && index < 50);
}

TYPED_TEST(KdTreeQuery, SaysHowMuchRoomListsNeed) {
  const auto cloud = make_cloud<float>(500, 3, CloudPattern::kUniform);
  Asked<TypeParam, float> asked(this->backend(), cloud, kd_tree_shape(1, 500, 3, 5), {5}, cloud);
  NeighborSearch search;
  search.queries = 500;
  EXPECT_EQ(asked.lists(search, 0).report.listed, 250'000);
  EXPECT_EQ(asked.lists(search, 249'999).report.listed, 250'000);
}

/// What counting says of a tree whose nodes have been changed.
template <class Backend>
NeighborReport count_in_changed(Backend& backend, const KdTreeShape& shape, HostKdTree<float> tree,
                                const std::function<void(std::vector<KdTreeNode>&)>& change) {
  change(tree.node_data);
  BackendArray<Backend, float> points(backend, tree.points);
  BackendArray<Backend, std::int64_t> idx_array(backend, tree.idx_array);
  BackendArray<Backend, KdTreeNode> node_data(backend, tree.node_data);
  BackendArray<Backend, float> node_bounds(backend, tree.node_bounds);
  const std::vector<float> middle(static_cast<std::size_t>(3 * shape.trees), 0.5f);
  BackendArray<Backend, float> queries(backend, middle);
  BackendArray<Backend, std::int64_t> counts(backend, static_cast<std::size_t>(shape.trees));
  NeighborSearch search;
  search.queries = 1;
  search.radius = 0.5;
  NeighborReport report;
  backend.executor().reserve_scratch(count_within_scratch_bytes<Backend::kSpace>(shape, search));
  const QueriedForest<float, Backend::kSpace> forest{
      shape,
      {points.const_span(), idx_array.const_span(), node_data.const_span(), node_bounds.const_span()},
      {queries.const_span(), {}},
      search};
  count_within(backend.executor(), CountJob<float, Backend::kSpace>{forest, counts.span()}, &report);
  backend.executor().synchronize();
  return report;
}

TYPED_TEST(KdTreeQuery, RefusesATreeWhoseLeavesDoNotPartThePoints) {
  using Fault = NeighborReport::Fault;
  const KdTreeShape shape = kd_tree_shape(2, 1000, 3, 10);
  const auto cloud = make_cloud<float>(2000, 3, CloudPattern::kUniform);
  testing::CpuBackend cpu;
  const HostKdTree<float> tree = testing::build(cpu, cloud, shape, {10}).tree;
  const auto inner = static_cast<std::size_t>(shape.nodes() / 2);
  const auto leaves = static_cast<std::int64_t>(inner + 1);
  const auto report_of = [&](const std::function<void(std::vector<KdTreeNode>&)>& change) {
    return count_in_changed(this->backend(), shape, tree, change);
  };
  EXPECT_EQ(report_of([](auto& /*nodes*/) {}).fault, Fault::kNone);
  const std::vector<std::pair<std::function<void(std::vector<KdTreeNode>&)>, std::int64_t>> changes = {
      {[](auto& nodes) {
         for (KdTreeNode& node : nodes) node = {-(1LL << 40), 1LL << 40, 0, 0};
       },
       0},
      {[&](auto& nodes) { nodes[inner].begin = 1; }, 0},
      {[&](auto& nodes) { nodes[inner].end = 1000; }, 1},  // all points in the first leaf, and the rest too
      {[&](auto& nodes) { nodes[inner + 5].begin = 0; }, 5},  // the leaves before, again
      {[&](auto& nodes) { nodes[inner + 7].end = nodes[inner + 7].begin - 1; }, 7},
      {[&](auto& nodes) { nodes[2 * inner].end = 999; }, leaves - 1},
      {[&](auto& nodes) { nodes[2 * inner].end = 1001; }, leaves - 1},
      {[&](auto& nodes) { nodes[2 * inner + 1 + inner + 3].end += 1; },
       leaves + 3 + 1},  // of the second tree
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const NeighborReport report = report_of(changes[i].first);
    EXPECT_EQ(report.fault, Fault::kLeaves) << i;
    EXPECT_EQ(report.query, changes[i].second) << i;
  }
}

TEST(KdTreeQueryVerifier, RefusesAWrongIndexAndAWrongDistance) {
  const std::vector<Neighbor<float>> right = {{1.0f, 5}, {4.0f, 2}};
  std::vector<std::int64_t> indices = {5, 2, -1};
  std::vector<float> distances = {1, 2, kInfinity<float>};
  EXPECT_EQ(verify_nearest(right, {}, 3, indices.data(), distances.data()), "");
  distances[1] = std::nextafter(2.0f, 3.0f);
  EXPECT_NE(verify_nearest(right, {}, 3, indices.data(), distances.data()), "");
  distances[1] = 2;
  indices[2] = 0;
  EXPECT_NE(verify_nearest(right, {}, 3, indices.data(), distances.data()), "");
}

}  // namespace
}  // namespace cumulus
