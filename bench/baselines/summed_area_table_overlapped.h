#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/cuda_executor.h"

// The overlapped summed-area table, to measure ours against: D. Nehab, A. Maximo, R. Lima and H. Hoppe,
// "GPU-efficient recursive filtering and summed-area tables" (2011), algorithm SAT with its steps S.1 to S.4.
// Two readings of the image, one writing of the table, and the borders of blocks of 32 x 32 between them.

namespace cumulus::bench {

inline constexpr std::int64_t kOverlappedBlock = 32;  ///< extents are multiples of it

std::size_t overlapped_scratch_bytes(std::int64_t height, std::int64_t width);

/// `sums` becomes the inclusive table of `pixels`, both height x width in device memory without padding.
void build_overlapped_table(CudaExecutor& executor, const float* pixels, std::int64_t height,
                            std::int64_t width, float* sums);

}  // namespace cumulus::bench
