#include "cumulus/run_length.h"

#include "cumulus/v1/run_length.pb.h"
#include "library/operation_access.h"

namespace cumulus {
namespace {

v1::RunLengthForm to_wire(RunLengthForm form) {
  return form == RunLengthForm::kEnds ? v1::RUN_ENDS : v1::RUN_COUNTS;
}

v1::RunOrder to_wire(RunOrder order) { return order == RunOrder::kColumns ? v1::BY_COLUMNS : v1::BY_ROWS; }

v1::RunScope to_wire(RunScope scope) {
  switch (scope) {
    case RunScope::kEachLine:
      return v1::EACH_LINE;
    case RunScope::kEachImage:
      return v1::EACH_IMAGE;
    case RunScope::kWholeArray:
      break;
  }
  return v1::WHOLE_ARRAY;
}

}  // namespace

Operation encode_run_lengths(const Source& array, const EncodeRunLengthsOptions& options) {
  v1::EncodeRunLengthsRequest request;
  OperationInputs inputs;
  inputs.encode(array, *request.mutable_array());
  request.set_pixels(options.pixels);
  request.set_order(to_wire(options.order));
  request.set_scope(to_wire(options.scope));
  request.set_form(to_wire(options.form));
  request.set_length_type(options.wide_lengths ? v1::UINT64 : v1::UINT32);
  request.set_overflow(options.split_long_runs ? v1::SPLIT_LONG_RUNS : v1::REFUSE_LONG_RUNS);
  request.set_max_runs(options.max_runs);
  return OperationAccess::make("EncodeRunLengths", request, inputs);
}

Operation decode_run_lengths(const Source& symbols, const Source& lengths,
                             const DecodeRunLengthsOptions& options) {
  v1::DecodeRunLengthsRequest request;
  OperationInputs inputs;
  inputs.encode(symbols, *request.mutable_symbols());
  inputs.encode(lengths, *request.mutable_lengths());
  request.set_pixels(options.pixels);
  request.set_order(to_wire(options.order));
  request.set_form(to_wire(options.form));
  request.set_max_output_bytes(options.max_output_bytes);
  request.mutable_shape()->Assign(options.shape.begin(), options.shape.end());
  return OperationAccess::make("DecodeRunLengths", request, inputs);
}

}  // namespace cumulus
