#include <cuda_runtime.h>

#include "kernels/core/cuda_error.h"
#include "kernels/primitives/warp_scan.cuh"
#include "kernels/summed_area_table/check.h"
#include "kernels/summed_area_table/summed_area_table.h"

// The mean of each channel of an image, for tables of pixels less their means.

namespace cumulus {
namespace {

using namespace summed_area_table;

constexpr int kAverageThreads = 256;

/// Sums the block's values in a fixed order; the result is thread 0's.
__device__ double block_sum(double value) {
  __shared__ double of_warps[kAverageThreads / 32];
  value = warp_sum(value);
  if (lane_index() == 0) of_warps[warp_index()] = value;
  __syncthreads();
  double sum = 0;
  if (threadIdx.x == 0) {
    for (const double of_warp : of_warps) sum += of_warp;
  }
  __syncthreads();
  return sum;
}

/// Owns: a block one row of one plane. Reads: its pixels. Writes: its sum for each channel, in double.
/// Waits for: nothing of other blocks, so that it cannot deadlock. Source: a block's reduction.
template <class Input>
__global__ void __launch_bounds__(kAverageThreads)
    sum_rows(DeviceImage<const Input> image, std::int64_t plane_stride, double* row_sums) {
  const std::int64_t row = blockIdx.x;
  const Input* pixels =
      image.data + row / image.height * plane_stride + row % image.height * image.row_stride;
  for (std::int64_t channel = 0; channel < image.channels; ++channel) {
    double sum = 0;
    for (std::int64_t x = threadIdx.x; x < image.width; x += kAverageThreads)
      sum += static_cast<double>(pixels[x * image.channels + channel]);
    sum = block_sum(sum);
    if (threadIdx.x == 0) row_sums[row * image.channels + channel] = sum;
  }
}

/// Owns: a block one channel of one plane. Reads: its sums by row. Writes: its mean.
/// Waits for: nothing of other blocks, so that it cannot deadlock. Source: a block's reduction.
__global__ void __launch_bounds__(kAverageThreads)
    average_rows(const double* row_sums, std::int64_t height, std::int64_t width, std::int64_t channels,
                 float* means) {
  const std::int64_t plane = blockIdx.x / channels;
  const std::int64_t channel = blockIdx.x % channels;
  double sum = 0;
  for (std::int64_t y = threadIdx.x; y < height; y += kAverageThreads)
    sum += row_sums[(plane * height + y) * channels + channel];
  sum = block_sum(sum);
  if (threadIdx.x == 0) means[blockIdx.x] = static_cast<float>(sum / (static_cast<double>(height) * width));
}

}  // namespace

template <class Input>
void average_image(CudaExecutor& executor, const TableJob<Input, float, Space::kDevice>& job,
                   DeviceSpan<float> means) {
  check_image("summed_area_table", job.image);
  executor.check_interrupt();
  executor.bind_thread();
  const std::int64_t rows = job.planes * job.image.height;
  const auto row_sums = executor.scratch<double>(static_cast<std::size_t>(rows * job.image.channels));
  sum_rows<<<static_cast<unsigned int>(rows), kAverageThreads, 0, executor.stream()>>>(
      job.image, job.plane_stride, row_sums.data());
  CUMULUS_CUDA(cudaGetLastError());
  average_rows<<<static_cast<unsigned int>(job.planes * job.image.channels), kAverageThreads, 0,
                 executor.stream()>>>(row_sums.data(), job.image.height, job.image.width, job.image.channels,
                                      means.data());
  CUMULUS_CUDA(cudaGetLastError());
}
template void average_image(CudaExecutor&, const TableJob<Float16, float, Space::kDevice>&,
                            DeviceSpan<float>);
template void average_image(CudaExecutor&, const TableJob<float, float, Space::kDevice>&, DeviceSpan<float>);

}  // namespace cumulus
