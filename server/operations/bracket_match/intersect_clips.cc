#include "server/operations/bracket_match/intersect_clips.h"

#include <map>
#include <string>

#include "server/pipeline/errors.h"
#include "server/pipeline/text.h"

namespace cumulus::server::ops {
namespace {

absl::Status wrong_element(std::int64_t element) {
  return no_answer("WRONG_ELEMENT",
                   concat("element ", element,
                          " is not 0, 1 or 2, or its box has a NaN; x0, y0, x1, y1 that are numbers, or "
                          "infinite, are right"),
                   {{"position", concat(element)}});
}

}  // namespace

std::vector<SourceField> IntersectClips::sources(const Request& request) {
  return {{"elements", &request.elements()}, {"boxes", &request.boxes()}};
}

absl::StatusOr<IntersectClips::Plan> IntersectClips::validate(const Request& /*request*/,
                                                              std::span<const InputArray> inputs) {
  const InputArray& elements = inputs[0];
  if (elements.shape.type != v1::UINT8 || elements.shape.extents.size() != 1) {
    return bad_field(elements.field,
                     concat("is ", elements.shape.text(),
                            "; UINT8 [n], of which 0 draws, 1 begins a clip and 2 ends it, is right"));
  }
  const std::int64_t count = elements.shape.extents[0];
  const ArrayShape& boxes = inputs[1].shape;
  if (boxes.type != v1::FLOAT32 || boxes.extents != std::vector<std::int64_t>{count, 4}) {
    return bad_field(inputs[1].field, concat("is ", boxes.text(), "; FLOAT32 [", count,
                                             ", 4], x0, y0, x1, y1 of each element, is right"));
  }
  return Plan{count};
}

std::vector<OutputSpec> IntersectClips::outputs(const Plan& plan) {
  return {{"bounds", {v1::FLOAT32, {plan.count, 4}}}};
}

Cost IntersectClips::cost(const Plan& plan) {
  // An element: the matching of brackets, and three passes over the boxes.
  constexpr double kCoreSeconds = 25e-9;
  constexpr double kGpuSeconds = 0.1e-9;
  const auto elements = static_cast<double>(plan.count);
  return {elements * kCoreSeconds, elements * kGpuSeconds};
}

template <Space S>
std::size_t IntersectClips::scratch_bytes(const Plan& plan) {
  return intersect_clips_scratch_bytes<S>(plan.count);
}

template <class E>
void IntersectClips::run(E& executor, const Plan& /*plan*/, const Inputs<E::kSpace>& inputs,
                         const Outputs<E::kSpace>& outputs, Report& report) {
  intersect_clips(executor, inputs.template as<const std::uint8_t>(0), inputs.template as<const float>(1),
                  outputs.template as<float>(0), &report);
}

absl::Status IntersectClips::conclude(const Plan& /*plan*/, const Report& report) {
  if (report.wrong_element >= 0) return wrong_element(report.wrong_element);
  const BracketReport& nesting = report.nesting;
  if (nesting.fault == BracketReport::Fault::kNone) return absl::OkStatus();
  std::map<std::string, std::string> metadata = {{"position", concat(nesting.position)}};
  if (nesting.fault != BracketReport::Fault::kUnclosed) {
    return no_answer("UNBALANCED_CLIPS",
                     concat("elements: element ", nesting.position,
                            " ends a clip where none has begun; one that begins before it is right"),
                     metadata);
  }
  metadata["open_position"] = concat(nesting.open_position);
  return no_answer("UNBALANCED_CLIPS",
                   concat("elements: the clip that element ", nesting.open_position,
                          " begins does not end; an end for each begin is right"),
                   metadata);
}

template std::size_t IntersectClips::scratch_bytes<Space::kHost>(const Plan&);
template std::size_t IntersectClips::scratch_bytes<Space::kDevice>(const Plan&);
template void IntersectClips::run(CpuExecutor&, const Plan&, const Inputs<Space::kHost>&,
                                  const Outputs<Space::kHost>&, Report&);
#if CUMULUS_WITH_CUDA
template void IntersectClips::run(CudaExecutor&, const Plan&, const Inputs<Space::kDevice>&,
                                  const Outputs<Space::kDevice>&, Report&);
#endif

}  // namespace cumulus::server::ops
