#include "server/operations/run_length/encode.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "server/pipeline/errors.h"
#include "server/pipeline/read_enum.h"
#include "server/pipeline/text.h"

namespace cumulus::server::ops {
namespace {

constexpr std::int64_t kMax32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kSplitElements = std::int64_t{1} << 31;

std::vector<OutputSpec> arrays(const EncodeRunLengths::Plan& plan, std::int64_t runs) {
  const v1::ElementType lengths = plan.params.format.length_bytes == 4 ? v1::UINT32 : v1::UINT64;
  std::vector<OutputSpec> specs = {{"symbols", plan.unit.array(runs)}, {"lengths", {lengths, {runs}}}};
  if (plan.pieces) specs.push_back({"first_runs", {v1::INT64, {run_pieces(plan.params) + 1}}});
  return specs;
}

absl::Status read_lengths(const EncodeRunLengths::Request& request, EncodeRunLengthsParams& params) {
  const auto form = read_run_length_form(request.form());
  if (!form.ok()) return form.status();
  params.format.form = *form;
  const auto bytes = read_enum<int>("length_type", request.length_type(),
                                    {{v1::ELEMENT_TYPE_UNSPECIFIED, 4}, {v1::UINT32, 4}, {v1::UINT64, 8}});
  if (!bytes.ok()) return bytes.status();
  params.format.length_bytes = *bytes;
  if (*form == RunLengthForm::kEnds && *bytes == 4 && params.elements > kMax32) {
    return bad_field("length_type", concat("is UINT32, which the ends of ", params.elements,
                                           " elements overflow; UINT64 is right"));
  }
  return absl::OkStatus();
}

absl::Status read_scope(const EncodeRunLengths::Request& request, const UnitArray& array,
                        EncodeRunLengths::Plan& plan) {
  const auto scope = read_enum<v1::RunScope>("scope", request.scope(),
                                             {{v1::RUN_SCOPE_UNSPECIFIED, v1::WHOLE_ARRAY},
                                              {v1::WHOLE_ARRAY, v1::WHOLE_ARRAY},
                                              {v1::EACH_LINE, v1::EACH_LINE},
                                              {v1::EACH_IMAGE, v1::EACH_IMAGE}});
  if (!scope.ok()) return scope.status();
  plan.pieces = *scope != v1::WHOLE_ARRAY;
  if (*scope == v1::EACH_LINE) {
    plan.params.cut_elements = plan.by_columns.has_value() ? plan.by_columns->height : array.row_elements();
  } else if (*scope == v1::EACH_IMAGE) {
    const auto images = array.images();
    if (!images.ok()) return images.status();
    plan.params.cut_elements = images->height * images->width;
  }
  return absl::OkStatus();
}

absl::Status read_overflow(const EncodeRunLengths::Request& request, EncodeRunLengthsParams& params) {
  const auto split = read_enum<bool>(
      "overflow", request.overflow(),
      {{v1::RUN_OVERFLOW_UNSPECIFIED, false}, {v1::REFUSE_LONG_RUNS, false}, {v1::SPLIT_LONG_RUNS, true}});
  if (!split.ok()) return split.status();
  if (!*split) return absl::OkStatus();
  if (params.cut_elements != 0 || params.format.form == RunLengthForm::kEnds) {
    return bad_field("overflow",
                     "is SPLIT_LONG_RUNS, which is for counts of the whole array; with lines, images or "
                     "ends REFUSE_LONG_RUNS is right");
  }
  if (params.format.length_bytes == 4 && params.elements > kMax32) params.cut_elements = kSplitElements;
  return absl::OkStatus();
}

absl::Status read_max_runs(const EncodeRunLengths::Request& request, EncodeRunLengthsParams& params) {
  if (request.max_runs() < 0) {
    return bad_field("max_runs",
                     concat("is ", request.max_runs(), "; 0, or the most runs to make room for, is right"));
  }
  params.max_runs = request.max_runs() == 0 ? params.elements : std::min(request.max_runs(), params.elements);
  return absl::OkStatus();
}

}  // namespace

std::vector<SourceField> EncodeRunLengths::sources(const Request& request) {
  return {{"array", &request.array()}};
}

absl::StatusOr<EncodeRunLengths::Plan> EncodeRunLengths::validate(const Request& request,
                                                                  std::span<const InputArray> inputs) {
  const auto unit = RunUnit::read(inputs[0], request.pixels());
  if (!unit.ok()) return unit.status();
  const UnitArray array{"array", inputs[0].shape, *unit};
  const auto by_columns = read_run_order(request.order(), array);
  if (!by_columns.ok()) return by_columns.status();
  Plan plan{*unit, *by_columns, false, {}};
  plan.params.format.element_bytes = unit->bytes();
  plan.params.elements = static_cast<std::int64_t>(array.shape.elements()) / unit->channels;
  absl::Status status = read_lengths(request, plan.params);
  if (status.ok()) status = read_scope(request, array, plan);
  if (status.ok()) status = read_overflow(request, plan.params);
  if (status.ok()) status = read_max_runs(request, plan.params);
  if (!status.ok()) return status;
  return plan;
}

std::vector<OutputSpec> EncodeRunLengths::outputs(const Plan& plan) {
  return arrays(plan, plan.params.max_runs);
}

Cost EncodeRunLengths::cost(const Plan& plan) {
  // An element, and a byte of it; once more where the order is that of columns.
  constexpr double kCoreSeconds = 0.6e-9;
  constexpr double kGpuSeconds = 0.002e-9;
  const double elements = static_cast<double>(plan.params.elements);
  const double work = elements * (1 + plan.unit.bytes()) * (plan.by_columns.has_value() ? 2 : 1);
  return {work * kCoreSeconds, work * kGpuSeconds};
}

template <Space S>
std::size_t EncodeRunLengths::scratch_bytes(const Plan& plan, const DeviceNumbers& device) {
  return encode_run_lengths_scratch_bytes<S>(plan.params, device) + turned_bytes(plan.by_columns);
}

template <class E>
void EncodeRunLengths::run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                           const Outputs<E::kSpace>& outputs, Report& report) {
  Span<const std::byte, E::kSpace> elements = inputs.template as<const std::byte>(0);
  if (plan.by_columns.has_value()) {
    const auto turned = executor.template scratch<std::byte>(elements.size());
    transpose_images(executor, *plan.by_columns, elements, turned);
    elements = turned;
  }
  EncodedRuns<E::kSpace> runs{outputs.template as<std::byte>(0), outputs.template as<std::byte>(1)};
  if (plan.pieces) runs.first_runs = outputs.template as<std::int64_t>(2);
  encode_run_lengths(executor, plan.params, elements, runs, &report);
}

