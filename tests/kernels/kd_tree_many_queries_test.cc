#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/cases/neighbor_case.h"
#include "tests/support/asked_kd_tree.h"

// So many queries that backends put them into an order of their own.

namespace cumulus {
namespace {

using testing::Asked;
using testing::CloudPattern;
using testing::make_cloud;
using testing::neighbors_by_brute_force;
using testing::part_of;

template <class Backend>
class KdTreeManyQueries : public testing::OnEveryBackend<Backend> {};
TYPED_TEST_SUITE(KdTreeManyQueries, testing::Backends, testing::BackendNames);

/// Of each of the trees.
struct Many {
  std::int64_t points = 66'000;
  std::int64_t queries = 5000;
  double period = 0;  // of every axis
  std::int64_t trees = 2;
  std::int64_t leaf_size = 10;
  KdTreeMedians medians = KdTreeMedians::kExact;
};

/// Of queries in random order: every distance that it says is right, and of some queries, that none is
/// missing.
template <class T, class Backend>
void expect_nearest_of_many(Backend& backend, CloudPattern pattern, int dimensions, int neighbors,
                            const Many& many = {}) {
  const KdTreeShape shape = kd_tree_shape(many.trees, many.points, dimensions, many.leaf_size);
  NeighborSearch search;
  search.queries = many.queries;
  for (int axis = 0; axis < dimensions; ++axis) search.period[static_cast<std::size_t>(axis)] = many.period;
  search.radius = 0.5;
  search.squared = true;
  const auto cloud = make_cloud<T>(shape.all_points(), dimensions, pattern);
  const auto queries = make_cloud<T>(shape.trees * search.queries, dimensions, pattern, 2);
  const KdTreeOptions options{many.leaf_size, KdTreeSplit::kWidestSpread, many.medians};
  Asked<Backend, T> asked(backend, cloud, shape, options, queries);
  const auto found = asked.nearest(search, neighbors);
  std::vector<std::vector<T>> clouds;
  for (std::int64_t tree = 0; tree < shape.trees; ++tree) clouds.push_back(part_of(cloud, tree, shape.trees));
  for (std::int64_t number = 0; number < shape.trees * search.queries; ++number) {
    const T* query = queries.data() + number * dimensions;
    const std::vector<T>& points = clouds[static_cast<std::size_t>(number / search.queries)];
    const std::int64_t* indices = found.indices.data() + number * neighbors;
    const T* distances = found.distances.data() + number * neighbors;
    if (number % (many.queries / 10 - 1) == 0) {
      const auto right =
          neighbors_by_brute_force(points, dimensions, query, static_cast<T>(search.radius), search);
      ASSERT_EQ(verify_nearest(right, search, neighbors, indices, distances), "") << "query " << number;
    }
    for (int i = 0; i < neighbors && indices[i] != -1; ++i) {
      ASSERT_TRUE(indices[i] >= 0 && indices[i] < shape.points);
      const T* point = points.data() + indices[i] * dimensions;
      ASSERT_EQ(distances[i], testing::squared_distance(point, query, dimensions, search))
          << "query " << number;
    }
  }
}

/// Of queries in random order: each list's points are within the radius, and of some queries, none is
/// missing.
template <class T, class Backend>
void expect_lists_of_many(Backend& backend, CloudPattern pattern, int dimensions, double radius) {
  const KdTreeShape shape = kd_tree_shape(2, 66'000, dimensions, 10);
  NeighborSearch search;
  search.queries = 5000;
  search.radius = radius;
  search.squared = true;
  const auto cloud = make_cloud<T>(shape.all_points(), dimensions, pattern);
  const auto queries = make_cloud<T>(shape.trees * search.queries, dimensions, pattern, 2);
  Asked<Backend, T> asked(backend, cloud, shape, {10}, queries);
  const auto lists = asked.within(search);
  const std::vector<T> clouds[2] = {part_of(cloud, 0, 2), part_of(cloud, 1, 2)};
  for (std::int64_t number = 0; number < shape.trees * search.queries; ++number) {
    const T* query = queries.data() + number * dimensions;
    const std::vector<T>& points = clouds[number / search.queries];
    const std::int64_t first = lists.offsets[static_cast<std::size_t>(number)];
    const std::int64_t end = lists.offsets[static_cast<std::size_t>(number) + 1];
    for (std::int64_t i = first; i < end; ++i) {
      const std::int64_t index = lists.indices[static_cast<std::size_t>(i)];
      ASSERT_TRUE(index >= 0 && index < shape.points);
      const T* point = points.data() + index * dimensions;
      ASSERT_EQ(lists.distances[static_cast<std::size_t>(i)],
                testing::squared_distance(point, query, dimensions, search))
          << "query " << number;
    }
    if (number % 499 != 0) continue;
    const auto right =
        neighbors_by_brute_force(points, dimensions, query, static_cast<T>(search.radius), search);
    ASSERT_EQ(end - first, static_cast<std::int64_t>(right.size())) << "query " << number;
  }
}

TYPED_TEST(KdTreeManyQueries, ListsWhateverTheirOrder) {
  expect_lists_of_many<float>(this->backend(), CloudPattern::kUniform, 3, 0.05);
  expect_lists_of_many<float>(this->backend(), CloudPattern::kDuplicates, 6, 0);
  expect_lists_of_many<double>(this->backend(), CloudPattern::kClustered, 2, 0.001);
}

TYPED_TEST(KdTreeManyQueries, FindsWhateverTheirOrder) {
  expect_nearest_of_many<float>(this->backend(), CloudPattern::kUniform, 3, 5);
  expect_nearest_of_many<float>(this->backend(), CloudPattern::kDuplicates, 3, 40);
  expect_nearest_of_many<float>(this->backend(), CloudPattern::kInfinities, 3, 40);
  expect_nearest_of_many<double>(this->backend(), CloudPattern::kUniform, 2, 5);
}

/// Lists of FLOAT64 take more room; those of more than 124 places more than a kernel has unasked.
TYPED_TEST(KdTreeManyQueries, FindsOfFloat64) {
  expect_nearest_of_many<double>(this->backend(), CloudPattern::kDuplicates, 3, 40);
  expect_nearest_of_many<double>(this->backend(), CloudPattern::kInfinities, 3, 128, {2001, 1500});
  for (int dimensions = 2; dimensions <= 9; ++dimensions) {
    for (const double period : {0.0, 1.0}) {
      SCOPED_TRACE(std::to_string(dimensions) + " dimensions");
      for (const int neighbors : {1, 8, 12}) {
        expect_nearest_of_many<double>(this->backend(), CloudPattern::kUniform, dimensions, neighbors,
                                       {1001, 1100, period});
      }
    }
  }
}

/// On a GPU these are not the exact trees.
TYPED_TEST(KdTreeManyQueries, FindsInTreesFromSamples) {
  for (const CloudPattern pattern : testing::kCloudPatterns) {
    for (const int neighbors : {1, 8, 50}) {
      SCOPED_TRACE(std::string(name_of(pattern)) + ", " + std::to_string(neighbors) + " neighbours");
      expect_nearest_of_many<float>(this->backend(), pattern, 3, neighbors,
                                    {140'000, 3000, 0, 1, 20, KdTreeMedians::kSampled});
      if (this->HasFailure()) return;
    }
  }
  expect_nearest_of_many<float>(this->backend(), CloudPattern::kUniform, 2, 8,
                                {140'000, 3000, 0, 1, 20, KdTreeMedians::kSampled});
}

/// A GPU has kernels of its own for one tree; lists of few neighbours know their limit from the first leaf,
/// which may have fewer points than they want, or more than a warp has lanes.
TYPED_TEST(KdTreeManyQueries, FindsFewInOneTree) {
  for (int dimensions = 2; dimensions <= 8; ++dimensions) {
    for (const int neighbors : {3, 8}) {
      for (const std::int64_t leaf_size : {3, 40}) {
        SCOPED_TRACE(std::to_string(dimensions) + " dimensions, leaves of " + std::to_string(leaf_size));
        const Many many{1001, 1100, 0, 1, leaf_size};
        expect_nearest_of_many<float>(this->backend(), CloudPattern::kUniform, dimensions, neighbors, many);
        expect_nearest_of_many<double>(this->backend(), CloudPattern::kUniform, dimensions, neighbors, many);
      }
    }
  }
  for (const CloudPattern pattern : testing::kCloudPatterns) {
    SCOPED_TRACE(testing::name_of(pattern));
    expect_nearest_of_many<float>(this->backend(), pattern, 3, 8, {2001, 1500, 0, 1, 20});
    expect_nearest_of_many<double>(this->backend(), pattern, 4, 8, {2001, 1500, 0, 1, 20});
  }
}

/// A GPU has a method of its own for one neighbour. 2001 points of the second tree begin where no 16 bytes
/// do; the last warp of each tree has fewer queries than lanes.
TYPED_TEST(KdTreeManyQueries, FindsTheNearestOneInEveryCloud) {
  for (const CloudPattern pattern : testing::kCloudPatterns) {
    for (const int dimensions : {2, 3, 4}) {
      SCOPED_TRACE(std::string(testing::name_of(pattern)) + ", dimensions: " + std::to_string(dimensions));
      expect_nearest_of_many<float>(this->backend(), pattern, dimensions, 1, {2001, 1500});
      expect_nearest_of_many<double>(this->backend(), pattern, dimensions, 1, {2001, 1500});
    }
  }
  expect_nearest_of_many<float>(this->backend(), CloudPattern::kClustered, 3, 1);
}

/// Sorted by their first coordinate, on a line: a GPU takes them as they come.
TYPED_TEST(KdTreeManyQueries, FindsInTheOrderTheyComeIn) {
  for (const int neighbors : {1, 5, 12}) {
    SCOPED_TRACE(std::to_string(neighbors) + " neighbours");
    expect_nearest_of_many<float>(this->backend(), CloudPattern::kLine, 3, neighbors, {2001, 1501});
    expect_nearest_of_many<double>(this->backend(), CloudPattern::kLine, 2, neighbors, {2001, 1501});
  }
}

/// Of one tree and many queries in three dimensions, without a radius, every list.
template <class T, class Backend>
void expect_nearest_of_all(Backend& backend, const std::vector<T>& cloud, const std::vector<T>& queries) {
  constexpr int kNeighbors[] = {1, 8, 12};
  const KdTreeShape shape = kd_tree_shape(1, static_cast<std::int64_t>(cloud.size() / 3), 3, 10);
  NeighborSearch search;
  search.queries = static_cast<std::int64_t>(queries.size() / 3);
  search.squared = true;
  Asked<Backend, T> asked(backend, cloud, shape, {10}, queries);
  std::vector<decltype(asked.nearest(search, 1))> found;
  for (const int neighbors : kNeighbors) found.push_back(asked.nearest(search, neighbors));
  for (std::int64_t i = 0; i < search.queries; ++i) {
    const auto right = neighbors_by_brute_force(cloud, 3, queries.data() + 3 * i,
                                                std::numeric_limits<T>::infinity(), search);
    for (std::size_t k = 0; k < found.size(); ++k) {
      const auto row = static_cast<std::size_t>(i * kNeighbors[k]);
      ASSERT_EQ(
          verify_nearest(right, search, kNeighbors[k], &found[k].indices[row], &found[k].distances[row]), "")
          << "query " << i << ", " << kNeighbors[k] << " neighbours";
    }
  }
}

/// Of FLOAT64, planes, boxes and first limits are kept in FLOAT32: of points that are closer than that tells
/// apart, the nearest.
TYPED_TEST(KdTreeManyQueries, FindsAmongPointsThatFloat32DoesNotTellApart) {
  auto cloud = make_cloud<double>(2001, 3, CloudPattern::kUniform);
  auto queries = make_cloud<double>(1500, 3, CloudPattern::kUniform, 2);
  for (double& x : cloud) x = 1 + std::ldexp(x, -26);
  for (double& x : queries) x = 1 + std::ldexp(x, -26);
  expect_nearest_of_all(this->backend(), cloud, queries);
}

/// Points on a sphere of the radius 2^exponent, and queries at its centre.
template <class T, class Backend>
void expect_nearest_on_a_sphere(Backend& backend, int exponent) {
  auto cloud = make_cloud<T>(701, 3, CloudPattern::kUniform);
  for (std::size_t i = 0; i < cloud.size(); i += 3) {
    const double x = cloud[i] - 0.5;
    const double y = cloud[i + 1] - 0.5;
    const double z = cloud[i + 2] - 0.5;
    const double length = std::sqrt(x * x + y * y + z * z);
    cloud[i] = static_cast<T>(std::ldexp(x / length, exponent));
    cloud[i + 1] = static_cast<T>(std::ldexp(y / length, exponent));
    cloud[i + 2] = static_cast<T>(std::ldexp(z / length, exponent));
  }
  auto queries = make_cloud<T>(1100, 3, CloudPattern::kUniform, 2);
  for (T& x : queries) x = std::ldexp(x, exponent - std::numeric_limits<T>::digits);
  expect_nearest_of_all(backend, cloud, queries);
}

/// A GPU looks for what may be near by distances that are rounded otherwise than those of results: of points
/// that differ by roundings alone, the nearest by the latter; and where squares are subnormal, or nothing.
TYPED_TEST(KdTreeManyQueries, FindsAmongPointsAtNearlyTheSameDistance) {
  for (const int exponent : {0, -65, -74}) {
    SCOPED_TRACE("radius 2^" + std::to_string(exponent));
    expect_nearest_on_a_sphere<float>(this->backend(), exponent);
  }
  for (const int exponent : {0, -520, -537}) {
    SCOPED_TRACE("radius 2^" + std::to_string(exponent));
    expect_nearest_on_a_sphere<double>(this->backend(), exponent);
  }
}

/// And sorts queries there, too.
TYPED_TEST(KdTreeManyQueries, FindsInUpToNineDimensionsAndInPeriodicBoxes) {
  for (int dimensions = 2; dimensions <= 9; ++dimensions) {
    for (const int neighbors : {dimensions % 2 == 0 ? 1 : 5, 12}) {
      for (const double period : {0.0, 1.0}) {
        SCOPED_TRACE(std::to_string(neighbors) + " in " + std::to_string(dimensions) + " dimensions");
        expect_nearest_of_many<float>(this->backend(), CloudPattern::kUniform, dimensions, neighbors,
                                      {1001, 1100, period});
      }
    }
  }
}

}  // namespace
}  // namespace cumulus
