#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cumulus/v1/run_length.pb.h"
#include "kernels/run_length/run_length.h"
#include "kernels/run_length/transpose/transpose.h"
#include "server/operations/run_length_request.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/image_shape.h"
#include "server/pipeline/operation.h"
#include "server/pipeline/text.h"

namespace cumulus::server::ops {

struct EncodeRunLengths {
  using Request = v1::EncodeRunLengthsRequest;
  using Report = EncodeRunLengthsReport;
  struct Plan {
    RunUnit unit;
    std::optional<ImageBatch> by_columns;  // none: by rows
    bool pieces = false;                   // lines or images, whose first runs are wanted
    EncodeRunLengthsParams params;
  };
  static constexpr std::string_view kName = "EncodeRunLengths";

  static std::vector<SourceField> sources(const Request& request) { return {{"array", &request.array()}}; }

  static absl::StatusOr<Plan> validate(const Request& request, std::span<const InputArray> inputs) {
    const auto unit = RunUnit::read(inputs[0], request.pixels());
    if (!unit.ok()) return unit.status();
    Plan plan{*unit, {}, request.scope() == v1::EACH_LINE || request.scope() == v1::EACH_IMAGE, {}};
    const absl::Status order =
        read_run_order(request.order(), "array", inputs[0].shape, *unit, plan.by_columns);
    if (!order.ok()) return order;
    plan.params.format.element_bytes = unit->bytes();
    plan.params.elements = static_cast<std::int64_t>(inputs[0].shape.elements()) / unit->channels;
    absl::Status status = read_lengths(request, plan.params);
    if (status.ok()) status = read_scope(request, inputs[0].shape, plan);
    if (status.ok()) status = read_overflow(request, plan.params);
    if (status.ok()) status = read_max_runs(request, plan.params);
    if (!status.ok()) return status;
    return plan;
  }

  static std::vector<OutputSpec> outputs(const Plan& plan) { return arrays(plan, plan.params.max_runs); }

  template <Space S>
  static std::size_t scratch_bytes(const Plan& plan) {
    return encode_run_lengths_scratch_bytes<S>(plan.params) + turned_bytes(plan.by_columns);
  }

  template <class E>
  static void run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
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

