#pragma once

#include "kernels/run_length/run_length.h"

namespace cumulus::run_length {

/// decode_run_lengths on the device, of checked arguments and at least one run.
void decode(CudaExecutor& executor, const DecodeRunLengthsParams& params, DeviceSpan<const std::byte> symbols,
            DeviceSpan<const std::byte> lengths, DeviceSpan<std::byte> elements,
            DecodeRunLengthsReport* report);

}  // namespace cumulus::run_length
