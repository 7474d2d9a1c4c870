#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/core/cuda_error.h"
#include "kernels/core/launch_slices.h"
#include "kernels/summed_area_table/check.h"
#include "kernels/summed_area_table/queries.h"
#include "kernels/summed_area_table/queries/sliding_boxes.cuh"
#include "kernels/summed_area_table/queries/table_reader.h"
#include "kernels/summed_area_table/summand.h"

namespace cumulus {
namespace {

using namespace summed_area_table;

constexpr int kQueryThreads = 256;
constexpr std::int64_t kFirstRectangles = std::int64_t{1}
                                          << 25;  // of a call's first slice: some milliseconds
constexpr std::int64_t kMaxQueryBlocks = std::int64_t{1} << 30;
constexpr std::int64_t kMaxFilterRows = 65535;  // blocks along a grid's second axis

/// Owns: a thread one channel of one rectangle of [begin, end), then those a grid further on.
/// Reads: the rectangle, four elements of each table.
/// Writes: sum, mean and variance, those that are asked for; the lowest number of a rectangle that does not
///   lie inside into `first_outside`, if not null.
/// Waits for: nothing of other blocks, so that it cannot deadlock.
/// Source: F. Crow, "Summed-area tables for texture mapping", 1984.
template <class Sum>
__global__ void __launch_bounds__(kQueryThreads)
    query_rectangles(TableView<Sum, Space::kDevice> table, const Rectangle* rectangles, std::int64_t begin,
                     std::int64_t end, RectangleResults<Sum, Space::kDevice> results,
                     unsigned long long* first_outside) {
  const std::int64_t channels = table.shape.channels;
  for (std::int64_t i = begin * channels + std::int64_t{blockIdx.x} * kQueryThreads + threadIdx.x;
       i < end * channels; i += std::int64_t{gridDim.x} * kQueryThreads) {
    const std::int64_t number = i / channels;
    const Rectangle rectangle = rectangles[number];
    if (first_outside != nullptr && !lies_inside(rectangle, table.shape))
      atomicMin(first_outside, static_cast<unsigned long long>(number));
    query_rectangle(table, rectangle, i % channels, i, results);
  }
}

template <class Sum>
struct FilterArguments {
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

/// Of the box around a pixel.
template <class Sum>
__device__ BoxRadii radii_at(const FilterArguments<Sum>& a, std::int64_t y, std::int64_t x) {
  if (a.radii == nullptr) return {a.box.radius_y, a.box.radius_x};
  const float wanted = a.radii[y * a.shape.width + x];
  return {mapped_radius(wanted, a.box.radius_y), mapped_radius(wanted, a.box.radius_x)};
}

/// Whether the table's four elements are all that the box takes.
__device__ inline bool takes_four(const Area& box, const TableShape& shape) {
  return box.top >= 0 && box.left >= 0 && box.bottom <= shape.height && box.right <= shape.width;
}

template <class Sum>
__device__ void filter_element(const FilterArguments<Sum>& a, std::int64_t y, std::int64_t x,
                               std::int64_t channel) {
  const TableReader<Sum> sums(a.sums, a.shape, channel);
  const TableReader<Sum> squares(a.squares, a.shape, channel);
  const auto [radius_y, radius_x] = radii_at(a, y, x);
  const Area box{y - radius_y, x - radius_x, y + radius_y + 1, x + radius_x + 1};
  double pixels = static_cast<double>(box.pixels());
  double sum = 0;
  double sum_of_squares = 0;
  if (takes_four(box, a.shape)) {
    sum = static_cast<double>(sum_over(sums, box));
    if (a.squares != nullptr) sum_of_squares = static_cast<double>(sum_over(squares, box));
  } else {
    const AxisWindow rows{y, radius_y, a.shape.height, a.box.boundary_y};
    const AxisWindow columns{x, radius_x, a.shape.width, a.box.boundary_x};
    pixels = static_cast<double>(rows.pixels() * columns.pixels());
    sum = sum_of_box(sums, rows, columns);
    if (a.squares != nullptr) sum_of_squares = sum_of_box(squares, rows, columns);
  }
  const std::int64_t element = (y * a.shape.width + x) * a.shape.channels + channel;
  a.means[element] = static_cast<float>(sum / pixels);
  if (a.squares != nullptr)
    a.deviations[element] = static_cast<float>(sqrt(variance_of(sum, sum_of_squares, pixels)));
}

constexpr int kRowsOfThread = 4;

/// The boxes of kRowsOfThread pixels of a column.
struct ColumnBoxes {
  int radius_y[kRowsOfThread];
  int radius_x[kRowsOfThread];
  bool inside = true;  // all lie inside the image and do not touch its first row and column

