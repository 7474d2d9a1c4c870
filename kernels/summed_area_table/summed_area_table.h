#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/cuda_executor.h"
#include "kernels/core/views.h"
#include "kernels/summed_area_table/summed_area_table_scratch.h"

namespace cumulus {

// Summed-area tables (F. Crow, "Summed-area tables for texture mapping", SIGGRAPH 1984), inclusive:
//
//   sums(y, x, channel) = sum of image(v, u, channel) over all v <= y, u <= x.
//
// For every function here: images have 1 to 4 interleaved channels and at least one pixel; input rows may be
// padded (row_stride), outputs are dense; input and output do not overlap. A view that breaks this,
// or two views of different extents, throws std::invalid_argument before anything runs. Both views lie in the
// executor's memory space. The CPU overloads return when the result is there; the CUDA overloads
// put their work on the executor's stream and return. Before the call the caller reserves
// at least the bytes that the matching *_scratch_bytes function (in the header included above) names; the
// call takes exactly those. A failing device throws CudaError, a caller who has lost interest Interrupted
// (checked between kernels).
//
// Results do not depend on the number of threads or on timing: the same call gives the same bits each time.

/// 8-bit images, 32-bit sums: exact while 255 * height * width < 2^32, modulo 2^32 beyond, which
/// still gives exact differences wherever the rectangle's own sum is below 2^32.
void build_summed_area_table(CpuExecutor& executor, HostImage<const std::uint8_t> image,
                             HostImage<std::uint32_t> sums);
void build_summed_area_table(CudaExecutor& executor, DeviceImage<const std::uint8_t> image,
                             DeviceImage<std::uint32_t> sums);

/// 8-bit images, 64-bit sums: exact.
void build_summed_area_table(CpuExecutor& executor, HostImage<const std::uint8_t> image,
                             HostImage<std::uint64_t> sums);
void build_summed_area_table(CudaExecutor& executor, DeviceImage<const std::uint8_t> image,
                             DeviceImage<std::uint64_t> sums);

/// Float images, summed and stored in double. |error| of an element is at most
/// (height + width) * 2^-53 * (the sum of |image| over the element's rectangle), to first order.
/// NaN and Inf spread to every element below and to the right of them, and to no other.
void build_summed_area_table(CpuExecutor& executor, HostImage<const float> image, HostImage<double> sums);
void build_summed_area_table(CudaExecutor& executor, DeviceImage<const float> image,
                             DeviceImage<double> sums);

/// Float images, summed and stored in float: the same bound with 2^-24. Differences of large sums
/// lose what the sums have lost: prefer double where boxes are small and images large.
void build_summed_area_table(CpuExecutor& executor, HostImage<const float> image, HostImage<float> sums);
void build_summed_area_table(CudaExecutor& executor, DeviceImage<const float> image, DeviceImage<float> sums);

/// The mean over the box of (2 * radius + 1)^2 pixels around each pixel, taken over those pixels of it that
/// lie inside the image. `radius` >= 0, in pixels; any size beyond the image is as good as the image's.
///
/// 8-bit images: from exact integer sums, one division in double, rounded to float: the same bits
/// on both backends.
void filter_box(CpuExecutor& executor, HostImage<const std::uint8_t> image, std::int64_t radius,
                HostImage<float> filtered);
void filter_box(CudaExecutor& executor, DeviceImage<const std::uint8_t> image, std::int64_t radius,
                DeviceImage<float> filtered);

/// Float images: from a table in double, so that |error| is at most 2^-24 |mean| plus
/// (4 (height + width) + 4) * 2^-53 * (the sum of |image|) / (the box's pixels), to first order. A NaN or Inf
/// spoils every pixel whose box reaches its row and column or lies below and to the right of them.
void filter_box(CpuExecutor& executor, HostImage<const float> image, std::int64_t radius,
                HostImage<float> filtered);
void filter_box(CudaExecutor& executor, DeviceImage<const float> image, std::int64_t radius,
                DeviceImage<float> filtered);

/// A rectangle of pixels: rows top to bottom - 1, columns left to right - 1. What of it lies outside the
/// image counts for nothing; so it is empty where bottom <= top or right <= left.
struct Rectangle {
  std::int32_t top;
  std::int32_t left;
  std::int32_t bottom;
  std::int32_t right;
};

// The functions below take a dense table of std::uint32_t, std::uint64_t, float or double (see above), and
// any number of rectangles; result i belongs to rectangle i, its channels interleaved (rectangles.size() *
// table.channels elements, else std::invalid_argument). They take no scratch memory. Asynchrony and errors
// are as above.

/// Sums over rectangles, of the table's type: exact for integers wherever the sum itself fits; for
/// floats a difference of four elements of the table, with their errors and three roundings. Empty: 0.
template <class Sum>
void sum_rectangles(CpuExecutor& executor, HostImage<const Sum> table, HostSpan<const Rectangle> rectangles,
                    HostSpan<Sum> sums);
template <class Sum>
void sum_rectangles(CudaExecutor& executor, DeviceImage<const Sum> table,
                    DeviceSpan<const Rectangle> rectangles, DeviceSpan<Sum> sums);

/// Means over the pixels of rectangles that lie inside the image: the sum, divided in double by
/// their number. Empty: NaN.
template <class Sum>
void average_rectangles(CpuExecutor& executor, HostImage<const Sum> table,
                        HostSpan<const Rectangle> rectangles, HostSpan<double> means);
template <class Sum>
void average_rectangles(CudaExecutor& executor, DeviceImage<const Sum> table,
                        DeviceSpan<const Rectangle> rectangles, DeviceSpan<double> means);

}  // namespace cumulus
