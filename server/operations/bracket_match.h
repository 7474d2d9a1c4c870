#pragma once

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "cumulus/v1/bracket_match.pb.h"
#include "kernels/bracket_match/bracket_match.h"
#include "kernels/bracket_match/intersect_clips.h"
#include "server/pipeline/errors.h"
#include "server/pipeline/image_shape.h"
#include "server/pipeline/operation.h"

namespace cumulus::server::ops {

struct MatchBrackets {
  using Request = v1::MatchBracketsRequest;
  using Report = BracketReport;
  struct Plan {
    std::int64_t count = 0;
    bool tokens = false;
    bool wide = false;  // 64-bit indices
    bool lenient = false;
    bool segmented = false;
    BracketTable table;  // of bytes
    std::vector<v1::BracketOutput> outputs;
  };
  static constexpr std::string_view kName = "MatchBrackets";

  static std::vector<SourceField> sources(const Request& request) {
    std::vector<SourceField> fields = {{"text", &request.text()}};
    if (request.has_segments()) fields.push_back({"segments", &request.segments()});
    return fields;
  }

  static absl::StatusOr<Plan> validate(const Request& request, std::span<const InputArray> inputs) {
    Plan plan;
    plan.lenient = request.lenient();
    absl::Status status = read_text(inputs[0], plan);
    if (status.ok()) status = read_pairs(request, plan);
    if (status.ok()) status = read_outputs(request, plan);
    if (status.ok()) status = read_index_type(request, plan);
    if (status.ok() && request.has_segments()) status = read_segments(inputs[1], plan);
    if (!status.ok()) return status;
    return plan;
  }

  static std::vector<OutputSpec> outputs(const Plan& plan) {
    const v1::ElementType index = plan.wide ? v1::INT64 : v1::INT32;
    std::vector<OutputSpec> specs;
    for (const v1::BracketOutput output : plan.outputs) {
      if (output == v1::MAXIMUM_DEPTH) {
        specs.push_back({"maximum_depth", {v1::INT64, {1}}});
      } else {
        specs.push_back({kIndexedOutputs.at(static_cast<std::size_t>(output)), {index, {plan.count}}});
      }
    }
    if (plan.lenient) specs.push_back({"unmatched", {v1::INT64, {1}}});
    return specs;
  }

  template <Space S>
  static std::size_t scratch_bytes(const Plan& plan) {
    return match_brackets_scratch_bytes<S>(plan.count, plan.segmented);
  }

  template <class E>
  static void run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                  const Outputs<E::kSpace>& outputs, Report& report) {
    plan.wide ? run_with<std::int64_t>(executor, plan, inputs, outputs, report)
              : run_with<std::int32_t>(executor, plan, inputs, outputs, report);
  }

  static absl::Status conclude(const Plan& plan, const Report& report) {
    if (report.fault == Report::Fault::kWrongSegment) return wrong_segment(report);
    if (plan.lenient || report.fault == Report::Fault::kNone) return absl::OkStatus();
    const auto name = [&](std::int32_t symbol) { return symbol_name(plan, symbol); };
    std::map<std::string, std::string> metadata = {{"position", absl::StrCat(report.position)}};
    if (plan.segmented) metadata["segment"] = absl::StrCat(report.segment);
    if (report.fault != Report::Fault::kUnclosed) metadata["found"] = absl::StrCat(report.found);
    std::string text = report.fault == Report::Fault::kUnclosed
                           ? absl::StrCat("text: ", plan.segmented ? "a document " : "", "ends after ",
                                          report.position, " elements")
                           : absl::StrCat("text: element ", report.position, " is ", name(report.found));
    if (report.open_position < 0) {
      absl::StrAppend(&text, ", which closes nothing; an open bracket before it, or nothing here, is right");
    } else {
      metadata["expected"] = absl::StrCat(report.expected);
      metadata["open_position"] = absl::StrCat(report.open_position);
      absl::StrAppend(&text, " where ", name(report.expected), " is right, to close what element ",
                      report.open_position, " opens");
    }
    return no_answer("UNBALANCED_BRACKETS", text, metadata);
  }

 private:
  static constexpr std::array kIndexedOutputs = {"", "partner", "parent", "depth", "stack_top"};

