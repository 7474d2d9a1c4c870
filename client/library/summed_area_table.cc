#include "cumulus/summed_area_table.h"

#include "cumulus/v1/summed_area_table.pb.h"
#include "library/operation_access.h"
#include "library/wire.h"

namespace cumulus {
namespace {

v1::SumPrecision to_wire(SumPrecision precision) {
  switch (precision) {
    case SumPrecision::kPlain:
      return v1::PLAIN_SUMS;
    case SumPrecision::kMeanSubtracted:
      return v1::MEAN_SUBTRACTED_SUMS;
    case SumPrecision::kTileLocal:
      return v1::TILE_LOCAL_SUMS;
  }
  return v1::SUM_PRECISION_UNSPECIFIED;
}

v1::RectangleStatistic to_wire(RectangleStatistic statistic) {
  switch (statistic) {
    case RectangleStatistic::kSum:
      return v1::RECTANGLE_SUM;
    case RectangleStatistic::kMean:
      return v1::RECTANGLE_MEAN;
    case RectangleStatistic::kVariance:
      return v1::RECTANGLE_VARIANCE;
  }
  return v1::RECTANGLE_STATISTIC_UNSPECIFIED;
}

v1::BoxBoundary to_wire(BoxBoundary boundary) {
  switch (boundary) {
    case BoxBoundary::kExact:
      return v1::BOX_EXACT;
    case BoxBoundary::kZero:
      return v1::BOX_ZERO;
    case BoxBoundary::kClamp:
      return v1::BOX_CLAMP;
    case BoxBoundary::kRepeat:
      return v1::BOX_REPEAT;
    case BoxBoundary::kReflect:
      return v1::BOX_REFLECT;
    case BoxBoundary::kMirror:
      return v1::BOX_MIRROR;
  }
  return v1::BOX_BOUNDARY_UNSPECIFIED;
}

}  // namespace

Operation build_summed_area_table(const Source& image, const SummedAreaTableOptions& options) {
  v1::BuildSummedAreaTableRequest request;
  OperationInputs inputs;
  inputs.encode(image, *request.mutable_image());
  if (options.accumulator.has_value()) request.set_accumulator(wire::to_wire(*options.accumulator));
  request.set_exclusive(options.exclusive);
  request.set_squares(options.squares);
  request.set_planar(options.planar);
  request.set_width(options.width);
  request.set_overflow(options.wrap ? v1::WRAP_OVERFLOW : v1::REFUSE_OVERFLOW);
  request.set_precision(to_wire(options.precision));
  return OperationAccess::make("BuildSummedAreaTable", request, inputs);
}

Operation sum_rectangles(const Source& sums, const Source& rectangles, const SumRectanglesOptions& options) {
  v1::SumRectanglesRequest request;
  OperationInputs inputs;
  inputs.encode(sums, *request.mutable_sums());
  if (options.squares.has_value()) inputs.encode(*options.squares, *request.mutable_squares());
  if (options.offsets.has_value()) inputs.encode(*options.offsets, *request.mutable_offsets());
  if (options.above.has_value()) inputs.encode(*options.above, *request.mutable_above());
  if (options.left.has_value()) inputs.encode(*options.left, *request.mutable_left());
  inputs.encode(rectangles, *request.mutable_rectangles());
  request.set_exclusive(options.exclusive);
  for (const RectangleStatistic statistic : options.statistics) request.add_statistics(to_wire(statistic));
  request.set_border(options.refuse_outside ? v1::REFUSE_RECTANGLES : v1::CLIP_RECTANGLES);
  return OperationAccess::make("SumRectangles", request, inputs);
}

Operation filter_box(const Source& image, const BoxFilterOptions& options) {
  v1::FilterBoxRequest request;
  OperationInputs inputs;
  inputs.encode(image, *request.mutable_image());
  request.set_radius(options.radius);
  if (options.radius_x.has_value()) request.set_radius_x(*options.radius_x);
  if (options.radius_y.has_value()) request.set_radius_y(*options.radius_y);
  if (options.radius_map.has_value()) inputs.encode(*options.radius_map, *request.mutable_radius_map());
  request.set_boundary_x(to_wire(options.boundary_x));
  request.set_boundary_y(to_wire(options.boundary_y));
  request.set_deviation(options.deviation);
  request.set_non_finite(wire::to_wire(options.non_finite));
  return OperationAccess::make("FilterBox", request, inputs);
}

}  // namespace cumulus
