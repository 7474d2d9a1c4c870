#include "server/operations/kd_tree/arrays.h"

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server::ops {
namespace {

constexpr std::int64_t kMaxTrees = std::int64_t{1} << 24;

}  // namespace

absl::StatusOr<KdTreeArraysShape> KdTreeArraysShape::read(const InputArray& points) {
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

}  // namespace cumulus::server::ops
