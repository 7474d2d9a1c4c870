#include "server/operations/sampling_table/build.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "server/pipeline/errors.h"
#include "server/pipeline/read_enum.h"
#include "server/pipeline/text.h"

namespace cumulus::server::ops {
namespace {

/// What is left of `weights` without the layers, which go into `layers`.
absl::Status take_layers(InputArray& weights, std::int64_t& layers) {
  auto& extents = weights.shape.extents;
  if (extents.size() < 2) {
    return bad_field(weights.field, concat("is ", weights.shape.text(),
                                           "; with layered, [layers, height, width] or "
                                           "[layers, height, width, channels] is right"));
  }
  layers = extents[0];
  extents.erase(extents.begin());
  if (layers >= 1 && layers <= sampling::kMaxLayers) return absl::OkStatus();
  return bad_field(weights.field,
                   concat("has ", layers, " layers; 1 to ", sampling::kMaxLayers, " is right"));
}

/// The shape of one layer: a list of weights is a single row.
absl::StatusOr<ImageShape> read_layer_shape(InputArray weights, bool layered, std::int64_t& layers) {
  if (layered) {
    if (absl::Status taken = take_layers(weights, layers); !taken.ok()) return taken;
  }
  auto& extents = weights.shape.extents;
  if (extents.size() == 1) extents.insert(extents.begin(), 1);
  const auto shape = read_image_shape(weights, {v1::UINT8, v1::FLOAT16, v1::FLOAT32}, 4);
  if (!shape.ok()) return shape;
  const std::int64_t widest = shape->height == 1 ? sampling::kMaxLineExtent : sampling::kMaxExtent;
  if (shape->height > sampling::kMaxExtent || shape->width > widest) {
    return bad_field(weights.field, concat("has ", shape->height, " x ", shape->width, " pixels; at most ",
                                           sampling::kMaxExtent, " a side, or one row of at most ",
                                           sampling::kMaxLineExtent));
  }
  return shape;
}

absl::Status read_weights(const InputArray& weights, const BuildSamplingTable::Request& request,
                          BuildSamplingTable::Plan& plan) {
  SamplingTableParams& params = plan.params;
  const auto layer = read_layer_shape(weights, request.layered(), params.layers);
  if (!layer.ok()) return layer.status();
  params.height = layer->height;
  params.width = layer->width;
  plan.weights = *layer;
  plan.weights.height *= params.layers;
  return absl::OkStatus();
}

absl::Status read_projection(const BuildSamplingTable::Request& request, SamplingTableParams& params) {
  using sampling::Projection;
  const auto projection = read_enum<Projection>("projection", request.projection(),
                                                {{v1::PROJECTION_UNSPECIFIED, Projection::kLatLong},
                                                 {v1::LAT_LONG, Projection::kLatLong},
                                                 {v1::PLANE, Projection::kPlane},
                                                 {v1::EQUAL_AREA, Projection::kEqualArea}});
  if (!projection.ok()) return projection.status();
  params.projection = *projection;
  if (*projection != Projection::kEqualArea || params.height == params.width) return absl::OkStatus();
  return bad_field(
      "weights", concat("has ", params.height, " x ", params.width, " pixels; an EQUAL_AREA map is square"));
}

absl::Status read_interpolation(const BuildSamplingTable::Request& request, SamplingTableParams& params) {
  using sampling::Interpolation;
  const auto interpolation =
      read_enum<Interpolation>("interpolation", request.interpolation(),
                               {{v1::INTERPOLATION_UNSPECIFIED, Interpolation::kConstant},
                                {v1::CONSTANT, Interpolation::kConstant},
                                {v1::BILINEAR, Interpolation::kBilinear}});
  if (!interpolation.ok()) return interpolation.status();
  params.interpolation = *interpolation;
  return absl::OkStatus();
}

absl::Status read_invalid_weights(const BuildSamplingTable::Request& request, SamplingTableParams& params) {
  const auto invalid = read_enum<InvalidWeights>("invalid_weights", request.invalid_weights(),
                                                 {{v1::INVALID_WEIGHTS_UNSPECIFIED, InvalidWeights::kRefuse},
                                                  {v1::REFUSE, InvalidWeights::kRefuse},
                                                  {v1::CLAMP, InvalidWeights::kClamp}});
  if (!invalid.ok()) return invalid.status();
  params.invalid_weights = *invalid;
  return absl::OkStatus();
}

absl::Status read_custom_luminance(const BuildSamplingTable::Request& request,
                                   LuminanceCoefficients& luminance) {
  const auto& custom = request.luminance_coefficients();
  if (custom.size() != 3) {
    return bad_field("luminance_coefficients",
                     concat("has ", custom.size(), " elements; 3, of red, green and blue, is right"));
  }
  for (int i = 0; i < 3; ++i) {
    if (std::isfinite(custom[i]) && custom[i] >= 0.0F) continue;
    return bad_field(concat("luminance_coefficients[", i, "]"),
                     concat("is ", custom[i], "; finite and at least 0 is right"));
  }
  luminance = {custom[0], custom[1], custom[2]};
  if (custom[0] > 0.0F || custom[1] > 0.0F || custom[2] > 0.0F) return absl::OkStatus();
  return bad_field("luminance_coefficients", "are all 0; one of them must be more");
}

absl::Status read_luminance(const BuildSamplingTable::Request& request, SamplingTableParams& params) {
  const auto& custom = request.luminance_coefficients();
  if (request.luminance() != v1::CUSTOM && !custom.empty()) {
    return bad_field("luminance_coefficients",
                     concat("has ", custom.size(), " elements; none is right unless luminance is CUSTOM"));
  }
  const LuminanceCoefficients rec_709;
  const auto luminance =
      read_enum<LuminanceCoefficients>("luminance", request.luminance(),
                                       {{v1::LUMINANCE_UNSPECIFIED, rec_709},
                                        {v1::REC_709, rec_709},
                                        {v1::REC_2020, {0.2627F, 0.6780F, 0.0593F}},
                                        {v1::ACESCG, {0.2722287F, 0.6740818F, 0.0536895F}},
                                        {v1::AVERAGE, {1.0F / 3.0F, 1.0F / 3.0F, 1.0F / 3.0F}},
                                        {v1::CUSTOM, {}}});
  if (!luminance.ok()) return luminance.status();
  params.luminance = *luminance;
  return request.luminance() == v1::CUSTOM ? read_custom_luminance(request, params.luminance)
                                           : absl::OkStatus();
}

absl::Status read_guide_size(const char* field, std::uint32_t asked, v1::SamplingMethod method,
                             std::uint32_t& size) {
  if (asked > 0 && !sampling::has_guide(static_cast<sampling::Method>(method))) {
    return bad_field(field, concat("is ", asked, "; 0 is right of ", v1::SamplingMethod_Name(method),
                                   ", which has no guide table"));
  }
  if (asked > sampling::kMaxGuideSize) {
    return bad_field(field, concat("is ", asked, "; at most ", sampling::kMaxGuideSize, " is right"));
  }
  size = asked;
  return absl::OkStatus();
}

absl::Status bad_method(v1::SamplingMethod method) {
  constexpr const char* kRight =
      "BALANCED_FOREST, RADIX_FOREST, CUTPOINT_BINARY, BINARY_SEARCH or ALIAS is right";
  const int number = method;
  const auto* const retired = sampling::retired_method(static_cast<std::uint32_t>(number));
  if (retired == nullptr) return bad_field("method", concat("is ", number, "; ", kRight));
  return bad_field(
      "method", concat("is ", number, " (", retired->name, "), by which nothing is drawn any more; ", kRight,
                       ", of which all but ALIAS draw the same samples"));
}

absl::Status read_method(const BuildSamplingTable::Request& request, SamplingTableParams& params) {
  const v1::SamplingMethod method =
      request.method() == v1::SAMPLING_METHOD_UNSPECIFIED ? v1::BALANCED_FOREST : request.method();
  if (!v1::SamplingMethod_IsValid(method)) return bad_method(method);
  params.method = static_cast<sampling::Method>(method);
  absl::Status status = read_guide_size("guide_size", request.guide_size(), method, params.row_guide_size);
  if (!status.ok()) return status;
  return read_guide_size("marginal_guide_size", request.marginal_guide_size(), method,
                         params.marginal_guide_size);
}

absl::Status all_zero(const std::string& layer, const SamplingTableReport& report) {
  return no_answer("ALL_WEIGHTS_ZERO",
                   concat("weights: ", layer,
                          "every weight is zero, so there is nothing to draw; at least one "
                          "texel needs a positive value, unless uniform_if_all_zero"),
                   {{"layer", concat(report.layer)}});
}

absl::Status invalid_weight(const std::string& layer, const SamplingTableReport& report) {
  return no_answer(
      "INVALID_WEIGHT",
      concat("weights: ", layer, "row ", report.y, ", column ", report.x, ", channel ", report.channel,
             " is ", report.value, "; weights are finite and not negative, unless invalid_weights is CLAMP"),
      {{"layer", concat(report.layer)},
       {"row", concat(report.y)},
       {"column", concat(report.x)},
       {"channel", concat(report.channel)}});
}

}  // namespace

std::vector<SourceField> BuildSamplingTable::sources(const Request& request) {
  return {{"weights", &request.weights()}};
}

absl::StatusOr<BuildSamplingTable::Plan> BuildSamplingTable::validate(const Request& request,
                                                                      std::span<const InputArray> inputs) {
  Plan plan;
  SamplingTableParams& params = plan.params;
  absl::Status status = read_weights(inputs[0], request, plan);
  if (status.ok()) status = read_projection(request, params);
  if (status.ok()) status = read_interpolation(request, params);
  if (status.ok()) status = read_invalid_weights(request, params);
  if (status.ok()) status = read_luminance(request, params);
  if (status.ok()) status = read_method(request, params);
  if (!status.ok()) return status;
  params.mis_compensation = request.mis_compensation();
  params.uniform_if_all_zero = request.uniform_if_all_zero();
  return plan;
}

std::vector<OutputSpec> BuildSamplingTable::outputs(const Plan& plan) {
  const sampling::TableHeader header = sampling_table_header(plan.params);
  const auto* head = reinterpret_cast<const std::byte*>(&header);
  const auto bytes = static_cast<std::int64_t>(header.total_bytes);
  std::vector<OutputSpec> specs = {{"table", {v1::UINT8, {bytes}}}};
  specs[0].head.assign(head, head + sizeof(header));
  return specs;
}

Cost BuildSamplingTable::cost(const Plan& plan) {
  // A texel: its weight, its bounds and its part of the lookup; and where weights are bilinear, a vertex.
  constexpr double kCoreSeconds = 25e-9;
  constexpr double kGpuSeconds = 0.1e-9;
  const SamplingTableParams& params = plan.params;
  const double texels = static_cast<double>(params.layers) * static_cast<double>(params.height) *
                        static_cast<double>(params.width);
  const double passes = params.interpolation == sampling::Interpolation::kBilinear ? 2 : 1;
  return {texels * passes * kCoreSeconds, texels * passes * kGpuSeconds};
}

template <Space S>
std::size_t BuildSamplingTable::scratch_bytes(const Plan& plan) {
  return sampling_table_scratch_bytes<S>(plan.params);
}

template <class E>
void BuildSamplingTable::run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                             const Outputs<E::kSpace>& outputs, Report& report) {
  const auto build = [&]<class T>(Span<const T, E::kSpace> weights) {
    build_sampling_table(executor, plan.weights.view(weights), plan.params, outputs.template as<std::byte>(0),
                         &report);
  };
  if (plan.weights.type == v1::UINT8) return build(inputs.template as<const std::uint8_t>(0));
  if (plan.weights.type == v1::FLOAT16) return build(inputs.template as<const Float16>(0));
  build(inputs.template as<const float>(0));
}

absl::Status BuildSamplingTable::conclude(const Plan& plan, const Report& report) {
  if (report.outcome == Report::Outcome::kBuilt) return absl::OkStatus();
  const std::string layer = plan.params.layers > 1 ? concat("layer ", report.layer, ", ") : "";
  return report.outcome == Report::Outcome::kAllZero ? all_zero(layer, report)
                                                     : invalid_weight(layer, report);
}

template std::size_t BuildSamplingTable::scratch_bytes<Space::kHost>(const Plan&);
template std::size_t BuildSamplingTable::scratch_bytes<Space::kDevice>(const Plan&);
template void BuildSamplingTable::run(CpuExecutor&, const Plan&, const Inputs<Space::kHost>&,
                                      const Outputs<Space::kHost>&, Report&);
#if CUMULUS_WITH_CUDA
template void BuildSamplingTable::run(CudaExecutor&, const Plan&, const Inputs<Space::kDevice>&,
                                      const Outputs<Space::kDevice>&, Report&);
#endif

}  // namespace cumulus::server::ops
