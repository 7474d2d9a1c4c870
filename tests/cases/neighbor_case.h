#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/kd_tree/kd_tree_query.h"

// Neighbours: the oracle, which looks at every point. For tests and benchmarks.

namespace cumulus::testing {

template <class T>
struct Neighbor {
  T squared_distance;
  std::int64_t index;

  bool operator<(const Neighbor& other) const {
    return squared_distance < other.squared_distance ||
           (squared_distance == other.squared_distance && index < other.index);
  }
};

template <class T>
T squared_distance(const T* point, const T* query, int dimensions, const NeighborSearch& search) {
  T sum = 0;
  for (int axis = 0; axis < dimensions; ++axis) {
    T distance = point[axis] == query[axis] ? T{0} : std::abs(point[axis] - query[axis]);
    const T period = static_cast<T>(search.period[static_cast<std::size_t>(axis)]);
    if (period > 0) distance = std::min(distance, period - distance);
    sum += distance * distance;
  }
  return sum;
}

/// The points of `cloud` (one tree's) within `radius` of `query`, nearest first, equal distances by index.
template <class T>
std::vector<Neighbor<T>> neighbors_by_brute_force(const std::vector<T>& cloud, int dimensions, const T* query,
                                                  T radius, const NeighborSearch& search) {
  std::vector<Neighbor<T>> neighbors;
  const auto width = static_cast<std::size_t>(dimensions);
  for (std::size_t point = 0; point < cloud.size() / width; ++point) {
    const T sum = squared_distance(&cloud[point * width], query, dimensions, search);
    if (sum <= radius * radius) neighbors.push_back({sum, static_cast<std::int64_t>(point)});
  }
  std::sort(neighbors.begin(), neighbors.end());
  return neighbors;
}

template <class T>
T shown_distance(T squared, const NeighborSearch& search) {
  return search.squared ? squared : std::sqrt(squared);
}

/// Empty where one query's `wanted` nearest are right, exactly; else what is wrong.
template <class T>
std::string verify_nearest(const std::vector<Neighbor<T>>& right, const NeighborSearch& search, int wanted,
                           const std::int64_t* indices, const T* distances) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(wanted); ++i) {
    const bool exists = i < right.size();
    const std::int64_t index = exists ? right[i].index : -1;
    const T distance =
        exists ? shown_distance(right[i].squared_distance, search) : std::numeric_limits<T>::infinity();
    if (indices[i] == index && distances[i] == distance) continue;
    std::ostringstream text;
    text.precision(17);
    text << "neighbour " << i << " is " << indices[i] << " at " << distances[i] << "; " << index << " at "
         << distance << " is right";
    return text.str();
  }
  return "";
}

}  // namespace cumulus::testing