absl::Status EncodeRunLengths::conclude(const Plan& plan, const Report& report) {
  if (report.unfitting_run >= 0) {
    return no_answer("RUN_TOO_LONG",
                     concat("array: run ", report.unfitting_run,
                            " has more than 2^32 - 1 elements, which "
                            "UINT32 does not hold; use length_type UINT64, or SPLIT_LONG_RUNS"),
                     {{"run", concat(report.unfitting_run)}});
  }
  if (report.runs > plan.params.max_runs) {
    return no_answer(
        "TOO_MANY_RUNS",
        concat("array: it has ", report.runs, " runs; max_runs makes room for ", plan.params.max_runs),
        {{"runs", concat(report.runs)}});
  }
  return absl::OkStatus();
}

std::vector<ArrayShape> EncodeRunLengths::final_shapes(const Plan& plan, const Report& report) {
  std::vector<ArrayShape> shapes;
  for (OutputSpec& spec : arrays(plan, report.runs)) shapes.push_back(std::move(spec.shape));
  return shapes;
}

template std::size_t EncodeRunLengths::scratch_bytes<Space::kHost>(const Plan&, const DeviceNumbers&);
template std::size_t EncodeRunLengths::scratch_bytes<Space::kDevice>(const Plan&, const DeviceNumbers&);
template void EncodeRunLengths::run(CpuExecutor&, const Plan&, const Inputs<Space::kHost>&,
                                    const Outputs<Space::kHost>&, Report&);
#if CUMULUS_WITH_CUDA
template void EncodeRunLengths::run(CudaExecutor&, const Plan&, const Inputs<Space::kDevice>&,
                                    const Outputs<Space::kDevice>&, Report&);
#endif

}  // namespace cumulus::server::ops
