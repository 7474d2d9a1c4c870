#pragma once

#include "kernels/recursive_filter/strips/tile.cuh"

// A tile as TMA copies it: two TMA tiles of 32 columns side by side, with a 128-byte swizzle, so that
// neither columns nor rows have bank conflicts.

namespace cumulus::recursive_filter {

constexpr int kTmaColumns = 32;
constexpr int kTmaTiles = kTile / kTmaColumns;
/// Rows after which the swizzle repeats.
constexpr int kSwizzlePeriod = kTmaColumns / kVector;

struct alignas(1024) SwizzledTile {
  float tma_tiles[kTmaTiles][kTile][kTmaColumns];

  __device__ static int place_in_row(int row, int column) {
    return ((column / kVector % kSwizzlePeriod ^ row % kSwizzlePeriod) * kVector) + column % kVector;
  }
  __device__ float& at(int row, int column) {
    return tma_tiles[column / kTmaColumns][row][place_in_row(row, column)];
  }
};

struct SwizzledColumn {
  float* first;                // of the column's TMA tile
  int places[kSwizzlePeriod];  // in rows

  __device__ SwizzledColumn(SwizzledTile& tile, int column) : first(tile.tma_tiles[column / kTmaColumns][0]) {
#pragma unroll
    for (int row = 0; row < kSwizzlePeriod; ++row) places[row] = SwizzledTile::place_in_row(row, column);
  }
  /// `i` is a multiple of kSwizzlePeriod.
  template <int kCount>
  __device__ void load(int i, float (&v)[kCount]) const {
#pragma unroll
    for (int k = 0; k < kCount; ++k) v[k] = first[places[k % kSwizzlePeriod] + (i + k) * kTmaColumns];
  }
  template <int kCount>
  __device__ void store(int i, const float (&v)[kCount]) const {
#pragma unroll
    for (int k = 0; k < kCount; ++k) first[places[k % kSwizzlePeriod] + (i + k) * kTmaColumns] = v[k];
  }
};

struct SwizzledRow {
  float* first;
  int swizzle;

  __device__ SwizzledRow(SwizzledTile& tile, int row)
      : first(tile.tma_tiles[0][row]), swizzle(row % kSwizzlePeriod * kVector) {}
  /// `i` is a multiple of kCount, which is one of kVector and at most kTmaColumns.
  template <int kCount>
  __device__ void load(int i, float (&v)[kCount]) const {
    load_vectors([&](int k) { return vector(i, k); }, v);
  }
  template <int kCount>
  __device__ void store(int i, const float (&v)[kCount]) const {
    store_vectors([&](int k) { return vector(i, k); }, v);
  }

 private:
  __device__ float4* vector(int i, int k) const {
    float* tma_tile = first + i / kTmaColumns * (kTile * kTmaColumns);
    return reinterpret_cast<float4*>(tma_tile + ((i % kTmaColumns ^ swizzle) ^ k));
  }
};

}  // namespace cumulus::recursive_filter
