#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/cuda_executor.h"

namespace cumulus::bench {

/// Other ways to encode runs on a GPU, to measure ours against.
enum class RunLengthReference {
  kCub,    ///< cub::DeviceRunLengthEncode::Encode, of the toolkit that this program was built with
  kParle,  ///< mask, scan (CUB's), compact, scatter: A. Balevic's four passes as they are usually written
};

/// Arrays in device memory. Elements have 1 or 4 bytes; symbols and counts have room for as many runs as
/// there are elements, fewer than 2^31.
struct RunLengthReferenceArrays {
  const std::byte* elements;
  std::int64_t count;
  int element_bytes;
  std::byte* symbols;
  std::uint32_t* counts;
  std::int32_t* runs;
};

/// What encode_with_reference needs as `scratch`.
std::size_t reference_scratch_bytes(RunLengthReference reference, const RunLengthReferenceArrays& arrays);

/// Puts the work on the executor's stream.
void encode_with_reference(RunLengthReference reference, CudaExecutor& executor,
                           const RunLengthReferenceArrays& arrays, DeviceSpan<std::byte> scratch);

}  // namespace cumulus::bench
