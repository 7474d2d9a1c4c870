#include <cuda_runtime.h>

#include "kernels/core/cuda_error.h"
#include "kernels/run_length/check.h"
#include "kernels/run_length/decode/decode.h"
#include "kernels/run_length/encode/encode.h"
#include "kernels/run_length/run_length.h"

namespace cumulus {

void encode_run_lengths(CudaExecutor& executor, const EncodeRunLengthsParams& params,
                        DeviceSpan<const std::byte> elements, const EncodedRuns<Space::kDevice>& runs,
                        EncodeRunLengthsReport* report) {
  run_length::check_encode(params, elements, runs);
  executor.check_interrupt();
  *report = {};
  executor.bind_thread();
  if (params.elements > 0) return run_length::encode(executor, params, elements, runs, report);
  if (runs.first_runs.empty()) return;
  CUMULUS_CUDA(cudaMemsetAsync(runs.first_runs.data(), 0, runs.first_runs.bytes(), executor.stream()));
}

void decode_run_lengths(CudaExecutor& executor, const DecodeRunLengthsParams& params,
                        DeviceSpan<const std::byte> symbols, DeviceSpan<const std::byte> lengths,
                        DeviceSpan<std::byte> elements, DecodeRunLengthsReport* report) {
  run_length::check_decode(params, symbols, lengths, elements);
  executor.check_interrupt();
  *report = {};
  if (params.runs == 0) return;
  executor.bind_thread();
  run_length::decode(executor, params, symbols, lengths, elements, report);
}

}  // namespace cumulus
