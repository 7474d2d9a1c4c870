#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/cuda_executor.h"
#include "kernels/core/views.h"
#include "kernels/run_length/method.h"
#include "kernels/run_length/params.h"

namespace cumulus {

// Run-length coding: an array becomes its runs of equal neighbours, each a symbol and a length (A. Balevic,
// "Parallel variable-length encoding on GPGPUs", 2009, calls the form with two arrays PARLE), and back.
// Elements are compared by their bits: NaN equals itself, 0.0 and -0.0 differ.
//
// For every function here: arrays are bytes in the executor's memory space, begin at a multiple of 16 and do
// not overlap. An array of the wrong size or place throws std::invalid_argument before anything runs.
// The CPU overloads return when the result is there; the CUDA overloads put their work on the executor's
// stream and return. Before the call the caller reserves at least the bytes that the matching
// *_scratch_bytes function (in the header included above) names; the call takes exactly those. A failing
// device throws CudaError, a caller who has lost interest Interrupted (checked between kernels).
//
// `report` is host memory; it holds what was found once executor.synchronize() has returned. Keep it until
// then; where it is pinned the call stays asynchronous.
//
// Results do not depend on the number of threads or on timing, and are the same on both backends.

struct EncodeRunLengthsReport {
  /// Runs of the array, whether or not they were all stored.
  std::int64_t runs = 0;
  /// The first run whose length does not fit into the length array's elements; -1: all fit.
  std::int64_t unfitting_run = -1;
};

/// Where an encoder writes. `symbols` and `lengths` have room for params.max_runs runs.
template <Space S>
struct EncodedRuns {
  Span<std::byte, S> symbols;
  Span<std::byte, S> lengths;
  /// Empty: not requested. Otherwise a number for each piece between two cuts, of which there are
  /// run_pieces(params), and one more: the first run of each piece, and the number of runs.
  Span<std::int64_t, S> first_runs = {};
};

/// Writes the first params.max_runs runs of `elements` (params.elements of them): the symbol of run i to
/// element i of runs.symbols, its length, or where it ends, to element i of runs.lengths. What lies behind
/// the last run in these arrays is left as it was. Lengths are those of params.length; a length that does not
/// fit is reported, and what is stored for it means nothing.
void encode_run_lengths(CpuExecutor& executor, const EncodeRunLengthsParams& params,
                        HostSpan<const std::byte> elements, const EncodedRuns<Space::kHost>& runs,
                        EncodeRunLengthsReport* report);
void encode_run_lengths(CudaExecutor& executor, const EncodeRunLengthsParams& params,
                        DeviceSpan<const std::byte> elements, const EncodedRuns<Space::kDevice>& runs,
                        EncodeRunLengthsReport* report);

struct DecodeRunLengthsReport {
  enum class Outcome : std::int32_t {
    kDecoded,
    kTooLong,         ///< The runs add up to more than params.max_elements.
    kDescendingEnds,  ///< Run `run` ends before the one before it does.
  };
  Outcome outcome = Outcome::kDecoded;
  /// kDescendingEnds: the first such run; otherwise -1.
  std::int64_t run = -1;
  /// What the runs add up to; where that is 2^62 or more, 2^62. Of kDescendingEnds it means nothing.
  std::int64_t elements = 0;
};

/// Writes the array whose runs these are to the first elements of `elements`, which has room for
/// params.max_elements. Runs of length 0 are allowed and leave no trace. All lengths are checked before
/// anything is written: of another outcome than kDecoded, nothing is.
void decode_run_lengths(CpuExecutor& executor, const DecodeRunLengthsParams& params,
                        HostSpan<const std::byte> symbols, HostSpan<const std::byte> lengths,
                        HostSpan<std::byte> elements, DecodeRunLengthsReport* report);
void decode_run_lengths(CudaExecutor& executor, const DecodeRunLengthsParams& params,
                        DeviceSpan<const std::byte> symbols, DeviceSpan<const std::byte> lengths,
                        DeviceSpan<std::byte> elements, DecodeRunLengthsReport* report);

}  // namespace cumulus
