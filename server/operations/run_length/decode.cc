#include "server/operations/run_length/decode.h"

#include <cstdint>
#include <utility>

#include "server/pipeline/errors.h"
#include "server/pipeline/image_shape.h"
#include "server/pipeline/text.h"

namespace cumulus::server::ops {
namespace {

absl::Status read_runs(const DecodeRunLengths::Request& request, const ArrayShape& symbols,
                       const ArrayShape& lengths, DecodeRunLengths::Plan& plan) {
  const auto form = read_run_length_form(request.form());
  if (!form.ok()) return form.status();
  plan.params.format.form = *form;
  if (symbols.extents.size() != (plan.unit.pixels ? 2 : 1)) {
    return bad_field("symbols",
                     concat("is ", symbols.text(), "; [runs], or [runs, channels] with pixels, is right"));
  }
  plan.params.runs = symbols.extents[0];
  if (lengths.type != v1::UINT32 && lengths.type != v1::UINT64) {
    return bad_field("lengths", concat("has elements of type ", element_type_name(lengths.type),
                                       "; UINT32 or UINT64 is right"));
  }
  plan.params.format.length_bytes = lengths.type == v1::UINT32 ? 4 : 8;
  if (lengths.extents != std::vector<std::int64_t>{plan.params.runs}) {
    return bad_field("lengths", concat("is ", lengths.text(), "; one length for each of the ",
                                       plan.params.runs, " symbols is right"));
  }
  return absl::OkStatus();
}

absl::Status check_extents(const std::vector<std::int64_t>& extents) {
  if (extents.size() > kMaxExtents) {
    return bad_field("shape",
                     concat("has ", extents.size(), " extents; at most ", kMaxExtents, " are right"));
  }
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] < 0) {
      return bad_field(concat("shape[", i, "]"), concat("is ", extents[i], "; extents are at least 0"));
    }
  }
  return absl::OkStatus();
}

absl::Status read_size(const DecodeRunLengths::Request& request, DecodeRunLengths::Plan& plan) {
  const std::int64_t max_bytes = request.max_output_bytes();
  if (max_bytes < 1 || max_bytes > static_cast<std::int64_t>(kMaxArrayBytes)) {
    return bad_field("max_output_bytes", concat("is ", max_bytes,
                                                "; at least 1, and at most the server's "
                                                "max_buffer_bytes, is right"));
  }
  plan.params.max_elements = max_bytes / plan.unit.bytes();
  if (request.shape().empty()) return absl::OkStatus();
  ArrayShape shape{plan.unit.type, {request.shape().begin(), request.shape().end()}};
  absl::Status status = check_extents(shape.extents);
  if (!status.ok()) return status;
  if (plan.unit.pixels && shape.extents.back() != plan.unit.channels) {
    return bad_field("shape",
                     concat("is ", shape.text(), "; its last extent is right where it is the symbols' ",
                            plan.unit.channels, " channels"));
  }
  if (shape.bytes() > static_cast<std::size_t>(max_bytes)) {
    return bad_field("shape", concat("is ", shape.text(), ", of ", shape.bytes(),
                                     " bytes; max_output_bytes is ", max_bytes));
  }
  plan.params.max_elements = static_cast<std::int64_t>(shape.elements()) / plan.unit.channels;
  plan.shape = std::move(shape);
  return absl::OkStatus();
}

absl::Status read_order(const DecodeRunLengths::Request& request, DecodeRunLengths::Plan& plan) {
  if (request.order() == v1::BY_COLUMNS && !plan.shape.has_value()) {
    return bad_field("shape", "is missing; order BY_COLUMNS needs [..., height, width]");
  }
  const ArrayShape shape = plan.shape.has_value() ? *plan.shape : plan.unit.array(0);
  const auto by_columns = read_run_order(request.order(), {"shape", shape, plan.unit});
  if (!by_columns.ok()) return by_columns.status();
  plan.by_columns = *by_columns;
  return absl::OkStatus();
}

}  // namespace

std::vector<SourceField> DecodeRunLengths::sources(const Request& request) {
  return {{"symbols", &request.symbols()}, {"lengths", &request.lengths()}};
}