  static absl::Status read_text(const InputArray& text, Plan& plan) {
    const bool right_type = text.shape.type == v1::UINT8 || text.shape.type == v1::INT32;
    if (!right_type || text.shape.extents.size() != 1) {
      return bad_field(text.field, absl::StrCat("is ", text.shape.text(),
                                                "; UINT8 [n], a text, or INT32 [n], tokens, is right"));
    }
    plan.tokens = text.shape.type == v1::INT32;
    plan.count = text.shape.extents[0];
    return absl::OkStatus();
  }

  static absl::Status read_segments(const InputArray& segments, Plan& plan) {
    if (segments.shape.type != v1::INT64 || segments.shape.extents.size() != 1 ||
        segments.shape.extents[0] == 0) {
      return bad_field(segments.field,
                       absl::StrCat("is ", segments.shape.text(),
                                    "; INT64 [documents], the element at which each begins, is right"));
    }
    plan.segmented = true;
    return absl::OkStatus();
  }

  static absl::Status wrong_segment(const Report& report) {
    return no_answer(
        "WRONG_SEGMENTS",
        absl::StrCat("segments: element ", report.position,
                     " is wrong; 0 first, then numbers that never fall, of at most as many as there "
                     "are elements, are right"),
        {{"position", absl::StrCat(report.position)}});
  }

  static absl::Status read_pairs(const Request& request, Plan& plan) {
    if (plan.tokens) {
      if (request.pairs().empty()) return absl::OkStatus();
      return bad_field("pairs", "is for texts of bytes; of tokens k opens and -k closes kind k");
    }
    try {
      plan.table = BracketTable::of_pairs(request.pairs().empty() ? std::string("()[]{}") : request.pairs());
    } catch (const std::invalid_argument& error) {
      return bad_field("pairs", error.what());
    }
    return absl::OkStatus();
  }

  static absl::Status read_outputs(const Request& request, Plan& plan) {
    for (int i = 0; i < request.outputs_size(); ++i) {
      const v1::BracketOutput output = request.outputs(i);
      const std::string field = absl::StrCat("outputs[", i, "]");
      if (output < v1::PARTNER || output > v1::MAXIMUM_DEPTH) {
        return bad_field(field,
                         absl::StrCat("is ", static_cast<int>(output),
                                      "; PARTNER, PARENT, DEPTH, STACK_TOP or MAXIMUM_DEPTH is right"));
      }
      if (std::find(plan.outputs.begin(), plan.outputs.end(), output) != plan.outputs.end()) {
        return bad_field(field,
                         absl::StrCat("is ", v1::BracketOutput_Name(output), " again; each once is right"));
      }
      plan.outputs.push_back(output);
    }
    if (plan.outputs.empty()) plan.outputs.push_back(v1::PARTNER);
    return absl::OkStatus();
  }

  static absl::Status read_index_type(const Request& request, Plan& plan) {
    const bool needs_64_bits = plan.count > std::numeric_limits<std::int32_t>::max();
    switch (request.index_type()) {
      case v1::ELEMENT_TYPE_UNSPECIFIED:
        plan.wide = needs_64_bits;
        return absl::OkStatus();
      case v1::INT64:
        plan.wide = true;
        return absl::OkStatus();
      case v1::INT32:
        if (!needs_64_bits) return absl::OkStatus();
        return bad_field("index_type", absl::StrCat("is INT32, which cannot number ", plan.count,
                                                    " elements; INT64 is right"));
      default:
        return bad_field("index_type", absl::StrCat("is ", element_type_name(request.index_type()),
                                                    "; INT32 or INT64 is right"));
    }
  }

