#include "cumulus/bracket_match.h"

#include "cumulus/v1/bracket_match.pb.h"
#include "library/operation_access.h"

namespace cumulus {
namespace {

v1::BracketOutput to_wire(BracketOutput output) {
  switch (output) {
    case BracketOutput::kPartner:
      return v1::PARTNER;
    case BracketOutput::kParent:
      return v1::PARENT;
    case BracketOutput::kDepth:
      return v1::DEPTH;
    case BracketOutput::kStackTop:
      return v1::STACK_TOP;
    case BracketOutput::kMaximumDepth:
      return v1::MAXIMUM_DEPTH;
  }
  return v1::BRACKET_OUTPUT_UNSPECIFIED;
}

}  // namespace

Operation match_brackets(const Source& text, const BracketMatchOptions& options) {
  v1::MatchBracketsRequest request;
  OperationInputs inputs;
  inputs.encode(text, *request.mutable_text());
  request.set_pairs(options.pairs);
  for (const BracketOutput output : options.outputs) request.add_outputs(to_wire(output));
  request.set_lenient(options.lenient);
  if (options.wide_indices) request.set_index_type(v1::INT64);
  if (options.segments.has_value()) inputs.encode(*options.segments, *request.mutable_segments());
  return OperationAccess::make("MatchBrackets", request, inputs);
}

Operation intersect_clips(const Source& elements, const Source& boxes) {
  v1::IntersectClipsRequest request;
  OperationInputs inputs;
  inputs.encode(elements, *request.mutable_elements());
  inputs.encode(boxes, *request.mutable_boxes());
  return OperationAccess::make("IntersectClips", request, inputs);
}

}  // namespace cumulus