absl::StatusOr<DecodeRunLengths::Plan> DecodeRunLengths::validate(const Request& request,
                                                                  std::span<const InputArray> inputs) {
  const auto unit = RunUnit::read(inputs[0], request.pixels());
  if (!unit.ok()) return unit.status();
  Plan plan{*unit, {}, {}, {}};
  plan.params.format.element_bytes = unit->bytes();
  absl::Status status = read_runs(request, inputs[0].shape, inputs[1].shape, plan);
  if (status.ok()) status = read_size(request, plan);
  if (status.ok()) status = read_order(request, plan);
  if (!status.ok()) return status;
  return plan;
}

std::vector<OutputSpec> DecodeRunLengths::outputs(const Plan& plan) {
  return {{"array", plan.shape.has_value() ? *plan.shape : plan.unit.array(plan.params.max_elements)}};
}

Cost DecodeRunLengths::cost(const Plan& plan) {
  // A run, and a byte that is written; once more where the order is that of columns. Without a shape the
  // array may be as large as max_output_bytes; that it is a tenth of it is a guess.
  constexpr double kRunCoreSeconds = 4e-9;
  constexpr double kByteCoreSeconds = 0.3e-9;
  constexpr double kRunGpuSeconds = 0.03e-9;
  constexpr double kByteGpuSeconds = 0.001e-9;
  const double likely = static_cast<double>(plan.params.max_elements) * (plan.shape.has_value() ? 1 : 0.1);
  const double bytes = likely * plan.unit.bytes() * (plan.by_columns.has_value() ? 2 : 1);
  const double runs = static_cast<double>(plan.params.runs);
  return {runs * kRunCoreSeconds + bytes * kByteCoreSeconds, runs * kRunGpuSeconds + bytes * kByteGpuSeconds};
}

template <Space S>
std::size_t DecodeRunLengths::scratch_bytes(const Plan& plan) {
  return decode_run_lengths_scratch_bytes<S>(plan.params) + turned_bytes(plan.by_columns);
}

template <class E>
void DecodeRunLengths::run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                           const Outputs<E::kSpace>& outputs, Report& report) {
  const auto array = outputs.template as<std::byte>(0);
  Span<std::byte, E::kSpace> elements = array;
  if (plan.by_columns.has_value()) elements = executor.template scratch<std::byte>(array.size());
  decode_run_lengths(executor, plan.params, inputs.template as<const std::byte>(0),
                     inputs.template as<const std::byte>(1), elements, &report);
  if (!plan.by_columns.has_value()) return;
  ImageBatch columns = *plan.by_columns;
  std::swap(columns.height, columns.width);
  // Where the runs turn out not to fit, `conclude` throws this away.
  transpose_images(executor, columns, elements, array);
}

absl::Status DecodeRunLengths::conclude(const Plan& plan, const Report& report) {
  if (report.outcome == Report::Outcome::kDescendingEnds) {
    return no_answer(
        "DESCENDING_ENDS",
        concat("lengths: run ", report.run, " ends before the run before it does; ends never descend"),
        {{"run", concat(report.run)}});
  }
  if (plan.shape.has_value() && report.elements != plan.params.max_elements) {
    return no_answer("WRONG_ELEMENT_COUNT",
                     concat("lengths: the runs add up to ", report.elements, " elements; the shape ",
                            plan.shape->text(), " needs ", plan.params.max_elements),
                     {{"elements", concat(report.elements)}});
  }
  if (report.outcome == Report::Outcome::kTooLong) {
    return no_answer("ARRAY_TOO_LONG",
                     concat("lengths: the runs add up to ", report.elements,
                            " elements; max_output_bytes "
                            "allows ",
                            plan.params.max_elements),
                     {{"elements", concat(report.elements)}});
  }
  return absl::OkStatus();
}

std::vector<ArrayShape> DecodeRunLengths::final_shapes(const Plan& plan, const Report& report) {
  return {plan.shape.has_value() ? *plan.shape : plan.unit.array(report.elements)};
}

template std::size_t DecodeRunLengths::scratch_bytes<Space::kHost>(const Plan&);
template std::size_t DecodeRunLengths::scratch_bytes<Space::kDevice>(const Plan&);
template void DecodeRunLengths::run(CpuExecutor&, const Plan&, const Inputs<Space::kHost>&,
                                    const Outputs<Space::kHost>&, Report&);
#if CUMULUS_WITH_CUDA
template void DecodeRunLengths::run(CudaExecutor&, const Plan&, const Inputs<Space::kDevice>&,
                                    const Outputs<Space::kDevice>&, Report&);
#endif

}  // namespace cumulus::server::ops