  template <class Sum>
  __device__ ColumnBoxes(const FilterArguments<Sum>& a, std::int64_t top, std::int64_t x) {
    const std::int64_t height = a.shape.height;
    const std::int64_t width = a.shape.width;
    inside = top + kRowsOfThread <= height && (height | width) <= 0x7FFFFFFF;
    if (!inside) return;
#pragma unroll
    for (int i = 0; i < kRowsOfThread; ++i) {
      const BoxRadii radii = radii_at(a, top + i, x);
      radius_y[i] = static_cast<int>(radii.y);
      radius_x[i] = static_cast<int>(radii.x);
      inside =
          inside && top + i > radii.y && x > radii.x && top + i + radii.y < height && x + radii.x < width;
    }
  }

  __device__ double pixels(int i) const { return (2.0 * radius_y[i] + 1) * (2.0 * radius_x[i] + 1); }
};

/// Means of kRowsOfThread pixels of a column by boxes that are inside; false: they are not.
template <class Sum>
__device__ bool filter_inner_pixels(const FilterArguments<Sum>& a, std::int64_t top, std::int64_t x,
                                    std::int64_t channel) {
  if (a.squares != nullptr) return false;
  const ColumnBoxes boxes(a, top, x);
  if (!boxes.inside) return false;
  const std::int64_t channels = a.shape.channels;
  const std::int64_t stride = a.shape.width * channels;
  using Wide = Accumulator<Sum>;
  Wide corners[kRowsOfThread][4];
#pragma unroll
  for (int i = 0; i < kRowsOfThread; ++i) {
    const Sum* below = a.sums + (top + i + boxes.radius_y[i]) * stride + x * channels + channel;
    const Sum* above = below - (2 * boxes.radius_y[i] + 1) * stride;
    const std::int64_t right = boxes.radius_x[i] * channels;
    const std::int64_t left = -(boxes.radius_x[i] + 1) * channels;
    corners[i][0] = static_cast<Wide>(below[right]);
    corners[i][1] = static_cast<Wide>(above[right]);
    corners[i][2] = static_cast<Wide>(below[left]);
    corners[i][3] = static_cast<Wide>(above[left]);
  }
  const double pixels = boxes.pixels(0);
  const double reciprocal = 1.0 / pixels;
  float* means = a.means + top * stride + x * channels + channel;
#pragma unroll
  for (int i = 0; i < kRowsOfThread; ++i) {
    const Wide corner_sum = (corners[i][0] - corners[i][1]) - (corners[i][2] - corners[i][3]);
    const auto sum = static_cast<double>(static_cast<Sum>(corner_sum));
    const double mean = a.radii == nullptr ? divide_by(sum, pixels, reciprocal) : sum / boxes.pixels(i);
    means[i * stride] = static_cast<float>(mean);
  }
  return true;
}

/// Of a multiprocessor: boxes inside the image wait for memory, and those at its edges, of which a mirror's
/// take the most registers, are few.
constexpr int kFilterBlocks = 3;

/// Owns: a thread kRowsOfThread rows of one column of one channel, then those a grid further down.
/// Reads: the table, 4 elements for each pixel inside, at most 16 near the edges (25 with kMirror).
/// Writes: means, and deviations where wanted.
/// Waits for: nothing of other blocks, so that it cannot deadlock.
/// Source: Crow, 1984, as above.
template <class Sum>
__global__ void __launch_bounds__(kQueryThreads, kFilterBlocks)
    filter_from_table(const FilterArguments<Sum> a) {
  const std::int64_t element = std::int64_t{blockIdx.x} * kQueryThreads + threadIdx.x;
  if (element >= a.shape.width * a.shape.channels) return;
  const std::int64_t x = a.shape.channels == 1 ? element : element / a.shape.channels;
  const std::int64_t channel = element - x * a.shape.channels;
  const std::int64_t step = std::int64_t{gridDim.y} * kRowsOfThread;
  for (std::int64_t top = std::int64_t{blockIdx.y} * kRowsOfThread; top < a.shape.height; top += step) {
    if (filter_inner_pixels(a, top, x, channel)) continue;
    const std::int64_t end = min(top + kRowsOfThread, a.shape.height);
#pragma unroll 1
    for (std::int64_t y = top; y < end; ++y) filter_element(a, y, x, channel);
  }
}

template <class Sum, class Input>
void filter_with_tables(CudaExecutor& executor, const BoxFilterJob<Input, Space::kDevice>& job) {
  const auto elements = static_cast<std::size_t>(job.image.elements());
  const auto storage = executor.scratch<Sum>(job.deviations != nullptr ? 2 * elements : elements);
  const auto tables = box_tables(job, storage.data());
  build_summed_area_table(executor, tables);
  executor.check_interrupt();
  const FilterArguments<Sum> arguments{
      tables.sums.data, tables.squares, {job.image.height, job.image.width, job.image.channels, false},
      job.box,          job.radii,      job.means.data,
      job.deviations};
  const dim3 blocks(
      static_cast<unsigned int>(divide_up(job.image.width * job.image.channels, kQueryThreads)),
      static_cast<unsigned int>(std::min(divide_up(job.image.height, kRowsOfThread), kMaxFilterRows)));
  filter_from_table<<<blocks, kQueryThreads, 0, executor.stream()>>>(arguments);
  CUMULUS_CUDA(cudaGetLastError());
}

template <class Input>
void filter_without_table(CudaExecutor& executor, const BoxFilterJob<Input, Space::kDevice>& job) {
  executor.check_interrupt();
  executor.bind_thread();
  switch (job.image.channels) {
    case 1:
      return launch_sliding_boxes<Input, 1>(executor, job);
    case 2:
      return launch_sliding_boxes<Input, 2>(executor, job);
    case 3:
      return launch_sliding_boxes<Input, 3>(executor, job);
    default:
      return launch_sliding_boxes<Input, 4>(executor, job);
  }
}

}  // namespace

template <class Sum>
void sum_rectangles(CudaExecutor& executor, const TableView<Sum, Space::kDevice>& table,
                    DeviceSpan<const Rectangle> rectangles,
                    const RectangleResults<Sum, Space::kDevice>& results, RectangleReport* report) {
  check_query(table, results);
  executor.bind_thread();
  unsigned long long* first_outside = nullptr;
  if (report != nullptr) {
    // All bits set is both the largest number without a sign and -1 with one.
    static_assert(sizeof(unsigned long long) == sizeof(std::int64_t));
    first_outside = reinterpret_cast<unsigned long long*>(executor.scratch<std::int64_t>(1).data());
    CUMULUS_CUDA(cudaMemsetAsync(first_outside, 0xFF, sizeof(*first_outside), executor.stream()));
  }
  const auto count = static_cast<std::int64_t>(rectangles.size());
  launch_slices(executor, count, {.first = kFirstRectangles}, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t blocks =
        std::min(divide_up((end - begin) * table.shape.channels, kQueryThreads), kMaxQueryBlocks);
    query_rectangles<<<static_cast<unsigned int>(blocks), kQueryThreads, 0, executor.stream()>>>(
        table, rectangles.data(), begin, end, results, first_outside);
    CUMULUS_CUDA(cudaGetLastError());
  });
  if (report == nullptr) return;
  executor.download({reinterpret_cast<const std::byte*>(first_outside), sizeof(*first_outside)},
                    {reinterpret_cast<std::byte*>(&report->first_outside), sizeof(report->first_outside)});
}

template <class Input>
void filter_box(CudaExecutor& executor, const BoxFilterJob<Input, Space::kDevice>& job) {
  check_filter(job);
  const auto limited = simplified(job);
  if (takes_sliding_boxes(job)) return filter_without_table(executor, limited);
  with_box_sum(limited, [&]<class Sum>(Sum*) { filter_with_tables<Sum>(executor, limited); });
}

#define CUMULUS_RECTANGLES_ON_CUDA(Sum)                                                                   \
  template void sum_rectangles(CudaExecutor&, const TableView<Sum, Space::kDevice>&,                      \
                               DeviceSpan<const Rectangle>, const RectangleResults<Sum, Space::kDevice>&, \
                               RectangleReport*)
#define CUMULUS_BOXES_ON_CUDA(Input) \
  template void filter_box(CudaExecutor&, const BoxFilterJob<Input, Space::kDevice>&)
CUMULUS_SUMMED_AREA_TABLE_SUMS(CUMULUS_RECTANGLES_ON_CUDA);
CUMULUS_SUMMED_AREA_TABLE_IMAGES(CUMULUS_BOXES_ON_CUDA);

}  // namespace cumulus
