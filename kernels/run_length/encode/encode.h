#pragma once

#include "kernels/run_length/run_length.h"

namespace cumulus::run_length {

/// encode_run_lengths on the device, of checked arguments and at least one element.
void encode(CudaExecutor& executor, const EncodeRunLengthsParams& params,
            DeviceSpan<const std::byte> elements, const EncodedRuns<Space::kDevice>& runs,
            EncodeRunLengthsReport* report);

}  // namespace cumulus::run_length
