#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/kd_tree/kd_tree.h"
#include "server/pipeline/operation.h"

namespace cumulus::server::ops {

/// What the arrays of a forest have in common.
struct KdTreeArraysShape {
  KdTreeShape forest;
  v1::ElementType type = v1::FLOAT32;
  bool batched = false;  // arrays are [trees, ...]

  ArrayShape array(v1::ElementType element_type, std::vector<std::int64_t> extents) const {
    if (batched) extents.insert(extents.begin(), forest.trees);
    return {element_type, std::move(extents)};
  }
  ArrayShape points() const { return array(type, {forest.points, forest.dimensions}); }
  ArrayShape idx_array() const { return array(v1::INT64, {forest.points}); }
  ArrayShape node_data() const {
    return array(v1::UINT8, {forest.nodes(), static_cast<std::int64_t>(sizeof(KdTreeNode))});
  }
  ArrayShape node_bounds() const { return array(type, {2, forest.nodes(), forest.dimensions}); }

  /// Calls body(T()), T being float or double.
  template <class Body>
  auto with_type(const Body& body) const {
    return type == v1::FLOAT32 ? body(float()) : body(double());
  }

  /// Of [points, dimensions] or [trees, points, dimensions]; `levels` is left to the caller.
  static absl::StatusOr<KdTreeArraysShape> read(const InputArray& points);
};

}  // namespace cumulus::server::ops
