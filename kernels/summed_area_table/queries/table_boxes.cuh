#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>

#include "kernels/core/div.h"
#include "kernels/primitives/launch.cuh"
#include "kernels/primitives/warp_scan.cuh"
#include "kernels/summed_area_table/queries.h"
#include "kernels/summed_area_table/queries/sliding.h"
#include "kernels/summed_area_table/queries/table_reader.h"

// Box filters by a finished table: of a map of radii, with deviations, and of images too small for their
// radius to slide.

namespace cumulus::summed_area_table {

inline constexpr int kTableBoxThreads = 256;
inline constexpr int kInnerBoxBlocks = 3;  // of a multiprocessor
inline constexpr int kOtherBoxBlocks = 2;
/// Pixels of a thread.
template <int kChannels>
inline constexpr int kInnerBoxPixels = kChannels == 1 ? 4 : 2;
inline constexpr int kOtherRows = 8;  // of a thread, of pixels that are mostly another kernel's
/// Of an image that has inner boxes, in rows or elements of a row.
inline constexpr std::int64_t kMaxTableBoxExtent = std::int64_t{1} << 22;
inline constexpr std::int64_t kMaxTableBoxRows = 65535;  // blocks along a grid's second axis

template <class Sum>
struct TableBoxArguments {
  const Sum* sums;
  const Sum* squares;  // null: no deviations
  TableShape shape;
  BoxShape box;
  const float* radii;
  float* means;
  float* deviations;
};

struct BoxRadii {
  std::int64_t y;
  std::int64_t x;
};

/// What the map says of a pixel, if there is one.
template <class Sum>
__device__ float wanted_at(const TableBoxArguments<Sum>& a, std::int64_t y, std::int64_t x) {
  return a.radii == nullptr ? 0 : __ldg(a.radii + y * a.shape.width + x);
}
/// Of the box around it.
template <class Sum>
__device__ BoxRadii radii_of(const TableBoxArguments<Sum>& a, float wanted) {
  if (a.radii == nullptr) return {a.box.radius_y, a.box.radius_x};
  return {mapped_radius(wanted, a.box.radius_y), mapped_radius(wanted, a.box.radius_x)};
}

/// One end of a box's rows and one of its columns: four of the table's elements.
template <class Sum>
__device__ Accumulator<Sum> sum_to(const TableReader<Sum>& table, const PrefixTerms& rows,
                                   const PrefixTerms& columns) {
  Accumulator<Sum> sum = 0;
#pragma unroll
  for (int i = 0; i < PrefixTerms::kCount; ++i) {
#pragma unroll
    for (int j = 0; j < PrefixTerms::kCount; ++j) {
      // Loaded in any case, so that no load waits for the one before; NaN counts for nothing by weight 0.
      const auto weight = static_cast<Accumulator<Sum>>(rows.weight[i] * columns.weight[j]);
      const Accumulator<Sum> value = table(rows.index[i], columns.index[j]);
      sum += weight * (weight == Accumulator<Sum>{0} ? Accumulator<Sum>{0} : value);
    }
  }
  return sum;
}

/// Any box of the table, of one channel.
template <class Sum>
__device__ double sum_of_any_box(const TableReader<Sum>& table, const AxisWindow& rows,
                                 const AxisWindow& columns) {
  if (rows.boundary == Boundary::kMirror || columns.boundary == Boundary::kMirror)
    return sum_of_box(table, rows, columns);
  const PrefixTerms below = rows.upper();
  const PrefixTerms above = rows.lower();
  const PrefixTerms right = columns.upper();
  const PrefixTerms left = columns.lower();
  const Accumulator<Sum> sum = (sum_to(table, below, right) - sum_to(table, above, right)) -
                               (sum_to(table, below, left) - sum_to(table, above, left));
  return static_cast<double>(static_cast<Sum>(sum));
}

template <class Sum>
__device__ void filter_pixel(const TableBoxArguments<Sum>& a, std::int64_t y, std::int64_t x) {
  const BoxRadii radii = radii_of(a, wanted_at(a, y, x));
  const AxisWindow rows{y, radii.y, a.shape.height, a.box.boundary_y};
  const AxisWindow columns{x, radii.x, a.shape.width, a.box.boundary_x};
  const auto pixels = static_cast<double>(rows.pixels() * columns.pixels());
#pragma unroll 1
  for (std::int64_t channel = 0; channel < a.shape.channels; ++channel) {
    const double sum = sum_of_any_box(TableReader<Sum>(a.sums, a.shape, channel), rows, columns);
    const std::int64_t element = (y * a.shape.width + x) * a.shape.channels + channel;
    a.means[element] = static_cast<float>(sum / pixels);
    if (a.squares == nullptr) continue;
    const double squares = sum_of_any_box(TableReader<Sum>(a.squares, a.shape, channel), rows, columns);
    a.deviations[element] = static_cast<float>(sqrt(variance_of(sum, squares, pixels)));
  }
}

/// mapped_radius in 32 bits.
__device__ inline int small_radius(float wanted, int most) {
  if (!(wanted > 0)) return 0;
  if (wanted >= static_cast<float>(most)) return most;
  const int whole = __float2int_rd(wanted);
  return wanted - static_cast<float>(whole) >= 0.5f ? whole + 1 : whole;
}

/// A pixel's box, by which kernel it is filtered: an inner one is inside the image and does not touch its
/// first row or column. Of images that have_inner_boxes.
struct InnerBox {
  int radius_y;
  int radius_x;
  bool exists;

