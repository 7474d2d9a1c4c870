#pragma once

#include <cstdint>

#include "kernels/kd_tree/kd_tree.h"

namespace cumulus {

// The implicit left-balanced layout of a KD-tree (as in H. W. Jensen, "Realistic Image Synthesis Using Photon
// Mapping", 2001): nothing but the points, each of them a node. Node i has the children 2i + 1 and 2i + 2
// where these are less than the number of points, and cuts across axis depth modulo dimensions: in the order
// of (coordinate, index), all points below its left child come before it, and all below its right child after
// it. What kd_tree.h says of memory, errors and asynchrony holds here too.

/// The arrays of a forest, tree after tree.
template <class T, Space S>
struct LeftBalancedArrays {
  Span<T, S> points;                ///< [trees, points, dimensions], node after node
  Span<std::int64_t, S> idx_array;  ///< [trees, points]: which of its tree's input points each is
};

/// Of all trees together: their points.
inline constexpr std::int64_t kMaxLeftBalancedPoints = kMaxKdTreePoints;

/// Arranges `points`, [trees, points, dimensions]; of the shape, `levels` does not count. Where a coordinate
/// is NaN, says so in `report` and leaves the arrays undefined.
void arrange_left_balanced(CpuExecutor& executor, HostSpan<const float> points, const KdTreeShape& shape,
                           const LeftBalancedArrays<float, Space::kHost>& arrays, KdTreeReport* report);
void arrange_left_balanced(CpuExecutor& executor, HostSpan<const double> points, const KdTreeShape& shape,
                           const LeftBalancedArrays<double, Space::kHost>& arrays, KdTreeReport* report);
void arrange_left_balanced(CudaExecutor& executor, DeviceSpan<const float> points, const KdTreeShape& shape,
                           const LeftBalancedArrays<float, Space::kDevice>& arrays, KdTreeReport* report);
void arrange_left_balanced(CudaExecutor& executor, DeviceSpan<const double> points, const KdTreeShape& shape,
                           const LeftBalancedArrays<double, Space::kDevice>& arrays, KdTreeReport* report);

}  // namespace cumulus