  static absl::Status conclude(const Plan& plan, const Report& report) {
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

  static std::vector<ArrayShape> final_shapes(const Plan& plan, const Report& report) {
    std::vector<ArrayShape> shapes;
    for (OutputSpec& spec : arrays(plan, report.runs)) shapes.push_back(std::move(spec.shape));
    return shapes;
  }

 private:
  static constexpr std::int64_t kMax32 = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::int64_t kSplitElements = std::int64_t{1} << 31;

  static std::vector<OutputSpec> arrays(const Plan& plan, std::int64_t runs) {
    const v1::ElementType lengths = plan.params.format.length_bytes == 4 ? v1::UINT32 : v1::UINT64;
    std::vector<OutputSpec> specs = {{"symbols", plan.unit.array(runs)}, {"lengths", {lengths, {runs}}}};
    if (plan.pieces) specs.push_back({"first_runs", {v1::INT64, {run_pieces(plan.params) + 1}}});
    return specs;
  }

  static absl::Status read_lengths(const Request& request, EncodeRunLengthsParams& params) {
    const auto form = read_run_length_form(request.form());
    if (!form.ok()) return form.status();
    params.format.form = *form;
    switch (request.length_type()) {
      case v1::ELEMENT_TYPE_UNSPECIFIED:
      case v1::UINT32:
        params.format.length_bytes = 4;
        break;
      case v1::UINT64:
        params.format.length_bytes = 8;
        break;
      default:
        return bad_field("length_type", concat("is ", element_type_name(request.length_type()),
                                               "; UINT32 or UINT64 is right"));
    }
    if (*form == RunLengthForm::kEnds && params.format.length_bytes == 4 && params.elements > kMax32) {
      return bad_field("length_type", concat("is UINT32, which the ends of ", params.elements,
                                             " elements overflow; UINT64 is right"));
    }
    return absl::OkStatus();
  }

  static absl::Status read_scope(const Request& request, const ArrayShape& shape, Plan& plan) {
    switch (request.scope()) {
      case v1::RUN_SCOPE_UNSPECIFIED:
      case v1::WHOLE_ARRAY:
        return absl::OkStatus();
      case v1::EACH_LINE:
        plan.params.cut_elements =
            plan.by_columns.has_value() ? plan.by_columns->height : row_elements(shape, plan.unit);
        return absl::OkStatus();
      case v1::EACH_IMAGE: {
        const auto batch = read_image_batch("array", shape, plan.unit);
        if (!batch.ok()) return batch.status();
        plan.params.cut_elements = batch->height * batch->width;
        return absl::OkStatus();
      }
      default:
        return bad_field("scope", concat("is ", static_cast<int>(request.scope()),
                                         "; WHOLE_ARRAY, EACH_LINE or EACH_IMAGE is right"));
    }
  }

  static absl::Status read_overflow(const Request& request, EncodeRunLengthsParams& params) {
    switch (request.overflow()) {
      case v1::RUN_OVERFLOW_UNSPECIFIED:
      case v1::REFUSE_LONG_RUNS:
        return absl::OkStatus();
      case v1::SPLIT_LONG_RUNS:
        break;
      default:
        return bad_field("overflow", concat("is ", static_cast<int>(request.overflow()),
                                            "; REFUSE_LONG_RUNS or SPLIT_LONG_RUNS is right"));
    }
    if (params.cut_elements != 0 || params.format.form == RunLengthForm::kEnds) {
      return bad_field("overflow",
                       "is SPLIT_LONG_RUNS, which is for counts of the whole array; with lines, images or "
                       "ends REFUSE_LONG_RUNS is right");
    }
    if (params.format.length_bytes == 4 && params.elements > kMax32) params.cut_elements = kSplitElements;
    return absl::OkStatus();
  }

  static absl::Status read_max_runs(const Request& request, EncodeRunLengthsParams& params) {
    if (request.max_runs() < 0) {
      return bad_field("max_runs",
                       concat("is ", request.max_runs(), "; 0, or the most runs to make room for, is right"));
    }
    params.max_runs =
        request.max_runs() == 0 ? params.elements : std::min(request.max_runs(), params.elements);
    return absl::OkStatus();
  }
};

struct DecodeRunLengths {
  using Request = v1::DecodeRunLengthsRequest;
  using Report = DecodeRunLengthsReport;
  struct Plan {
    RunUnit unit;
    std::optional<ImageBatch> by_columns;  // none: by rows
    DecodeRunLengthsParams params;
    std::optional<ArrayShape> shape;  // what the request asks for
  };
  static constexpr std::string_view kName = "DecodeRunLengths";

  static std::vector<SourceField> sources(const Request& request) {
    return {{"symbols", &request.symbols()}, {"lengths", &request.lengths()}};
  }

  static absl::StatusOr<Plan> validate(const Request& request, std::span<const InputArray> inputs) {
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

  static std::vector<OutputSpec> outputs(const Plan& plan) {
    return {{"array", plan.shape.has_value() ? *plan.shape : plan.unit.array(plan.params.max_elements)}};
  }

  template <Space S>
  static std::size_t scratch_bytes(const Plan& plan) {
    return decode_run_lengths_scratch_bytes<S>(plan.params) + turned_bytes(plan.by_columns);
  }

  template <class E>
  static void run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
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

  static absl::Status conclude(const Plan& plan, const Report& report) {
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

  static std::vector<ArrayShape> final_shapes(const Plan& plan, const Report& report) {
    return {plan.shape.has_value() ? *plan.shape : plan.unit.array(report.elements)};
  }

 private:
  static absl::Status read_runs(const Request& request, const ArrayShape& symbols, const ArrayShape& lengths,
                                Plan& plan) {
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

  static absl::Status read_order(const Request& request, Plan& plan) {
    if (request.order() == v1::BY_COLUMNS && !plan.shape.has_value()) {
      return bad_field("shape", "is missing; order BY_COLUMNS needs [..., height, width]");
    }
    const ArrayShape& shape = plan.shape.has_value() ? *plan.shape : plan.unit.array(0);
    return read_run_order(request.order(), "shape", shape, plan.unit, plan.by_columns);
  }

  static absl::Status check_extents(const std::vector<std::int64_t>& extents) {
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

  static absl::Status read_size(const Request& request, Plan& plan) {
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
};

}  // namespace cumulus::server::ops
