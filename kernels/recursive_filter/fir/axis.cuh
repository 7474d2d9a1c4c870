#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/recursive_filter/fir/boundary.h"
#include "kernels/recursive_filter/fir/divisor.cuh"
#include "kernels/recursive_filter/fir/stage.cuh"

// What stages along one axis share: columns.cuh, rows.cuh.

namespace cumulus::recursive_filter {

struct AxisStage {
  FirStageAxis<float> axis;
  int channels;
  FirDivisor by_channels, by_advance, by_phases;
  std::int64_t numbers;                                 // along y: of a row
  std::int64_t rows;                                    // along x: of an image
  int runs;                                             // along x: of a block's row
  int plane, pitch;                                     // along x: numbers from plane to plane, row to row
  std::int64_t blocks_x, blocks_y;                      // of an image
  std::int64_t from_row, from_image, to_row, to_image;  // elements from one to the next
  int pairs;                                            // along y: of taps, each advance-th
  bool from_vectors, to_vectors;                        // whether elements are moved four at a time
  int column_runs;                                      // along y: rows of threads of a block
};

struct AxisBlock {
  std::int64_t image, x, y;
};
__device__ __forceinline__ AxisBlock axis_block(const AxisStage& stage, std::int64_t block) {
  const std::int64_t row = block / stage.blocks_x;
  const std::int64_t image = row / stage.blocks_y;
  return {image, block - row * stage.blocks_x, row - image * stage.blocks_y};
}

/// To shared memory.
__device__ __forceinline__ void copy_weights(const AxisStage& stage, FirFour<float>* weights) {
  for (int i = threadIdx.x; i < kFirWeights / kFirTaps; i += blockDim.x) weights[i] = stage.axis.weights[i];
}

}  // namespace cumulus::recursive_filter