  template <class Index, class E>
  static void run_with(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                       const Outputs<E::kSpace>& arrays, Report& report) {
    BracketOutputs<Index, E::kSpace> outputs;
    const std::array indexed = {&outputs.partner, &outputs.partner, &outputs.parent, &outputs.depth,
                                &outputs.top};
    for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
      if (plan.outputs[i] == v1::MAXIMUM_DEPTH) {
        outputs.maximum_depth = arrays.template as<std::int64_t>(i);
      } else {
        *indexed.at(static_cast<std::size_t>(plan.outputs[i])) = arrays.template as<Index>(i);
      }
    }
    if (plan.lenient) outputs.unmatched = arrays.template as<std::int64_t>(plan.outputs.size());
    Span<const std::int64_t, E::kSpace> segments;
    if (plan.segmented) segments = inputs.template as<const std::int64_t>(1);
    if (plan.tokens) {
      match_brackets(executor, inputs.template as<const std::int32_t>(0), segments, outputs, &report);
    } else {
      match_brackets(executor, inputs.template as<const std::uint8_t>(0), plan.table, segments, outputs,
                     &report);
    }
  }

  static std::string symbol_name(const Plan& plan, std::int32_t symbol) {
    if (plan.tokens) return absl::StrCat("token ", symbol);
    if (symbol > ' ' && symbol < 0x7f)
      return absl::StrCat("'", std::string(1, static_cast<char>(symbol)), "'");
    return absl::StrCat("byte ", symbol);
  }
};

struct IntersectClips {
  using Request = v1::IntersectClipsRequest;
  using Report = ClipReport;
  struct Plan {
    std::int64_t count = 0;
  };
  static constexpr std::string_view kName = "IntersectClips";

  static std::vector<SourceField> sources(const Request& request) {
    return {{"elements", &request.elements()}, {"boxes", &request.boxes()}};
  }

  static absl::StatusOr<Plan> validate(const Request& /*request*/, std::span<const InputArray> inputs) {
    const InputArray& elements = inputs[0];
    if (elements.shape.type != v1::UINT8 || elements.shape.extents.size() != 1) {
      return bad_field(
          elements.field,
          absl::StrCat("is ", elements.shape.text(),
                       "; UINT8 [n], of which 0 draws, 1 begins a clip and 2 ends it, is right"));
    }
    const std::int64_t count = elements.shape.extents[0];
    const ArrayShape& boxes = inputs[1].shape;
    if (boxes.type != v1::FLOAT32 || boxes.extents != std::vector<std::int64_t>{count, 4}) {
      return bad_field(inputs[1].field, absl::StrCat("is ", boxes.text(), "; FLOAT32 [", count,
                                                     ", 4], x0, y0, x1, y1 of each element, is right"));
    }
    return Plan{count};
  }

  static std::vector<OutputSpec> outputs(const Plan& plan) {
    return {{"bounds", {v1::FLOAT32, {plan.count, 4}}}};
  }

  template <Space S>
  static std::size_t scratch_bytes(const Plan& plan) {
    return intersect_clips_scratch_bytes<S>(plan.count);
  }

  template <class E>
  static void run(E& executor, const Plan& /*plan*/, const Inputs<E::kSpace>& inputs,
                  const Outputs<E::kSpace>& outputs, Report& report) {
    intersect_clips(executor, inputs.template as<const std::uint8_t>(0), inputs.template as<const float>(1),
                    outputs.template as<float>(0), &report);
  }

  static absl::Status conclude(const Plan& /*plan*/, const Report& report) {
    if (report.wrong_element >= 0) {
      return no_answer(
          "WRONG_ELEMENT",
          absl::StrCat("element ", report.wrong_element,
                       " is not 0, 1 or 2, or its box has a NaN; x0, y0, x1, y1 that are numbers, or "
                       "infinite, are right"),
          {{"position", absl::StrCat(report.wrong_element)}});
    }
    const BracketReport& nesting = report.nesting;
    if (nesting.fault == BracketReport::Fault::kNone) return absl::OkStatus();
    std::map<std::string, std::string> metadata = {{"position", absl::StrCat(nesting.position)}};
    if (nesting.fault != BracketReport::Fault::kUnclosed) {
      return no_answer("UNBALANCED_CLIPS",
                       absl::StrCat("elements: element ", nesting.position,
                                    " ends a clip where none has begun; one that begins before it is right"),
                       metadata);
    }
    metadata["open_position"] = absl::StrCat(nesting.open_position);
    return no_answer("UNBALANCED_CLIPS",
                     absl::StrCat("elements: the clip that element ", nesting.open_position,
                                  " begins does not end; an end for each begin is right"),
                     metadata);
  }
};

}  // namespace cumulus::server::ops
