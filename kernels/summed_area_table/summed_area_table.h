#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/cpu_executor.h"
#include "kernels/core/cuda_executor.h"
#include "kernels/core/views.h"
#include "kernels/summed_area_table/element_pairs.h"
#include "kernels/summed_area_table/method.h"

namespace cumulus {

// Summed-area tables (F. Crow, "Summed-area tables for texture mapping", SIGGRAPH 1984):
//
//   sums(y, x, channel) = sum of image(v, u, channel) over all v <= y, u <= x.
//
// For every function of this operation: images have 1 to 4 interleaved channels and at least one pixel; input
// rows may be padded (row_stride), outputs are dense; input and output do not overlap. A view that breaks
// this, or views whose extents do not go together, throws std::invalid_argument before anything runs. All
// views lie in the executor's memory space. The CPU overloads return when the result is there; the CUDA
// overloads put their work on the executor's stream and return. Before the call the caller reserves at least
// the bytes that the matching *_scratch_bytes function names; the call
// takes exactly those. A failing device throws CudaError, a caller who has lost interest Interrupted (checked
// between kernels).
//
// element_pairs.h lists the types of images and sums, and how exact the sums are. NaN and Inf spread to every
// element below and to the right of them, and to no other.
//
// Results do not depend on the number of threads or on timing: the same call gives the same bits each time.

/// One call: an image, or several of the same extents, and where their tables go.
template <class Input, class Sum, Space S>
struct TableJob {
  ImageView<const Input, S> image;  // the first one
  ImageView<Sum, S> sums;           // its table, dense; of height + 1 and width + 1 if exclusive
  std::int64_t planes = 1;          // images, each summed by itself; their tables lie one after the other
  std::int64_t plane_stride = 0;    // elements from one image to the next; matters where planes > 1
  /// Each table begins with a row and a column of zeros: element (y, x) is the sum over v < y, u < x.
  bool exclusive = false;
  /// Also the tables of the squared pixels, laid out as `sums`; null: none. Where kSumsSquares only.
  Sum* squares = nullptr;
  /// What to subtract from every pixel before it is summed, a value for each plane and channel in the
  /// executor's memory; null: nothing. Float sums only.
  const float* offsets = nullptr;
};

namespace summed_area_table {

/// Whether all rows begin at multiples of 16 bytes.
template <class T>
bool rows_are_aligned(const T* data, std::int64_t row_stride) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 &&
         row_stride * static_cast<std::int64_t>(sizeof(T)) % 16 == 0;
}

template <class Input, class Sum, Space S>
BuildShape build_shape(const TableJob<Input, Sum, S>& job) {
  return {.types = kElementPair<Input, Sum>,
          .height = job.image.height,
          .width = job.image.width,
          .channels = job.image.channels,
          .planes = job.planes,
          .exclusive = job.exclusive,
          .squares = job.squares != nullptr,
          .offsets = job.offsets != nullptr,
          .aligned = rows_are_aligned(job.image.data, job.image.row_stride) &&
                     rows_are_aligned(job.sums.data, job.sums.row_stride)};
}

/// Of a shape's table in memory of space S.
template <Space S>
std::size_t table_scratch_bytes(const BuildShape& shape, const DeviceNumbers& device) {
  return S == Space::kHost ? 0 : scratch_bytes(choose(shape, device));
}

}  // namespace summed_area_table

/// Scratch bytes of build_summed_area_table: exactly those of the chosen method. Of the job's pointers it
/// matters which are null, and whether they are multiples of 16 bytes; `device` matters on a GPU only.
template <class Input, class Sum, Space S>
std::size_t build_summed_area_table_scratch_bytes(const TableJob<Input, Sum, S>& job,
                                                  const DeviceNumbers& device) {
  return summed_area_table::table_scratch_bytes<S>(summed_area_table::build_shape(job), device);
}

template <class Input, class Sum>
void build_summed_area_table(CpuExecutor& executor, const TableJob<Input, Sum, Space::kHost>& job);
template <class Input, class Sum>
void build_summed_area_table(CudaExecutor& executor, const TableJob<Input, Sum, Space::kDevice>& job);

/// The mean of every channel of every plane of a float image, rounded to float, into `means` (planes *
/// channels values): the offsets that keep a table's sums small. NaN where a pixel is. Of a job only the
/// image and the planes matter.
template <class Input, Space S>
std::size_t average_image_scratch_bytes(const TableJob<Input, float, S>& job) {
  return ScratchSize()
      .add<double>(static_cast<std::size_t>(job.planes * job.image.height * job.image.channels))
      .bytes();
}
template <class Input>
void average_image(CpuExecutor& executor, const TableJob<Input, float, Space::kHost>& job,
                   HostSpan<float> means);
template <class Input>
void average_image(CudaExecutor& executor, const TableJob<Input, float, Space::kDevice>& job,
                   DeviceSpan<float> means);

}  // namespace cumulus
