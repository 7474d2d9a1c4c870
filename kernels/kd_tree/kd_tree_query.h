#pragma once

#include <array>
#include <cstdint>
#include <limits>

#include "kernels/kd_tree/kd_tree.h"

namespace cumulus {

// Exact neighbours from a tree of build_kd_tree, whatever its split. What kd_tree.h says of memory, errors
// and asynchrony holds here too.
//
// The square of a distance is the sum, axis after axis, of squared differences in the points' own type, each
// operation correctly rounded; a distance is its correctly rounded root. Results are the same bits on both
// backends. Whatever the arrays of the tree hold, no memory outside them is read, and no query looks at a
// point twice: that the leaves part the points is checked first.

inline constexpr int kMaxNeighbors = 128;

struct NeighborSearch {
  std::int64_t queries = 0;  ///< of each tree
  /// Points farther than this are no neighbours; those exactly so far are. At least 0.
  double radius = std::numeric_limits<double>::infinity();
  bool squared = false;  ///< distances come as their squares
  /// Where an axis closes on itself, its length: distances along it are the shorter way round, and points and
  /// queries lie in [0, period]. 0: it does not.
  std::array<double, kMaxKdTreeDimensions> period{};
};

template <class T, Space S>
struct NeighborQueries {
  Span<const T, S> points;  ///< [trees, queries, dimensions]; those of tree i search tree i
  Span<const T, S> radii;   ///< [trees, queries], instead of NeighborSearch::radius; or empty
};

/// A forest, its queries, and how they are answered: what every job begins with.
template <class T, Space S>
struct QueriedForest {
  KdTreeShape shape;
  KdTreeView<T, S> tree;
  NeighborQueries<T, S> queries;
  NeighborSearch search;

  std::int64_t all_queries() const { return shape.trees * search.queries; }
};

/// The `neighbors` nearest points of each query, nearest first, equal distances by index. Where there are
/// fewer, index -1 at distance +Inf. With a fault, the results are undefined.
template <class T, Space S>
struct NearestJob {
  QueriedForest<T, S> forest;
  int neighbors = 1;              ///< 1 to kMaxNeighbors
  Span<std::int64_t, S> indices;  ///< [trees, queries, neighbors]
  Span<T, S> distances;           ///< likewise
};

/// How many points lie within the radius of each query. With a fault, the results are undefined.
template <class T, Space S>
struct CountJob {
  QueriedForest<T, S> forest;
  Span<std::int64_t, S> counts;  ///< [trees, queries]
};

/// The points within the radius of each query, in the tree's order: query i's are elements offsets[i] to
/// offsets[i + 1] - 1 of `indices` and `distances`. With a fault, and where `indices` has not room for as
/// many as the report says, the lists are undefined.
template <class T, Space S>
struct ListJob {
  QueriedForest<T, S> forest;
  Span<std::int64_t, S> offsets;  ///< [trees * queries + 1]
  Span<std::int64_t, S> indices;  ///< [room]
  Span<T, S> distances;           ///< [room]
};

/// What is wrong with the queries, or with the tree. In host memory (pinned, for CUDA), valid once the work
/// is done.
struct NeighborReport {
  enum class Fault : std::int32_t {
    kNone,
    kNanCoordinate,  ///< of a query
    kQueryOutside,   ///< of [0, period]
    kRadius,         ///< NaN or negative
    kTreeOutside,    ///< of [0, period]: the root's box
    kLeaves,  ///< a leaf does not begin where the one before it ends, or the last not end with the points
  };
  Fault fault = Fault::kNone;
  std::int32_t axis = -1;
  std::int64_t query =
      -1;  ///< the first at fault, counted through all trees; kTreeOutside: the tree, kLeaves: the leaf
};

struct NeighborListReport {
  NeighborReport queries;
  std::int64_t listed = 0;  ///< neighbours of all queries together; undefined with a fault
};

// T is float or double.

template <class T>
void find_nearest(CpuExecutor& executor, const NearestJob<T, Space::kHost>& job, NeighborReport* report);
template <class T>
void find_nearest(CudaExecutor& executor, const NearestJob<T, Space::kDevice>& job, NeighborReport* report);

template <class T>
void count_within(CpuExecutor& executor, const CountJob<T, Space::kHost>& job, NeighborReport* report);
template <class T>
void count_within(CudaExecutor& executor, const CountJob<T, Space::kDevice>& job, NeighborReport* report);

template <class T>
void list_within(CpuExecutor& executor, const ListJob<T, Space::kHost>& job, NeighborListReport* report);
template <class T>
void list_within(CudaExecutor& executor, const ListJob<T, Space::kDevice>& job, NeighborListReport* report);

}  // namespace cumulus
