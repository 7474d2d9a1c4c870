#include "kernels/kd_tree/kd_tree_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "tests/cases/neighbor_case.h"
#include "tests/support/asked_kd_tree.h"

namespace cumulus {
namespace {

using testing::Asked;
using testing::CloudPattern;
using testing::make_cloud;
using testing::Neighbor;
using testing::neighbors_by_brute_force;
using testing::part_of;

template <class Backend>
class KdTreeSums : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(KdTreeSums, testing::Backends, testing::BackendNames);

/// What is asked of clustered points.
struct SumCase {
  KdTreeShape shape;
  std::int64_t leaf_size = 10;
  std::int64_t queries = 40;  // of each tree
  int neighbors = 8;
  std::size_t channels = 1;
  NeighborSearch search = {};
};

/// Powers of many magnitudes, so that each order of adding them has another sum.
template <class T>
std::vector<T> make_payload(const SumCase& asked) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> exponent(-12, 12);
  std::vector<T> rows(static_cast<std::size_t>(asked.shape.all_points()) * asked.channels);
  for (T& value : rows) {
    value = static_cast<T>(std::exp2(exponent(random)));
    if (random() % 2 == 0) value = -value;
  }
  return rows;
}

/// The oracle's sum of rows of one tree.
template <class T>
T sum_of(const std::vector<Neighbor<T>>& neighbors, std::size_t count, const std::vector<T>& rows,
         std::size_t channel, std::size_t channels) {
  double sum = 0;
  for (std::size_t i = 0; i < std::min(count, neighbors.size()); ++i) {
    sum += static_cast<double>(rows[static_cast<std::size_t>(neighbors[i].index) * channels + channel]);
  }
  return static_cast<T>(sum);
}

/// Puts neighbours into the order in which their points stand in the tree.
template <class T>
void sort_by_position(std::vector<Neighbor<T>>& neighbors, const std::vector<std::int64_t>& idx_array) {
  std::vector<std::int64_t> positions(idx_array.size());
  for (std::size_t i = 0; i < idx_array.size(); ++i) {
    positions[static_cast<std::size_t>(idx_array[i])] = static_cast<std::int64_t>(i);
  }
  std::sort(neighbors.begin(), neighbors.end(), [&](const auto& a, const auto& b) {
    return positions[static_cast<std::size_t>(a.index)] < positions[static_cast<std::size_t>(b.index)];
  });
}

template <class T, class Backend>
void expect_oracle_sums(Backend& backend, SumCase asked_case) {
  const KdTreeShape& shape = asked_case.shape;
  NeighborSearch& search = asked_case.search;
  search.queries = asked_case.queries;
  const auto cloud = make_cloud<T>(shape.all_points(), shape.dimensions, CloudPattern::kUniform);
  const auto queries =
      make_cloud<T>(shape.trees * search.queries, shape.dimensions, CloudPattern::kUniform, 2);
  const auto payload = make_payload<T>(asked_case);
  Asked<Backend, T> asked(backend, cloud, shape, {asked_case.leaf_size}, queries);
  const auto nearest = asked.nearest_sums(search, asked_case.neighbors, payload);
  const auto within = asked.sums_within(search, payload);
  ASSERT_EQ(nearest.report.fault, NeighborReport::Fault::kNone);
  ASSERT_EQ(within.report.fault, NeighborReport::Fault::kNone);
  testing::CpuBackend cpu;
  const auto idx_array = testing::build(cpu, cloud, shape, {asked_case.leaf_size}).tree.idx_array;
  const auto wanted = static_cast<std::size_t>(asked_case.neighbors);
  const std::size_t channels = asked_case.channels;
  for (std::int64_t number = 0; number < shape.trees * search.queries; ++number) {
    const auto i = static_cast<std::size_t>(number);
    const std::int64_t tree = number / search.queries;
    const auto rows = part_of(payload, tree, shape.trees);
    auto right = neighbors_by_brute_force(part_of(cloud, tree, shape.trees), shape.dimensions,
                                          queries.data() + number * shape.dimensions,
                                          static_cast<T>(search.radius), search);
    ASSERT_EQ(nearest.distances[i],
              right.size() < wanted ? std::numeric_limits<T>::infinity()
                                    : testing::shown_distance(right[wanted - 1].squared_distance, search));
    for (std::size_t channel = 0; channel < channels; ++channel) {
      ASSERT_EQ(nearest.sums[i * channels + channel], sum_of(right, wanted, rows, channel, channels))
          << "query " << number << ", channel " << channel;
    }
    sort_by_position(right, part_of(idx_array, tree, shape.trees));
    ASSERT_EQ(within.counts[i], static_cast<std::int64_t>(right.size()));
    for (std::size_t channel = 0; channel < channels; ++channel) {
      ASSERT_EQ(within.sums[i * channels + channel], sum_of(right, right.size(), rows, channel, channels))
          << "query " << number << ", channel " << channel;
    }
  }
}

TYPED_TEST(KdTreeSums, AreThoseOfBruteForce) {
  for (const std::size_t channels : {1u, 3u, 4u, 5u, 9u}) {
    for (const int neighbors : {1, 8, 33, 128}) {
      SumCase asked{.shape = kd_tree_shape(1, 2001, 3, 10), .neighbors = neighbors, .channels = channels};
      asked.search.radius = neighbors == 8 ? 0.1 : 0.3;
      asked.search.squared = neighbors == 33;
      expect_oracle_sums<float>(this->backend(), asked);
      expect_oracle_sums<double>(this->backend(), asked);
      if (this->HasFailure()) return;
    }
  }
}

TYPED_TEST(KdTreeSums, AreOfEachTreeAndOfSortedQueriesToo) {
  for (const int dimensions : {2, 4, 7}) {
    SumCase asked{.shape = kd_tree_shape(3, 500, dimensions, 10), .queries = 1100, .channels = 3};
    asked.search.radius = 0.4;
    expect_oracle_sums<float>(this->backend(), asked);
    asked.neighbors = 1;
    expect_oracle_sums<float>(this->backend(), asked);
    asked.queries = 20;
    expect_oracle_sums<double>(this->backend(), asked);
    if (this->HasFailure()) return;
  }
}

TYPED_TEST(KdTreeSums, GoTheShorterWayRoundPeriodicAxes) {
  SumCase asked{.shape = kd_tree_shape(1, 2000, 3, 10), .channels = 2};
  asked.search.period = {1, 0, 1};
  asked.search.radius = 0.2;
  expect_oracle_sums<float>(this->backend(), asked);
}

TYPED_TEST(KdTreeSums, AreNothingWhereThereIsNothing) {
  SumCase asked{.shape = kd_tree_shape(1, 5, 3, 10), .neighbors = 7};
  expect_oracle_sums<float>(this->backend(), asked);
  asked.search.radius = 0;
  expect_oracle_sums<float>(this->backend(), asked);
}

TYPED_TEST(KdTreeSums, SayWhichQueryIsAtFault) {
  const auto cloud = make_cloud<float>(100, 3, CloudPattern::kUniform);
  auto queries = cloud;
  queries[3 * 70] = std::numeric_limits<float>::quiet_NaN();
  Asked<TypeParam, float> asked(this->backend(), cloud, kd_tree_shape(1, 100, 3, 10), {10}, queries);
  NeighborSearch search;
  search.queries = 100;
  search.radius = 0.1;
  const std::vector<float> payload(100, 1.0f);
  for (const NeighborReport& report :
       {asked.nearest_sums(search, 4, payload).report, asked.sums_within(search, payload).report}) {
    EXPECT_EQ(report.fault, NeighborReport::Fault::kNanCoordinate);
    EXPECT_EQ(report.query, 70);
  }
}

}  // namespace
}  // namespace cumulus
