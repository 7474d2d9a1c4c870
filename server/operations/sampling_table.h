#pragma once

#include <absl/strings/str_cat.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "cumulus/v1/sampling_table.pb.h"
#include "kernels/sampling_table/sampling_table.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/image_shape.h"
#include "server/pipeline/operation.h"

namespace cumulus::server::ops {

struct BuildSamplingTable {
  using Request = v1::BuildSamplingTableRequest;
  using Report = SamplingTableReport;
  struct Plan {
    ImageShape weights;  // the rows of all layers
    SamplingTableParams params;
  };
  static constexpr std::string_view kName = "BuildSamplingTable";

  static std::vector<SourceField> sources(const Request& request) {
    return {{"weights", &request.weights()}};
  }

  static absl::StatusOr<Plan> validate(const Request& request, std::span<const InputArray> inputs) {
    SamplingTableParams params;
    const auto layer = read_layer_shape(inputs[0], request.layered(), params.layers);
    if (!layer.ok()) return layer.status();
    params.height = layer->height;
    params.width = layer->width;
    switch (request.projection()) {
      case v1::PROJECTION_UNSPECIFIED:
      case v1::LAT_LONG:
        params.projection = sampling::Projection::kLatLong;
        break;
      case v1::PLANE:
        params.projection = sampling::Projection::kPlane;
        break;
      case v1::EQUAL_AREA:
        params.projection = sampling::Projection::kEqualArea;
        break;
      default:
        return bad_field("projection", absl::StrCat("is ", static_cast<int>(request.projection()),
                                                    "; LAT_LONG, PLANE or EQUAL_AREA is right"));
    }
    if (params.projection == sampling::Projection::kEqualArea && params.height != params.width) {
      return bad_field("weights", absl::StrCat("has ", layer->height, " x ", layer->width,
                                               " pixels; an EQUAL_AREA map is square"));
    }
    if (!v1::Interpolation_IsValid(request.interpolation())) {
      return bad_field("interpolation", absl::StrCat("is ", static_cast<int>(request.interpolation()),
                                                     "; CONSTANT or BILINEAR is right"));
    }
    if (request.interpolation() == v1::BILINEAR) params.interpolation = sampling::Interpolation::kBilinear;
    switch (request.invalid_weights()) {
      case v1::INVALID_WEIGHTS_UNSPECIFIED:
      case v1::REFUSE:
        params.invalid_weights = InvalidWeights::kRefuse;
        break;
      case v1::CLAMP:
        params.invalid_weights = InvalidWeights::kClamp;
        break;
      default:
        return bad_field("invalid_weights", absl::StrCat("is ", static_cast<int>(request.invalid_weights()),
                                                         "; REFUSE or CLAMP is right"));
    }
    if (absl::Status read = read_luminance(request, params.luminance); !read.ok()) return read;
    params.mis_compensation = request.mis_compensation();
    params.uniform_if_all_zero = request.uniform_if_all_zero();
    if (absl::Status read = read_method(request, params); !read.ok()) return read;
    ImageShape rows = *layer;
    rows.height *= params.layers;
    return Plan{rows, params};
  }

  static std::vector<OutputSpec> outputs(const Plan& plan) {
    const auto bytes = static_cast<std::int64_t>(sampling_table_bytes(plan.params));
    return {{"table", {v1::UINT8, {bytes}}}};
  }

  template <Space S>
  static std::size_t scratch_bytes(const Plan& plan) {
    return sampling_table_scratch_bytes<S>(plan.params);
  }

  template <class E>
  static void run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                  const Outputs<E::kSpace>& outputs, Report& report) {
    const auto build = [&]<class T>(Span<const T, E::kSpace> weights) {
      build_sampling_table(executor, plan.weights.view(weights), plan.params,
                           outputs.template as<std::byte>(0), &report);
    };
    if (plan.weights.type == v1::UINT8) return build(inputs.template as<const std::uint8_t>(0));
    if (plan.weights.type == v1::FLOAT16) return build(inputs.template as<const Float16>(0));
    build(inputs.template as<const float>(0));
  }

