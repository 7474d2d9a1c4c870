#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/core/div.h"
#include "kernels/recursive_filter/fir/axis.cuh"

// Rows of pixels in shared memory, each channel in a plane of its own, for filters along x.

namespace cumulus::recursive_filter {

/// Of a block: what of the input its rows have, and where it goes.
struct Planes {
  const FirStageAxis<float>& x;
  const FirDivisor& by_channels;
  std::int64_t first_pixel;  // of the input, may lie outside
  int pixels;
  float* numbers;
  int plane, pitch;  // numbers from plane to plane, and from row to row
  bool vectors;      // whether the input is loaded four numbers at a time
};

/// Four neighbouring numbers of every row. What of them is needed by none goes behind all planes.
template <class T>
class PlaneColumns {
 public:
  /// From the `number`-th of the block's on, where a vector begins.
  __device__ PlaneColumns(const Planes& planes, int number) : planes_(planes) {
    const int channels = planes.by_channels.value;
    int channel = number + channels * 4;
    int pixel = planes.by_channels.divide(channel) - 4;
    const std::int64_t first = planes.first_pixel * channels + number;
    first_ = static_cast<int>(first);
    is_whole_ = planes.vectors && first >= 0 && first + 4 <= planes.x.in_length * channels;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const bool is_needed = pixel >= 0 && pixel < planes.pixels;
      places_[k] = is_needed ? channel * planes.plane + pixel : planes.pitch - 1;
      if (!is_whole_) {
        const std::int64_t source =
            is_needed ? source_pixel(planes.first_pixel + pixel, planes.x.in_length, planes.x.boundary) : -1;
        sources_[k] = source < 0 ? -1 : static_cast<int>(source * channels + channel);
      }
      if (++channel == channels) channel = 0, ++pixel;
    }
  }

  /// Up to four of `rows` rows, `step` from each to the next; row_at gives their first elements, or null for
  /// one of zeros.
  template <class RowAt>
  __device__ __forceinline__ void bring(int row, int step, int rows, const RowAt& row_at) const {
    float values[4][4];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      if (row + r * step < rows) load(row_at(row + r * step), values[r]);
    }
    float* to = planes_.numbers + row * planes_.pitch;
#pragma unroll
    for (int r = 0; r < 4; ++r, to += step * planes_.pitch) {
      if (row + r * step >= rows) break;
#pragma unroll
      for (int k = 0; k < 4; ++k) to[places_[k]] = values[r][k];
    }
  }

 private:
  __device__ __forceinline__ void load(const T* row, float (&to)[4]) const {
    if (row != nullptr && is_whole_) {
      const auto four = *reinterpret_cast<const RowVector<T, 4>*>(row + first_);
#pragma unroll
      for (int k = 0; k < 4; ++k) to[k] = static_cast<float>(four.values[k]);
      return;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      to[k] = row == nullptr || is_whole_ || sources_[k] < 0 ? 0.0F : static_cast<float>(row[sources_[k]]);
    }
  }

  const Planes& planes_;
  int first_;
  bool is_whole_;
  int places_[4], sources_[4];
};

/// Brings `rows` rows. All threads of a block call this.
template <class T, class RowAt>
__device__ __forceinline__ void bring_planes(const Planes& planes, int rows, const RowAt& row_at) {
  const int channels = planes.by_channels.value;
  const auto front = static_cast<int>(planes.first_pixel * channels & 3);
  const int vectors = divide_up(planes.pixels * channels + front, 4);
  const auto threads = static_cast<int>(blockDim.x);
  const int together = min(vectors, threads);  // threads of a row
  const int rows_at_once = threads / together;
  const int row = static_cast<int>(threadIdx.x) / together;
  if (row >= rows_at_once) return;
  for (int i = static_cast<int>(threadIdx.x) - row * together; i < vectors; i += together) {
    const PlaneColumns<T> columns(planes, i * 4 - front);
    for (int r = row; r < rows; r += 4 * rows_at_once) columns.bring(r, rows_at_once, rows, row_at);
  }
}

}  // namespace cumulus::recursive_filter
