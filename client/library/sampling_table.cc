#include "cumulus/sampling_table.h"

#include "cumulus/v1/sampling_table.pb.h"
#include "library/operation_access.h"

namespace cumulus {
namespace {

v1::Sequence to_wire(PointSequence sequence) {
  switch (sequence) {
    case PointSequence::kSobol:
      return v1::SOBOL;
    case PointSequence::kHammersley:
      return v1::HAMMERSLEY;
    case PointSequence::kRandom:
      return v1::RANDOM;
  }
  return v1::SEQUENCE_UNSPECIFIED;
}

}  // namespace

Operation build_sampling_table(const Source& weights, const SamplingTableOptions& options) {
  v1::BuildSamplingTableRequest request;
  SourceEncoder::encode(weights, *request.mutable_weights());
  request.set_projection(options.projection == MapProjection::kPlane ? v1::PLANE : v1::LAT_LONG);
  request.set_invalid_weights(options.invalid_weights == InvalidWeights::kClamp ? v1::CLAMP : v1::REFUSE);
  return OperationAccess::make("BuildSamplingTable", request);
}

Operation draw_samples(const Source& table, const DrawSamplesOptions& options) {
  v1::DrawSamplesRequest request;
  SourceEncoder::encode(table, *request.mutable_table());
  request.set_count(options.count);
  request.set_first_index(options.first_index);
  request.set_sequence(to_wire(options.sequence));
  request.set_seed(options.seed);
  request.set_total(options.total);
  return OperationAccess::make("DrawSamples", request);
}

Operation evaluate_density(const Source& table, const Source& points) {
  v1::EvaluateDensityRequest request;
  SourceEncoder::encode(table, *request.mutable_table());
  SourceEncoder::encode(points, *request.mutable_points());
  return OperationAccess::make("EvaluateDensity", request);
}

}  // namespace cumulus