  static absl::Status conclude(const Plan& plan, const Report& report) {
    const std::string layer = plan.params.layers > 1 ? absl::StrCat("layer ", report.layer, ", ") : "";
    switch (report.outcome) {
      case Report::Outcome::kBuilt:
        return absl::OkStatus();
      case Report::Outcome::kAllZero:
        return no_answer("ALL_WEIGHTS_ZERO",
                         absl::StrCat("weights: ", layer,
                                      "every weight is zero, so there is nothing to draw; at least one "
                                      "texel needs a positive value, unless uniform_if_all_zero"),
                         {{"layer", absl::StrCat(report.layer)}});
      case Report::Outcome::kInvalidWeight:
        break;
    }
    return no_answer("INVALID_WEIGHT",
                     absl::StrCat("weights: ", layer, "row ", report.y, ", column ", report.x, ", channel ",
                                  report.channel, " is ", report.value,
                                  "; weights are finite and not negative, unless invalid_weights is CLAMP"),
                     {{"layer", absl::StrCat(report.layer)},
                      {"row", absl::StrCat(report.y)},
                      {"column", absl::StrCat(report.x)},
                      {"channel", absl::StrCat(report.channel)}});
  }

 private:
  /// The shape of one layer: a list of weights is a single row.
  static absl::StatusOr<ImageShape> read_layer_shape(const InputArray& weights, bool layered,
                                                     std::int64_t& layers) {
    InputArray layer = weights;
    auto& extents = layer.shape.extents;
    if (layered && extents.size() >= 2) {
      layers = extents[0];
      extents.erase(extents.begin());
      if (layers < 1 || layers > sampling::kMaxLayers) {
        return bad_field(weights.field,
                         absl::StrCat("has ", layers, " layers; 1 to ", sampling::kMaxLayers, " is right"));
      }
    } else if (layered) {
      return bad_field(weights.field, absl::StrCat("is ", weights.shape.text(),
                                                   "; with layered, [layers, height, width] or "
                                                   "[layers, height, width, channels] is right"));
    }
    if (extents.size() == 1) extents.insert(extents.begin(), 1);
    const auto shape = read_image_shape(layer, {v1::UINT8, v1::FLOAT16, v1::FLOAT32}, 4);
    if (!shape.ok()) return shape;
    const std::int64_t widest = shape->height == 1 ? sampling::kMaxLineExtent : sampling::kMaxExtent;
    if (shape->height > sampling::kMaxExtent || shape->width > widest) {
      return bad_field(
          weights.field,
          absl::StrCat("has ", shape->height, " x ", shape->width, " pixels; at most ", sampling::kMaxExtent,
                       " a side, or one row of at most ", sampling::kMaxLineExtent));
    }
    return shape;
  }

  static absl::Status read_method(const Request& request, SamplingTableParams& params) {
    const v1::SamplingMethod method =
        request.method() == v1::SAMPLING_METHOD_UNSPECIFIED ? v1::RADIX_FOREST : request.method();
    if (!v1::SamplingMethod_IsValid(method)) {
      return bad_field("method", absl::StrCat("is ", static_cast<int>(method),
                                              "; RADIX_FOREST (6) or another of 1 to 9 is right"));
    }
    params.method = static_cast<sampling::Method>(method);
    if (absl::Status read =
            read_guide_size("guide_size", request.guide_size(), method, params.row_guide_size);
        !read.ok()) {
      return read;
    }
    return read_guide_size("marginal_guide_size", request.marginal_guide_size(), method,
                           params.marginal_guide_size);
  }

  static absl::Status read_guide_size(const char* field, std::uint32_t asked, v1::SamplingMethod method,
                                      std::uint32_t& size) {
    if (asked > 0 && !sampling::has_guide(static_cast<sampling::Method>(method))) {
      return bad_field(field, absl::StrCat("is ", asked, "; 0 is right of ", v1::SamplingMethod_Name(method),
                                           ", which has no guide table"));
    }
    if (asked > sampling::kMaxGuideSize) {
      return bad_field(field, absl::StrCat("is ", asked, "; at most ", sampling::kMaxGuideSize, " is right"));
    }
    size = asked;
    return absl::OkStatus();
  }

