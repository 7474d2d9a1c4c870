#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/cuda_executor.h"
#include "kernels/core/views.h"
#include "kernels/kd_tree/shape.h"

namespace cumulus {

// KD-trees (J. Bentley, "Multidimensional binary search trees used for associative searching", CACM 1975)
// with tight boxes, in the shape of scikit-learn's KDTree: a complete binary tree whose node i has the
// children 2i + 1 and 2i + 2, and whose nodes each own a range of the reordered points. Every split is exact:
// a node's points are ordered by (coordinate, index), where -0 counts as 0, and the first of them go left. So
// trees depend on nothing but the points: not on threads, timing or backend, and duplicates split evenly.
// Within a leaf, points stand in the order of their indices.
//
// For every function here: trees lie in the executor's memory space, and a view that has not the size that
// the shape asks for throws std::invalid_argument before anything runs. The CPU overloads return when the
// result is there; the CUDA overloads put their work on the executor's stream and return. Before the call the
// caller reserves at least the bytes that the matching *_scratch_bytes function names; the call takes exactly
// those. A failing device throws CudaError, a caller who has lost interest Interrupted.

/// Where a tree's coordinates are cut.
enum class KdTreeSplit {
  kWidestSpread,  ///< the axis of the node's longest extent (the first of equals), at the median: point n / 2
                  ///< of n
  kRoundRobin,    ///< axis = level modulo dimensions, at the median
  /// The axis of the longest extent, at its middle: points up to it, itself included, go left. Moved no
  /// further than leaves of at most 2 * leaf_size points ask for; at the median where one side would be
  /// empty.
  kMidpoint,
};

/// Which medians a tree is split at, where it is split at medians.
enum class KdTreeMedians {
  kExact,
  /// For trees that are searched once and thrown away: the upper levels are split at medians of samples of
  /// the points, so that leaves have more and fewer points than leaf_size asks for. The tree is the exact one
  /// on the CPU, wherever kd_tree/method.h has no plan for a build from samples, and where a part of the
  /// points is so much larger than its samples said that the plan has no room for it (KdTreeReport::crowded).
  kSampled,
};

struct KdTreeOptions {
  /// Leaves have leaf_size to 2 * leaf_size points (kMidpoint: 0 to 2 * leaf_size). The default is the best
  /// of builds and searches on both backends; scikit-learn's is 40.
  std::int64_t leaf_size = 20;
  KdTreeSplit split = KdTreeSplit::kWidestSpread;
  KdTreeMedians medians = KdTreeMedians::kExact;  ///< kSampled: of kWidestSpread alone
};

/// A node: the memory layout of scikit-learn's NodeData_t.
struct KdTreeNode {
  std::int64_t begin;  ///< its points are begin ... end - 1 of the tree's order
  std::int64_t end;
  std::int64_t is_leaf;  ///< 1 on the last level, else 0
  double radius;         ///< half the diagonal of its box; 0 of a node without points
};

/// The arrays of a forest of KdTreeShape::trees trees, tree after tree.
template <class T, Space S, bool kConst = false>
struct KdTreeArrays {
  template <class U>
  using Elements = Span<std::conditional_t<kConst, const U, U>, S>;

  Elements<T> points;                ///< [trees, points, dimensions], in the tree's order
  Elements<std::int64_t> idx_array;  ///< [trees, points]: which of its tree's input points each is
  Elements<KdTreeNode> node_data;    ///< [trees, nodes]
  Elements<T> node_bounds;  ///< [trees, 2, nodes, dimensions]: least, then greatest coordinates; +Inf and
                            ///< -Inf of a node without points
};
template <class T, Space S>
using KdTreeView = KdTreeArrays<T, S, true>;

/// What a build found. In host memory (pinned, for CUDA), valid once the work is done.
struct KdTreeReport {
  std::int64_t tree = -1;  ///< of the first NaN among the points, in memory order; -1: there is none
  std::int64_t point = -1;
  std::int64_t dimension = -1;
  std::int64_t crowded = 0;  ///< 1: of kSampled, a part had no room, and the tree is the exact one
};

/// Builds the trees of `points`, [trees, points, dimensions]. Where a coordinate is NaN, says so in `report`
/// and leaves the tree's arrays undefined. +Inf and -Inf are coordinates like others. With kSampled the CUDA
/// overload returns once the sizes of all parts are known, which is about halfway.
void build_kd_tree(CpuExecutor& executor, HostSpan<const float> points, const KdTreeShape& shape,
                   const KdTreeOptions& options, const KdTreeArrays<float, Space::kHost>& tree,
                   KdTreeReport* report);
void build_kd_tree(CpuExecutor& executor, HostSpan<const double> points, const KdTreeShape& shape,
                   const KdTreeOptions& options, const KdTreeArrays<double, Space::kHost>& tree,
                   KdTreeReport* report);
void build_kd_tree(CudaExecutor& executor, DeviceSpan<const float> points, const KdTreeShape& shape,
                   const KdTreeOptions& options, const KdTreeArrays<float, Space::kDevice>& tree,
                   KdTreeReport* report);
void build_kd_tree(CudaExecutor& executor, DeviceSpan<const double> points, const KdTreeShape& shape,
                   const KdTreeOptions& options, const KdTreeArrays<double, Space::kDevice>& tree,
                   KdTreeReport* report);

/// Brings rows of `row_bytes` bytes (what goes with each point: a photon's power and direction) into the
/// trees' order: row i of a tree's `to` is row idx_array[i] of its `from`. Both are [trees, points,
/// row_bytes] and do not overlap. Of an index out of range it writes zeros.
void permute_rows(CpuExecutor& executor, const KdTreeShape& shape, HostSpan<const std::int64_t> idx_array,
                  HostSpan<const std::byte> from, std::int64_t row_bytes, HostSpan<std::byte> to);
void permute_rows(CudaExecutor& executor, const KdTreeShape& shape, DeviceSpan<const std::int64_t> idx_array,
                  DeviceSpan<const std::byte> from, std::int64_t row_bytes, DeviceSpan<std::byte> to);

}  // namespace cumulus
