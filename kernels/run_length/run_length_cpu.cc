#include "kernels/core/without_cuda.h"
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
void CUMULUS_WITHOUT_CUDA(encode_run_lengths, const EncodeRunLengthsParams&, DeviceSpan<const std::byte>,
                          const EncodedRuns<Space::kDevice>&, EncodeRunLengthsReport*);
void CUMULUS_WITHOUT_CUDA(decode_run_lengths, const DecodeRunLengthsParams&, DeviceSpan<const std::byte>,
                          DeviceSpan<const std::byte>, DeviceSpan<std::byte>, DecodeRunLengthsReport*);
#endif

}  // namespace cumulus