  static absl::Status read_luminance(const Request& request, LuminanceCoefficients& luminance) {
    const auto& custom = request.luminance_coefficients();
    if (request.luminance() != v1::CUSTOM && !custom.empty()) {
      return bad_field(
          "luminance_coefficients",
          absl::StrCat("has ", custom.size(), " elements; none is right unless luminance is CUSTOM"));
    }
    switch (request.luminance()) {
      case v1::LUMINANCE_UNSPECIFIED:
      case v1::REC_709:
        return absl::OkStatus();
      case v1::REC_2020:
        luminance = {0.2627F, 0.6780F, 0.0593F};
        return absl::OkStatus();
      case v1::ACESCG:
        luminance = {0.2722287F, 0.6740818F, 0.0536895F};
        return absl::OkStatus();
      case v1::AVERAGE:
        luminance = {1.0F / 3.0F, 1.0F / 3.0F, 1.0F / 3.0F};
        return absl::OkStatus();
      case v1::CUSTOM:
        break;
      default:
        return bad_field("luminance",
                         absl::StrCat("is ", static_cast<int>(request.luminance()),
                                      "; REC_709, REC_2020, ACESCG, AVERAGE or CUSTOM is right"));
    }
    if (custom.size() != 3) {
      return bad_field("luminance_coefficients",
                       absl::StrCat("has ", custom.size(), " elements; 3, of red, green and blue, is right"));
    }
    for (int i = 0; i < 3; ++i) {
      if (std::isfinite(custom[i]) && custom[i] >= 0.0F) continue;
      return bad_field(absl::StrCat("luminance_coefficients[", i, "]"),
                       absl::StrCat("is ", custom[i], "; finite and at least 0 is right"));
    }
    luminance = {custom[0], custom[1], custom[2]};
    if (custom[0] > 0.0F || custom[1] > 0.0F || custom[2] > 0.0F) return absl::OkStatus();
    return bad_field("luminance_coefficients", "are all 0; one of them must be more");
  }
};

/// The header of a table that is an input.
inline absl::Status read_table_header(const InputArray& table, sampling::TableHeader& header) {
  if (table.shape.type != v1::UINT8 || table.shape.extents.size() != 1) {
    return bad_field(table.field, absl::StrCat("is ", table.shape.text(),
                                               "; a table is UINT8 [bytes], a result of BuildSamplingTable"));
  }
  const auto error =
      sampling::parse_header(table.head.data(), table.head.size(), table.shape.bytes(), header);
  if (error != sampling::TableError::kNone) return bad_field(table.field, sampling::describe(error));
  return absl::OkStatus();
}

inline absl::Status check_layer(std::uint32_t layer, const sampling::TableHeader& header) {
  if (layer < header.layers) return absl::OkStatus();
  return bad_field("layer", absl::StrCat("is ", layer, "; the table has ", header.layers,
                                         header.layers == 1 ? " layer" : " layers", ", counted from 0"));
}

struct DrawSamples {
  using Request = v1::DrawSamplesRequest;
  using Report = NoReport;
  struct Plan {
    sampling::TableHeader header;
    DrawParameters draw;

    bool has_direction() const { return sampling::on_sphere(header.projection); }
  };
  static constexpr std::string_view kName = "DrawSamples";

  static std::vector<SourceField> sources(const Request& request) { return {{"table", &request.table()}}; }

  static absl::StatusOr<Plan> validate(const Request& request, std::span<const InputArray> inputs) {
    Plan plan;
    absl::Status status = read_table_header(inputs[0], plan.header);
    if (status.ok()) status = check_layer(request.layer(), plan.header);
    if (status.ok()) status = read_range(request, plan.draw);
    if (!status.ok()) return status;
    plan.draw.layer = request.layer();
    plan.draw.seed = request.seed();
    switch (request.sequence()) {
      case v1::SEQUENCE_UNSPECIFIED:
      case v1::SOBOL:
        plan.draw.sequence = PointSequence::kSobol;
        break;
      case v1::HAMMERSLEY:
        plan.draw.sequence = PointSequence::kHammersley;
        break;
      case v1::RANDOM:
        plan.draw.sequence = PointSequence::kRandom;
        break;
      default:
        return bad_field("sequence", absl::StrCat("is ", static_cast<int>(request.sequence()),
                                                  "; SOBOL, HAMMERSLEY or RANDOM is right"));
    }
    return plan;
  }

  static std::vector<OutputSpec> outputs(const Plan& plan) {
    const std::int64_t count = plan.draw.count;
    std::vector<OutputSpec> specs = {{"position", {v1::FLOAT32, {count, 2}}},
                                     {"pdf", {v1::FLOAT32, {count}}}};
    if (plan.has_direction()) specs.push_back({"direction", {v1::FLOAT32, {count, 3}}});
    return specs;
  }

