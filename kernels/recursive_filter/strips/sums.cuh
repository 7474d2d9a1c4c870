#pragma once

#include "kernels/recursive_filter/gpu/carries.cuh"
#include "kernels/recursive_filter/strips/arguments.h"
#include "kernels/recursive_filter/strips/tile.cuh"

namespace cumulus::recursive_filter {

template <int Order>
__device__ void add_weighted(const float (&weights)[Order], float pixel, float (&state)[Order]) {
#pragma unroll
  for (int k = 0; k < Order; ++k) state[k] += weights[k] * pixel;
}

/// Sums the anticausal zero-state responses of the chunks of a line, from the first chunk to the last.
/// Matrices that differ from chunk to chunk arrive late, so that the responses of a few chunks are kept
/// until the end.
template <int Order, int kSide>
class ChunkResponses {
 public:
  __device__ void add(const StripAxis<Order, kSide>& axis, int chunk, const float (&response)[Order],
                      float (&total)[Order]) {
    if constexpr (kKept) {
#pragma unroll
      for (int j = 0; j + 1 < kChunks; ++j) {
#pragma unroll
        for (int k = 0; k < Order; ++k) responses_[j][k] = responses_[j + 1][k];
      }
#pragma unroll
      for (int k = 0; k < Order; ++k) responses_[kChunks - 1][k] = response[k];
    } else {
      axis.chunk_transitions[chunk].add_product(response, total);
    }
  }
  __device__ void finish(const StripAxis<Order, kSide>& axis, float (&total)[Order]) const {
    if constexpr (kKept) {
      float sum[Order] = {};
#pragma unroll
      for (int j = kChunks - 1; j >= 0; --j) apply_transition(axis.chunk_transitions[1], responses_[j], sum);
#pragma unroll
      for (int k = 0; k < Order; ++k) total[k] += sum[k];
    }
  }

 private:
  static constexpr int kChunks = kSide / kStripChunk<Order, kSide>;
  static constexpr bool kKept = kChunks <= 4;

  float responses_[kKept ? kChunks : 1][Order] = {};
};

/// Adds the zero-state responses of a tile's row to its states, for a filter whose directions run_alike.
template <int Order, int kSide, class Row>
__device__ __forceinline__ void sum_row(const StripAxis<Order, kSide>& axis, const Row& row,
                                        float (&forward)[Order], float (&backward)[Order]) {
  constexpr int kChunk = kStripChunk<Order, kSide>;
  using Sums = LineSums<Order, kChunk>;
  ChunkResponses<Order, kSide> by_chunks;
#pragma unroll 1
  for (int j = 0; j < kSide / kChunk; ++j) {
    float v[kChunk];
    row.load(j * kChunk, v);
    float ahead[Order] = {};
    float apart[Order] = {};
#pragma unroll
    for (int i = 0; i < Sums::kPairs; ++i) {
      const float other = v[kChunk - 1 - i];
      add_weighted(axis.sums.weights[i][Sums::kTogether], v[i] + other, ahead);
      add_weighted(axis.sums.weights[i][Sums::kApart], v[i] - other, apart);
    }
    float response[Order];
#pragma unroll
    for (int k = 0; k < Order; ++k) {
      response[k] = ahead[k] - apart[k];
      ahead[k] += apart[k];
    }
    apply_transition(axis.chunk_transitions[1], ahead, forward);
    by_chunks.add(axis, j, response, backward);
  }
  by_chunks.finish(axis, backward);
}
/// The same by recursion.
template <int Order, int kSide, class Row>
__device__ __forceinline__ void run_over_row(const StripAxis<Order, kSide>& axis, const Row& row,
                                             float (&forward)[Order], float (&backward)[Order]) {
  constexpr int kChunk = kStripChunk<Order, kSide>;
#pragma unroll 1
  for (int j = 0; j < kSide / kChunk; ++j) {
    float v[kChunk];
    row.load(j * kChunk, v);
    float response[Order] = {};
#pragma unroll
    for (int k = 0; k < kChunk; ++k) {
      axis.causal.advance_unit_gain(forward, v[k]);
      axis.anticausal.advance_unit_gain(response, v[kChunk - 1 - k]);
    }
    axis.chunk_transitions[j].add_product(response, backward);
  }
}

}  // namespace cumulus::recursive_filter
