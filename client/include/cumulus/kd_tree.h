#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cumulus/operation.h"

/// KD-trees: build one over points, then ask it for neighbours as often as wanted. Photon maps, point clouds.
/// (J. Bentley, "Multidimensional binary search trees used for associative searching", CACM 1975.)
namespace cumulus {

/// Where a node's points are cut in two. Points are ordered by (coordinate, index).
enum class KdTreeSplit {
  kWidestSpread,  ///< across the axis of the longest extent, at the median: scikit-learn's trees
  kRoundRobin,    ///< across axis level modulo dimensions, at the median
  /// Across the axis of the longest extent, at its middle, moved no further than leaves of at most
  /// 2 * leaf_size points ask for.
  kMidpoint,
};

/// Which medians a tree is split at, where it is split at medians.
enum class KdTreeMedians {
  kExact,
  /// The upper levels at medians of samples, where that is a faster build: for trees that are searched once
  /// and thrown away. Leaves have up to some 8 * leaf_size points, or none. Made of one tree of float32 in 2
  /// or 3 dimensions, 2^17 to 10^8 points, leaf_size 3 to 49, on a GPU whose blocks have 227 KiB of shared
  /// memory; other trees are the exact ones. Searches are as exact as any other tree's.
  kSampled,
};

struct KdTreeOptions {
  /// Leaves have leaf_size to 2 * leaf_size points (kMidpoint: 0 to 2 * leaf_size).
  std::int64_t leaf_size = 20;
  KdTreeSplit split = KdTreeSplit::kWidestSpread;
  KdTreeMedians medians = KdTreeMedians::kExact;  ///< kSampled: of kWidestSpread alone
};

/// Of `points`, [points, dimensions], or [trees, points, dimensions] for many trees at once; float32 or
/// float64; 2 to 16 dimensions. `payload`, [points, ...] or [trees, points, ...] of any type, is brought into
/// the tree's order. FAILED_PRECONDITION, reason NAN_COORDINATE (`tree`, `point`, `dimension`), where a
/// coordinate is NaN; infinities are coordinates.
///
/// Results, in the shape of scikit-learn's KDTree (before each extent `trees`, where `points` has it):
/// `points`, [points, dimensions], in the tree's order; `idx_array`, int64 [points], which of the input's
/// points each is; `node_data`, uint8 [nodes, 32]: int64 begin, end, is_leaf, float64 radius; `node_bounds`,
/// [2, nodes, dimensions], the least coordinates, then the greatest; and `payload`.
Operation build_kd_tree(const Source& points, const KdTreeOptions& options = {});
Operation build_kd_tree(const Source& points, const Source& payload, const KdTreeOptions& options = {});

/// The implicit left-balanced layout of a tree, for other programs to search: nothing but the points, each of
/// them a node. Node i has the children 2 i + 1 and 2 i + 2, where these are less than the number of points,
/// and cuts across axis depth modulo dimensions; in the order of (coordinate, index), all points below its
/// left child come before it, all below its right child after it. Points and payload are as build_kd_tree's;
/// all trees together have at most 2^31 - 1 points. Results, node after node: `points`, [points, dimensions],
/// `idx_array`, int64 [points], and `payload`.
Operation arrange_left_balanced_kd_tree(const Source& points);
Operation arrange_left_balanced_kd_tree(const Source& points, const Source& payload);

/// A tree: the results of build_kd_tree. To ask it, FAILED_PRECONDITION: NAN_COORDINATE or OUTSIDE_PERIOD of
/// a query (`tree`, `query`, `dimension`), OUTSIDE_PERIOD of the tree's points, INVALID_RADIUS (`tree`,
/// `query`).
struct KdTree {
  Source points;
  Source idx_array;
  Source node_data;
  Source node_bounds;
};

struct NeighborOptions {
  /// Points farther than this are no neighbours; those exactly so far are. Absent: infinity.
  std::optional<double> radius = std::nullopt;
  /// A radius for each query, [queries] of the tree's type, instead of `radius`.
  std::optional<Source> radii = std::nullopt;
  bool squared = false;  ///< distances come as their squares
  /// Where axis i closes on itself, its length; 0 where it does not. Points and queries lie in [0, period].
  std::vector<double> period = {};
};

/// The `nearest` (1 to 128) nearest points of each of `queries`, [queries, dimensions] or [trees, queries,
/// dimensions] of the tree's type. Results: `indices`, int64 [queries, nearest], of the points that the tree
/// was built of, nearest first, equal distances by index; `distances`, likewise. Where there are fewer: index
/// -1 at distance +Inf.
Operation find_nearest(const KdTree& tree, const Source& queries, int nearest,
                       const NeighborOptions& options = {});

/// How many points lie within the radius of each query. Result: `counts`, int64 [queries].
Operation count_neighbors(const KdTree& tree, const Source& queries, const NeighborOptions& options);

/// The sums of what goes with the `nearest` (1 to 128) nearest points of each query, made on the server,
/// where their lists are not wanted: photons around a place. `payload` has a row for each point that the tree
/// was built of, in their order, [points] or [points, channels] ([trees, ...] where the tree is), of the
/// tree's type. Results: `sums`, [queries] or [queries, channels], of that type, made in double, of the
/// nearest first, and rounded once; `distances`, [queries], of the last of the nearest, +Inf where there are
/// fewer. On a GPU it takes 12 bytes (of float64 16) of scratch memory for each query and neighbour.
Operation sum_nearest(const KdTree& tree, const Source& queries, const Source& payload, int nearest,
                      const NeighborOptions& options = {});

/// As sum_nearest, of all points within the radius of each query, in the tree's order. Results: `sums`;
/// `counts`, int64 [queries], of the points summed.
Operation sum_neighbors(const KdTree& tree, const Source& queries, const Source& payload,
                        const NeighborOptions& options);

/// All points within the radius of each query, in the tree's order, one list after another: query i's (of
/// tree t query q: i = t * queries + q) are elements offsets[i] to offsets[i + 1] - 1. Results: `offsets`,
/// int64 [trees * queries + 1]; `indices`, int64 [neighbors], of the points that the tree was built of;
/// `distances`, of the tree's type, [neighbors]. `max_neighbors` is room for all lists together; more
/// neighbours are FAILED_PRECONDITION, reason TOO_MANY_NEIGHBORS, with their number as `neighbors`.
Operation list_neighbors(const KdTree& tree, const Source& queries, std::int64_t max_neighbors,
                         const NeighborOptions& options);

}  // namespace cumulus
