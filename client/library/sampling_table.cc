#include "cumulus/sampling_table.h"

#include <array>

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

v1::Projection to_wire(MapProjection projection) {
  switch (projection) {
    case MapProjection::kLatLong:
      return v1::LAT_LONG;
    case MapProjection::kPlane:
      return v1::PLANE;
    case MapProjection::kEqualArea:
      return v1::EQUAL_AREA;
  }
  return v1::PROJECTION_UNSPECIFIED;
}

v1::Interpolation to_wire(MapInterpolation interpolation) {
  return interpolation == MapInterpolation::kBilinear ? v1::BILINEAR : v1::CONSTANT;
}

v1::Luminance to_wire(Luminance luminance) {
  switch (luminance) {
    case Luminance::kRec709:
      return v1::REC_709;
    case Luminance::kRec2020:
      return v1::REC_2020;
    case Luminance::kAcesCg:
      return v1::ACESCG;
    case Luminance::kAverage:
      return v1::AVERAGE;
    case Luminance::kCustom:
      return v1::CUSTOM;
  }
  return v1::LUMINANCE_UNSPECIFIED;
}

v1::SamplingMethod to_wire(SamplingMethod method) {
  switch (method) {
    case SamplingMethod::kRadixForest:
      return v1::RADIX_FOREST;
    case SamplingMethod::kBalancedForest:
      return v1::BALANCED_FOREST;
    case SamplingMethod::kCutpointBinary:
      return v1::CUTPOINT_BINARY;
    case SamplingMethod::kBinarySearch:
      return v1::BINARY_SEARCH;
    case SamplingMethod::kAlias:
      return v1::ALIAS;
  }
  return v1::SAMPLING_METHOD_UNSPECIFIED;
}

}  // namespace

Operation build_sampling_table(const Source& weights, const SamplingTableOptions& options) {
  v1::BuildSamplingTableRequest request;
  OperationInputs inputs;
  inputs.encode(weights, *request.mutable_weights());
  request.set_projection(to_wire(options.projection));
  request.set_invalid_weights(options.invalid_weights == InvalidWeights::kClamp ? v1::CLAMP : v1::REFUSE);
  request.set_luminance(to_wire(options.luminance));
  // Coefficients that go with no other luminance are sent as well, for the server to refuse, not lost here.
  const auto& coefficients = options.luminance_coefficients;
  if (options.luminance == Luminance::kCustom || coefficients != std::array<float, 3>{}) {
    for (const float coefficient : coefficients) request.add_luminance_coefficients(coefficient);
  }
  request.set_mis_compensation(options.mis_compensation);
  request.set_uniform_if_all_zero(options.uniform_if_all_zero);
  request.set_interpolation(to_wire(options.interpolation));
  request.set_method(to_wire(options.method));
  request.set_guide_size(options.guide_size);
  request.set_marginal_guide_size(options.marginal_guide_size);
  request.set_layered(options.layered);
  return OperationAccess::make("BuildSamplingTable", request, inputs);
}

Operation draw_samples(const Source& table, const DrawSamplesOptions& options) {
  v1::DrawSamplesRequest request;
  OperationInputs inputs;
  inputs.encode(table, *request.mutable_table());
  request.set_count(options.count);
  request.set_first_index(options.first_index);
  request.set_sequence(to_wire(options.sequence));
  request.set_seed(options.seed);
  request.set_total(options.total);
  request.set_layer(options.layer);
  return OperationAccess::make("DrawSamples", request, inputs);
}

Operation evaluate_density(const Source& table, const Source& points, std::uint32_t layer) {
  v1::EvaluateDensityRequest request;
  OperationInputs inputs;
  inputs.encode(table, *request.mutable_table());
  inputs.encode(points, *request.mutable_points());
  request.set_layer(layer);
  return OperationAccess::make("EvaluateDensity", request, inputs);
}

}  // namespace cumulus
