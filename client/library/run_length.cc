#include "cumulus/run_length.h"

#include "cumulus/v1/run_length.pb.h"
#include "library/operation_access.h"

namespace cumulus {
namespace {

v1::RunLengthForm to_wire(RunLengthForm form) {
  return form == RunLengthForm::kEnds ? v1::RUN_ENDS : v1::RUN_COUNTS;
}

}  // namespace

Operation encode_run_lengths(const Source& array, const EncodeRunLengthsOptions& options) {
  v1::EncodeRunLengthsRequest request;
  SourceEncoder::encode(array, *request.mutable_array());
  request.set_pixels(options.pixels);
  request.set_scope(options.rows ? v1::ROWS : v1::WHOLE_ARRAY);
  request.set_form(to_wire(options.form));
  request.set_length_type(options.wide_lengths ? v1::UINT64 : v1::UINT32);
  request.set_overflow(options.split_long_runs ? v1::SPLIT_LONG_RUNS : v1::REFUSE_LONG_RUNS);
  request.set_max_runs(options.max_runs);
  return OperationAccess::make("EncodeRunLengths", request);
}

Operation decode_run_lengths(const Source& symbols, const Source& lengths,
                             const DecodeRunLengthsOptions& options) {
  v1::DecodeRunLengthsRequest request;
  SourceEncoder::encode(symbols, *request.mutable_symbols());
  SourceEncoder::encode(lengths, *request.mutable_lengths());
  request.set_pixels(options.pixels);
  request.set_form(to_wire(options.form));
  request.set_max_output_bytes(options.max_output_bytes);
  request.mutable_shape()->Assign(options.shape.begin(), options.shape.end());
  return OperationAccess::make("DecodeRunLengths", request);
}

}  // namespace cumulus
