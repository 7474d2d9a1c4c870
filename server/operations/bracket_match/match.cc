#include "server/operations/bracket_match/match.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>

#include "server/pipeline/errors.h"
#include "server/pipeline/read_enum.h"
#include "server/pipeline/text.h"

namespace cumulus::server::ops {
namespace {

absl::Status read_text(const InputArray& text, MatchBrackets::Plan& plan) {
  const bool right_type = text.shape.type == v1::UINT8 || text.shape.type == v1::INT32;
  if (!right_type || text.shape.extents.size() != 1) {
    return bad_field(text.field,
                     concat("is ", text.shape.text(), "; UINT8 [n], a text, or INT32 [n], tokens, is right"));
  }
  plan.tokens = text.shape.type == v1::INT32;
  plan.count = text.shape.extents[0];
  return absl::OkStatus();
}

absl::Status read_pairs(const MatchBrackets::Request& request, MatchBrackets::Plan& plan) {
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

absl::Status read_outputs(const MatchBrackets::Request& request, MatchBrackets::Plan& plan) {
  for (int i = 0; i < request.outputs_size(); ++i) {
    const std::string field = concat("outputs[", i, "]");
    const auto output = read_enum<v1::BracketOutput>(field, request.outputs(i),
                                                     {{v1::PARTNER, v1::PARTNER},
                                                      {v1::PARENT, v1::PARENT},
                                                      {v1::DEPTH, v1::DEPTH},
                                                      {v1::STACK_TOP, v1::STACK_TOP},
                                                      {v1::MAXIMUM_DEPTH, v1::MAXIMUM_DEPTH}});
    if (!output.ok()) return output.status();
    if (std::find(plan.outputs.begin(), plan.outputs.end(), *output) != plan.outputs.end()) {
      return bad_field(field, concat("is ", v1::BracketOutput_Name(*output), " again; each once is right"));
    }
    plan.outputs.push_back(*output);
  }
  if (plan.outputs.empty()) plan.outputs.push_back(v1::PARTNER);
  return absl::OkStatus();
}

absl::Status read_index_type(const MatchBrackets::Request& request, MatchBrackets::Plan& plan) {
  const bool needs_64_bits = plan.count > std::numeric_limits<std::int32_t>::max();
  const auto wide =
      read_enum<bool>("index_type", request.index_type(),
                      {{v1::ELEMENT_TYPE_UNSPECIFIED, needs_64_bits}, {v1::INT32, false}, {v1::INT64, true}});
  if (!wide.ok()) return wide.status();
  if (needs_64_bits && !*wide) {
    return bad_field("index_type",
                     concat("is INT32, which cannot number ", plan.count, " elements; INT64 is right"));
  }
  plan.wide = *wide;
  return absl::OkStatus();
}

absl::Status read_segments(const InputArray& segments, MatchBrackets::Plan& plan) {
  if (segments.shape.type != v1::INT64 || segments.shape.extents.size() != 1 ||
      segments.shape.extents[0] == 0) {
    return bad_field(segments.field,
                     concat("is ", segments.shape.text(),
                            "; INT64 [documents], the element at which each begins, is right"));
  }
  plan.segmented = true;
  return absl::OkStatus();
}

/// The name of an output that has a number for each element.
const char* indexed_name(v1::BracketOutput output) {
  static constexpr std::array kNames = {"", "partner", "parent", "depth", "stack_top"};
  return kNames.at(static_cast<std::size_t>(output));
}

template <class Index, class E>
BracketOutputs<Index, E::kSpace> place_outputs(const MatchBrackets::Plan& plan,
                                               const Outputs<E::kSpace>& arrays) {
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
  return outputs;
}

template <class Index, class E>
void run_with(E& executor, const MatchBrackets::Plan& plan, const Inputs<E::kSpace>& inputs,
              const Outputs<E::kSpace>& arrays, MatchBrackets::Report& report) {
  const auto outputs = place_outputs<Index, E>(plan, arrays);
  Span<const std::int64_t, E::kSpace> segments;
  if (plan.segmented) segments = inputs.template as<const std::int64_t>(1);
  if (plan.tokens) {
    match_brackets(executor, inputs.template as<const std::int32_t>(0), segments, outputs, &report);
  } else {
    match_brackets(executor, inputs.template as<const std::uint8_t>(0), plan.table, segments, outputs,
                   &report);
  }
}

std::string symbol_name(const MatchBrackets::Plan& plan, std::int32_t symbol) {
  if (plan.tokens) return concat("token ", symbol);
  if (symbol > ' ' && symbol < 0x7f) return concat("'", std::string(1, static_cast<char>(symbol)), "'");
  return concat("byte ", symbol);
}

absl::Status wrong_segment(const MatchBrackets::Report& report) {
  return no_answer("WRONG_SEGMENTS",
                   concat("segments: element ", report.position,
                          " is wrong; 0 first, then numbers that never fall, of at most as many as there "
                          "are elements, are right"),
                   {{"position", concat(report.position)}});
}

absl::Status unbalanced(const MatchBrackets::Plan& plan, const MatchBrackets::Report& report) {
  const bool unclosed = report.fault == MatchBrackets::Report::Fault::kUnclosed;
  std::map<std::string, std::string> metadata = {{"position", concat(report.position)}};
  if (plan.segmented) metadata["segment"] = concat(report.segment);
  if (!unclosed) metadata["found"] = concat(report.found);
  std::string text =
      unclosed
          ? concat("text: ", plan.segmented ? "a document " : "", "ends after ", report.position, " elements")
          : concat("text: element ", report.position, " is ", symbol_name(plan, report.found));
  if (report.open_position < 0) {
    text += ", which closes nothing; an open bracket before it, or nothing here, is right";
  } else {
    metadata["expected"] = concat(report.expected);
    metadata["open_position"] = concat(report.open_position);
    text += concat(" where ", symbol_name(plan, report.expected), " is right, to close what element ",
                   report.open_position, " opens");
  }
  return no_answer("UNBALANCED_BRACKETS", text, metadata);
}

}  // namespace

std::vector<SourceField> MatchBrackets::sources(const Request& request) {
  std::vector<SourceField> fields = {{"text", &request.text()}};
  if (request.has_segments()) fields.push_back({"segments", &request.segments()});
  return fields;
}

absl::StatusOr<MatchBrackets::Plan> MatchBrackets::validate(const Request& request,
                                                            std::span<const InputArray> inputs) {
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

std::vector<OutputSpec> MatchBrackets::outputs(const Plan& plan) {
  const v1::ElementType index = plan.wide ? v1::INT64 : v1::INT32;
  std::vector<OutputSpec> specs;
  for (const v1::BracketOutput output : plan.outputs) {
    if (output == v1::MAXIMUM_DEPTH) {
      specs.push_back({"maximum_depth", {v1::INT64, {1}}});
    } else {
      specs.push_back({indexed_name(output), {index, {plan.count}}});
    }
  }
  if (plan.lenient) specs.push_back({"unmatched", {v1::INT64, {1}}});
  return specs;
}

Cost MatchBrackets::cost(const Plan& plan) {
  // An element: of the stack's two passes, and of each output.
  constexpr double kCoreSeconds = 2e-9;
  constexpr double kGpuSeconds = 0.02e-9;
  const double elements = static_cast<double>(plan.count) * static_cast<double>(1 + plan.outputs.size());
  return {elements * kCoreSeconds, elements * kGpuSeconds};
}

template <Space S>
std::size_t MatchBrackets::scratch_bytes(const Plan& plan) {
  return match_brackets_scratch_bytes<S>(plan.count, plan.segmented);
}

template <class E>
void MatchBrackets::run(E& executor, const Plan& plan, const Inputs<E::kSpace>& inputs,
                        const Outputs<E::kSpace>& outputs, Report& report) {
  plan.wide ? run_with<std::int64_t>(executor, plan, inputs, outputs, report)
            : run_with<std::int32_t>(executor, plan, inputs, outputs, report);
}

absl::Status MatchBrackets::conclude(const Plan& plan, const Report& report) {
  if (report.fault == Report::Fault::kWrongSegment) return wrong_segment(report);
  if (plan.lenient || report.fault == Report::Fault::kNone) return absl::OkStatus();
  return unbalanced(plan, report);
}

template std::size_t MatchBrackets::scratch_bytes<Space::kHost>(const Plan&);
template std::size_t MatchBrackets::scratch_bytes<Space::kDevice>(const Plan&);
template void MatchBrackets::run(CpuExecutor&, const Plan&, const Inputs<Space::kHost>&,
                                 const Outputs<Space::kHost>&, Report&);
#if CUMULUS_WITH_CUDA
template void MatchBrackets::run(CudaExecutor&, const Plan&, const Inputs<Space::kDevice>&,
                                 const Outputs<Space::kDevice>&, Report&);
#endif

}  // namespace cumulus::server::ops
