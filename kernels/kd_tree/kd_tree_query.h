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
// backends. Whatever the arrays of the tree hold, no memory outside them is read.

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
  Span<const T, S> points;  ///< [trees, queries, dimensions]; those of tree i ask tree i
  Span<const T, S> radii;   ///< [trees, queries], instead of NeighborSearch::radius; or empty
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
  };
  Fault fault = Fault::kNone;
  std::int32_t axis = -1;
  std::int64_t query = -1;  ///< the first at fault, counted through all trees; kTreeOutside: the tree
};

struct NeighborListReport {
  NeighborReport queries;
  std::int64_t listed = 0;  ///< neighbours of all queries together; undefined with a fault
};

/// The `neighbors` nearest points of each query, nearest first, equal distances by index: [trees, queries,
/// neighbors]. Where there are fewer, index -1 at distance +Inf. `neighbors` is 1 to kMaxNeighbors. With a
/// fault, the results are undefined.
void find_nearest(CpuExecutor& executor, const KdTreeShape& shape,
                  const KdTreeView<float, Space::kHost>& tree,
                  const NeighborQueries<float, Space::kHost>& queries, const NeighborSearch& search,
                  int neighbors, HostSpan<std::int64_t> indices, HostSpan<float> distances,
                  NeighborReport* report);
void find_nearest(CpuExecutor& executor, const KdTreeShape& shape,
                  const KdTreeView<double, Space::kHost>& tree,
                  const NeighborQueries<double, Space::kHost>& queries, const NeighborSearch& search,
                  int neighbors, HostSpan<std::int64_t> indices, HostSpan<double> distances,
                  NeighborReport* report);
void find_nearest(CudaExecutor& executor, const KdTreeShape& shape,
                  const KdTreeView<float, Space::kDevice>& tree,
                  const NeighborQueries<float, Space::kDevice>& queries, const NeighborSearch& search,
                  int neighbors, DeviceSpan<std::int64_t> indices, DeviceSpan<float> distances,
                  NeighborReport* report);
void find_nearest(CudaExecutor& executor, const KdTreeShape& shape,
                  const KdTreeView<double, Space::kDevice>& tree,
                  const NeighborQueries<double, Space::kDevice>& queries, const NeighborSearch& search,
                  int neighbors, DeviceSpan<std::int64_t> indices, DeviceSpan<double> distances,
                  NeighborReport* report);

/// How many points lie within the radius of each query: [trees, queries]. With a fault, the results are
/// undefined.
void count_within(CpuExecutor& executor, const KdTreeShape& shape,
                  const KdTreeView<float, Space::kHost>& tree,
                  const NeighborQueries<float, Space::kHost>& queries, const NeighborSearch& search,
                  HostSpan<std::int64_t> counts, NeighborReport* report);
void count_within(CpuExecutor& executor, const KdTreeShape& shape,
                  const KdTreeView<double, Space::kHost>& tree,
                  const NeighborQueries<double, Space::kHost>& queries, const NeighborSearch& search,
                  HostSpan<std::int64_t> counts, NeighborReport* report);
void count_within(CudaExecutor& executor, const KdTreeShape& shape,
                  const KdTreeView<float, Space::kDevice>& tree,
                  const NeighborQueries<float, Space::kDevice>& queries, const NeighborSearch& search,
                  DeviceSpan<std::int64_t> counts, NeighborReport* report);
void count_within(CudaExecutor& executor, const KdTreeShape& shape,
                  const KdTreeView<double, Space::kDevice>& tree,
                  const NeighborQueries<double, Space::kDevice>& queries, const NeighborSearch& search,
                  DeviceSpan<std::int64_t> counts, NeighborReport* report);

/// The points within the radius of each query, in the tree's order: query i's are elements offsets[i] to
/// offsets[i + 1] - 1 of `indices` and `distances`. `offsets` is [trees * queries + 1]. With a fault, and
/// where `indices` has not room for as many as the report says, the lists are undefined.
void list_within(CpuExecutor& executor, const KdTreeShape& shape, const KdTreeView<float, Space::kHost>& tree,
                 const NeighborQueries<float, Space::kHost>& queries, const NeighborSearch& search,
                 HostSpan<std::int64_t> offsets, HostSpan<std::int64_t> indices, HostSpan<float> distances,
                 NeighborListReport* report);
void list_within(CpuExecutor& executor, const KdTreeShape& shape,
                 const KdTreeView<double, Space::kHost>& tree,
                 const NeighborQueries<double, Space::kHost>& queries, const NeighborSearch& search,
                 HostSpan<std::int64_t> offsets, HostSpan<std::int64_t> indices, HostSpan<double> distances,
                 NeighborListReport* report);
void list_within(CudaExecutor& executor, const KdTreeShape& shape,
                 const KdTreeView<float, Space::kDevice>& tree,
                 const NeighborQueries<float, Space::kDevice>& queries, const NeighborSearch& search,
                 DeviceSpan<std::int64_t> offsets, DeviceSpan<std::int64_t> indices,
                 DeviceSpan<float> distances, NeighborListReport* report);
void list_within(CudaExecutor& executor, const KdTreeShape& shape,
                 const KdTreeView<double, Space::kDevice>& tree,
                 const NeighborQueries<double, Space::kDevice>& queries, const NeighborSearch& search,
                 DeviceSpan<std::int64_t> offsets, DeviceSpan<std::int64_t> indices,
                 DeviceSpan<double> distances, NeighborListReport* report);

}  // namespace cumulus