  InnerBox() = default;
  template <class Sum>
  __device__ InnerBox(const TableBoxArguments<Sum>& a, int y, int x, float wanted) {
    // No inner box has a larger radius.
    const auto most_y = static_cast<int>(min(a.box.radius_y, kMaxTableBoxExtent / 2));
    const auto most_x = static_cast<int>(min(a.box.radius_x, kMaxTableBoxExtent / 2));
    radius_y = a.radii == nullptr ? most_y : small_radius(wanted, most_y);
    radius_x = a.radii == nullptr ? most_x : small_radius(wanted, most_x);
    exists = y > radius_y && x > radius_x && radius_y < static_cast<int>(a.shape.height) - y &&
             radius_x < static_cast<int>(a.shape.width) - x;
  }
};

/// 1 / x for x >= 1, rounded as IEEE 754 has it, by Newton's steps: without the way for numbers that are too
/// large or small for these, whose registers every thread would have.
__device__ inline double reciprocal_of(double x) {
  double y = 0;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
#pragma unroll
  for (int i = 0; i < 3; ++i) y = fma(y, fma(-x, y, 1.0), y);
  return y;
}

/// Owns: a thread kInnerBoxPixels<kChannels> pixels of a row, a block's threads apart, then those of rows a
///   grid further down.
/// Reads: the radii, and 4 pixels of the table for each pixel.
/// Writes: the means of inner pixels.
/// Waits for: nothing of other blocks, so that it cannot deadlock.
/// Source: F. Crow, "Summed-area tables for texture mapping", 1984.
template <class Sum, int kChannels>
__global__ void __launch_bounds__(kTableBoxThreads, kInnerBoxBlocks)
    filter_inner_boxes(const TableBoxArguments<Sum> a) {
  using Wide = Accumulator<Sum>;
  constexpr int kPixels = kInnerBoxPixels<kChannels>;
  const auto height = static_cast<int>(a.shape.height);
  const auto width = static_cast<int>(a.shape.width);
  const int stride = width * kChannels;
  const int first =
      static_cast<int>(blockIdx.x) * (kPixels * kTableBoxThreads) + static_cast<int>(threadIdx.x);
  for (int y = static_cast<int>(blockIdx.y); y < height; y += static_cast<int>(gridDim.y)) {
    float wanted[kPixels];
#pragma unroll
    for (int i = 0; i < kPixels; ++i) {
      const int x = first + i * kTableBoxThreads;
      wanted[i] = x < width ? wanted_at(a, y, x) : 0;
    }
    // All loads at once: of a pixel that is no inner one the table's first elements, for nothing.
    InnerBox boxes[kPixels];
    Wide corners[kPixels][4][kChannels];
#pragma unroll
    for (int i = 0; i < kPixels; ++i) {
      const int x = first + i * kTableBoxThreads;
      const InnerBox& box = boxes[i] = InnerBox(a, y, x, wanted[i]);
      const int row_above = box.exists ? y - box.radius_y - 1 : 0;
      const int row_below = box.exists ? y + box.radius_y : 0;
      const int left = box.exists ? (x - box.radius_x - 1) * kChannels : 0;
      const int right = box.exists ? (x + box.radius_x) * kChannels : 0;
      const Sum* above = a.sums + std::int64_t{row_above} * stride;
      const Sum* below = a.sums + std::int64_t{row_below} * stride;
#pragma unroll
      for (int c = 0; c < kChannels; ++c) {
        corners[i][0][c] = static_cast<Wide>(__ldg(below + right + c));
        corners[i][1][c] = static_cast<Wide>(__ldg(above + right + c));
        corners[i][2][c] = static_cast<Wide>(__ldg(below + left + c));
        corners[i][3][c] = static_cast<Wide>(__ldg(above + left + c));
      }
    }
#pragma unroll
    for (int i = 0; i < kPixels; ++i) {
      const InnerBox& box = boxes[i];
      const double pixels = (2.0 * box.radius_y + 1) * (2.0 * box.radius_x + 1);
      const double reciprocal = reciprocal_of(pixels);
      float* means = a.means + std::int64_t{y} * stride + (first + i * kTableBoxThreads) * kChannels;
#pragma unroll
      for (int c = 0; c < kChannels; ++c) {
        const Wide sum = (corners[i][0][c] - corners[i][1][c]) - (corners[i][2][c] - corners[i][3][c]);
        const double mean = divide_by(static_cast<double>(static_cast<Sum>(sum)), pixels, reciprocal);
        if (box.exists) __stcs(means + c, static_cast<float>(mean));
      }
    }
  }
}

/// Inner boxes around one coordinate of an axis have radii that the map gives below this; infinity where all
/// do, as none is larger than `most`. As floats, whole numbers and a half of up to kMaxTableBoxExtent are
/// exact.
__device__ inline float inner_radii_end(int at, int extent, std::int64_t most) {
  const int last = min(at - 1, extent - 1 - at);
  if (last < 0) return 0;
  return most <= last ? INFINITY : static_cast<float>(last) + 0.5f;
}

/// Appends to a list in shared memory the entries of a warp's lanes that want it.
__device__ inline void append(bool wanted, int entry, std::uint16_t* list, int* length) {
  const unsigned int wanting = __ballot_sync(kFullWarp, wanted);
  if (wanting == 0) return;
  const int lane = lane_index();
  int first = lane == 0 ? atomicAdd(length, __popc(wanting)) : 0;
  first = __shfl_sync(kFullWarp, first, 0);
  if (wanted) list[first + __popc(wanting & ((1u << lane) - 1))] = static_cast<std::uint16_t>(entry);
}

/// Owns: a block kOtherRows pixels of each of its columns, a grid's rows apart, then those further down; not
///   those that filter_inner_boxes has, where that has been launched. Its threads share the pixels that are
///   left: few, and next to each other.
/// Reads: the radii, and of the table up to 16 elements for each channel of a pixel near the edges (25 with
///   kMirror).
/// Writes: means, and deviations where wanted.
/// Waits for: nothing of other blocks, so that it cannot deadlock.
/// Source: Crow, 1984, as above.
template <class Sum>
__global__ void __launch_bounds__(kTableBoxThreads, kOtherBoxBlocks)
    filter_other_boxes(const TableBoxArguments<Sum> a, bool has_inner) {
  __shared__ std::uint16_t others[kOtherRows * kTableBoxThreads];
  __shared__ int count;
  const std::int64_t left = std::int64_t{blockIdx.x} * kTableBoxThreads;
  const std::int64_t x = left + threadIdx.x;
  const std::int64_t step = gridDim.y;
  const bool in_row = x < a.shape.width;
  const float end_x =
      has_inner ? inner_radii_end(static_cast<int>(x), static_cast<int>(a.shape.width), a.box.radius_x) : 0;
  for (std::int64_t first = blockIdx.y; first < a.shape.height; first += kOtherRows * step) {
    if (threadIdx.x == 0) count = 0;
    float wanted[kOtherRows];
#pragma unroll
    for (int i = 0; i < kOtherRows; ++i) {
      const std::int64_t y = first + i * step;
      wanted[i] = in_row && y < a.shape.height ? wanted_at(a, y, x) : 0;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kOtherRows; ++i) {
      const std::int64_t y = first + i * step;
      const float end_y =
          has_inner ? inner_radii_end(static_cast<int>(y), static_cast<int>(a.shape.height), a.box.radius_y)
                    : 0;
      const float radius = a.radii == nullptr ? FLT_MAX : fminf(fmaxf(wanted[i], 0), FLT_MAX);  // of NaN 0
      const bool is_other = in_row && y < a.shape.height && !(radius < fminf(end_x, end_y));
      append(is_other, i * kTableBoxThreads + static_cast<int>(threadIdx.x), others, &count);
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kTableBoxThreads) {
      const int other = others[i];
      filter_pixel(a, first + other / kTableBoxThreads * step, left + other % kTableBoxThreads);
    }
    __syncthreads();
  }
}

template <class Sum, int kChannels>
void launch_inner_boxes(cudaStream_t stream, const TableBoxArguments<Sum>& arguments) {
  const dim3 blocks(static_cast<unsigned int>(
                        divide_up(arguments.shape.width, kInnerBoxPixels<kChannels> * kTableBoxThreads)),
                    static_cast<unsigned int>(std::min(arguments.shape.height, kMaxTableBoxRows)));
  launch(stream, filter_inner_boxes<Sum, kChannels>, {blocks, kTableBoxThreads}, arguments);
}

template <class Sum>
void launch_table_boxes(cudaStream_t stream, const TableBoxArguments<Sum>& arguments) {
  const TableShape& shape = arguments.shape;
  const bool has_inner = arguments.squares == nullptr && shape.height <= kMaxTableBoxExtent &&
                         shape.width * shape.channels <= kMaxTableBoxExtent;
  if (has_inner) {
    switch (shape.channels) {
      case 1:
        launch_inner_boxes<Sum, 1>(stream, arguments);
        break;
      case 2:
        launch_inner_boxes<Sum, 2>(stream, arguments);
        break;
      case 3:
        launch_inner_boxes<Sum, 3>(stream, arguments);
        break;
      default:
        launch_inner_boxes<Sum, 4>(stream, arguments);
    }
  }
  const dim3 blocks(
      static_cast<unsigned int>(divide_up(shape.width, kTableBoxThreads)),
      static_cast<unsigned int>(std::min(divide_up(shape.height, kOtherRows), kMaxTableBoxRows)));
  launch(stream, filter_other_boxes<Sum>, {blocks, kTableBoxThreads}, arguments, has_inner);
}

}  // namespace cumulus::summed_area_table
