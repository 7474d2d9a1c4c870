#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/core/cuda_error.h"
#include "kernels/core/launch_slices.h"
#include "kernels/summed_area_table/check.h"
#include "kernels/summed_area_table/queries.h"
#include "kernels/summed_area_table/queries/sliding_boxes.cuh"
#include "kernels/summed_area_table/queries/table_boxes.cuh"
#include "kernels/summed_area_table/queries/table_reader.h"

namespace cumulus {
namespace {

using namespace summed_area_table;

constexpr int kQueryThreads = 256;
constexpr std::int64_t kFirstRectangles = std::int64_t{1}
                                          << 25;  // of a call's first slice: some milliseconds
constexpr std::int64_t kMaxQueryBlocks = std::int64_t{1} << 30;

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

template <class Sum, class Input>
void filter_with_tables(CudaExecutor& executor, const BoxFilterJob<Input, Space::kDevice>& job) {
  const auto elements = static_cast<std::size_t>(job.image.elements());
  const auto storage = executor.scratch<Sum>(job.deviations != nullptr ? 2 * elements : elements);
  const auto tables = box_tables(job, storage.data());
  build_summed_area_table(executor, tables);
  executor.check_interrupt();
  const TableBoxArguments<Sum> arguments{
      tables.sums.data, tables.squares, {job.image.height, job.image.width, job.image.channels, false},
      job.box,          job.radii,      job.means.data,
      job.deviations};
  launch_table_boxes(executor.stream(), arguments);
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
