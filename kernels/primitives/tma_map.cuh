#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/core/cuda_error.h"

// The descriptor through which TMA sees an array (tma.cuh).

namespace cumulus {

/// How a tile lies in shared memory.
enum class TmaSwizzle {
  kNone,
  /// Rows of 128 bytes; 16-byte vector v of row r lies where vector v ^ r % 8 would.
  k128Bytes,
};

/// Tiles of an array of floats on the device, whose rows begin at multiples of 16 bytes. Throws
/// std::invalid_argument where the first does not.
inline CUtensorMap make_tma_map(const float* array, std::int64_t height, std::int64_t width,
                                std::int64_t row_stride, int tile_rows, int tile_columns,
                                TmaSwizzle swizzle) {
  constexpr std::uintptr_t kStep = 16;
  if (reinterpret_cast<std::uintptr_t>(array) % kStep != 0) {
    throw std::invalid_argument("an image for TMA begins " +
                                std::to_string(reinterpret_cast<std::uintptr_t>(array) % kStep) +
                                " bytes behind a multiple of 16; a multiple of 16 bytes is right");
  }
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
    constexpr unsigned int kVersion = 12000;
    CUMULUS_CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kVersion,
                                                  cudaEnableDefault, &found));
#else
    CUMULUS_CUDA(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found));
#endif
    if (found != cudaDriverEntryPointSuccess) {
      throw std::runtime_error("the CUDA driver has no cuTensorMapEncodeTiled: it is older than CUDA 12.0");
    }
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  const cuuint64_t extents[] = {static_cast<cuuint64_t>(width), static_cast<cuuint64_t>(height)};
  const cuuint64_t row_bytes[] = {static_cast<cuuint64_t>(row_stride) * sizeof(float)};
  const cuuint32_t tile[] = {static_cast<cuuint32_t>(tile_columns), static_cast<cuuint32_t>(tile_rows)};
  const cuuint32_t steps[] = {1, 1};
  CUtensorMap map;
  const CUresult result =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, const_cast<float*>(array), extents, row_bytes, tile,
             steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
             swizzle == TmaSwizzle::k128Bytes ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw std::runtime_error("cuTensorMapEncodeTiled: error " + std::to_string(result) + " for " +
                             std::to_string(height) + " x " + std::to_string(width) + " floats, rows of " +
                             std::to_string(row_stride));
  }
  return map;
}

}  // namespace cumulus
