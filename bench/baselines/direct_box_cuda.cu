#include <cuda_runtime.h>

#include "bench/baselines/direct_box.h"
#include "kernels/core/cuda_error.h"

namespace cumulus::bench {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    sum_along_rows(DeviceImage<const float> image, std::int64_t radius, float* sums) {
  const std::int64_t x = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (x >= image.width) return;
  const std::int64_t y = blockIdx.y;
  const float* row = image.data + y * image.row_stride;
  const std::int64_t end = min(x + radius + 1, image.width);
  float sum = 0;
  for (std::int64_t u = max(x - radius, std::int64_t{0}); u < end; ++u) sum += __ldg(row + u);
  sums[y * image.width + x] = sum;
}

__global__ void __launch_bounds__(kThreads)
    average_columns(const float* row_sums, std::int64_t height, std::int64_t width, std::int64_t radius,
                    float* means) {
  const std::int64_t x = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (x >= width) return;
  const std::int64_t y = blockIdx.y;
  const std::int64_t top = max(y - radius, std::int64_t{0});
  const std::int64_t bottom = min(y + radius + 1, height);
  float sum = 0;
  for (std::int64_t v = top; v < bottom; ++v) sum += __ldg(row_sums + v * width + x);
  const std::int64_t columns = min(x + radius + 1, width) - max(x - radius, std::int64_t{0});
  means[y * width + x] = sum / static_cast<float>((bottom - top) * columns);
}

}  // namespace

void filter_box_directly(CudaExecutor& executor, const DeviceImage<const float>& image, std::int64_t radius,
                         float* row_sums, float* means) {
  executor.bind_thread();
  const dim3 blocks(static_cast<unsigned int>((image.width + kThreads - 1) / kThreads),
                    static_cast<unsigned int>(image.height));
  sum_along_rows<<<blocks, kThreads, 0, executor.stream()>>>(image, radius, row_sums);
  CUMULUS_CUDA(cudaGetLastError());
  average_columns<<<blocks, kThreads, 0, executor.stream()>>>(row_sums, image.height, image.width, radius,
                                                              means);
  CUMULUS_CUDA(cudaGetLastError());
}

}  // namespace cumulus::bench
