#pragma once

#include "kernels/recursive_filter/gpu/carries.cuh"
#include "kernels/recursive_filter/math/weighted_sums.h"

// Weighted sums of a thread's pixels in place of recursions: fewer operations, and independent ones.

namespace cumulus::recursive_filter {

/// Zero-state responses of a thread's pixels, summed a chunk at a time: its weights are few enough to stay in
/// uniform registers for all chunks.
template <int Order>
struct ChunkSums {
  static constexpr int kPixels = 16;

  LineSums<Order, kPixels> of_chunk;
  SmallMatrix<Order, float> chunk_transition;

  explicit ChunkSums(const AxisPlan& plan)
      : of_chunk(plan),
        chunk_transition(small_matrix<Order, float>(power(plan.causal.transition, kPixels))) {}

  template <int kAll>
  __device__ void find(const float (&pixels)[kAll], float (&causal)[Order],
                       float (&anticausal)[Order]) const {
    static_assert(kAll % kPixels == 0);
    find_response(pixels, 0, 1, causal);
    find_response(pixels, kAll - kPixels, -1, anticausal);
#pragma unroll
    for (int from = kPixels; from < kAll; from += kPixels) {
      float response[Order];
      find_response(pixels, from, 1, response);
      apply_transition(chunk_transition, response, causal);
      find_response(pixels, kAll - kPixels - from, -1, response);
      apply_transition(chunk_transition, response, anticausal);
    }
  }

 private:
  /// The zero-state response of the chunk from pixel `from` on; `sign`: 1 causal, -1 anticausal.
  template <int kAll>
  __device__ void find_response(const float (&pixels)[kAll], int from, float sign,
                                float (&response)[Order]) const {
    float apart[Order] = {};
#pragma unroll
    for (int k = 0; k < Order; ++k) response[k] = 0;
#pragma unroll
    for (int i = 0; i < of_chunk.kPairs; ++i) {
      const float near = pixels[from + i];
      const float far = pixels[from + kPixels - 1 - i];
#pragma unroll
      for (int k = 0; k < Order; ++k) {
        response[k] += of_chunk.weights[i][of_chunk.kTogether][k] * (near + far);
        apart[k] += of_chunk.weights[i][of_chunk.kApart][k] * (near - far);
      }
    }
#pragma unroll
    for (int k = 0; k < Order; ++k) response[k] += sign * apart[k];
  }
};

}  // namespace cumulus::recursive_filter
