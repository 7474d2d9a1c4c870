#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/recursive_filter/fir/boundary.h"
#include "kernels/recursive_filter/fir/divisor.cuh"
#include "kernels/recursive_filter/fir/stage.cuh"

// What stages along one axis share, and those that sample or interpolate: columns.cuh, rows.cuh, sample.cuh,
// interpolate.cuh.

namespace cumulus::recursive_filter {

/// A stage along one axis, whose rate stays.
struct AxisStage {
  FirStageAxis<float> axis;
  int channels;
  FirDivisor by_channels;
  std::int64_t numbers;                                 // along y: of a row
  std::int64_t rows;                                    // along x: of an image
  int runs;                                             // along x: of a block's row
  int plane, pitch;                                     // along x: numbers from plane to plane, row to row
  std::int64_t blocks_x, blocks_y;                      // of an image
  std::int64_t from_row, from_image, to_row, to_image;  // elements from one to the next
  unsigned from_row_bytes;                              // from one to the next
  int chunks;                                           // along y: of taps that are loaded at once
  bool from_vectors, to_vectors;                        // whether elements are moved four at a time
  int column_runs;                                      // along y: rows of threads of a block
};

struct AxisBlock {
  std::int64_t image, x, y;
};
/// This block's place; there are fewer than 2^32.
__device__ __forceinline__ AxisBlock axis_block(std::int64_t blocks_x, std::int64_t blocks_y,
                                                std::int64_t first_block) {
  const auto width = static_cast<unsigned>(blocks_x);
  const auto height = static_cast<unsigned>(blocks_y);
  const unsigned block = static_cast<unsigned>(first_block) + blockIdx.x;
  const unsigned row = block / width;
  const unsigned image = row / height;
  return {image, block - row * width, row - image * height};
}

/// To shared memory, phase after phase, of each so many taps, which zeros come after.
__device__ __forceinline__ void copy_weights(const FirStageAxis<float>& axis, int taps, float* weights) {
  const int phases = axis.form.phases * axis.form.advance;
  const int own = axis.form.tap_groups();
  for (int i = threadIdx.x; i < phases * taps; i += blockDim.x) {
    const int phase = i / taps;
    const int tap = i - phase * taps;
    const int at = phase * own + tap;
    weights[i] = tap < own ? axis.weights[at / kFirTaps].values[at % kFirTaps] : 0.0F;
  }
}

/// Neighbouring numbers of a row, moved at once.
template <class T, int kWide>
struct alignas(kWide * sizeof(T)) RowVector {
  T values[kWide];
};

/// The first `count` of four neighbouring numbers, at a vector where they are four and `vectors` says so.
template <class T>
__device__ __forceinline__ void store_four(T* to, bool vectors, int count, const float (&four)[4]) {
  RowVector<T, 4> vector;
#pragma unroll
  for (int k = 0; k < 4; ++k) vector.values[k] = static_cast<T>(four[k]);
  if (vectors) {
    *reinterpret_cast<RowVector<T, 4>*>(to) = vector;
    return;
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k < count) to[k] = vector.values[k];
  }
}

}  // namespace cumulus::recursive_filter
