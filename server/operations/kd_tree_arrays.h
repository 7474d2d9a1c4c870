#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/kd_tree/kd_tree.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/image_shape.h"
#include "server/pipeline/operation.h"
#include "server/pipeline/text.h"

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
  static absl::StatusOr<KdTreeArraysShape> read(const InputArray& points) {
    const ArrayShape& shape = points.shape;
    const std::size_t extents = shape.extents.size();
    if ((extents != 2 && extents != 3) || (shape.type != v1::FLOAT32 && shape.type != v1::FLOAT64)) {
      return bad_field(points.field, concat("is ", shape.text(),
                                            "; FLOAT32 or FLOAT64, [points, dimensions] or [trees, points, "
                                            "dimensions], is right"));
    }
    const std::int64_t dimensions = shape.extents.back();
    if (dimensions < kMinKdTreeDimensions || dimensions > kMaxKdTreeDimensions) {
      return bad_field(points.field, concat("has ", dimensions, " dimensions; 2 to 16 are right"));
    }
    KdTreeArraysShape read;
    read.type = shape.type;
    read.batched = extents == 3;
    read.forest.trees = read.batched ? shape.extents[0] : 1;
    read.forest.points = shape.extents[extents - 2];
    read.forest.dimensions = static_cast<int>(dimensions);
    if (read.forest.points > kMaxKdTreePoints) {
      return bad_field(points.field,
                       concat("has ", read.forest.points, " points a tree; at most 2^31 - 1 are right"));
    }
    if (read.forest.trees > kMaxTrees) {
      return bad_field(points.field, concat("has ", read.forest.trees, " trees; at most 2^24 are right"));
    }
    return read;
  }

  static constexpr std::int64_t kMaxTrees = std::int64_t{1} << 24;
};

}  // namespace cumulus::server::ops