  template <Space S>
  static std::size_t scratch_bytes(const Plan& /*plan*/) {
    return 0;
  }

  template <class E>
  static void run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                  const Outputs<E::kSpace>& outputs, Report& /*report*/) {
    DrawnSamples<E::kSpace> samples;
    samples.position = outputs.template as<float>(0);
    samples.pdf = outputs.template as<float>(1);
    if (plan.has_direction()) samples.direction = outputs.template as<float>(2);
    draw_samples(executor, plan.header, inputs.template as<const std::byte>(0), plan.draw, samples);
  }

  static absl::Status conclude(const Plan& /*plan*/, const Report& /*report*/) { return absl::OkStatus(); }

 private:
  static constexpr std::int64_t kMaxCount = std::int64_t{1} << 31;
  static constexpr std::int64_t kMaxTotal = std::int64_t{1} << 32;

  static absl::Status read_range(const Request& request, DrawParameters& draw) {
    if (request.count() < 1 || request.count() > kMaxCount) {
      return bad_field("count", absl::StrCat("is ", request.count(), "; 1 to 2^31 is right"));
    }
    if (request.first_index() < 0 || request.first_index() > kMaxTotal - request.count()) {
      return bad_field("first_index", absl::StrCat("is ", request.first_index(),
                                                   "; at least 0, and first_index + count "
                                                   "at most 2^32, is right"));
    }
    const std::int64_t end = request.first_index() + request.count();
    if (request.total() != 0 && (request.total() < end || request.total() > kMaxTotal)) {
      return bad_field("total", absl::StrCat("is ", request.total(), "; 0, or first_index + count (", end,
                                             ") to 2^32, is right"));
    }
    draw.count = request.count();
    draw.first_index = request.first_index();
    draw.total = request.total();
    return absl::OkStatus();
  }
};

struct EvaluateDensity {
  using Request = v1::EvaluateDensityRequest;
  using Report = NoReport;
  struct Plan {
    sampling::TableHeader header;
    std::int64_t count = 0;
    int dimensions = 2;
    std::uint32_t layer = 0;
  };
  static constexpr std::string_view kName = "EvaluateDensity";

  static std::vector<SourceField> sources(const Request& request) {
    return {{"table", &request.table()}, {"points", &request.points()}};
  }

  static absl::StatusOr<Plan> validate(const Request& request, std::span<const InputArray> inputs) {
    Plan plan;
    absl::Status status = read_table_header(inputs[0], plan.header);
    if (status.ok()) status = check_layer(request.layer(), plan.header);
    if (status.ok()) status = read_points(inputs[1], plan);
    plan.layer = request.layer();
    if (!status.ok()) return status;
    return plan;
  }

  static std::vector<OutputSpec> outputs(const Plan& plan) { return {{"pdf", {v1::FLOAT32, {plan.count}}}}; }

  template <Space S>
  static std::size_t scratch_bytes(const Plan& /*plan*/) {
    return 0;
  }

  template <class E>
  static void run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                  const Outputs<E::kSpace>& outputs, Report& /*report*/) {
    const DensityPoints<E::kSpace> points{inputs.template as<const float>(1), plan.dimensions, plan.layer};
    evaluate_density(executor, plan.header, inputs.template as<const std::byte>(0), points,
                     outputs.template as<float>(0));
  }

  static absl::Status conclude(const Plan& /*plan*/, const Report& /*report*/) { return absl::OkStatus(); }

 private:
  static absl::Status read_points(const InputArray& points, Plan& plan) {
    const auto& extents = points.shape.extents;
    const bool sphere = sampling::on_sphere(plan.header.projection);
    const bool list = points.shape.type == v1::FLOAT32 && extents.size() == 2 && extents[0] >= 1;
    if (!list || (extents[1] != 2 && !(extents[1] == 3 && sphere))) {
      return bad_field(points.field,
                       absl::StrCat("is ", points.shape.text(), "; FLOAT32 [count, 2], positions, ",
                                    sphere ? "or [count, 3], directions, is right"
                                           : "is right (a plane has no directions)"));
    }
    plan.count = extents[0];
    plan.dimensions = static_cast<int>(extents[1]);
    return absl::OkStatus();
  }
};

}  // namespace cumulus::server::ops
