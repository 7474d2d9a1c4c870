#include "kernels/run_length/check.h"
#include "kernels/run_length/cpu/coders.h"
#include "kernels/run_length/run_length.h"

namespace cumulus {

void encode_run_lengths(CpuExecutor& executor, const EncodeRunLengthsParams& params,
                        HostSpan<const std::byte> elements, const EncodedRuns<Space::kHost>& runs,
                        EncodeRunLengthsReport* report) {
  run_length::check_encode(params, elements, runs);
  executor.check_interrupt();
  *report = {};
  if (params.elements > 0) return run_length::encode(executor, params, elements, runs, report);
  if (!runs.first_runs.empty()) runs.first_runs[0] = 0;
}

void decode_run_lengths(CpuExecutor& executor, const DecodeRunLengthsParams& params,
                        HostSpan<const std::byte> symbols, HostSpan<const std::byte> lengths,
                        HostSpan<std::byte> elements, DecodeRunLengthsReport* report) {
  run_length::check_decode(params, symbols, lengths, elements);
  executor.check_interrupt();
  *report = {};
  if (params.runs > 0) run_length::decode(executor, params, symbols, lengths, elements, report);
}

#if !CUMULUS_WITH_CUDA
// A build without CUDA has no device to make an executor of: these satisfy the linker.
void encode_run_lengths(CudaExecutor& /*executor*/, const EncodeRunLengthsParams& /*params*/,
                        DeviceSpan<const std::byte> /*elements*/, const EncodedRuns<Space::kDevice>& /*runs*/,
                        EncodeRunLengthsReport* /*report*/) {
  throw CudaError(0, "encode_run_lengths", __FILE__, __LINE__);
}
void decode_run_lengths(CudaExecutor& /*executor*/, const DecodeRunLengthsParams& /*params*/,
                        DeviceSpan<const std::byte> /*symbols*/, DeviceSpan<const std::byte> /*lengths*/,
                        DeviceSpan<std::byte> /*elements*/, DecodeRunLengthsReport* /*report*/) {
  throw CudaError(0, "decode_run_lengths", __FILE__, __LINE__);
}
#endif

}  // namespace cumulus
