#include "cumulus/summed_area_table.h"

#include "cumulus/v1/summed_area_table.pb.h"
#include "library/operation_access.h"

namespace cumulus {

Operation build_summed_area_table(const Source& image, const SummedAreaTableOptions& options) {
  v1::BuildSummedAreaTableRequest request;
  SourceEncoder::encode(image, *request.mutable_image());
  if (options.accumulator.has_value()) request.set_accumulator(wire::to_wire(*options.accumulator));
  return OperationAccess::make("BuildSummedAreaTable", request);
}

Operation filter_box(const Source& image, const BoxFilterOptions& options) {
  v1::FilterBoxRequest request;
  SourceEncoder::encode(image, *request.mutable_image());
  request.set_radius(options.radius);
  return OperationAccess::make("FilterBox", request);
}

}  // namespace cumulus
