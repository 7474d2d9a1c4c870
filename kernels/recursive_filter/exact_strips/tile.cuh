#pragma once

#include "kernels/recursive_filter/strips/tile.cuh"

// A tile as the copy engine brings it in: two boxes of 32 columns side by side, where the eight vectors of a
// row have changed places by the row's number, so that neither columns nor rows meet in a bank.

namespace cumulus::recursive_filter {

constexpr int kBoxColumns = 32;
constexpr int kBoxes = kTile / kBoxColumns;
/// After so many rows the vectors' places repeat.
constexpr int kBoxPeriod = kBoxColumns / kVector;

struct alignas(1024) BoxedTile {
  float boxes[kBoxes][kTile][kBoxColumns];

  __device__ static int place_in_row(int row, int column) {
    return ((column / kVector % kBoxPeriod ^ row % kBoxPeriod) * kVector) + column % kVector;
  }
  __device__ float& at(int row, int column) {
    return boxes[column / kBoxColumns][row][place_in_row(row, column)];
  }
};

struct BoxedColumn {
  float* first;            // of the column's box
  int places[kBoxPeriod];  // in rows

  __device__ BoxedColumn(BoxedTile& tile, int column) : first(tile.boxes[column / kBoxColumns][0]) {
#pragma unroll
    for (int row = 0; row < kBoxPeriod; ++row) places[row] = BoxedTile::place_in_row(row, column);
  }
  /// `i` is a multiple of kBoxPeriod.
  template <int kCount>
  __device__ void load(int i, float (&v)[kCount]) const {
#pragma unroll
    for (int k = 0; k < kCount; ++k) v[k] = first[places[k % kBoxPeriod] + (i + k) * kBoxColumns];
  }
  template <int kCount>
  __device__ void store(int i, const float (&v)[kCount]) const {
#pragma unroll
    for (int k = 0; k < kCount; ++k) first[places[k % kBoxPeriod] + (i + k) * kBoxColumns] = v[k];
  }
};

struct BoxedRow {
  float* first;
  int turn;

  __device__ BoxedRow(BoxedTile& tile, int row)
      : first(tile.boxes[0][row]), turn(row % kBoxPeriod * kVector) {}
  /// `i` is a multiple of kCount, which is one of kVector and at most kBoxColumns.
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
    float* box = first + i / kBoxColumns * (kTile * kBoxColumns);
    return reinterpret_cast<float4*>(box + ((i % kBoxColumns ^ turn) ^ k));
  }
};

}  // namespace cumulus::recursive_filter
