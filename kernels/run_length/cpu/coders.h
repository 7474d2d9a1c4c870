#pragma once

#include "kernels/run_length/run_length.h"

namespace cumulus::run_length {

/// encode_run_lengths on the CPU, of checked arguments and at least one element.
void encode(CpuExecutor& executor, const EncodeRunLengthsParams& params, HostSpan<const std::byte> elements,
            const EncodedRuns<Space::kHost>& runs, EncodeRunLengthsReport* report);

/// decode_run_lengths on the CPU, of checked arguments and at least one run.
void decode(CpuExecutor& executor, const DecodeRunLengthsParams& params, HostSpan<const std::byte> symbols,
            HostSpan<const std::byte> lengths, HostSpan<std::byte> elements, DecodeRunLengthsReport* report);

}  // namespace cumulus::run_length
